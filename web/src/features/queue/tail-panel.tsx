'use client'
/** The live tail of a topic: what happens to its jobs, newest first; can be paused and filtered. */
import type { Level, TailEvent, TailEventKind } from '@vacancy/shared/contract'
import { useDeferredValue, useMemo, useState } from 'react'
import { parseFilter, passes } from '../../lib/filter.ts'
import { bytes, clock, NONE } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { useUrlTyped } from '../../lib/url.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { FilterBox } from '../../ui/filter-box.tsx'
import { Link } from '../../ui/link.tsx'
import { NARROW, useMedia } from '../../ui/media.ts'
import { Panel } from '../../ui/panel.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { VirtualTable } from '../../ui/virtual-table.tsx'
import * as copy from './copy.ts'
import { headText } from './payload.ts'
import { useTail } from './queries.ts'

const LEVELS: Readonly<Record<TailEventKind, Level>> = {
  accepted: 'info',
  delivered: 'info',
  done: 'ok',
  failed: 'warn',
  expired: 'warn',
  disconnected: 'warn',
  released: 'info',
  dead: 'crit',
  redriven: 'info',
  cancelled: 'unk',
}
const KEYS = { event: Object.keys(LEVELS), consumer: [], id: [] }
const NO_EVENTS: readonly TailEvent[] = []

const fieldsOf = ({ id, event, consumer, error }: TailEvent) => ({
  id,
  event,
  consumer: consumer ?? '',
  error: error ?? '',
})

export function TailPanel({ topic }: { readonly topic: string }) {
  const [isPaused, setPaused] = useState(false)
  const [typed, setTyped] = useUrlTyped('tail')
  const filterText = useDeferredValue(typed)
  const query = useTail(topic, isPaused)
  const events = query.data?.events ?? NO_EVENTS
  const shown = useMemo(() => {
    const filter = parseFilter(filterText)
    return events.filter((event) => passes(filter, fieldsOf(event)))
  }, [events, filterText])
  const skipped = query.data?.skipped ?? 0
  return (
    <div className="grid min-w-0 gap-3">
      <div className="flex flex-wrap items-start gap-2">
        <div className="min-w-0 grow basis-72">
          <FilterBox
            label={copy.tail.filter}
            value={typed}
            onChange={setTyped}
            keys={KEYS}
            shown={shown.length}
            total={events.length}
          />
        </div>
        <Button icon={isPaused ? 'play' : 'pause'} onClick={() => setPaused(!isPaused)}>
          {isPaused ? copy.tail.resume : copy.tail.pause}
        </Button>
      </div>
      {skipped > 0 && (
        <p role="status" className="text-small text-warn">
          {copy.tail.skipped(skipped)}
        </p>
      )}
      <Panel
        title={copy.tail.title}
        hideTitle
        flush
        query={query}
        isEmpty={() => events.length === 0}
        empty={{ text: copy.tail.empty }}
        filtered={
          events.length > 0 && shown.length === 0
            ? { text: copy.tail.filtered(events.length, filterText), onClear: () => setTyped('') }
            : undefined
        }
        skeleton={8}
      >
        <Events topic={topic} events={shown} />
      </Panel>
    </div>
  )
}

function Events({ topic, events }: { readonly topic: string; readonly events: readonly TailEvent[] }) {
  const isNarrow = useMedia(NARROW)
  const columns = useMemo(() => columnsOf(topic), [topic])
  const props = {
    label: copy.tail.title,
    rows: events,
    columns,
    rowKey: ({ n }: TailEvent) => String(n),
    className: 'relative',
    rowProps: ({ event, id }: TailEvent) => ({ 'data-event': event, 'data-job': id }),
  }
  if (isNarrow) return <Table {...props} card={(event) => <EventCard topic={topic} event={event} />} />
  return <VirtualTable {...props} />
}

function columnsOf(topic: string): readonly Column<TailEvent>[] {
  return [
    {
      id: 'job',
      header: copy.jobs.id,
      rowHeader: true,
      cell: ({ id }) => (
        <Link href={routes.queueJob(topic, id)} className="block max-w-56 truncate font-mono" data-tip={id}>
          {id}
        </Link>
      ),
    },
    { id: 'at', header: copy.tail.at, cell: ({ at }) => <span className="tabular-nums">{clock(at)}</span> },
    { id: 'event', header: copy.tail.event, cell: ({ event }) => <EventBadge event={event} /> },
    {
      id: 'consumer',
      header: copy.jobs.consumer,
      rank: 2,
      cell: ({ consumer }) => <span className="block max-w-48 truncate font-mono">{consumer ?? NONE}</span>,
    },
    {
      id: 'error',
      header: copy.tail.error,
      rank: 2,
      cell: ({ error }) => (
        <span className="block max-w-80 truncate" data-tip={error ?? undefined}>
          {error ?? NONE}
        </span>
      ),
    },
    { id: 'size', header: copy.jobs.size, end: true, rank: 3, cell: (event) => bytes(event.bytes) },
    { id: 'head', header: copy.jobs.head, rank: 4, cell: (event) => <Head event={event} /> },
  ]
}

function EventBadge({ event }: { readonly event: TailEventKind }) {
  return <Badge level={LEVELS[event]}>{copy.tail.events[event]}</Badge>
}

function Head({ event: { head, bytes: size } }: { readonly event: TailEvent }) {
  if (head === null) return <span className="text-text-3">{copy.jobs.noPayload}</span>
  const text = headText(head)
  if (text === undefined) return <span className="text-text-3">{copy.jobs.binary(bytes(size))}</span>
  return <code className="block max-w-80 truncate font-mono text-text-2">{text}</code>
}

function EventCard({ topic, event }: { readonly topic: string; readonly event: TailEvent }) {
  return (
    <div className="grid gap-1">
      <Link href={routes.queueJob(topic, event.id)} className="inline-flex min-h-11 items-center break-all font-mono">
        {event.id}
      </Link>
      <p className="flex flex-wrap items-center gap-2 text-small text-text-3">
        <EventBadge event={event.event} />
        <span className="tabular-nums">{clock(event.at)}</span>
        {event.consumer}
      </p>
      {event.error !== null && <p className="break-words text-table">{event.error}</p>}
    </div>
  )
}
