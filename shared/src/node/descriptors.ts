/**
 * The descriptors of a process are bounded. Its log, snapshots and health checks need some when its connections have
 * taken the others, so the last ones are kept from connections.
 */

import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import type { Log } from './log.ts'

/**
 * Descriptors that a connection must leave free: one of a client, and one that serves health checks or other members.
 * Small limits keep less.
 */
export const DESCRIPTORS_KEPT = { client: 64, health: 32 } as const
const KEPT_SHARE = 0.25

const limit = descriptorLimit()

/** Most descriptors of this process; infinite where the system does not say. */
function descriptorLimit(): number {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1')) ?? []
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft)
  } catch {
    // No /proc on this platform.
    return Number.POSITIVE_INFINITY
  }
}

/** @returns -1 if it has none that is known */
export function descriptorOf(socket: Socket): number {
  const { fd = -1 } = (socket as Socket & { readonly _handle?: { readonly fd?: number } | null })._handle ?? {}
  return fd
}

/**
 * Whether a new connection has one of the descriptors that are kept: then it is closed. The system gives out the lowest
 * free number, so all below are in use.
 */
export function lacksDescriptors(
  socket: Socket,
  kept: number = DESCRIPTORS_KEPT.client,
  limitOfProcess = limit,
): boolean {
  return descriptorOf(socket) >= limitOfProcess - Math.min(kept, limitOfProcess * KEPT_SHARE)
}

/** Says at the start that the process may not have as many connections as are configured. */
export function warnOfDescriptors(log: Pick<Log, 'warn'>, connectionsMax: number, limitOfProcess = limit): void {
  if (connectionsMax + DESCRIPTORS_KEPT.client <= limitOfProcess) return
  const open = `may open ${limitOfProcess} files (ulimit -n)`
  log.warn(
    { connectionsMax, filesMax: limitOfProcess },
    `${connectionsMax} connections are configured, but the process ${open}: further ones are closed at once`,
  )
}
