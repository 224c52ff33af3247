/** Changes of a shard's members: what nodes, control plane and console state alike. */

import { groupDigits } from './numbers.ts'

/** Types of changes that a leader carries out and reports. */
export const MEMBER_OPERATIONS = [
  'promote',
  'demote',
  'remove',
  'transfer',
  'join',
  'replace',
  'load',
  'drop-load',
  'set-time',
] as const
export type MemberOperation = (typeof MEMBER_OPERATIONS)[number]

const ENTRIES_MAX = 1_000
const WAIT_MINUTES = 10

/**
 * When a learner has caught up and may be promoted: at most so many entries behind the commit index. A promotion waits
 * for that, and fails after `waitMs`.
 */
export const CATCH_UP = {
  entriesMax: ENTRIES_MAX,
  waitMs: WAIT_MINUTES * 60_000,
  entriesText: `at most ${groupDigits(ENTRIES_MAX)} entries behind`,
  waitText: `${WAIT_MINUTES} minutes`,
} as const
