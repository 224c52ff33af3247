/** Failed LOGINs by address, counted by all serving threads together in bounded memory. */

import { TOKEN_FAILURES_MAX } from '@vacancy/shared/tokens'

/** Addresses in one slot share its count; a known token is never counted. */
const SLOTS = 4096
const WINDOW_NS = 60_000_000_000n

export function createLoginFailures(): SharedArrayBuffer {
  return new SharedArrayBuffer(SLOTS * 2 * 4)
}

/**
 * Counts a failed LOGIN.
 *
 * @param cells shared by all threads
 * @param nowNs of a clock common to all threads
 * @returns whether its address has failed too often within a minute
 */
export function noteLoginFailure(cells: Int32Array, address: string, nowNs: bigint): boolean {
  const slot = slotOf(address) * 2
  const minute = Number(BigInt.asIntN(32, nowNs / WINDOW_NS + 1n))
  const before = Atomics.load(cells, slot)
  // Two threads that begin a minute together may lose one count, which is harmless.
  if (before !== minute && Atomics.compareExchange(cells, slot, before, minute) === before)
    Atomics.store(cells, slot + 1, 0)
  return Atomics.add(cells, slot + 1, 1) >= TOKEN_FAILURES_MAX
}

/** FNV-1a. */
function slotOf(address: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < address.length; at++) hash = Math.imul(hash ^ address.charCodeAt(at), 0x01000193)
  return (hash >>> 0) % SLOTS
}
