/** Texts of operations that every page loads: the tray, the states, links to plans. */
import type { OperationState } from '@vacancy/shared/contract'
import { counted } from '../../lib/format.ts'

export const states: Record<OperationState, { readonly label: string; readonly meaning: string }> = {
  armed: {
    label: 'Armed',
    meaning: 'Nothing has been sent yet. It starts automatically once its condition is met.',
  },
  requested: { label: 'Requested', meaning: 'The request is on its way to the leader.' },
  accepted: { label: 'Accepted', meaning: 'The cluster accepted the request. This is not the result yet.' },
  verifying: { label: 'Verifying', meaning: 'Waiting for a majority of voters to confirm.' },
  done: { label: 'Done', meaning: 'A majority of voters confirms the result.' },
  elsewhere: { label: 'Went elsewhere', meaning: 'The cluster changed, but to another node than requested.' },
  'no-change': { label: 'No change', meaning: 'The shard is unchanged.' },
  refused: { label: 'Refused', meaning: 'The cluster refused the request. Nothing was changed.' },
  unconfirmed: { label: 'Unconfirmed', meaning: 'The outcome is unknown. This does not mean that it failed.' },
  cancelled: { label: 'Cancelled', meaning: 'It was cancelled before anything was sent.' },
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
