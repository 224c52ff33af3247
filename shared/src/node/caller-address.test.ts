import { expect, test } from 'vitest'
import { callerAddresses, isNetwork } from './caller-address.ts'

const PROXY = '10.1.0.1'

test.each<[string, readonly string[], string, string | undefined, string]>([
  ['without a proxy', [], PROXY, '10.9.9.9', PROXY],
  ['of a proxy that is not listed', ['10.2.0.0/16'], PROXY, '10.9.9.9', PROXY],
  ['behind a listed proxy', [PROXY], PROXY, '10.9.9.9', '10.9.9.9'],
  ['behind a proxy of a listed network', ['10.1.0.0/16'], PROXY, '10.9.9.9', '10.9.9.9'],
  ['behind two of them', ['10.1.0.0/16'], PROXY, '10.9.9.9, 10.1.0.2', '10.9.9.9'],
  ['that claims to be another one', [PROXY], PROXY, '6.6.6.6, 10.9.9.9', '10.9.9.9'],
  ['of a proxy that names nobody', [PROXY], PROXY, undefined, PROXY],
  ['with an IPv4 address as IPv6', [PROXY], `::ffff:${PROXY}`, '[2001:db8::1]', '2001:db8::1'],
  ['behind a listed IPv6 network', ['fd00::/8'], 'fd00::1', '10.9.9.9', '10.9.9.9'],
])('the address of a caller %s', (_, trusted, peer, forwarded, address) => {
  expect(callerAddresses(trusted)(peer, forwarded)).toBe(address)
})

test('a proxy is an address or a network', () => {
  const texts = [PROXY, '10.0.0.0/8', 'fd00::/8', '::1', '10.0.0.0/33', 'proxy', '10.0.0.0/8/8', '']
  expect(texts.filter(isNetwork)).toEqual([PROXY, '10.0.0.0/8', 'fd00::/8', '::1'])
})
