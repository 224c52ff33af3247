'use client'
/** All shards as a table with filter, sort and racks. */

import type { MissingSource, ShardBrief } from '@vacancy/shared/contract'
import { memo, useCallback, useDeferredValue, useMemo } from 'react'
import { passes } from '../../lib/filter.ts'
import { rate, shortCount } from '../../lib/format.ts'
import { useLive } from '../../lib/live.ts'
import { routes } from '../../lib/routes.ts'
import { useUrlParam, useUrlTyped } from '../../lib/url.ts'
import type { Widths } from '../../ui/column-edge.tsx'
import { FilterBox } from '../../ui/filter-box.tsx'
import { Link } from '../../ui/link.tsx'
import { NARROW, useMedia } from '../../ui/media.ts'
import { Page } from '../../ui/page.tsx'
import { Panel } from '../../ui/panel.tsx'
import { StateBadge } from '../../ui/state-badge.tsx'
import { type Sort, Table } from '../../ui/table.tsx'
import { VirtualTable } from '../../ui/virtual-table.tsx'
import { ColumnsButton } from './columns-button.tsx'
import { common } from './copy.ts'
import { filterKeys, parseShardFilter, shardFields } from './filter.ts'
import * as copy from './list-copy.ts'
import { RackPicture } from './rack.tsx'
import { SHARD_COLUMNS, SHARD_TABLE } from './shard-columns.tsx'
import { formatSort, parseSort } from './sort-link.ts'
import { useTableLayout } from './table-layout.ts'
import { viewHref, viewText } from './views.ts'
import type { PresentView } from './views-dialog.tsx'
import { ViewsMenu } from './views-menu.tsx'

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
          sort={sort}
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
