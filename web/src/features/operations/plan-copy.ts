/** Texts of plans, which load with the dialog. */
import { counted } from '../../lib/format.ts'

export const plan = {
  preparing: 'Preparing the plan…',
  unlistedChange: 'The cluster changed in a way that the checks do not show.',
  changedTitle: 'The cluster changed since this plan was made. Nothing was executed.',
  foundTitle: 'The checks found more since this plan was made. Nothing was executed.',
  tooOld: 'The plan was older than a minute. Nothing was executed.',
  changedHint: 'Review the updated plan below, then confirm again.',
  useNew: 'Use the updated plan',
  readFirst: 'The plan changed: review it first.',
  notStarted: 'Not started',
  openRunning: 'Open the running operation',
  transfer: (shard: string, node: string) => `Transfer leadership of ${shard}${node === '' ? '' : ` to ${node}`}`,
  promote: (node: string, shard: string) => `Promote ${node} of ${shard}`,
  demote: (node: string, shard: string) => `Demote ${node} of ${shard}`,
  transferThenDemote: (shard: string, node: string) => `Transfer leadership of ${shard}, then demote ${node}`,
  replaceVoter: (shard: string, node: string) => `Replace voter ${node} of ${shard}`,
  install: (snapshot: string, shard: string) => `Install ${snapshot} on ${shard}`,
  undoInstall: (shard: string) => `Undo the installation on ${shard}`,
  target: 'Target',
  node: 'Node',
  replacement: 'Replacement',
  blockedTarget: (reason: string) => `${reason} (would be blocked)`,
  beforeAndAfter: 'Before and after',
  before: 'Now',
  after: 'After',
  voters: (voters: number, majority: number, spare: string) =>
    `${counted(voters, 'voter')}, majority ${majority}: ${spare}`,
  data: (packages: string, properties: string, nights: string) =>
    `${packages} packages, ${properties} properties, ${nights}`,
  noMajority: 'no majority',
  cannotLose: 'cannot lose another',
  canLose: (spare: number) => `can lose ${spare}`,
  effects: 'What will happen',
  checks: 'Checks',
  passed: (checks: number) => `${counted(checks, 'check')} passed`,
  passedList: 'Passed checks',

  levels: { ok: 'Passed', info: 'Note', warn: 'Warning', block: 'Blocked' },
  fromCommandLine: 'From the command line',
  cli: 'Command line',
  curl: 'curl',
  reason: 'Reason',
  reasonOptional: 'Recorded in the audit log. Optional.',
  reasonRequired: (warnings: number) =>
    warnings === 0
      ? 'Recorded in the audit log.'
      : `Recorded in the audit log. Required because of ${counted(warnings, 'warning')}.`,
  observed: 'Observed',
  updated: ', updated every second',
  never: 'never',
  cancel: 'Cancel',
  requested: 'Requested…',
  run: 'Run plan',
  keys: 'Ctrl Enter',
  blocked: 'Blocked.',
  blockedBy: (checks: readonly string[]) =>
    checks.length === 1 ? `Blocked: ${checks[0]}.` : `Blocked by ${checks.length} checks.`,
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

/** One sentence per kind of plan. */
export const outcome = {
  blocked: 'Not possible now, for these reasons:',
  transfer: (shard: string, before: string | null, after: string, pause: string) =>
    `${after} leads ${shard}${before === null ? '' : ` instead of ${before}`}.${pause}`,
  pause: (expected: string, worst: string) => ` Writes pause for about ${expected}, at worst ${worst}.`,
  promote: (node: string, shard: string, voters: number, spare: string) =>
    `${node} becomes a voter: ${shard} then has ${counted(voters, 'voter')} and ${spare}.`,
  demote: (node: string, shard: string, voters: number, spare: string) =>
    `${node} becomes a learner: ${shard} then has ${counted(voters, 'voter')} and ${spare}.`,
  transferThenDemote: (node: string, shard: string, leader: string | null, voters: number, spare: string) =>
    `${leader ?? 'Another voter'} leads ${shard}, then ${node} becomes a learner: ${counted(voters, 'voter remains', 'voters remain')}, the shard ${spare}.`,
  replaceVoter: (replacement: string, node: string, voters: number, spare: string) =>
    `${replacement} votes in place of ${node}: the shard keeps ${counted(voters, 'voter')} and ${spare}.`,
  install: (shard: string, packages: string | undefined) =>
    packages === undefined ? `${shard} serves other data.` : `${shard} serves ${packages} packages from then on.`,
}
