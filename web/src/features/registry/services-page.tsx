'use client'
import type { RouteAnswer } from '@vacancy/shared/contract'
import { parseFilter, passes } from '../../lib/filter.ts'
import { duration, NONE } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { useUrlTyped } from '../../lib/url.ts'
import { useRoute } from '../../lib/use-route.ts'
import { Badge } from '../../ui/badge.tsx'
import { Banner } from '../../ui/banner.tsx'
import { FilterBox } from '../../ui/filter-box.tsx'
import { Link } from '../../ui/link.tsx'
import { NARROW, useMedia } from '../../ui/media.ts'
import { Panel } from '../../ui/panel.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { VirtualTable } from '../../ui/virtual-table.tsx'
import * as copy from './copy.ts'
import { RegistryFrame } from './registry-frame.tsx'

type Registry = RouteAnswer<'GET /api/v1/registry/services'>
type Service = Registry['services'][number]

const REFRESH_MS = 2_000

/** The services of the registry, compared with observed nodes. */
export function ServicesPage() {
  const registry = useRoute('GET /api/v1/registry/services', {}, { refetchInterval: REFRESH_MS })
  const [text, setText] = useUrlTyped('filter')
  const all = registry.data?.services ?? []
  const filter = parseFilter(text)
  // What differs comes first.
  const shown = all
    .filter((service) => passes(filter, fieldsOf(service)))
    .sort((a, b) => Number(Boolean(b.difference)) - Number(Boolean(a.difference)))
  return (
    <RegistryFrame id="services" ready={!registry.isPending}>
      {registry.data && <RegistryState registry={registry.data} />}
      <FilterBox
        label={copy.services.filter}
        value={text}
        onChange={setText}
        shown={shown.length}
        total={all.length}
        keys={{
          kind: [...new Set(all.map(({ kind }) => kind))],
          zone: [...new Set(all.flatMap(({ zone }) => zone || []))],
          shard: [...new Set(all.flatMap(({ shard }) => shard ?? []))],
          seen: ['yes', 'no'],
        }}
      />
      <Panel
        title={copy.services.title}
        flush
        query={registry}
        at={(data) => data.at}
        isEmpty={(data) => data.services.length === 0}
        empty={{
          text: copy.services.empty,
          code: 'node bin/vacancy.mjs run-clustered --registry-addr http://127.0.0.1:9090 …',
        }}
        filtered={
          all.length > 0 && shown.length === 0
            ? { text: copy.services.filtered(text), onClear: () => setText('') }
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
      <Banner level="info" title={copy.services.noRegistry}>
        {copy.services.noRegistryHint}
      </Banner>
    )
  }
  if (!registry.up) {
    return (
      <Banner level="warn" title={copy.services.down(registry.address)}>
        {registry.error || copy.services.noResponse} {copy.services.downHint}
      </Banner>
    )
  }
  if (registry.away.length === 0) return null
  return (
    <Banner level="warn" title={copy.services.away(registry.away.length)}>
      {registry.away.map(({ address, message }) => (
        <span key={address} className="block">
          <code>{address}</code> {message}
        </span>
      ))}
      {copy.services.awayHint(registry.address)}
    </Banner>
  )
}

const COLUMNS: readonly Column<Service>[] = [
  {
    id: 'id',
    header: copy.services.service,
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
  { id: 'kind', header: copy.services.kind, compare: (a, b) => a.kind.localeCompare(b.kind), cell: ({ kind }) => kind },
  {
    id: 'shard',
    header: copy.services.shard,
    compare: (a, b) => (a.shard ?? '').localeCompare(b.shard ?? ''),
    cell: ({ shard }) => (shard ? <Link href={routes.shard(shard)}>{shard}</Link> : NONE),
  },
  {
    id: 'zone',
    header: copy.services.zone,
    rank: 2,
    compare: (a, b) => a.zone.localeCompare(b.zone),
    cell: ({ zone }) => zone || NONE,
  },
  { id: 'role', header: copy.services.role, rank: 3, cell: ({ role }) => role ?? NONE },
  { id: 'version', header: copy.services.version, rank: 4, cell: ({ version }) => version ?? NONE },
  {
    id: 'heartbeat',
    header: copy.services.heartbeat,
    end: true,
    tip: copy.services.heartbeatTip,
    compare: (a, b) => (a.heartbeatAgeSeconds ?? 0) - (b.heartbeatAgeSeconds ?? 0),
    cell: ({ heartbeatAgeSeconds: age }) => (age === null ? NONE : duration(age * 1_000)),
  },
  { id: 'seen', header: copy.services.seen, rank: 2, cell: ({ seen }) => <Seen seen={seen} /> },
  {
    id: 'difference',
    header: copy.services.difference,
    cell: ({ difference }) =>
      difference ? (
        <Badge level="warn" icon="not-equal">
          {difference}
        </Badge>
      ) : (
        <span className="text-text-3">{copy.services.none}</span>
      ),
  },
]

function Seen({ seen }: { seen: boolean }) {
  return seen ? <Badge level="ok">{copy.services.responds}</Badge> : <Badge level="unk">{copy.services.notSeen}</Badge>
}

const rowKey = ({ kind, id, shard }: Service) => `${kind} ${shard} ${id}`
const rowProps = ({ id, kind, seen }: Service) => ({
  'data-service': id,
  'data-kind': kind,
  'data-seen': String(seen),
})

function ServiceTable({ services }: { services: readonly Service[] }) {
  const isNarrow = useMedia(NARROW)
  const props = { label: copy.services.title, rows: services, columns: COLUMNS, rowKey, rowProps }
  if (!isNarrow) return <VirtualTable {...props} className="relative" />
  return (
    <Table
      {...props}
      card={(service) => (
        <div className="flex flex-col gap-1">
          <span className="font-mono font-medium">{service.id}</span>
          <span className="text-small text-text-2">
            {copy.services.card(service.kind, service.shard, service.zone)}
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
    <Panel title={copy.services.conflicts} flush>
      <Table
        label={copy.services.conflictsTable}
        rows={conflicts}
        rowKey={({ segment }) => segment}
        columns={[
          { id: 'segment', header: copy.services.segment, rowHeader: true, cell: ({ segment }) => segment },
          {
            id: 'owner',
            header: copy.services.owner,
            cell: ({ owner }) => <Link href={routes.shard(owner)}>{owner}</Link>,
          },
          { id: 'claims', header: copy.services.claims, cell: ({ claims }) => claims.join(', ') },
        ]}
      />
    </Panel>
  )
}
