'use client'
/** All shards as a table: filtered in words, sorted, each with its rack. */

import type { MissingSource, ShardBrief } from '@vacancy/shared/contract'
import { memo, useCallback, useDeferredValue, useMemo } from 'react'
import { passes } from '../../lib/filter.ts'
import { bytes, counted, days, duration, rate, shortCount } from '../../lib/format.ts'
import { useLive } from '../../lib/live.ts'
import { routes } from '../../lib/routes.ts'
import { useUrlParam, useUrlTyped } from '../../lib/url.ts'
import { Age } from '../../ui/age.tsx'
import { FilterBox } from '../../ui/filter-box.tsx'
import { Link } from '../../ui/link.tsx'
import { NARROW, useMedia } from '../../ui/media.ts'
import { Page } from '../../ui/page.tsx'
import { Panel } from '../../ui/panel.tsx'
import { StateBadge } from '../../ui/state-badge.tsx'
import { type Column, type Sort, Table } from '../../ui/table.tsx'
import { VirtualTable } from '../../ui/virtual-table.tsx'
import { filterKeys, parseShardFilter, shardFields } from './filter.ts'
import { RackPicture } from './rack.tsx'
import { formatSort, parseSort } from './sort-link.ts'

const number = (of: (shard: ShardBrief) => number | null) => (a: ShardBrief, b: ShardBrief) =>
  // What was not told is smaller than anything told.
  (of(a) ?? Number.NEGATIVE_INFINITY) - (of(b) ?? Number.NEGATIVE_INFINITY)
const text = (of: (shard: ShardBrief) => string) => (a: ShardBrief, b: ShardBrief) =>
  of(a).localeCompare(of(b), 'en', { numeric: true })

/** The state without its numbers, which have columns of their own: "Healthy, can lose 1". */
function briefly(says: string): string {
  return says.split(' (')[0] ?? says
}

const WORST_FIRST = ['crit', 'warn', 'unk', 'info', 'ok']

const COLUMNS: readonly Column<ShardBrief>[] = [
  {
    id: 'shard',
    header: 'Shard',
    rowHeader: true,
    compare: text((shard) => shard.id),
    cell: (shard) => (
      <Link href={routes.shard(shard.id)} className="font-mono">
        {shard.id}
      </Link>
    ),
  },
  {
    id: 'state',
    header: 'State',
    compare: (a, b) => WORST_FIRST.indexOf(a.level) - WORST_FIRST.indexOf(b.level),
    cell: (shard) => (
      <span data-tip={shard.says}>
        <StateBadge state={shard.state} level={shard.level} says={briefly(shard.says)} />
      </span>
    ),
  },
  { id: 'zone', header: 'Zone', rank: 3, compare: text((shard) => shard.zone), cell: (shard) => shard.zone },
  {
    id: 'leader',
    header: 'Leader',
    rank: 2,
    compare: text((shard) => shard.leader ?? ''),
    cell: (shard) => <span className="font-mono">{shard.leader ?? '–'}</span>,
  },
  { id: 'members', header: 'Members', cell: (shard) => <RackPicture shard={shard.id} slots={shard.slots} /> },
  {
    id: 'spare',
    header: 'Spare',
    end: true,
    rank: 3,
    tip: 'How many more voters may fail',
    compare: number((shard) => shard.spare),
    cell: (shard) => shortCount(shard.spare),
  },
  {
    id: 'lag',
    header: 'Max lag',
    end: true,
    rank: 2,
    tip: 'Entries that the slowest node lacks',
    compare: number((shard) => shard.maxLagEntries),
    cell: (shard) => shortCount(shard.maxLagEntries),
  },
  {
    id: 'queries',
    header: 'Queries',
    end: true,
    rank: 3,
    compare: number((shard) => shard.rates.queries),
    cell: (shard) => rate(shard.rates.queries),
  },
  {
    id: 'writes',
    header: 'Writes',
    end: true,
    rank: 4,
    compare: number((shard) => shard.rates.writes),
    cell: (shard) => rate(shard.rates.writes),
  },
  {
    id: 'p99',
    header: 'p99',
    end: true,
    rank: 4,
    tip: 'Milliseconds below which 99 of 100 reads stay, on the slowest node',
    compare: number((shard) => shard.rates.p99),
    cell: (shard) => duration(shard.rates.p99),
  },
  {
    id: 'packages',
    header: 'Packages',
    end: true,
    rank: 4,
    compare: number((shard) => shard.packages),
    cell: (shard) => shortCount(shard.packages),
  },
  {
    id: 'memory',
    header: 'Memory',
    end: true,
    rank: 4,
    compare: number((shard) => shard.memoryBytes),
    cell: (shard) => bytes(shard.memoryBytes),
  },
  { id: 'window', header: 'Window', rank: 4, cell: (shard) => days(shard.window) },
  {
    id: 'snapshot',
    header: 'Snapshot',
    rank: 4,
    compare: text((shard) => shard.snapshotAt ?? ''),
    cell: (shard) => <Age at={shard.snapshotAt} none="none" />,
  },
]
/** Two storeys of a rack, and the line below. */
const ROW_HEIGHT = 41
const SORTABLE = COLUMNS.filter((column) => column.compare).map((column) => column.id)

const NONE_MISSING: readonly MissingSource[] = []

export function ShardsPage() {
  const summary = useLive('summary')
  const [typed, setTyped] = useUrlTyped('filter')
  // The box follows each key at once; the rows follow when there is time.
  const filterText = useDeferredValue(typed)
  const [sortText, setSortText] = useUrlParam('sort')
  const { filter, faults } = useMemo(() => parseShardFilter(filterText), [filterText])
  const all = summary.data?.shards
  const fields = useMemo(() => all?.map((shard) => ({ shard, fields: shardFields(shard) })) ?? [], [all])
  const shown = useMemo(
    () => fields.filter((one) => passes(filter, one.fields)).map(({ shard }) => shard),
    [fields, filter],
  )
  const keys = useMemo(() => filterKeys(all ?? []), [all])
  const sort = useMemo(() => parseSort(sortText, SORTABLE), [sortText])
  const onSort = useCallback((next: Sort) => setSortText(formatSort(next), { push: true }), [setSortText])
  const isFiltered = filterText.trim() !== ''
  return (
    <Page
      id="shards"
      title="Shards"
      ready={summary.data !== undefined}
      lead={all && `${counted(all.length, 'shard')}, ${all.filter((shard) => shard.level === 'ok').length} healthy`}
    >
      <div className="grid gap-1">
        <FilterBox
          label="Filter shards"
          value={typed}
          onChange={setTyped}
          keys={keys}
          shown={shown.length}
          total={all?.length ?? 0}
        />
        {faults.map((fault) => (
          <p key={fault} className="text-small text-warn" role="status">
            Left out: {fault}
          </p>
        ))}
      </div>
      <Panel
        title="All shards"
        hideTitle
        flush
        query={summary}
        isEmpty={(data) => data.shards.length === 0}
        empty={{
          says: 'No shard is known yet: no node has registered, and none stands in the configuration of the control plane.',
          code: 'node bin/vacancy.mjs run-clustered --help',
        }}
        filtered={
          isFiltered && all && all.length > 0 && shown.length === 0
            ? { says: `No shard of ${all.length} matches ${filterText}`, onClear: () => setTyped('') }
            : undefined
        }
        missing={(data) => data.missing ?? NONE_MISSING}
        sources={(data) => data.counts.nodes}
        skeleton={10}
      >
        <Rows shards={shown} sort={sort} onSort={onSort} filter={filterText} />
      </Panel>
    </Page>
  )
}

type RowsProps = {
  readonly shards: readonly ShardBrief[]
  readonly sort: Sort | undefined
  readonly onSort: (sort: Sort) => void
  readonly filter: string
}

const Rows = memo(function Rows({ shards, sort, onSort, filter }: RowsProps) {
  const isNarrow = useMedia(NARROW)
  const props = {
    label: 'Shards',
    rows: shards,
    columns: COLUMNS,
    rowKey: (shard: ShardBrief) => shard.id,
    href: (shard: ShardBrief) => routes.shard(shard.id),
    sort,
    onSort,
    orderKey: filter,
    // Words for screen readers stand outside of the flow: they scroll with the table, not with the page.
    className: 'relative',
    rowProps: (shard: ShardBrief) => ({ 'data-shard': shard.id, 'data-state': shard.state }),
  }
  if (isNarrow) return <Table {...props} card={(shard) => <ShardCard shard={shard} />} />
  return <VirtualTable {...props} rowHeight={ROW_HEIGHT} />
})

function ShardCard({ shard }: { readonly shard: ShardBrief }) {
  return (
    <div className="grid gap-2">
      <div className="flex items-center justify-between gap-2">
        <Link href={routes.shard(shard.id)} className="inline-flex min-h-11 items-center font-mono">
          {shard.id}
        </Link>
        <RackPicture shard={shard.id} slots={shard.slots} />
      </div>
      <StateBadge state={shard.state} level={shard.level} says={shard.says} />
      <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-0.5 text-table">
        <dt className="text-text-2">Zone, leader</dt>
        <dd className="text-end">
          {shard.zone}, <span className="font-mono">{shard.leader ?? 'none'}</span>
        </dd>
        <dt className="text-text-2">Max lag</dt>
        <dd className="num">{shortCount(shard.maxLagEntries)}</dd>
        <dt className="text-text-2">Queries, writes</dt>
        <dd className="num">
          {rate(shard.rates.queries)}, {rate(shard.rates.writes)}
        </dd>
      </dl>
    </div>
  )
}
