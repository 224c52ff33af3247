'use client'
import { useQuery } from '@tanstack/react-query'
import type { RouteAnswer } from '@vacancy/shared/contract'
import { call } from '../../lib/api.ts'
import { parseFilter, passes } from '../../lib/filter.ts'
import { duration, NONE } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { useUrlTyped } from '../../lib/url.ts'
import { Badge } from '../../ui/badge.tsx'
import { Banner } from '../../ui/banner.tsx'
import { FilterBox } from '../../ui/filter-box.tsx'
import { Link } from '../../ui/link.tsx'
import { Panel } from '../../ui/panel.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { RegistryFrame } from './registry-frame.tsx'

type Registry = RouteAnswer<'GET /api/v1/registry/services'>
type Service = Registry['services'][number]

const REFRESH_MS = 2_000

/** What the registry knows beside what is seen. */
export function ServicesPage() {
  const registry = useQuery({
    queryKey: ['registry', 'services'],
    queryFn: ({ signal }) => call('GET /api/v1/registry/services', { signal }),
    refetchInterval: REFRESH_MS,
  })
  const [text, setText] = useUrlTyped('filter')
  const all = registry.data?.services ?? []
  const filter = parseFilter(text)
  const shown = all.filter((service) => passes(filter, fieldsOf(service)))
  return (
    <RegistryFrame id="services" ready={!registry.isPending}>
      {registry.data && <RegistryState registry={registry.data} />}
      <FilterBox
        label="Filter services"
        value={text}
        onChange={setText}
        shown={shown.length}
        total={all.length}
        keys={{
          kind: ['node', 'bridge', 'router'],
          zone: [...new Set(all.map(({ zone }) => zone))],
          shard: [...new Set(all.flatMap(({ shard }) => shard ?? []))],
          seen: ['yes', 'no'],
        }}
      />
      <Panel
        title="Services"
        flush
        query={registry}
        at={(data) => data.at}
        isEmpty={(data) => data.services.length === 0}
        empty={{
          text: 'The registry knows no service. A node registers itself when `registry_addr` stands in its configuration.',
          code: 'node bin/vacancy.mjs run-clustered --registry-addr http://127.0.0.1:9090 …',
        }}
        filtered={
          all.length > 0 && shown.length === 0
            ? { text: `No service matches “${text}”.`, onClear: () => setText('') }
            : undefined
        }
      >
        {() => <ServiceTable services={shown} />}
      </Panel>
      {registry.data && registry.data.conflicts.length > 0 && <Conflicts conflicts={registry.data.conflicts} />}
    </RegistryFrame>
  )
}

function fieldsOf({ kind, id, zone, shard, role, seen, difference }: Service) {
  return { kind, id, zone, shard, role, seen: seen ? 'yes' : 'no', difference }
}

function RegistryState({ registry }: { registry: Registry }) {
  if (registry.address === null) {
    return (
      <Banner level="info" title="No registry is set">
        Nodes stand in the configuration of the control plane; what is below was seen there.
      </Banner>
    )
  }
  if (!registry.up) {
    return (
      <Banner level="warn" title={`The registry at ${registry.address} does not answer`}>
        {registry.error || 'No answer.'} Below is the last that it told.
      </Banner>
    )
  }
  return null
}

const COLUMNS: readonly Column<Service>[] = [
  {
    id: 'id',
    header: 'Service',
    rowHeader: true,
    compare: (a, b) => a.id.localeCompare(b.id),
    cell: ({ id, kind, shard }) =>
      kind === 'node' && shard ? (
        <Link href={routes.node(shard, id)} className="font-mono">
          {id}
        </Link>
      ) : (
        <span className="font-mono">{id}</span>
      ),
  },
  { id: 'kind', header: 'Kind', compare: (a, b) => a.kind.localeCompare(b.kind), cell: ({ kind }) => kind },
  {
    id: 'shard',
    header: 'Shard',
    compare: (a, b) => (a.shard ?? '').localeCompare(b.shard ?? ''),
    cell: ({ shard }) => (shard ? <Link href={routes.shard(shard)}>{shard}</Link> : NONE),
  },
  { id: 'zone', header: 'Zone', rank: 2, compare: (a, b) => a.zone.localeCompare(b.zone), cell: ({ zone }) => zone },
  { id: 'role', header: 'Role', rank: 3, cell: ({ role }) => role ?? NONE },
  { id: 'version', header: 'Version', rank: 4, cell: ({ version }) => version ?? NONE },
  {
    id: 'heartbeat',
    header: 'Heartbeat',
    end: true,
    tip: 'Age of the newest heartbeat, by the word of the registry',
    compare: (a, b) => (a.heartbeatAgeSeconds ?? 0) - (b.heartbeatAgeSeconds ?? 0),
    cell: ({ heartbeatAgeSeconds: age }) => (age === null ? NONE : duration(age * 1_000)),
  },
  { id: 'seen', header: 'Seen', rank: 2, cell: ({ seen }) => <Seen seen={seen} /> },
  {
    id: 'difference',
    header: 'Difference',
    cell: ({ difference }) =>
      difference ? (
        <Badge level="warn" icon="not-equal">
          {difference}
        </Badge>
      ) : (
        <span className="text-text-3">none</span>
      ),
  },
]

function Seen({ seen }: { seen: boolean }) {
  return seen ? <Badge level="ok">answers</Badge> : <Badge level="unk">not seen</Badge>
}

function ServiceTable({ services }: { services: readonly Service[] }) {
  return (
    <Table
      label="Services"
      rows={services}
      columns={COLUMNS}
      rowKey={({ kind, id, shard }) => `${kind} ${shard} ${id}`}
      rowProps={({ id, kind, seen }) => ({ 'data-service': id, 'data-kind': kind, 'data-seen': String(seen) })}
      card={(service) => (
        <div className="flex flex-col gap-1">
          <span className="font-mono font-medium">{service.id}</span>
          <span className="text-small text-text-2">
            {service.kind} {service.shard && `of ${service.shard}`}, zone {service.zone}
          </span>
          <span>
            <Seen seen={service.seen} />
          </span>
          {service.difference && <span className="text-small text-warn">{service.difference}</span>}
        </div>
      )}
    />
  )
}

function Conflicts({ conflicts }: { conflicts: Registry['conflicts'] }) {
  return (
    <Panel title="Segments that several shards claim" flush>
      <Table
        label="Conflicts"
        rows={conflicts}
        rowKey={({ segment }) => segment}
        columns={[
          { id: 'segment', header: 'Segment', rowHeader: true, cell: ({ segment }) => segment },
          { id: 'owner', header: 'Owner', cell: ({ owner }) => <Link href={routes.shard(owner)}>{owner}</Link> },
          { id: 'claims', header: 'Also claimed by', cell: ({ claims }) => claims.join(', ') },
        ]}
      />
    </Panel>
  )
}
