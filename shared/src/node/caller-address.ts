/** Whose request it is: limits by address count the caller that a trusted reverse proxy names, and not the proxy. */

import { BlockList, isIP } from 'node:net'

/**
 * The address of a caller: the last one that no trusted proxy has.
 *
 * @param peer address of the connection
 * @param forwarded the header `X-Forwarded-For`
 */
export type CallerAddress = (peer: string | undefined, forwarded: string | undefined) => string

/** @param trusted addresses and networks of reverse proxies, as `isNetwork` accepts them */
export function callerAddresses(trusted: readonly string[]): CallerAddress {
  const proxies = new BlockList()
  for (const network of trusted) {
    const [address = '', bits] = network.split('/')
    if (bits === undefined) proxies.addAddress(address, familyOf(address))
    else proxies.addSubnet(address, Number(bits), familyOf(address))
  }
  const isTrusted = (address: string) => isIP(address) !== 0 && proxies.check(address, familyOf(address))
  return (peer = '', forwarded = '') => {
    let address = bareAddress(peer)
    if (trusted.length === 0 || forwarded === '') return address
    const named = forwarded.split(',')
    while (isTrusted(address) && named.length > 0) {
      const next = bareAddress(named.pop()?.trim() ?? '')
      if (next === '') break
      address = next
    }
    return address
  }
}

/** Whether it is an address, or a network such as `10.0.0.0/8`. */
export function isNetwork(text: string): boolean {
  const [address = '', bits, more] = text.split('/')
  const family = isIP(address)
  if (family === 0 || more !== undefined) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128))
}

/** An address without brackets and without the IPv4-mapped prefix. */
export function bareAddress(address: string): string {
  return address.replace(/^\[(.*)\]$/, '$1').replace(/^::ffff:(?=\d+\.)/, '')
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4'
}
