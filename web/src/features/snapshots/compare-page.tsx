'use client'
/**
 * Differences between two snapshots, or a snapshot and the live data of a shard, by segment and day
 * (docs/design/control-plane.md#imports).
 */
import type { Comparison, SnapshotDifferences } from '@vacancy/shared/contract'
import { useMemo } from 'react'
import { Icon } from '../../icons/icon.tsx'
import { count, counted, day, days, NONE } from '../../lib/format.ts'
import { useLive } from '../../lib/live.ts'
import { routes } from '../../lib/routes.ts'
import { useUrlParam } from '../../lib/url.ts'
import { useRoute } from '../../lib/use-route.ts'
import { Age } from '../../ui/age.tsx'
import { Id } from '../../ui/id.tsx'
import { Page } from '../../ui/page.tsx'
import { ErrorState, Panel, Skeleton } from '../../ui/panel.tsx'
import { SelectField } from '../../ui/select.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { CoverageMap } from '../imports/coverage-map.tsx'
import {
  type CodecEntry,
  codecDifferences,
  daysThatDiffer,
  differingFirst,
  type Extreme,
  type PropertyChange,
  propertyChanges,
} from './compare-view.ts'
import * as copy from './copy.ts'
import { useSnapshots } from './snapshots-page.tsx'

type Row = Comparison['segments'][number]

const change = (a: number, b: number): string => (a === b ? copy.compare.same : signed(b - a))
const signed = (by: number): string => `${by > 0 ? '+' : '−'}${count(Math.abs(by))}`

/** @param from the first day */
const columnsOf = (from: string | undefined): readonly Column<Row>[] => [
  {
    id: 'segment',
    header: copy.compare.segment,
    rowHeader: true,
    cell: ({ name }) => name,
    compare: (a, b) => a.name.localeCompare(b.name),
  },
  {
    id: 'in',
    header: copy.compare.in,
    rank: 2,
    cell: (row) => (row.in === 'both' ? copy.compare.inBoth : row.in === 'a' ? copy.compare.onlyA : copy.compare.onlyB),
  },
  {
    id: 'properties',
    header: copy.compare.properties,
    end: true,
    rank: 2,
    cell: ({ properties: { a, b } }) => change(a, b),
    compare: (x, y) => x.properties.b - x.properties.a - (y.properties.b - y.properties.a),
  },
  {
    id: 'a',
    header: copy.compare.packagesA,
    end: true,
    rank: 3,
    cell: ({ packages }) => count(packages.a),
    compare: (x, y) => x.packages.a - y.packages.a,
  },
  {
    id: 'b',
    header: copy.compare.packagesB,
    end: true,
    rank: 3,
    cell: ({ packages }) => count(packages.b),
    compare: (x, y) => x.packages.b - y.packages.b,
  },
  {
    id: 'change',
    header: copy.compare.change,
    end: true,
    cell: ({ packages: { a, b } }) => change(a, b),
    compare: (x, y) => x.packages.b - x.packages.a - (y.packages.b - y.packages.a),
  },
  {
    id: 'days',
    header: copy.compare.daysChanged,
    end: true,
    cell: (row) => count(daysThatDiffer(row).count),
    compare: (x, y) => daysThatDiffer(x).count - daysThatDiffer(y).count,
  },
  {
    id: 'loss',
    header: copy.compare.largestLoss,
    rank: 2,
    cell: (row) => extremeText(daysThatDiffer(row).least, from),
    compare: (x, y) => (daysThatDiffer(x).least?.by ?? 0) - (daysThatDiffer(y).least?.by ?? 0),
  },
  {
    id: 'gain',
    header: copy.compare.largestGain,
    rank: 2,
    cell: (row) => extremeText(daysThatDiffer(row).most, from),
    compare: (x, y) => (daysThatDiffer(x).most?.by ?? 0) - (daysThatDiffer(y).most?.by ?? 0),
  },
]

const DAY_MS = 86_400_000

function extremeText(extreme: Extreme | undefined, from: string | undefined): string {
  if (!extreme || from === undefined) return NONE
  const date = new Date(Date.parse(from) + extreme.day * DAY_MS).toISOString()
  return copy.compare.byOn(signed(extreme.by), day(date))
}

export function ComparePage() {
  const [a, setA] = useUrlParam('a')
  const [b, setB] = useUrlParam('b')
  const snapshots = useSnapshots()
  const summary = useLive('summary')
  const query = useRoute('GET /api/v1/snapshots/compare', { query: { a, b } }, { enabled: a !== '' && b !== '' })
  const options = [
    { value: '', label: copy.compare.choose },
    ...(summary.data?.shards ?? []).map(({ id }) => ({ value: `shard:${id}`, label: copy.compare.liveShard(id) })),
    ...(snapshots.data?.snapshots ?? [])
      .filter(({ stored }) => stored)
      .map(({ id, name }) => ({ value: id, label: copy.compare.named(name, id.slice(0, 8)) })),
  ]
  const known = (value: string) =>
    options.some((option) => option.value === value) ? options : [...options, { value, label: value.slice(0, 20) }]
  const isChosen = a !== '' && b !== ''
  return (
    <Page
      id="compare"
      title={copy.compare.title}
      where={copy.common.snapshots}
      ready={isChosen ? query.data !== undefined || query.isError : snapshots.data !== undefined}
      crumbs={[{ href: routes.snapshots(), label: copy.common.snapshots }]}
    >
      <Panel title={copy.compare.sides} hideTitle>
        <div className="grid gap-4 sm:grid-cols-2">
          <SelectField
            label={copy.compare.a}
            value={a}
            options={known(a)}
            onChange={(text) => setA(text, { push: true })}
          />
          <SelectField
            label={copy.compare.b}
            value={b}
            options={known(b)}
            onChange={(text) => setB(text, { push: true })}
          />
        </div>
      </Panel>
      {isChosen ? (
        <Panel
          title={copy.compare.difference}
          query={query}
          data={{ 'data-equal': query.data ? String(query.data.equal) : undefined }}
        >
          {(data) => <Difference data={data} />}
        </Panel>
      ) : (
        <p className="text-text-2">{copy.compare.hint}</p>
      )}
    </Page>
  )
}

function Difference({ data }: { data: Comparison }) {
  const { a, b, equal, codecsEqual, window } = data
  const segments = useMemo(() => differingFirst(data.segments), [data.segments])
  const columns = useMemo(() => columnsOf(window?.from), [window])
  const shown = useMemo(() => segments.map(({ name, days: packages }) => ({ name, packages })), [segments])
  const differing = segments.filter((row) => row.in !== 'both' || daysThatDiffer(row).count > 0)
  const days = differing.reduce((sum, row) => sum + daysThatDiffer(row).count, 0)
  const properties = new Map(segments.map((segment) => [segment.name, segment.properties.b]))
  return (
    <div className="flex flex-col gap-4">
      <p role="status" className={equal ? 'flex items-center gap-2 text-ok' : 'flex items-center gap-2 text-warn'}>
        <Icon name={equal ? 'check' : 'not-equal'} />
        {equal
          ? copy.compare.equal
          : `${copy.compare.different} ${copy.compare.summary(counted(differing.length, 'segment'), counted(days, 'day'))}`}
        {codecsEqual === false && copy.compare.codecsDiffer}
      </p>
      <div className="grid gap-4 sm:grid-cols-2">
        <Side letter={copy.compare.a} side={a} />
        <Side letter={copy.compare.b} side={b} />
      </div>
      {window && !equal && (
        <CoverageMap
          title={copy.compare.map}
          from={window.from}
          segments={shown}
          properties={(name) => properties.get(name) ?? 0}
          isDifference
        />
      )}
      <Table label={copy.compare.table} rows={segments} columns={columns} rowKey={({ name }) => name} />
      <PropertyLists a={a} b={b} />
      <CodecLists a={a} b={b} equal={codecsEqual} />
    </div>
  )
}

const PROPERTY_COLUMNS: readonly Column<PropertyChange>[] = [
  {
    id: 'property',
    header: copy.compare.property,
    rowHeader: true,
    cell: ({ id }) => <span className="break-all font-mono">{id}</span>,
    compare: (x, y) => x.id.localeCompare(y.id),
  },
  {
    id: 'segment',
    header: copy.compare.segment,
    cell: ({ segment }) => segment,
    compare: (x, y) => x.segment.localeCompare(y.segment),
  },
  { id: 'difference', header: copy.compare.difference, cell: (row) => copy.compare.propertyIn(row.in, row.what) },
]

/** The properties that only one side has, or that differ. Only files can be compared so far down. */
function PropertyLists({ a, b }: Pick<Comparison, 'a' | 'b'>) {
  const isPair = a.kind === 'snapshot' && b.kind === 'snapshot'
  const query = useRoute(
    'GET /api/v1/snapshots/compare/properties',
    { query: { a: a.id, b: b.id } },
    {
      enabled: isPair,
      // Snapshots never change.
      staleTime: Number.POSITIVE_INFINITY,
    },
  )
  return (
    <section aria-label={copy.compare.propertiesTitle} className="flex flex-col gap-2">
      <h3 className="font-semibold text-body">{copy.compare.propertiesTitle}</h3>
      {!isPair && <p className="text-text-2">{copy.compare.propertiesOfShard}</p>}
      {query.isLoading && <Skeleton rows={3} />}
      {query.error && <ErrorState error={query.error} onRetry={() => void query.refetch()} />}
      {query.data && <PropertyDifferences data={query.data} />}
    </section>
  )
}

function PropertyDifferences({ data }: { readonly data: SnapshotDifferences }) {
  const { rows, isEqual, cutTo } = useMemo(() => propertyChanges(data), [data])
  if (isEqual) return <p className="text-text-2">{copy.compare.propertiesEqual}</p>
  const { onlyA, onlyB, changed } = data
  return (
    <>
      <p className="text-text-2">
        {copy.compare.propertiesSummary(onlyA.count, onlyB.count, changed.count)}
        {cutTo !== undefined && ` ${copy.compare.propertiesCut(cutTo)}`}
      </p>
      <Table
        label={copy.compare.propertiesTitle}
        rows={rows}
        columns={PROPERTY_COLUMNS}
        rowKey={({ id }) => id}
        rowProps={(row) => ({ 'data-property': row.id, 'data-in': row.in })}
      />
    </>
  )
}

const CODEC_COLUMNS: readonly Column<CodecEntry>[] = [
  { id: 'entry', header: copy.compare.codecEntry, rowHeader: true, cell: ({ name }) => name },
  { id: 'a', header: copy.compare.placeA, end: true, cell: ({ a }) => count(a) },
  { id: 'b', header: copy.compare.placeB, end: true, cell: ({ b }) => count(b) },
]

/** The entries whose places differ. */
function CodecLists({ a, b, equal }: Pick<Comparison, 'a' | 'b'> & { readonly equal: boolean | null }) {
  const entries = codecDifferences(a.codecs, b.codecs)
  return (
    <section aria-label={copy.compare.codecsTitle} className="flex flex-col gap-2">
      <h3 className="font-semibold text-body">{copy.compare.codecsTitle}</h3>
      {entries === undefined && <p className="text-text-2">{copy.compare.codecsUnknown}</p>}
      {entries?.length === 0 && equal !== false && <p className="text-text-2">{copy.compare.codecsEqual}</p>}
      {entries !== undefined && entries.length > 0 && (
        <>
          <p className="text-text-2">{copy.compare.codecsOrder}</p>
          <Table label={copy.compare.codecsTitle} rows={entries} columns={CODEC_COLUMNS} rowKey={({ name }) => name} />
        </>
      )}
    </section>
  )
}

function Side({ letter, side }: { letter: string; side: Comparison['a'] }) {
  return (
    <dl className="grid grid-cols-[max-content_minmax(0,1fr)] gap-x-4 gap-y-1">
      <dt className="text-text-2">{letter}</dt>
      <dd className="min-w-0 break-words font-medium">{side.title}</dd>
      <dt className="text-text-2">{side.kind === 'shard' ? copy.compare.reportedBy : copy.compare.built}</dt>
      <dd>
        {side.node !== null && <span className="font-mono">{side.node} </span>}
        <Age at={side.at} />
      </dd>
      <dt className="text-text-2">{copy.compare.packages}</dt>
      <dd className="tabular-nums">{count(side.packages)}</dd>
      <dt className="text-text-2">{copy.compare.properties}</dt>
      <dd className="tabular-nums">{count(side.properties)}</dd>
      <dt className="text-text-2">{copy.compare.nights}</dt>
      <dd>{days(side.window)}</dd>
      <dt className="text-text-2">{copy.compare.codecHash}</dt>
      <dd>{side.codecHash === null ? NONE : <Id value={side.codecHash} label="codec list" short={12} />}</dd>
    </dl>
  )
}
