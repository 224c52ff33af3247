/** Texts of operations that every page loads: the tray, the states, links to plans. */
import type { OperationState } from '@vacancy/shared/contract'
import { counted } from '../../lib/format.ts'

export const states: Record<OperationState, string> = {
  armed: 'Armed',
  requested: 'Requested',
  accepted: 'Accepted',
  verifying: 'Verifying',
  done: 'Done',
  elsewhere: 'Went elsewhere',
  'no-change': 'No change',
  refused: 'Refused',
  stopped: 'Stopped',
  unconfirmed: 'Unconfirmed',
  cancelled: 'Cancelled',
}

export const tray = {
  title: 'Operations',
  count: (running: number) => counted(running, 'operation'),
  hide: 'Hide operations',
  dismiss: (operation: string) => `Dismiss: ${operation}`,
  started: (operation: string) => `${operation}: started.`,
  ended: (operation: string, state: string, outcome: string) => `${operation}: ${state}. ${outcome}`,
  notice: (operation: string, notice: string) => `${operation}: ${notice}`,
}

/** Snapshots and imports open the same plan. */
export const installButton = (shard: string) => `Install on ${shard}…`

export const planLink = { invalid: (link: string) => `Invalid plan in the URL: ${link}` }
