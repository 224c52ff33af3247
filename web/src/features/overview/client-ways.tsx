'use client'
/** Each way in to each shard, with what its probes measured: failing ones first. */
import type { ClientWay, Level } from '@vacancy/shared/contract'
import { routes } from '../../lib/routes.ts'
import { useRoute } from '../../lib/use-route.ts'
import { Age } from '../../ui/age.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Link } from '../../ui/link.tsx'
import { ErrorState, Skeleton } from '../../ui/panel.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import * as copy from './ways-copy.ts'

const REFRESH_MS = 2_000
/** Rows of a table without a window; the worst come first. */
const ROWS_MAX = 200
const RANK: Record<ClientWay['state'], number> = { fails: 0, waiting: 1, 'not-probed': 2, answers: 3 }
const LEVELS: Record<ClientWay['state'], Level> = { fails: 'crit', waiting: 'unk', 'not-probed': 'info', answers: 'ok' }

export function ClientWays() {
  const clients = useRoute('GET /api/v1/clients', {}, { refetchInterval: REFRESH_MS })
  if (!clients.data)
    return (
      <div className="px-4 pb-3">
        {clients.error ? (
          <ErrorState error={clients.error} onRetry={() => void clients.refetch()} />
        ) : (
          <Skeleton rows={4} />
        )}
      </div>
    )
  const ways = clients.data.shards.flatMap((shard) => shard.ways).sort((a, b) => RANK[a.state] - RANK[b.state])
  const more = ways.length - ROWS_MAX
  if (ways.length === 0) return <p className="px-4 pb-3 text-text-2">{copy.ways.none}</p>
  return (
    <div className="border-line border-t">
      <Table
        label={copy.ways.table}
        rows={ways.slice(0, ROWS_MAX)}
        rowKey={({ shard, through, id }) => `${shard} ${through} ${id}`}
        rowProps={({ shard, id, state }) => ({ 'data-shard': shard, 'data-way': id, 'data-state': state })}
        columns={COLUMNS}
        card={(way) => <Card way={way} />}
      />
      {more > 0 && <p className="px-4 py-2 text-small text-text-2">{copy.ways.more(more)}</p>}
    </div>
  )
}

const COLUMNS: readonly Column<ClientWay>[] = [
  {
    id: 'shard',
    header: copy.ways.shard,
    rowHeader: true,
    cell: ({ shard }) => <Link href={routes.shard(shard)}>{shard}</Link>,
  },
  {
    id: 'through',
    header: copy.ways.through,
    cell: ({ through, id }) => (
      <span className="whitespace-nowrap">
        {copy.ways.kinds[through]} <span className="font-mono">{id}</span>
      </span>
    ),
  },
  { id: 'result', header: copy.ways.result, cell: (way) => <Result way={way} /> },
  { id: 'search', header: copy.ways.search, end: true, cell: ({ search }) => <Latency of={search} /> },
  { id: 'hold', header: copy.ways.hold, end: true, cell: ({ hold }) => <Latency of={hold} /> },
  { id: 'failures', header: copy.ways.failures, end: true, rank: 3, cell: failuresOf },
  { id: 'answered', header: copy.ways.answered, end: true, rank: 2, cell: ({ answeredAt }) => <Age at={answeredAt} /> },
]

function Result({ way: { state, message } }: { readonly way: ClientWay }) {
  return <Badge level={LEVELS[state]}>{message}</Badge>
}

function Latency({ of: { latency } }: { readonly of: ClientWay['search'] }) {
  return <span className="whitespace-nowrap">{copy.ways.latency(latency)}</span>
}

function failuresOf({ search, hold }: ClientWay): string {
  const failed = search.failed + hold.failed
  return copy.ways.of(failed, search.answered + hold.answered + failed)
}

/** On a phone. */
function Card({ way }: { readonly way: ClientWay }) {
  const [shard, through, , search, hold] = COLUMNS
  return (
    <div className="grid gap-1">
      <span className="font-medium">
        {shard?.cell(way)} · {through?.cell(way)}
      </span>
      <Result way={way} />
      {[search, hold].map(
        (column) =>
          column && (
            <span key={column.id} className="text-small text-text-2 tabular-nums">
              {column.header}: {column.cell(way)}
            </span>
          ),
      )}
      <span className="text-small text-text-2">
        {copy.ways.answered}: <Age at={way.answeredAt} />
      </span>
    </div>
  )
}
