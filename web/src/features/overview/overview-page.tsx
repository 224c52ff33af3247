'use client'
/** The overview: attention items, key rack, charts and recent events. */

import type { NodeView, ShardBrief, ShardView, Summary } from '@vacancy/shared/contract'
import { bytes, clock, count, day, days, duration, NONE, percent, shortCount } from '../../lib/format.ts'
import { useLive } from '../../lib/live.ts'
import { routes } from '../../lib/routes.ts'
import { Age } from '../../ui/age.tsx'
import { Banner } from '../../ui/banner.tsx'
import { LinkButton } from '../../ui/button.tsx'
import { useNow } from '../../ui/clock.ts'
import { EventList } from '../../ui/event-list.tsx'
import { FactTiles } from '../../ui/facts.tsx'
import { Link } from '../../ui/link.tsx'
import { Page } from '../../ui/page.tsx'
import { ErrorState, Panel, type PanelQuery } from '../../ui/panel.tsx'
import { Progress } from '../../ui/progress.tsx'
import { Table } from '../../ui/table.tsx'
import { useShardConfig } from '../shards/queries.ts'
import { Attention } from './attention.tsx'
import { isDark, withoutDark } from './attention-lead.ts'
import { Clients } from './clients.tsx'
import * as copy from './copy.ts'
import { KeyRack } from './key-rack.tsx'
import { daysLeft, nextMaintenance } from './maintenance.ts'
import { Pulse } from './pulse.tsx'
import { useStateNews } from './state-news.ts'

const EVENTS_MAX = 8

export function OverviewPage() {
  const summary = useLive('summary')
  useStateNews(summary.data?.shards)
  // What a dark cluster means for each shard is said by its banner.
  const attention = { ...summary, data: summary.data && withoutDark(summary.data) }
  const hasAttention = !summary.data || !isDark(summary.data) || attention.data?.attention.length !== 0
  if (!summary.data && summary.error) {
    return (
      <Page id="overview" title={copy.overview.title} ready>
        <ErrorState error={summary.error} onRetry={summary.refetch} />
      </Page>
    )
  }
  return (
    <Page id="overview" title={copy.overview.title} ready={summary.data !== undefined}>
      {summary.data?.clients && summary.data.shards.length > 0 && <Clients clients={summary.data.clients} />}
      {summary.data && <NoResponse summary={summary.data} />}
      <div className="grid items-start gap-4 lg:grid-cols-[minmax(0,1fr)_20rem]">
        <div className="grid min-w-0 gap-4">
          {hasAttention && <Attention summary={attention} />}
          {summary.data && summary.data.shards.length > 0 && <Pulse summary={summary.data} />}
          <Shards summary={summary} />
        </div>
        <div className="grid min-w-0 gap-4">
          <Panel title={copy.overview.cluster} query={summary} at={(data) => data.at}>
            {(data) => <Counts summary={data} />}
          </Panel>
          {summary.data && summary.data.running.length > 0 && (
            <Panel title={copy.overview.running}>
              <Running running={summary.data.running} />
            </Panel>
          )}
          <Panel
            title={copy.overview.events}
            query={summary}
            isEmpty={(data) => data.events.length === 0}
            empty={{ text: copy.overview.noEvents }}
          >
            {(data) => <EventList label={copy.overview.events} events={data.events} most={EVENTS_MAX} isLinked />}
          </Panel>
        </div>
      </div>
    </Page>
  )
}

function Shards({ summary }: { readonly summary: PanelQuery<Summary> }) {
  const [only, ...others] = summary.data?.shards ?? []
  if (only && others.length === 0) return <OneShard brief={only} />
  return (
    <Panel
      title={copy.overview.rack}
      query={summary}
      isEmpty={(data) => data.shards.length === 0}
      empty={{ text: copy.overview.noShards }}
    >
      {(data) => <KeyRack shards={data.shards} />}
    </Panel>
  )
}

function Counts({ summary: { counts, window } }: { readonly summary: Summary }) {
  const rows = [
    {
      name: copy.overview.shards,
      value: count(counts.shards),
      note: copy.overview.healthy(count(counts.shardsHealthy)),
      href: routes.shards(),
    },
    {
      name: copy.overview.nodes,
      value: count(counts.nodes),
      note: copy.overview.responding(count(counts.nodesAnswering)),
    },
    { name: copy.overview.packages, value: shortCount(counts.packages) },
    { name: copy.overview.properties, value: shortCount(counts.properties) },
    { name: copy.overview.window, value: days(window) },
  ]
  return (
    <dl className="grid grid-cols-[auto_1fr] items-baseline gap-x-4 gap-y-1.5">
      {rows.map(({ name, value, note, href }) => (
        <div key={name} className="contents">
          <dt className="text-text-2">{href ? <Link href={href}>{name}</Link> : name}</dt>
          <dd className="num">
            <span className="font-semibold">{value}</span>
            {note && <span className="ms-2 text-text-3">{note}</span>}
          </dd>
        </div>
      ))}
    </dl>
  )
}

function Running({ running }: { readonly running: Summary['running'] }) {
  return (
    <ul aria-label={copy.overview.running} className="grid gap-2">
      {running.map((one) => (
        <li key={one.id} data-running={one.id} className="grid gap-1">
          <Link href={one.href}>{one.title}</Link>
          <span className="break-words text-small text-text-2">{one.message}</span>
          {one.percent !== null && (
            <Progress label={one.title} value={one.percent} max={100} valueText={percent(one.percent / 100)} />
          )}
        </li>
      ))}
    </ul>
  )
}

/** Shown when no node responds: probably the network of the control plane rather than the shards. */
function NoResponse({ summary }: { readonly summary: Summary }) {
  if (!isDark(summary)) return null
  return (
    <Banner
      level="crit"
      title={copy.noResponse.title(summary.counts.nodes)}
      actions={<LinkButton href={routes.resolver()}>{copy.noResponse.resolver}</LinkButton>}
    >
      <p>{copy.noResponse.causes}</p>
      <div className="my-2 overflow-clip rounded-control border border-crit/40 bg-surface">
        <Table
          label={copy.noResponse.table}
          rows={summary.missing}
          rowKey={(missing) => `${missing.source} ${missing.code}`}
          columns={[
            {
              id: 'source',
              header: copy.noResponse.target,
              rowHeader: true,
              cell: (missing) => <code className="font-mono">{missing.source}</code>,
            },
            {
              id: 'message',
              header: copy.noResponse.result,
              cell: (missing) => missing.message,
            },
            { id: 'since', header: copy.noResponse.duration, cell: (missing) => <Age at={missing.since} suffix="" /> },
          ]}
        />
      </div>
    </Banner>
  )
}

/** What a cluster of one shard has left: voters, memory, connections, disk, and what comes next. */
function OneShard({ brief }: { readonly brief: ShardBrief }) {
  const shard = useLive(`shard:${brief.id}`).data
  return (
    <Panel
      title={copy.oneShard.title(brief.id)}
      actions={<LinkButton href={routes.shard(brief.id)}>{copy.oneShard.open(brief.id)}</LinkButton>}
    >
      <div className="grid gap-4">
        <KeyRack shards={[brief]} />
        <Headroom brief={brief} nodes={shard?.nodes ?? []} shard={shard} />
      </div>
    </Panel>
  )
}

type HeadroomProps = {
  readonly brief: ShardBrief
  readonly nodes: readonly NodeView[]
  readonly shard: ShardView | undefined
}

function Headroom({ brief, nodes, shard }: HeadroomProps) {
  const now = useNow()
  const config = useShardConfig(brief.id).data
  const hour = config?.keys.find(({ key }) => key === 'maintenance_hour')?.values.find((value) => value !== null)?.value
  const maintenance = nextMaintenance(hour, now)
  const memory = extreme(nodes, (node) => node.memory?.share ?? null, 1)
  const connections = extreme(
    nodes,
    ({ connections: open, connectionsLimit: limit }) =>
      open === null || limit === null || limit === 0 ? null : open / limit,
    1,
  )
  const disk = extreme(nodes, (node) => node.disk?.freeBytes ?? null, -1)
  return (
    <FactTiles
      facts={[
        ...(brief.mode === 'clustered' && brief.spare !== null
          ? [[copy.oneShard.spare, copy.oneShard.spareOf(Math.max(0, brief.spare), brief.voters)] as const]
          : []),
        [copy.oneShard.memory, memory ? copy.oneShard.of(memory.id, percent(memory.memory?.share)) : NONE],
        [
          copy.oneShard.connections,
          connections
            ? copy.oneShard.of(
                connections.id,
                copy.oneShard.connectionsOf(count(connections.connections), count(connections.connectionsLimit)),
              )
            : NONE,
        ],
        [copy.oneShard.disk, disk ? copy.oneShard.of(disk.id, bytes(disk.disk?.freeBytes)) : NONE],
        [copy.oneShard.snapshot, <Age key="snapshot" at={shard?.snapshotAt ?? brief.snapshotAt} />],
        [
          copy.oneShard.maintenance,
          maintenance === undefined
            ? copy.oneShard.noMaintenance
            : copy.oneShard.maintenanceAt(
                clock(new Date(maintenance).toISOString()).slice(0, 5),
                duration(Math.ceil((maintenance - now) / 60_000) * 60_000),
              ),
        ],
        [
          copy.oneShard.window,
          brief.window ? copy.oneShard.windowLeft(day(brief.window.to), daysLeft(brief.window.to, now)) : NONE,
        ],
      ]}
    />
  )
}

/** The node with the highest value, or the lowest for direction -1; undefined when none reports it. */
function extreme(
  nodes: readonly NodeView[],
  read: (node: NodeView) => number | null,
  direction: 1 | -1,
): NodeView | undefined {
  const [first] = nodes
    .filter((node) => (node.freshness === 'live' || node.freshness === 'delayed') && read(node) !== null)
    .toSorted((a, b) => direction * ((read(b) ?? 0) - (read(a) ?? 0)))
  return first
}
