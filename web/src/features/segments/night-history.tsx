'use client'
/** The history of a night: every change that the retained log has, newest first, with what was left before and after. */
import type { NightChange, NightHistory as Page } from '@vacancy/shared/contract'
import { count, NONE, price, utc } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { Button } from '../../ui/button.tsx'
import { Link } from '../../ui/link.tsx'
import { Panel } from '../../ui/panel.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import * as copy from './copy.ts'
import { type NightOf, useNightHistory } from './queries.ts'

type HistoryProps = {
  readonly shard: string
  readonly of: NightOf
  /** '' for any. */
  readonly node: string
}

export function NightHistory({ shard, of, node }: HistoryProps) {
  const query = useNightHistory(shard, of, node)
  return (
    <Panel
      title={copy.history.title}
      level={3}
      flush
      className="basis-full overflow-clip"
      query={query}
      skeleton={4}
      at={({ pages }) => pages[0]?.at ?? null}
      actions={
        <Button kind="quiet" icon="refresh" busy={query.isRefetching} onClick={() => void query.refetch()}>
          {copy.history.again}
        </Button>
      }
    >
      {({ pages }) => (
        <>
          <Changes shard={shard} changes={pages.flatMap(({ changes }) => changes)} isWhole={!query.hasNextPage} />
          <div className="flex flex-wrap items-center gap-x-4 gap-y-2 px-4 py-3 text-small text-text-2">
            <Searched pages={pages} />
            {query.hasNextPage && (
              <Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
                {copy.history.more}
              </Button>
            )}
          </div>
        </>
      )}
    </Panel>
  )
}

/** How far the search has come, on which node, and where its log begins. */
function Searched({ pages }: { readonly pages: readonly Page[] }) {
  const [first, last] = [pages[0], pages.at(-1)]
  if (!first || !last) return null
  const searched = pages.findLast((page) => page.searched !== null)?.searched
  return (
    <p role="status" className="prose" data-searched-from={searched?.from_index}>
      {copy.history.read(first.node, count(first.applied_index))}{' '}
      {last.next === ''
        ? copy.history.end(count(last.retained_from))
        : searched && copy.history.searched(count(searched.from_index), utc(searched.from_time))}{' '}
      {copy.history.derived}
    </p>
  )
}

type ChangesProps = { readonly shard: string; readonly changes: readonly NightChange[]; readonly isWhole: boolean }

function Changes({ shard, changes, isWhole }: ChangesProps) {
  if (changes.length === 0) {
    return <p className="px-4 pt-1 text-text-2">{isWhole ? copy.history.none : copy.history.noneYet}</p>
  }
  return (
    <Table
      label={copy.history.label}
      rows={changes}
      rowKey={keyOf}
      rowProps={({ index, kind, outcome }) => ({ 'data-index': index, 'data-kind': kind, 'data-outcome': outcome })}
      columns={columnsOf(shard)}
      card={(change) => <ChangeCard shard={shard} change={change} />}
    />
  )
}

function keyOf({ index, kind, stay }: NightChange): string {
  return `${index} ${kind} ${stay ?? ''}`
}

function columnsOf(shard: string): Column<NightChange>[] {
  return [
    { id: 'change', header: copy.history.change, rowHeader: true, cell: (change) => <What change={change} /> },
    { id: 'rooms', header: copy.history.rooms, end: true, cell: amountOf },
    { id: 'left', header: copy.history.left, end: true, className: 'whitespace-nowrap', cell: leftOf },
    { id: 'price', header: copy.history.price, end: true, className: 'whitespace-nowrap', rank: 2, cell: priceOf },
    { id: 'stay', header: copy.history.stay, cell: ({ stay }) => <StayLink shard={shard} stay={stay} /> },
    { id: 'source', header: copy.history.source, className: 'whitespace-nowrap', cell: ({ source }) => source || NONE },
    { id: 'time', header: copy.history.time, className: 'whitespace-nowrap', cell: ({ at }) => utc(at) },
    { id: 'index', header: copy.history.index, end: true, rank: 2, cell: ({ index }) => count(index) },
  ]
}

function What({ change: { kind, outcome } }: { readonly change: NightChange }) {
  return (
    <>
      {copy.history.kinds[kind]}
      {outcome !== 'done' && <span className="font-normal text-text-2">{`, ${copy.history.outcomes[outcome]}`}</span>}
    </>
  )
}

function StayLink({ shard, stay }: { readonly shard: string; readonly stay: string | null }) {
  if (stay === null) return NONE
  return (
    <Link href={routes.stays(shard, { stay })} className="whitespace-nowrap font-mono">
      {stay}
    </Link>
  )
}

/** What the command sets, adds or takes. */
function amountOf({ kind, rooms }: NightChange): string {
  if (rooms === null || rooms === 0) return NONE
  switch (kind) {
    case 'package':
    case 'rooms':
      return copy.history.setTo(count(rooms))
    case 'increase':
    case 'release':
    case 'expire':
    case 'replaced':
      return copy.history.added(count(rooms))
    case 'decrease':
    case 'hold':
    case 'book':
      return copy.history.taken(count(rooms))
    default:
      return count(rooms)
  }
}

function leftOf({ before, after }: NightChange): string {
  const text = (state: typeof before) => (state.package === false ? copy.history.noPackage : count(state.rooms))
  return change(text(before), text(after))
}

function priceOf({ before, after }: NightChange): string {
  return change(price(before.price), price(after.price))
}

function change(from: string, to: string): string {
  return from === to ? to : copy.history.fromTo(from, to)
}

/** A row on a narrow screen. */
function ChangeCard({ shard, change: row }: { readonly shard: string; readonly change: NightChange }) {
  return (
    <div className="flex flex-col gap-1">
      <p className="flex flex-wrap justify-between gap-x-3 font-medium">
        <span>
          <What change={row} />
        </span>
        <span className="tabular-nums">{leftOf(row)}</span>
      </p>
      {row.stay !== null && (
        <p className="break-all">
          <StayLink shard={shard} stay={row.stay} />
        </p>
      )}
      <p className="flex flex-wrap gap-x-3 text-small text-text-2">
        <span>{amountOf(row)}</span>
        <span>{row.source}</span>
        <span>{utc(row.at)}</span>
      </p>
    </div>
  )
}
