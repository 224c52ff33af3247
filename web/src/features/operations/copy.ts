/** Texts of operations. The tray has its own (tray-copy.ts), since the shell loads it; so do plans (plan-copy.ts). */
import type { OperationState } from '@vacancy/shared/contract'
import { count } from '../../lib/format.ts'

/** What a state means for the shard. */
export const meanings: Record<OperationState, string> = {
  armed: 'Nothing has been sent yet. It starts automatically once its condition is met.',
  requested: 'The request is on its way to the leader.',
  accepted: 'The cluster accepted the request. This is not the result yet.',
  verifying: 'Waiting for a majority of voters to confirm.',
  done: 'A majority of voters confirms the result.',
  elsewhere: 'The cluster changed, but to another node than requested.',
  'no-change': 'The shard is unchanged.',
  stopped: 'A part of it was done, and nothing more was sent.',
  refused: 'The cluster refused the request. Nothing was changed.',
  unconfirmed: 'The outcome is unknown. This does not mean that it failed.',
  cancelled: 'It was cancelled before anything was sent.',
}

export const list = {
  title: 'Operations',
  next: { label: 'Audit', hint: 'every change and every refused attempt' },
  filter: 'Filter operations',
  states: { all: 'All', running: 'Running', ended: 'Ended' },
  shard: (shard: string) => `shard ${shard}`,
  showAllShards: 'Show all shards',
  started: 'Started',
  operation: 'Operation',
  state: 'State',
  outcome: 'Outcome',
  duration: 'Duration',
  by: 'By',
  reason: 'Reason',
  empty:
    'No operations yet. Open a shard to plan a transfer of leadership. A plan changes nothing until you confirm it.',
  filtered: (state: string, shard: string) =>
    `No ${state === 'all' ? '' : `${state} `}operations${shard === '' ? '' : ` on ${shard}`}.`,
  older: 'Show older operations',
}

export const operation = {
  fallbackTitle: 'Operation',
  unknownTitle: (id: string) => `Operation ${id} not found`,
  unknown: 'This control plane has no operation with this id.',
  openOperations: 'Open all operations',
  openShard: (shard: string) => `Open ${shard}`,
  label: (id: string) => `Operation ${id}`,
  by: (name: string) => `by ${name},`,
  progress: (title: string) => `Progress of ${title}`,
  progressOf: (done: number, total: number, unit: string) => `${count(done)} of ${count(total)} ${unit}`,
  steps: 'Steps',
  stepStates: { waiting: 'waiting', running: 'running', done: 'done', failed: 'failed', skipped: 'skipped' },
  response: 'Response of the cluster:',
  cancel: 'Cancel operation',
  planAgain: 'Plan again…',
  planRest: 'Plan the rest…',
  undo: 'Undo…',
  open: 'Open operation',
  copy: 'Copy operation as text',
  pause: (pause: string, estimate: string | undefined) =>
    `Writes paused for about ${pause}${estimate === undefined ? '' : ` (estimate ${estimate})`}.`,
  uncertainty: (time: string) => `Times are accurate to ± ${time}.`,
  startedBy: (name: string, time: string, reason: string) =>
    `by ${name}, ${time}${reason === '' ? '' : `, reason: ${reason}`}`,
}
