/** Texts of operations. The tray has its own (tray-copy.ts), since the shell loads it; so do plans (plan-copy.ts). */

export const list = {
  title: 'Operations',
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
  progressOf: (done: number, total: number, unit: string) => `${done} of ${total} ${unit}`,
  steps: 'Steps',
  stepStates: { waiting: 'waiting', running: 'running', done: 'done', failed: 'failed', skipped: 'skipped' },
  response: 'Response of the cluster:',
  cancel: 'Cancel operation',
  planAgain: 'Plan again…',
  undo: 'Undo…',
  open: 'Open operation',
  copy: 'Copy operation as text',
  pause: (pause: number, estimate: number | undefined) =>
    `Writes paused for about ${pause} ms${estimate === undefined ? '' : ` (estimate ${estimate} ms)`}.`,
  uncertainty: (milliseconds: number) => `Times are accurate to ± ${milliseconds} ms.`,
  startedBy: (name: string, time: string, reason: string) =>
    `by ${name}, ${time}${reason === '' ? '' : `, reason: ${reason}`}`,
}
