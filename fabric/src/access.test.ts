import type { IncomingMessage } from 'node:http'
import { turnableClock } from '@vacancy/shared'
import { hashToken } from '@vacancy/shared/tokens'
import { expect, test } from 'vitest'
import { createDoor, scopeFault } from './access.ts'

const request = (remoteAddress: string, headers: object = {}) =>
  ({ headers, socket: { remoteAddress } }) as unknown as IncomingMessage

test.each([
  ['127.0.0.1', true],
  ['127.9.9.9', true],
  ['::1', true],
  ['::ffff:127.0.0.1', true],
  ['10.0.0.1', false],
  ['::ffff:10.0.0.1', false],
  ['1127.0.0.1', false],
  ['', false],
])('without an auth file an admin path requires a caller on the same machine: %s, %s', (address, may) => {
  const door = createDoor({ tokens: () => undefined, publicRead: true, clock: turnableClock(0) })

  if (may) expect(door('admin')(request(address))).toEqual({})
  else expect(() => door('admin')(request(address))).toThrow('same machine')
  expect(door('component')(request(address))).toEqual({})
  expect(door('read')(request(address))).toEqual({})
})

test.each([
  [{}, { shard: 's1', zone: 'z1' }, ''],
  [{ zone: 'z1' }, { shard: 's9', zone: 'z1' }, ''],
  [{ zone: 'z1' }, { shard: 's1', zone: 'z2' }, 'the token is for zone z1'],
  [{ shard: 's1' }, { shard: undefined, zone: 'z1' }, 'the token is for shard s1'],
])('a token with %j that accesses %j: %s', (caller, touched, fault) => {
  expect(scopeFault(caller, touched)).toBe(fault)
})

test('after 20 invalid tokens in a minute an address is limited, but valid tokens are not, as they used to be', () => {
  const known = { hash: hashToken('right'), role: 'admin' as const, name: '', expiresMs: Number.POSITIVE_INFINITY }
  const door = createDoor({ tokens: () => [known], publicRead: false, clock: turnableClock(0) })
  const call = (token: string) => door('admin')(request('10.0.0.1', { authorization: `Bearer ${token}` }))
  for (let i = 0; i < 20; i++) expect(() => call(`wrong-${i}`)).toThrow('invalid token')

  expect(() => call('wrong')).toThrow('too many failed tries')
  expect(() => call('right')).not.toThrow()
})
