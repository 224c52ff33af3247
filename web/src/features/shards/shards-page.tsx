'use client'
/** All shards as a table with filter, sort and racks. */

import type { MissingSource, ShardBrief } from '@vacancy/shared/contract'
import { memo, useCallback, useDeferredValue, useMemo } from 'react'
import { passes } from '../../lib/filter.ts'
import { bytes, count, days, duration, rate, shortCount } from '../../lib/format.ts'
import { useLive } from '../../lib/live.ts'
import { routes } from '../../lib/routes.ts'
import { formatSort, parseSort } from '../../lib/sort-link.ts'
import { useUrlParam, useUrlTyped } from '../../lib/url.ts'
import { Age, Duration } from '../../ui/age.tsx'
import type { Widths } from '../../ui/column-edge.tsx'
import { FilterBox } from '../../ui/filter-box.tsx'
import { Link } from '../../ui/link.tsx'
import { NARROW, useMedia } from '../../ui/media.ts'
import { Page } from '../../ui/page.tsx'
import { Panel } from '../../ui/panel.tsx'
import { StateBadge } from '../../ui/state-badge.tsx'
import { type Column, type Sort, Table } from '../../ui/table.tsx'
import { VirtualTable } from '../../ui/virtual-table.tsx'
import { ColumnsButton } from './columns-button.tsx'
import { common } from './copy.ts'
import { filterKeys, parseShardFilter, shardFields } from './filter.ts'
import * as copy from './list-copy.ts'
import { RackPicture } from './rack.tsx'
import { columnsOf } from './table-columns.ts'
import { useTableLayout } from './table-layout.ts'
import { viewHref, viewText } from './views.ts'
import type { PresentView } from './views-dialog.tsx'
import { ViewsMenu } from './views-menu.tsx'

const number = (of: (shard: ShardBrief) => number | null) => (a: ShardBrief, b: ShardBrief) =>
  // Missing values sort below all others.
  (of(a) ?? Number.NEGATIVE_INFINITY) - (of(b) ?? Number.NEGATIVE_INFINITY)
const text = (of: (shard: ShardBrief) => string) => (a: ShardBrief, b: ShardBrief) =>
  of(a).localeCompare(of(b), 'en', { numeric: true })

/** The state without its numbers, which have their own columns: "Healthy" of "Healthy, can lose 1 of 3 (…)". */
function withoutNumbers(state: string): string {
  return state.split(/ \(|, can lose/)[0] ?? state
}

const WORST_FIRST = ['crit', 'warn', 'unk', 'info', 'ok']

/** The first column names the row; it is always shown, and first. */
export const SHARD_COLUMNS: readonly Column<ShardBrief>[] = [
  {
    id: 'shard',
    header: copy.columns.shard,
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
    header: copy.columns.state,
    pinned: true,
    compare: (a, b) => WORST_FIRST.indexOf(a.level) - WORST_FIRST.indexOf(b.level),
    cell: (shard) => (
      <span data-tip={shard.message}>
        <StateBadge state={shard.state} level={shard.level} label={withoutNumbers(shard.message)} />
      </span>
    ),
  },
  {
    id: 'zone',
    header: copy.columns.zone,
    rank: 3,
    compare: text((shard) => shard.zone),
    cell: (shard) => shard.zone,
  },
  {
    id: 'leader',
    header: copy.columns.leader,
    rank: 2,
    compare: text((shard) => shard.leader ?? ''),
    cell: (shard) => <span className="font-mono">{shard.leader ?? '–'}</span>,
  },
  {
    id: 'members',
    header: copy.columns.members,
    cell: (shard) => <RackPicture shard={shard.id} slots={shard.slots} />,
  },
  {
    id: 'spare',
    header: copy.columns.spare,
    end: true,
    rank: 3,
    tip: copy.columns.spareTip,
    compare: number((shard) => shard.spare),
    cell: (shard) => shortCount(shard.spare),
  },
  {
    id: 'lag',
    header: copy.columns.lag,
    end: true,
    rank: 2,
    tip: copy.columns.lagTip,
    compare: number((shard) => shard.maxLagEntries),
    cell: (shard) => shortCount(shard.maxLagEntries),
  },
  {
    id: 'queries',
    header: copy.columns.queries,
    end: true,
    rank: 3,
    compare: number((shard) => shard.rates.queries),
    cell: (shard) => rate(shard.rates.queries),
  },
  {
    id: 'writes',
    header: copy.columns.writes,
    end: true,
    rank: 4,
    compare: number((shard) => shard.rates.writes),
    cell: (shard) => rate(shard.rates.writes),
  },
  {
    id: 'p99',
    header: copy.columns.p99,
    end: true,
    rank: 4,
    tip: copy.columns.p99Tip,
    compare: number((shard) => shard.rates.p99),
    cell: (shard) => duration(shard.rates.p99),
  },
  {
    id: 'packages',
    header: copy.columns.packages,
    end: true,
    rank: 4,
    compare: number((shard) => shard.packages),
    cell: (shard) => shortCount(shard.packages),
  },
  {
    id: 'memory',
    header: copy.columns.memory,
    end: true,
    rank: 4,
    compare: number((shard) => shard.memoryBytes),
    cell: (shard) => bytes(shard.memoryBytes),
  },
  { id: 'window', header: copy.columns.window, rank: 4, cell: (shard) => days(shard.window) },
  {
    id: 'snapshot',
    header: copy.columns.snapshot,
    rank: 4,
    compare: text((shard) => shard.snapshotAt ?? ''),
    cell: (shard) => <Age at={shard.snapshotAt} none={shard.snapshotAt === null ? common.none : common.timeUnknown} />,
  },
  {
    id: 'since',
    header: copy.columns.since,
    end: true,
    compare: number((shard) => -Date.parse(shard.since)),
    cell: (shard) => <Duration from={shard.since} />,
  },
  {
    id: 'led-since',
    header: copy.columns.leaderFor,
    end: true,
    compare: number((shard) => (shard.leaderSince === null ? null : -Date.parse(shard.leaderSince))),
    cell: (shard) => <Duration from={shard.leaderSince} />,
  },
  {
    id: 'term',
    header: copy.columns.term,
    end: true,
    compare: number((shard) => shard.term),
    cell: (shard) => count(shard.term),
  },
  {
    id: 'voters',
    header: copy.columns.voters,
    end: true,
    tip: copy.columns.votersTip,
    compare: number((shard) => shard.votersUp),
    cell: (shard) => (shard.mode === 'standalone' ? '–' : copy.columns.votersOf(shard.votersUp, shard.voters)),
  },
  {
    id: 'properties',
    header: copy.columns.properties,
    end: true,
    compare: number((shard) => shard.properties),
    cell: (shard) => shortCount(shard.properties),
  },
  {
    id: 'errors',
    header: copy.columns.errors,
    end: true,
    tip: copy.columns.errorsTip,
    compare: number((shard) => shard.rates.errors),
    cell: (shard) => rate(shard.rates.errors),
  },
  {
    id: 'answered',
    header: copy.columns.answered,
    compare: text((shard) => shard.answeredAt ?? ''),
    cell: (shard) => <Age at={shard.answeredAt} />,
  },
]

const MORE: readonly string[] = [
  'p99',
  'memory',
  'since',
  'led-since',
  'term',
  'voters',
  'properties',
  'errors',
  'answered',
]

export const SHARD_TABLE = columnsOf(SHARD_COLUMNS, MORE)

/** Without another choice, shards with problems come first. */
const WORST: Sort = { column: 'state', down: false }

/** The two lines of a rack and the border. */
const ROW_HEIGHT = 41
const SORTABLE = SHARD_COLUMNS.filter((column) => column.compare).map((column) => column.id)

const shardViewText = (view: PresentView) => viewText(view, copy.views.allShards, SHARD_TABLE.idsOf)
const NONE_MISSING: readonly MissingSource[] = []

export function ShardsPage() {
  const summary = useLive('summary')
  const [typed, setTyped] = useUrlTyped('filter')
  // The box updates with each key; the rows update when there is time.
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
  const table = useTableLayout('shards', SHARD_TABLE)
  const ignored = [
    ...faults,
    ...table.unknown.map((id) => copy.list.unknownColumn(id)),
    ...(sortText !== '' && !sort ? [copy.list.unknownSort(sortText)] : []),
  ]
  const isFiltered = filterText.trim() !== ''
  return (
    <Page
      id="shards"
      title={copy.list.title}
      ready={summary.data !== undefined}
      lead={all && copy.list.lead(all.length, all.filter((shard) => shard.level === 'ok').length)}
    >
      <div className="grid gap-1">
        <div className="flex flex-wrap items-start gap-2">
          <div className="min-w-0 grow basis-72">
            <FilterBox
              label={copy.list.filter}
              value={typed}
              onChange={setTyped}
              keys={keys}
              shown={shown.length}
              total={all?.length ?? 0}
            />
          </div>
          <span className="ms-auto flex gap-2">
            <ViewsMenu
              title={copy.views.dialogTitle}
              present={{ filter: typed, sort: sortText, columns: table.columns && [...table.columns] }}
              layout={table}
              hrefOf={viewHref}
              textOf={shardViewText}
            />
            <ColumnsButton label={copy.list.title} table={table} columns={SHARD_TABLE} />
          </span>
        </div>
        {ignored.map((fault) => (
          <p key={fault} className="text-small text-warn" role="status">
            {copy.list.ignored(fault)}
          </p>
        ))}
      </div>
      <Panel
        title={copy.list.panel}
        hideTitle
        flush
        query={summary}
        isEmpty={(data) => data.shards.length === 0}
        empty={{
          text: copy.list.empty,
          code: 'node bin/vacancy.mjs run-clustered --help',
        }}
        filtered={
          isFiltered && all && all.length > 0 && shown.length === 0
            ? { text: copy.list.filtered(all.length, filterText), onClear: () => setTyped('') }
            : undefined
        }
        missing={(data) => data.missing ?? NONE_MISSING}
        sources={(data) => data.counts.nodes}
        skeleton={10}
      >
        <Rows
          shards={shown}
          sort={sort ?? WORST}
          onSort={onSort}
          filter={filterText}
          chosen={table.columns}
          widths={table.widths}
          onWidths={table.setWidths}
        />
      </Panel>
    </Page>
  )
}

type RowsProps = {
  readonly shards: readonly ShardBrief[]
  readonly sort: Sort | undefined
  readonly onSort: (sort: Sort) => void
  readonly filter: string
  readonly chosen: readonly string[] | null
  readonly widths: Widths
  readonly onWidths: (widths: Widths) => void
}

const Rows = memo(function Rows({ shards, sort, onSort, filter, chosen, widths, onWidths }: RowsProps) {
  const isNarrow = useMedia(NARROW)
  const columns = useMemo(() => SHARD_TABLE.shown(chosen, widths), [chosen, widths])
  const props = {
    label: copy.list.title,
    rows: shards,
    columns,
    widths,
    onWidths,
    rowKey: (shard: ShardBrief) => shard.id,
    href: (shard: ShardBrief) => routes.shard(shard.id),
    sort,
    onSort,
    orderKey: filter,
    // Texts for screen readers are positioned: they must scroll with the table, not with the page.
    className: 'relative',
    rowProps: (shard: ShardBrief) => ({ 'data-shard': shard.id, 'data-state': shard.state }),
  }
  if (isNarrow) return <Table {...props} card={(shard) => <ShardCard shard={shard} />} />
  // Without racks rows have the usual height. A table takes its row height once, so the two differ by key.
  const hasRacks = columns.some(({ id }) => id === 'members')
  return hasRacks ? (
    <VirtualTable key="racks" {...props} rowHeight={ROW_HEIGHT} />
  ) : (
    <VirtualTable key="plain" {...props} />
  )
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
      <StateBadge state={shard.state} level={shard.level} label={shard.message} />
      <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-0.5 text-table">
        <dt className="text-text-2">{copy.list.zoneAndLeader}</dt>
        <dd className="text-end">
          {shard.zone}, <span className="font-mono">{shard.leader ?? common.none}</span>
        </dd>
        <dt className="text-text-2">{copy.list.maxLag}</dt>
        <dd className="num">{shortCount(shard.maxLagEntries)}</dd>
        <dt className="text-text-2">{copy.list.rates}</dt>
        <dd className="num">
          {rate(shard.rates.queries)}, {rate(shard.rates.writes)}
        </dd>
      </dl>
    </div>
  )
}
