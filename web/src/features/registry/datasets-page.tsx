'use client'
import type { RouteAnswer } from '@vacancy/shared/contract'
import { useDeferredValue } from 'react'
import { count, NONE, utc } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { useUrlTyped } from '../../lib/url.ts'
import { useRoute } from '../../lib/use-route.ts'
import { Age } from '../../ui/age.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Banner } from '../../ui/banner.tsx'
import { Facts } from '../../ui/facts.tsx'
import { FilterBox } from '../../ui/filter-box.tsx'
import { Link } from '../../ui/link.tsx'
import { Panel } from '../../ui/panel.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import * as copy from './copy.ts'
import { RegistryFrame } from './registry-frame.tsx'

type Datasets = RouteAnswer<'GET /api/v1/registry/datasets'>
type Dataset = Datasets['datasets'][number]
type Segment = Datasets['segments'][number]

const REFRESH_MS = 2_000

/** Versions of the lists of the registry, and its segments with their claims and reservations. */
export function DatasetsPage() {
  const [typed, setTyped] = useUrlTyped('filter')
  const filter = useDeferredValue(typed)
  const datasets = useRoute(
    'GET /api/v1/registry/datasets',
    { query: { filter } },
    { refetchInterval: REFRESH_MS, placeholderData: (before) => before },
  )
  const { data } = datasets
  return (
    <RegistryFrame id="datasets" ready={!datasets.isPending}>
      {data && <State data={data} />}
      <div className="grid items-start gap-4 lg:grid-cols-2">
        <Panel
          title={copy.datasets.segments}
          flush
          query={datasets}
          isEmpty={({ total }) => total === 0 && filter === ''}
          empty={{ text: copy.datasets.noSegments }}
          filtered={
            data?.total === 0 && filter !== ''
              ? { text: copy.datasets.filtered(filter), onClear: () => setTyped('') }
              : undefined
          }
          actions={
            <FilterBox label={copy.datasets.filter} value={typed} onChange={setTyped} total={data?.total ?? 0} />
          }
        >
          {({ segments, total }) => (
            <>
              <Table
                label={copy.datasets.segments}
                rows={segments}
                columns={SEGMENTS}
                rowKey={({ segment }) => segment}
                rowProps={({ segment, shard }) => ({ 'data-segment': segment, 'data-shard': shard })}
              />
              {segments.length < total && (
                <p className="px-4 py-2 text-small text-text-3">
                  {copy.datasets.shown(count(segments.length), count(total))}
                </p>
              )}
            </>
          )}
        </Panel>
        <Panel
          title={copy.datasets.title}
          flush
          query={datasets}
          isEmpty={(each) => each.datasets.length === 0}
          empty={{ text: copy.datasets.empty }}
        >
          {(each) => (
            <Table label={copy.datasets.title} rows={each.datasets} columns={DATASETS} rowKey={({ name }) => name} />
          )}
        </Panel>
      </div>
    </RegistryFrame>
  )
}

function State({ data }: { readonly data: Datasets }) {
  if (data.address === null) {
    return (
      <Banner level="info" title={copy.datasets.noRegistry}>
        {copy.datasets.noRegistryHint}
      </Banner>
    )
  }
  return (
    <>
      {!data.up && (
        <Banner level="warn" title={copy.services.down(data.address)}>
          {data.error || copy.services.noResponse} {copy.services.downHint}
        </Banner>
      )}
      {data.warming && (
        <Banner level="info" title={copy.datasets.state}>
          {copy.datasets.warming}
        </Banner>
      )}
      <Panel title={copy.datasets.state}>
        <Facts
          facts={[
            [copy.datasets.address, <code key="address">{data.address}</code>],
            [copy.datasets.epoch, <code key="epoch">{data.epoch ?? NONE}</code>],
            [copy.datasets.version, count(data.globalVersion)],
            [copy.datasets.read, <Age key="read" at={data.at} />],
          ]}
        />
      </Panel>
    </>
  )
}

const SEGMENTS: readonly Column<Segment>[] = [
  {
    id: 'segment',
    header: copy.datasets.segment,
    rowHeader: true,
    compare: (a, b) => a.segment.localeCompare(b.segment),
    cell: ({ segment }) => segment,
  },
  {
    id: 'shard',
    header: copy.datasets.shard,
    compare: (a, b) => a.shard.localeCompare(b.shard),
    cell: ({ shard }) => <Link href={routes.shard(shard)}>{shard}</Link>,
  },
  {
    id: 'claims',
    header: copy.datasets.claims,
    rank: 2,
    compare: (a, b) => b.claims.length - a.claims.length,
    cell: ({ claims }) =>
      claims.length > 0 ? (
        <Badge level="warn">{claims.join(', ')}</Badge>
      ) : (
        <span className="text-text-3">{copy.datasets.none}</span>
      ),
  },
  {
    id: 'reserved',
    header: copy.datasets.reserved,
    rank: 3,
    compare: (a, b) => (b.reservedUntil ?? '').localeCompare(a.reservedUntil ?? ''),
    cell: ({ reservedUntil }) => (reservedUntil === null ? NONE : utc(reservedUntil)),
  },
  {
    id: 'route',
    header: copy.datasets.route,
    cell: ({ segment }) => (
      <Link href={routes.topology({ segment })} aria-label={copy.datasets.showRoute(segment)}>
        {copy.datasets.route}
      </Link>
    ),
  },
]

const DATASETS: readonly Column<Dataset>[] = [
  {
    id: 'name',
    header: copy.datasets.name,
    rowHeader: true,
    compare: (a, b) => a.name.localeCompare(b.name),
    cell: ({ name }) => <span className="font-mono">{name}</span>,
  },
  {
    id: 'version',
    header: copy.datasets.versionOf,
    end: true,
    compare: (a, b) => a.version - b.version,
    cell: ({ version }) => count(version),
  },
  {
    id: 'entries',
    header: copy.datasets.entries,
    end: true,
    compare: (a, b) => (a.entries ?? -1) - (b.entries ?? -1),
    cell: ({ entries }) => count(entries),
  },
]
