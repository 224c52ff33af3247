'use client'
/** Who led in the last 24 h: a strip as wide as the day, and the same as a table. What nobody saw is shown as that. */

import type { ShardLeadership } from '@vacancy/shared/contract'
import clsx from 'clsx'
import { useState } from 'react'
import { age, clock, count, counted, duration, NONE, utc } from '../../lib/format.ts'
import { Button } from '../../ui/button.tsx'
import { Panel } from '../../ui/panel.tsx'
import { Table } from '../../ui/table.tsx'
import { axisFrom, type Stretch, stretchesOf } from './leadership-stretches.ts'
import { useShardLeadership } from './queries.ts'

export default function Leadership({ shard }: { readonly shard: string }) {
  const query = useShardLeadership(shard)
  const [isTable, setTable] = useState(false)
  return (
    <Panel
      title="Leadership timeline, last 24 h"
      query={query}
      at={(data) => data.to}
      skeleton={3}
      flush={isTable}
      actions={
        query.data && (
          <Button kind="quiet" icon={isTable ? 'eye' : 'table'} onClick={() => setTable(!isTable)}>
            {isTable ? 'Show as timeline' : 'Show as table'}
          </Button>
        )
      }
    >
      {(data) => {
        const stretches = stretchesOf(data)
        return isTable ? (
          <Twin stretches={stretches} lead={leadershipSays(data)} />
        ) : (
          <Strip data={data} stretches={stretches} />
        )
      }}
    </Panel>
  )
}

/** "3 elections, longest gap 1.9 s": what is not known is said, too. */
function leadershipSays(data: ShardLeadership): string {
  const unknownMs = Date.parse(data.to) - Date.parse(data.from) - data.knownMs
  const gap =
    data.longestGapMs === null ? 'no time without a leader seen' : `longest gap ${duration(data.longestGapMs)}`
  return [
    `${data.elections === 0 ? 'no election seen' : counted(data.elections, 'election')}, ${gap}`,
    ...(unknownMs >= UNKNOWN_SAID_MS ? [`not known for ${duration(unknownMs)}`] : []),
    ...(data.isCut ? [`only the newest ${count(data.spans.length)} changes are shown`] : []),
  ].join('; ')
}

const UNKNOWN_SAID_MS = 1_000

/** A stretch that is too short to be seen is drawn this wide, over its neighbours. */
const SEEN_PX = 2

type StripProps = { readonly data: ShardLeadership; readonly stretches: readonly Stretch[] }

function Strip({ data, stretches }: StripProps) {
  const from = axisFrom(data)
  const whole = Date.parse(data.to) - from
  const shown = stretches.filter((stretch) => stretch.to > from)
  const share = (ms: number) => `${((ms / whole) * 100).toFixed(4)}%`
  return (
    <div className="grid gap-1">
      <ul
        aria-label="Who led, oldest first"
        className="relative h-7 overflow-clip rounded-control border border-line bg-sunken"
      >
        {shown.map((stretch) => (
          <li
            key={`${stretch.kind} ${stretch.from}`}
            data-leader={stretch.kind === 'leader' ? stretch.leader : undefined}
            data-stretch={stretch.kind}
            data-tip={stretchSays(stretch)}
            style={{
              insetInlineStart: share(Math.max(stretch.from, from) - from),
              width: share(stretch.to - Math.max(stretch.from, from)),
              minWidth: SEEN_PX,
            }}
            className={clsx('absolute inset-y-0 flex items-center overflow-clip', LOOKS[stretch.kind])}
          >
            <span
              aria-hidden="true"
              className={clsx('truncate px-1.5 text-small', stretch.kind === 'leader' && 'font-mono')}
            >
              {nameOf(stretch)}
            </span>
            <span className="sr-only">{stretchSays(stretch)}</span>
          </li>
        ))}
      </ul>
      <div aria-hidden="true" className="flex justify-between text-small text-text-3 tabular-nums">
        {TICKS.map((tick) => (
          <span key={tick} className={clsx((tick * 2) % 1 !== 0 && 'max-sm:hidden')}>
            {tick === 0 ? 'now' : `${age(whole * tick)} ago`}
          </span>
        ))}
      </div>
      <p className="text-text-2">{leadershipSays(data)}</p>
    </div>
  )
}

/** Shares of the strip. */
const TICKS = [1, 0.75, 0.5, 0.25, 0]

const LOOKS: Record<Stretch['kind'], string> = {
  leader: 'border-accent border-s-2 bg-info-bg text-text',
  // Short as it is, it stands over what is beside it.
  none: 'z-10 bg-crit text-surface',
  unknown: 'hatch bg-unk-bg text-unk',
}

function nameOf(stretch: Stretch): string {
  return stretch.kind === 'leader' ? stretch.leader : stretch.kind === 'none' ? 'nobody' : 'not known'
}

function stretchSays(stretch: Stretch): string {
  const { from, to } = stretch
  const when = `${clock(timeOf(from))} to ${clock(timeOf(to))} UTC, ${duration(to - from)}`
  if (stretch.kind === 'unknown') return `Not known who led, ${when}`
  if (stretch.kind === 'none') return `Nobody led, ${when}`
  return `${stretch.leader} led, ${when}${stretch.term === null ? '' : `, term ${count(stretch.term)}`}`
}

const timeOf = (ms: number) => new Date(ms).toISOString()

function Twin({ stretches, lead }: { readonly stretches: readonly Stretch[]; readonly lead: string }) {
  return (
    <>
      <p className="px-4 pb-1 text-text-2">{lead}</p>
      <Table
        label="Leadership"
        rows={stretches.toReversed()}
        rowKey={(stretch) => `${stretch.kind} ${stretch.from}`}
        rowProps={(stretch) => ({ 'data-stretch': stretch.kind })}
        className="max-h-80"
        columns={[
          { id: 'from', header: 'From', rowHeader: true, cell: ({ from }) => utc(timeOf(from)) },
          { id: 'to', header: 'To', rank: 3, cell: ({ to }) => utc(timeOf(to)) },
          {
            id: 'leader',
            header: 'Leader',
            cell: (stretch) => (
              <span className={stretch.kind === 'leader' ? 'font-mono' : 'text-text-2'}>{nameOf(stretch)}</span>
            ),
          },
          {
            id: 'term',
            header: 'Term',
            end: true,
            rank: 2,
            cell: (stretch) => (stretch.kind === 'leader' ? count(stretch.term) : NONE),
          },
          { id: 'for', header: 'For', end: true, cell: ({ from, to }) => duration(to - from) },
        ]}
      />
    </>
  )
}
