'use client'
/** The leaders of the last 24 h, as a strip or a table. Times without data are shown as unknown. */

import type { ShardLeadership } from '@vacancy/shared/contract'
import clsx from 'clsx'
import { useState } from 'react'
import { age, clock, count, duration, NONE, utc } from '../../lib/format.ts'
import { Button } from '../../ui/button.tsx'
import { Panel } from '../../ui/panel.tsx'
import { Table } from '../../ui/table.tsx'
import { axisFrom, type Stretch, stretchesOf } from './leadership-stretches.ts'
import { useShardLeadership } from './queries.ts'
import * as copy from './shard-copy.ts'

export default function Leadership({ shard }: { readonly shard: string }) {
  const query = useShardLeadership(shard)
  const [isTable, setTable] = useState(false)
  return (
    <Panel
      title={copy.leadership.title}
      query={query}
      at={(data) => data.to}
      skeleton={3}
      flush={isTable}
      actions={
        query.data && (
          <Button kind="quiet" icon={isTable ? 'eye' : 'table'} onClick={() => setTable(!isTable)}>
            {isTable ? copy.leadership.showTimeline : copy.leadership.showTable}
          </Button>
        )
      }
    >
      {(data) => {
        const stretches = stretchesOf(data)
        return isTable ? (
          <StretchTable stretches={stretches} lead={leadershipText(data)} />
        ) : (
          <Strip data={data} stretches={stretches} />
        )
      }}
    </Panel>
  )
}

/** "3 elections, longest gap 1.9 s", with unknown time. */
function leadershipText(data: ShardLeadership): string {
  const unknownMs = Date.parse(data.to) - Date.parse(data.from) - data.knownMs
  const gap =
    data.longestGapMs === null ? copy.leadership.noGap : copy.leadership.longestGap(duration(data.longestGapMs))
  return [
    `${copy.leadership.elections(data.elections)}, ${gap}`,
    ...(unknownMs >= UNKNOWN_MS_MIN ? [copy.leadership.unknownFor(duration(unknownMs))] : []),
    ...(data.isCut ? [copy.leadership.cut(count(data.spans.length))] : []),
  ].join('; ')
}

/** A shorter unknown time is not mentioned. */
const UNKNOWN_MS_MIN = 1_000

/** Minimum width of a stretch, drawn over its neighbours. */
const WIDTH_PX_MIN = 2

type StripProps = { readonly data: ShardLeadership; readonly stretches: readonly Stretch[] }

function Strip({ data, stretches }: StripProps) {
  const from = axisFrom(data)
  const whole = Date.parse(data.to) - from
  const shown = stretches.filter((stretch) => stretch.to > from)
  const share = (ms: number) => `${((ms / whole) * 100).toFixed(4)}%`
  return (
    <div className="grid gap-1">
      <ul
        aria-label={copy.leadership.list}
        className="relative h-7 overflow-clip rounded-control border border-line bg-sunken"
      >
        {shown.map((stretch) => (
          <li
            key={`${stretch.kind} ${stretch.from}`}
            data-leader={stretch.kind === 'leader' ? stretch.leader : undefined}
            data-stretch={stretch.kind}
            data-tip={stretchText(stretch)}
            style={{
              insetInlineStart: share(Math.max(stretch.from, from) - from),
              width: share(stretch.to - Math.max(stretch.from, from)),
              minWidth: WIDTH_PX_MIN,
            }}
            className={clsx('absolute inset-y-0 flex items-center overflow-clip', STYLES[stretch.kind])}
          >
            <span
              aria-hidden="true"
              className={clsx('truncate px-1.5 text-small', stretch.kind === 'leader' && 'font-mono')}
            >
              {nameOf(stretch)}
            </span>
            <span className="sr-only">{stretchText(stretch)}</span>
          </li>
        ))}
      </ul>
      <div aria-hidden="true" className="flex justify-between text-small text-text-3 tabular-nums">
        {TICKS.map((tick) => (
          <span key={tick} className={clsx((tick * 2) % 1 !== 0 && 'max-sm:hidden')}>
            {tick === 0 ? copy.leadership.now : copy.leadership.ago(age(whole * tick))}
          </span>
        ))}
      </div>
      <p className="text-text-2">{leadershipText(data)}</p>
    </div>
  )
}

/** Positions of the time labels, as shares of the strip. */
const TICKS = [1, 0.75, 0.5, 0.25, 0]

const STYLES: Record<Stretch['kind'], string> = {
  leader: 'border-accent border-s-2 bg-info-bg text-text',
  // Above its neighbours, since it is short.
  none: 'z-10 bg-crit text-surface',
  unknown: 'hatch bg-unk-bg text-unk',
}

function nameOf(stretch: Stretch): string {
  return stretch.kind === 'leader'
    ? stretch.leader
    : stretch.kind === 'none'
      ? copy.leadership.noLeader
      : copy.leadership.unknown
}

function stretchText(stretch: Stretch): string {
  const { from, to } = stretch
  const when = copy.leadership.when(clock(timeOf(from)), clock(timeOf(to)), duration(to - from))
  if (stretch.kind === 'unknown') return copy.leadership.unknownStretch(when)
  if (stretch.kind === 'none') return copy.leadership.noLeaderStretch(when)
  return copy.leadership.leaderStretch(stretch.leader, when, stretch.term === null ? undefined : count(stretch.term))
}

const timeOf = (ms: number) => new Date(ms).toISOString()

function StretchTable({ stretches, lead }: { readonly stretches: readonly Stretch[]; readonly lead: string }) {
  return (
    <>
      <p className="px-4 pb-1 text-text-2">{lead}</p>
      <Table
        label={copy.leadership.table}
        rows={stretches.toReversed()}
        rowKey={(stretch) => `${stretch.kind} ${stretch.from}`}
        rowProps={(stretch) => ({ 'data-stretch': stretch.kind })}
        className="max-h-80"
        columns={[
          { id: 'from', header: copy.leadership.from, rowHeader: true, cell: ({ from }) => utc(timeOf(from)) },
          { id: 'to', header: copy.leadership.to, rank: 3, cell: ({ to }) => utc(timeOf(to)) },
          {
            id: 'leader',
            header: copy.leadership.leader,
            cell: (stretch) => (
              <span className={stretch.kind === 'leader' ? 'font-mono' : 'text-text-2'}>{nameOf(stretch)}</span>
            ),
          },
          {
            id: 'term',
            header: copy.leadership.term,
            end: true,
            rank: 2,
            cell: (stretch) => (stretch.kind === 'leader' ? count(stretch.term) : NONE),
          },
          { id: 'for', header: copy.leadership.duration, end: true, cell: ({ from, to }) => duration(to - from) },
        ]}
      />
    </>
  )
}
