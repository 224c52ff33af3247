/** Events of one cause as one story: a transfer with what it set off, a restart, an election. Pure. */
import type { ClusterEvent, Level } from '@vacancy/shared/contract'

export type Story = {
  /** The event that explains the others. */
  readonly head: ClusterEvent
  /** The worst of what the story left behind. */
  readonly level: Level
  /** In the order of the list, the head included. */
  readonly events: readonly ClusterEvent[]
}

const STORY = {
  /** Longer pauses between two events of a shard end a story. */
  pauseMs: 10_000,
  longestMs: 120_000,
} as const

/** What explains other events comes first. */
const CAUSES: readonly ClusterEvent['kind'][] = [
  'operation',
  'leader',
  'restart',
  'membership',
  'codecs',
  'state',
  'role',
  'snapshot',
]

const WORST_LAST: readonly Level[] = ['ok', 'info', 'unk', 'warn', 'crit']

/** @param events of any shards, ordered by time in either direction */
export function storiesOf(events: readonly ClusterEvent[]): Story[] {
  const stories: ClusterEvent[][] = []
  const open = new Map<string, ClusterEvent[]>()
  for (const event of events) {
    const story = open.get(event.shard)
    // Snapshots are saved by the clock: they belong to nothing that happens.
    if (event.kind !== 'snapshot' && story && isPart(story, event)) story.push(event)
    else {
      const next = [event]
      stories.push(next)
      if (event.kind !== 'snapshot') open.set(event.shard, next)
    }
  }
  return stories.map(storyOf)
}

function isPart(story: readonly ClusterEvent[], { at }: ClusterEvent): boolean {
  const from = (event: ClusterEvent | undefined) => Math.abs(Date.parse(at) - Date.parse(event?.at ?? at))
  return from(story.at(-1)) <= STORY.pauseMs && from(story[0]) <= STORY.longestMs
}

function storyOf(events: readonly ClusterEvent[]): Story {
  const [head] = events.toSorted(
    (a, b) => CAUSES.indexOf(a.kind) - CAUSES.indexOf(b.kind) || Date.parse(b.at) - Date.parse(a.at),
  ) as [ClusterEvent]
  const last = new Map<string, ClusterEvent>()
  for (const event of events) {
    const other = last.get(event.node ?? '')
    if (!other || event.at > other.at) last.set(event.node ?? '', event)
  }
  const levels = [head, ...last.values()].map(({ level }) => level)
  const [level] = levels.toSorted((a, b) => WORST_LAST.indexOf(b) - WORST_LAST.indexOf(a)) as [Level]
  return { head, level, events }
}
