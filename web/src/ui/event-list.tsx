/** Events, newest first. */

import type { ClusterEvent } from '@vacancy/shared/contract'
import { Icon } from '../icons/icon.tsx'
import { routes } from '../lib/routes.ts'
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
}

export function EventList({ events, label, isLinked }: EventListProps) {
  return (
    <ol aria-label={label} className="grid">
      {events.map((event) => (
        <li
          key={event.id}
          data-event={event.kind}
          className="grid grid-cols-[16px_minmax(0,1fr)_auto] items-baseline gap-x-2 border-line border-b py-1.5 last:border-b-0"
        >
          <Icon name={LEVEL_ICONS[event.level]} size={14} className={`self-center ${LEVEL_TEXT[event.level]}`} />
          <span className="min-w-0 break-words">
            {isLinked ? <Link href={routes.shard(event.shard)}>{event.message}</Link> : event.message}
          </span>
          <span className="text-small">
            <Link href={routes.shard(event.shard, { at: event.at })} data-tip={copy.event.open}>
              <Age at={event.at} />
            </Link>
          </span>
        </li>
      ))}
    </ol>
  )
}
