/**
 * Daily maintenance of a leader. Shard time decides which nights are past, as it does for a write, never the clock of
 * this node alone.
 */

import { formatDay } from '@vacancy/shared'
import { GAP_REASON } from '../store/window.ts'
import { isTimeTrusted, shardDay } from './keep-time.ts'
import { startMaintenance } from './maintenance.ts'
import type { Replica } from './replica-state.ts'
import { CLOCK_LIMITS } from './shard-time.ts'

/** @returns whether an entry was proposed */
export function maintain(replica: Replica, isForced: boolean): boolean {
  return replica.raft.role === 'leader' && startMaintenance(replica, gapReason(replica, isForced))
}

/** Why maintenance may advance by more than a few days at once. */
function gapReason(replica: Replica, isForced: boolean): number {
  if (isForced) return GAP_REASON.operator
  const last = replica.machine.lastMaintenanceDay()
  if (last === 0) return GAP_REASON.none
  const today = shardDay(replica)
  const gap = today - last
  // A majority of the voters' clocks is trusted whatever the gap. The clock of a lone voter is trusted for up to a
  // month.
  const isBelieved = isTimeTrusted(replica) && (replica.link !== undefined || gap <= CLOCK_LIMITS.restDays)
  if (isBelieved || replica.acceptDay >= today) {
    if (gap > 3) replica.env.log.warn({ days: gap }, 'clock jumped forward; advancing the date window by several days')
    return GAP_REASON.rest
  }
  replica.env.log.error(
    { days: gap, today: formatDay(today), type: '--accept-date YYYY-MM-DD' },
    'clock not trusted after a long gap, maintenance skipped',
  )
  return GAP_REASON.none
}
