/** What is refused before it is read: by the login, the role of this node, and what is in flight. */

import { standingOf, type TokenHash } from '@vacancy/shared/tokens'
import type { CommandSpec } from '@vacancy/shared/wire'
import { type Cells, isLeaderKnown, ROLE, roleOf } from '../cluster/shared-status.ts'
import { isMemoryFull } from '../store/store.ts'
import { type Connection, LIMITS_OF_THREAD } from './connection-state.ts'
import { isBelowLevel, needsMemory } from './dispatch.ts'

/** LOGIN is recognized by its name alone: a malformed one gets its own reply. */
export function isLogin(bytes: Uint8Array, start: number, end: number): boolean {
  return (
    end - start >= 6 &&
    bytes[start] === 5 &&
    bytes[start + 1] === 0x4c &&
    bytes[start + 2] === 0x4f &&
    bytes[start + 3] === 0x47 &&
    bytes[start + 4] === 0x49 &&
    bytes[start + 5] === 0x4e
  )
}

/** Gives an open connection the standing that its token has now; `entry` is undefined without it in the auth file. */
export function updateRole(connection: Connection, entry: TokenHash | undefined, nowMs: number): void {
  const { role, fault } = standingOf(entry, nowMs)
  connection.role = role
  connection.roleFault = fault
  if (entry) connection.token = entry
}

/** @returns '' or the error text */
export function refusalOf(connection: Connection, command: CommandSpec): string {
  const { thread, role } = connection
  if (role === undefined) return `AUTH_ERROR: ${connection.roleFault}`
  if (role === 'monitoring') return 'FORBIDDEN: the role monitoring may not run commands'
  if (thread.draining) return '503'
  if (++thread.requestsThisTick > LIMITS_OF_THREAD.requestsPerTick) return '429'
  const misplaced = thread.cells ? refusalInShard(thread.cells, command, thread.leaderReads) : ''
  if (misplaced !== '') return misplaced
  if (isBelowLevel(thread.memory, command)) return refusalBelowLevel(thread.cells, command)
  if (command.access === 'read' && !thread.leaderReads && !thread.cells) return '405'
  if (command.access === 'write' && thread.waiting.size >= LIMITS_OF_THREAD.writesInFlight) return '429'
  if (needsMemory(command) && isMemoryFull(thread.memory)) return '503'
  return ''
}

/**
 * Refuses requests that the role of this node does not allow. A write is refused here only before it is in any log
 * (docs/design/consensus.md#retryable-errors).
 */
function refusalInShard(cells: Cells, command: CommandSpec, leaderReads: boolean): string {
  const role = roleOf(cells)
  if (role === ROLE.unavailable) return '503'
  const isLeader = role === ROLE.leader
  // A leader that has not begun its term does not count, and the client cannot be redirected to another node.
  const isElsewhere = role !== ROLE.none && isLeaderKnown(cells)
  if (command.access === 'write') return isLeader ? '' : isElsewhere ? '308' : '503'
  return isLeader && !leaderReads ? '405' : ''
}

/**
 * The leader has the feature level of the shard. Other nodes may be behind, or have no data yet. A standalone node
 * raises its level right after its start.
 */
function refusalBelowLevel(cells: Cells | undefined, { name }: CommandSpec): string {
  if (cells && roleOf(cells) === ROLE.leader) return `VALIDATION_ERROR: unknown command ${name}`
  return cells && isLeaderKnown(cells) ? '308' : '503'
}
