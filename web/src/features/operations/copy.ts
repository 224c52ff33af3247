/** Texts of operations and plans. The operations tray has its own (tray-copy.ts), since the shell loads it. */

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

export const plan = {
  preparing: 'Preparing the plan…',
  unlistedChange: 'The cluster changed in a way that the checks do not show.',
  changedTitle: 'The cluster changed since this plan was made. Nothing was executed.',
  changedHint: 'Review the updated plan below, then confirm again.',
  notStarted: 'Not started',
  openRunning: 'Open the running operation',
  transfer: (shard: string, node: string) => `Transfer leadership of ${shard}${node === '' ? '' : ` to ${node}`}`,
  promote: (node: string, shard: string) => `Promote ${node} of ${shard}`,
  demote: (node: string, shard: string) => `Demote ${node} of ${shard}`,
  transferThenDemote: (shard: string, node: string) => `Transfer leadership of ${shard}, then demote ${node}`,
  install: (snapshot: string, shard: string) => `Install ${snapshot} on ${shard}`,
  undoInstall: (shard: string) => `Undo the installation on ${shard}`,
  target: 'Target',
  node: 'Node',
  blockedTarget: (reason: string) => `${reason} (would be blocked)`,
  beforeAndAfter: 'Before and after',
  before: 'Now',
  after: 'After',
  voters: (voters: number, majority: number, spare: string) => `${voters} voters, majority ${majority}: ${spare}`,
  data: (packages: string, properties: string, nights: string) =>
    `${packages} packages, ${properties} properties, ${nights}`,
  noMajority: 'no majority',
  cannotLose: 'cannot lose another',
  canLose: (spare: number) => `can lose ${spare}`,
  effects: 'What will happen',
  checks: 'Checks',
  levels: { ok: 'Passed', info: 'Note', warn: 'Warning', block: 'Blocked' },
  fromCommandLine: 'From the command line',
  cli: 'Command line',
  curl: 'curl',
  reason: 'Reason',
  reasonOptional: 'Recorded in the audit log. Optional.',
  reasonRequired: (warnings: number) =>
    warnings === 0
      ? 'Recorded in the audit log.'
      : `Recorded in the audit log. Required because of ${warnings === 1 ? '1 warning' : `${warnings} warnings`}.`,
  observed: 'Observed',
  updated: ', updated every second',
  never: 'never',
  cancel: 'Cancel',
  requested: 'Requested…',
  run: 'Run plan',
  blocked: 'Blocked.',
  blockedBy: (checks: string) => `Blocked: ${checks}.`,
  typeToContinue: (text: string) => `Type ${text} to continue.`,
  reasonTooShort: (characters: number) => `Enter a reason of at least ${characters} characters.`,
  leaderChanged: (before: string | null, after: string | null) =>
    `The leader was ${before ?? 'none'} and is now ${after ?? 'none'}.`,
  termChanged: (before: number | null, after: number | null) =>
    `The term was ${before ?? 'unknown'} and is now ${after ?? 'unknown'}.`,
  membersChanged: (changes: string) => `Members changed: ${changes}.`,
  roleChanged: (node: string, role: string) => `${node} is now ${role}`,
  memberAdded: (node: string, role: string) => `${node} was added as ${role}`,
  memberRemoved: (node: string) => `${node} was removed`,
  votersChanged: 'the voters changed',
}
