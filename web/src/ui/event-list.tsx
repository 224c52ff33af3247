/** Events, newest first; those of one cause are one row that opens. */

import type { ClusterEvent } from '@vacancy/shared/contract'
import { Icon } from '../icons/icon.tsx'
import { clock } from '../lib/format.ts'
import { routes } from '../lib/routes.ts'
import { type Story, storiesOf } from '../lib/stories.ts'
import { Age } from './age.tsx'
import { LEVEL_ICONS, LEVEL_TEXT } from './badge.tsx'
import * as copy from './data-copy.ts'
import { Link } from './link.tsx'

type EventListProps = {
  readonly events: readonly ClusterEvent[]
  /** Accessible name of the list. */
  readonly label: string
  /** Links each event to its shard, for lists of several shards. */
  readonly isLinked?: boolean
  /** Shows so many rows, the newest. */
  readonly most?: number
}

export function EventList({ events, label, isLinked, most }: EventListProps) {
  return (
    <ol aria-label={label} className="grid">
      {storiesOf(events)
        .slice(0, most)
        .map((story) => (
          <li
            key={story.events.at(-1)?.id}
            data-event={story.head.kind}
            className="grid grid-cols-[minmax(0,1fr)_auto] items-baseline gap-x-2 border-line border-b py-1.5 last:border-b-0"
          >
            {story.events.length === 1 ? (
              <Row event={story.head} level={story.level} isLinked={isLinked} />
            ) : (
              <Opening story={story} isLinked={isLinked} />
            )}
            <span className="text-small">
              <Link href={routes.shard(story.head.shard, { at: story.head.at })} data-tip={copy.event.open}>
                <Age at={story.head.at} />
              </Link>
            </span>
          </li>
        ))}
    </ol>
  )
}

type RowProps = {
  readonly event: ClusterEvent
  readonly level: Story['level']
  readonly isLinked: boolean | undefined
  /** How many events the row stands for. */
  readonly of?: number
}

function Row({ event, level, isLinked, of }: RowProps) {
  return (
    <span className="grid min-w-0 grid-cols-[auto_16px_minmax(0,1fr)] items-baseline gap-x-2">
      <span className="text-small text-text-3 tabular-nums">{clock(event.at)}</span>
      <Icon name={LEVEL_ICONS[level]} size={14} className={`self-center ${LEVEL_TEXT[level]}`} />
      <span className="min-w-0 break-words">
        {isLinked ? <Link href={routes.shard(event.shard)}>{event.message}</Link> : event.message}
        {of !== undefined && <span className="text-small text-text-2">{` · ${copy.event.all(of)}`}</span>}
      </span>
    </span>
  )
}

function Opening({ story, isLinked }: { readonly story: Story; readonly isLinked: boolean | undefined }) {
  return (
    <details className="min-w-0">
      <summary className="cursor-pointer list-none rounded-control hover:bg-sunken">
        <Row event={story.head} level={story.level} isLinked={false} of={story.events.length} />
      </summary>
      <ol className="mt-1 grid gap-1 border-line border-s ps-3">
        {story.events.map((event) => (
          <li key={event.id} data-part={event.kind}>
            <Row event={event} level={event.level} isLinked={isLinked} />
          </li>
        ))}
      </ol>
    </details>
  )
}
