/** Texts of handovers: all leaders of a zone or machine move before a restart, and back. */
import type { HandoverScope, ShardImpact } from '@vacancy/shared/contract'
import { counted, zoneText } from '../../lib/format.ts'

/** "zone eu-1", "machine m1". */
export const placeText = ({ kind, name }: HandoverScope) => (kind === 'zone' ? zoneText(name) : `${kind} ${name}`)

export const plan = {
  title: 'Prepare for restart',
  where: 'Operations',
  preparing: 'Preparing the plan…',
  noScope: 'Choose a zone on the overview, or a machine on the page of one of its nodes.',
  overview: 'Open overview',
  outcome: (moves: number, scope: string) =>
    moves === 0
      ? `No leader of ${scope} can move.`
      : `${counted(moves, 'leader moves', 'leaders move')}, one after another.`,
  outcomeBack: (moves: number, scope: string) =>
    moves === 0
      ? `No leader has to return to ${scope}.`
      : `${counted(moves, 'leader returns', 'leaders return')} to ${scope}, one after another.`,
  pause: (worst: string) => ` Writes of each shard pause while its leader moves, at worst ${worst}.`,
  rules: 'Each transfer is verified before the next one starts. The first that is not done stops the rest.',
  stays: (shards: number) =>
    `${counted(shards, 'shard keeps', 'shards keep')} the leader and would lose it in a restart`,
  stops: (scope: string) => `Do not restart ${scope} as a whole. With it gone:`,
  stop: ({ shard, writes, reads, votersLeft, majority }: ShardImpact) =>
    `${shard}: ${[writes === 'stop' ? 'writes' : '', reads === 'stop' ? 'reads' : ''].filter(Boolean).join(' and ')} stop, ${counted(votersLeft, 'voter')} left, ${majority} needed`,
  moreStops: (shards: number) => `and ${counted(shards, 'more shard')}`,
  warned: (shards: number) => `${counted(shards, 'transfer has', 'transfers have')} a warning`,
  table: 'Leaders',
  shard: 'Shard',
  from: 'From',
  to: 'To',
  note: 'Note',
  none: '–',
  reason: 'Reason',
  reasonRequired: (characters: number) => `Recorded in the audit log. At least ${characters} characters.`,
  reasonOptional: 'Recorded in the audit log. Optional.',
  reasonTooShort: (characters: number) => `Enter a reason of at least ${characters} characters.`,
  nothing: 'No leader can move.',
  start: (moves: number) => `Hand over ${counted(moves, 'leader')}`,
  startBack: (moves: number) => `Bring ${counted(moves, 'leader')} back`,
  keys: 'Ctrl Enter',
  changed: 'The cluster changed since this plan was made. Nothing was executed.',
  changedHint: 'Review the updated plan below, then confirm again.',
  notStarted: 'Not started',
}

export const handover = {
  fallback: 'Handover',
  unknown: (id: string) => `There is no handover ${id}.`,
  states: { running: 'Running', stopped: 'Stopped', done: 'Done', left: 'Left' },
  by: (name: string) => `by ${name}`,
  progress: (done: number, all: number) => `${done} of ${counted(all, 'leader')}`,
  progressLabel: 'Leaders moved',
  stopped: 'A transfer failed. The shards after it keep their leader.',
  doneAll: (scope: string) => `No leader is left in ${scope}. It can be restarted: every shard keeps a majority.`,
  doneUnsafe: (scope: string) => `No leader is left in ${scope}, but it cannot be restarted as a whole.`,
  doneSome: (left: number, scope: string) =>
    `${counted(left, 'leader is', 'leaders are')} still in ${scope}: see below.`,
  doneBack: 'The leaders are back.',
  left: 'Left as it is. Nothing more is moved.',
  continue: 'Continue',
  leave: 'Leave as it is',
  back: 'Bring leaders back…',
  items: 'Shards',
  state: 'State',
  operation: 'Operation',
  open: 'Open',
  itemStates: {
    waiting: 'waiting',
    running: 'moving',
    done: 'moved',
    failed: 'not done',
    skipped: 'skipped',
    stays: 'stays',
  },
}

export const list = {
  title: 'Handovers of zones and machines',
  label: (title: string, state: string) => `${title}: ${state}`,
}
