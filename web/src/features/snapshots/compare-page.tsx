'use client'
/**
 * Differences between two snapshots, or a snapshot and the live data of a shard, by segment and day
 * (docs/design/control-plane.md#imports).
 */
import { useQuery } from '@tanstack/react-query'
import type { Comparison } from '@vacancy/shared/contract'
import { Icon } from '../../icons/icon.tsx'
import { call } from '../../lib/api.ts'
import { count, days } from '../../lib/format.ts'
import { useLive } from '../../lib/live.ts'
import { routes } from '../../lib/routes.ts'
import { useUrlParam } from '../../lib/url.ts'
import { Age } from '../../ui/age.tsx'
import { Field } from '../../ui/field.tsx'
import { Page } from '../../ui/page.tsx'
import { Panel } from '../../ui/panel.tsx'
import { Select } from '../../ui/select.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { CoverageMap } from '../imports/coverage-map.tsx'
import * as copy from './copy.ts'
import { useSnapshots } from './snapshots-page.tsx'

type Row = Comparison['segments'][number]

const change = (a: number, b: number): string =>
  a === b ? copy.compare.same : `${b > a ? '+' : '−'}${count(Math.abs(b - a))}`

const COLUMNS: readonly Column<Row>[] = [
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
]

export function ComparePage() {
  const [a, setA] = useUrlParam('a')
  const [b, setB] = useUrlParam('b')
  const snapshots = useSnapshots()
  const summary = useLive('summary')
  const query = useQuery({
    queryKey: ['GET /api/v1/snapshots/compare', a, b],
    queryFn: ({ signal }) => call('GET /api/v1/snapshots/compare', { query: { a, b }, signal }),
    enabled: a !== '' && b !== '',
  })
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
          <Field label={copy.compare.a}>
            {(wire) => (
              <Select
                {...wire}
                value={a}
                options={known(a)}
                onChange={(event) => setA(event.target.value, { push: true })}
              />
            )}
          </Field>
          <Field label={copy.compare.b}>
            {(wire) => (
              <Select
                {...wire}
                value={b}
                options={known(b)}
                onChange={(event) => setB(event.target.value, { push: true })}
              />
            )}
          </Field>
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
  const { a, b, equal, codecsEqual, segments, window } = data
  const shown = segments.map(({ name, days: packages }) => ({ name, packages }))
  const properties = new Map(segments.map((segment) => [segment.name, segment.properties.b]))
  return (
    <div className="flex flex-col gap-4">
      <p role="status" className={equal ? 'flex items-center gap-2 text-ok' : 'flex items-center gap-2 text-warn'}>
        <Icon name={equal ? 'check' : 'not-equal'} />
        {equal ? copy.compare.equal : copy.compare.different}
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
      <Table label={copy.compare.table} rows={segments} columns={COLUMNS} rowKey={({ name }) => name} />
    </div>
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
    </dl>
  )
}
