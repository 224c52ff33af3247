'use client'
/** One stay: state, deadline, total, source and rooms, and what can be done with it. */
import type { StayRecord as StayBody } from '@vacancy/shared/contract'
import { type ReactNode, useState } from 'react'
import { count, day, NONE, price, utc } from '../../lib/format.ts'
import { useWhyNotOn } from '../../lib/quorum.ts'
import { routes } from '../../lib/routes.ts'
import { Age } from '../../ui/age.tsx'
import { Button } from '../../ui/button.tsx'
import { Facts } from '../../ui/facts.tsx'
import { Id } from '../../ui/id.tsx'
import { Link } from '../../ui/link.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { ChangeDialog } from './change-dialog.tsx'
import * as copy from './copy.ts'
import { Countdown, nightsText, StayState } from './stay-parts.tsx'

export function StayRecord({ stay }: { readonly stay: StayBody }) {
  return (
    <div data-stay={stay.id} data-state={stay.state} className="flex min-w-0 flex-col gap-4">
      <div className="flex flex-wrap items-start gap-x-8 gap-y-4">
        <div className="min-w-0 grow basis-80">
          <Facts facts={factsOf(stay)} />
        </div>
        <Actions stay={stay} />
      </div>
      <p className="text-text-2">{copy.record[stay.state]}</p>
      <section aria-label={copy.record.lines} className="flex min-w-0 flex-col gap-3">
        {stay.lines.map((line, n) => (
          <Line key={`${n} ${line.property}`} shard={stay.shard} line={line} n={n} isOne={stay.lines.length === 1} />
        ))}
      </section>
      <p className="text-small text-text-3">{copy.record.read(stay.node, stay.role)}</p>
    </div>
  )
}

function factsOf(stay: StayBody): readonly (readonly [string, ReactNode])[] {
  const { id, state, deadline, total, source, since, index } = stay
  return [
    [copy.record.id, <Id key="id" value={id} label="stay" />],
    [copy.record.state, <StayState key="state" state={state} />],
    ...(state === 'held'
      ? [
          [
            copy.record.deadline,
            <span key="deadline">
              <Countdown to={deadline} />
              <span className="text-text-3">{`, ${utc(deadline)}`}</span>
            </span>,
          ] as const,
        ]
      : []),
    // Beyond 2^53 − 1 only the digits are exact.
    [
      copy.record.total,
      <span key="total" className="tabular-nums">
        {Number.isSafeInteger(Number(total)) ? price(Number(total)) : total}
      </span>,
    ],
    [
      copy.record.source,
      (source === '' ? NONE : source) ?? (
        <span key="source" className="text-text-3">
          {copy.record.unknownSource}
        </span>
      ),
    ],
    [
      copy.record.index,
      <span key="since">
        {since !== null && (
          <>
            {`${utc(since)}, `}
            <Age at={since} />
            {', '}
          </>
        )}
        {copy.record.atIndex(count(Number(index)))}
      </span>,
    ],
  ]
}

function Actions({ stay }: { readonly stay: StayBody }) {
  const whyNot = useWhyNotOn(stay.shard, 'operator', 'write')
  const [kind, setKind] = useState<'confirm' | 'release'>()
  const { state } = stay
  const whyNoConfirm =
    state === 'held' ? whyNot : state === 'booked' ? copy.whyNot.confirm.booked : copy.whyNot.confirm.ended
  const whyNoRelease = state === 'held' || state === 'booked' ? whyNot : copy.whyNot.release.ended
  return (
    <div className="flex flex-wrap gap-2">
      <Button icon="check" why={whyNoConfirm} onClick={() => setKind('confirm')}>
        {copy.record.confirm}
      </Button>
      <Button icon="back" kind="danger" why={whyNoRelease} onClick={() => setKind('release')}>
        {copy.record.release}
      </Button>
      {kind && <ChangeDialog kind={kind} stay={stay} onClose={() => setKind(undefined)} />}
    </div>
  )
}

type LineView = StayBody['lines'][number]
type LineProps = { readonly shard: string; readonly line: LineView; readonly n: number; readonly isOne: boolean }

function Line({ shard, line, n, isOne }: LineProps) {
  const { property, room, arrival, rooms, uncounted, days } = line
  return (
    <div className="flex min-w-0 flex-col gap-2">
      <h3 className="flex flex-wrap items-baseline gap-x-3 font-semibold text-body">
        {!isOne && <span className="text-text-3">{copy.record.line(n + 1)}</span>}
        <span>{`${copy.night.roomsOf(rooms)}, ${room}`}</span>
        <Link href={routes.stays(shard, { property })} className="break-all font-mono font-normal">
          {property}
        </Link>
        <span className="font-normal text-text-2">{nightsText(line)}</span>
        {uncounted && <span className="font-normal text-small text-text-3">{copy.record.uncounted}</span>}
        <Link href={routes.stays(shard, { property, room, date: arrival })} className="font-normal text-small">
          {copy.record.listNight}
        </Link>
      </h3>
      {days !== null && days.length > 0 && (
        <div className="overflow-clip rounded-control border border-line">
          <Table
            label={isOne ? copy.record.days : `${copy.record.days}, ${copy.record.line(n + 1)}`}
            rows={days}
            rowKey={({ date }) => date}
            columns={DAY_COLUMNS}
          />
        </div>
      )}
    </div>
  )
}

type Day = NonNullable<LineView['days']>[number]

const DAY_COLUMNS: readonly Column<Day>[] = [
  { id: 'night', header: copy.record.night, rowHeader: true, cell: ({ date }) => day(date, true) },
  { id: 'left', header: copy.record.leftNow, end: true, cell: ({ left }) => count(left) },
  { id: 'price', header: copy.record.price, end: true, cell: (night) => price(night.price) },
  {
    id: 'features',
    header: copy.record.features,
    rank: 2,
    cell: ({ features }) => features.join(', ') || <span className="text-text-3">{NONE}</span>,
  },
]
