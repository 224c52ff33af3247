'use client'
/** Oversold nights of a shard, and what to do: the short form of docs/operators.md#runbook-oversold-nights. */
import type { StayFigures } from '@vacancy/shared/contract'
import { count, day } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { Banner } from '../../ui/banner.tsx'
import { Link } from '../../ui/link.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import * as copy from './copy.ts'

export function Oversold({ figures }: { readonly figures: StayFigures }) {
  const { shard, oversoldNights, oversold } = figures
  if (oversoldNights === 0) return null
  return (
    <div className="flex flex-col gap-3">
      <Banner level="warn" title={copy.oversold.title(oversoldNights)} className="!items-start">
        <p>{copy.oversold.why}</p>
        <ol className="list-decimal ps-5 pt-1">
          {copy.oversold.steps.map((step) => (
            <li key={step}>{step}</li>
          ))}
        </ol>
        <p className="pt-1 text-small text-text-2">{copy.oversold.source}</p>
      </Banner>
      {oversold.length === 0 ? (
        <p className="text-text-2">{copy.oversold.unnamed}</p>
      ) : (
        <div className="overflow-clip rounded-panel border border-line bg-surface">
          <Table
            label={copy.oversold.table}
            rows={oversold}
            rowKey={({ property_id, room_type, date }) => `${date} ${property_id} ${room_type}`}
            rowProps={({ property_id, date }) => ({ 'data-oversold': property_id, 'data-date': date })}
            columns={columnsOf(shard)}
          />
          {oversold.length < oversoldNights && (
            <p className="px-4 py-2 text-small text-text-3">{copy.oversold.cut(oversold.length)}</p>
          )}
        </div>
      )}
    </div>
  )
}

type Night = StayFigures['oversold'][number]

function columnsOf(shard: string): Column<Night>[] {
  return [
    { id: 'night', header: copy.oversold.night, rowHeader: true, cell: ({ date }) => day(date, true) },
    {
      id: 'property',
      header: copy.oversold.property,
      cell: ({ property_id }) => <code className="break-all">{property_id}</code>,
    },
    { id: 'room', header: copy.oversold.room, rank: 2, cell: ({ room_type }) => room_type },
    { id: 'held', header: copy.oversold.held, end: true, rank: 2, cell: ({ held }) => count(held) },
    {
      id: 'owed',
      header: copy.oversold.owed,
      end: true,
      cell: ({ owed }) => <strong className="text-warn">{count(owed)}</strong>,
    },
    {
      id: 'open',
      header: copy.list.label,
      cell: ({ property_id, room_type, date }) => (
        <Link
          href={routes.stays(shard, { property: property_id, room: room_type, date })}
          aria-label={copy.oversold.openOf(property_id, room_type, day(date))}
        >
          {copy.oversold.open}
        </Link>
      ),
    },
  ]
}
