'use client'
/** One node: who it is, why it is called what it is called, all it told with ages, and its raw answers. */

import type { NodeView, RouteAnswer } from '@vacancy/shared/contract'
import { type ReactNode, useState } from 'react'
import { Icon } from '../../icons/icon.tsx'
import { bytes, count, days, duration, percent, rate, shortCount } from '../../lib/format.ts'
import { useLive } from '../../lib/live.ts'
import { ApiProblem } from '../../lib/problem.ts'
import { routes } from '../../lib/routes.ts'
import { Age } from '../../ui/age.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { CodeView } from '../../ui/code-view.tsx'
import { Id } from '../../ui/id.tsx'
import { Page } from '../../ui/page.tsx'
import { ErrorState, Panel, Skeleton } from '../../ui/panel.tsx'
import { RoleMark } from '../../ui/role-mark.tsx'
import { StateBadge } from '../../ui/state-badge.tsx'
import { Table } from '../../ui/table.tsx'
import { NodeMetrics } from '../metrics/node-metrics.tsx'
import { EventList } from './event-list.tsx'
import { ForgetNode } from './forget-node.tsx'
import { NotThere } from './not-there.tsx'
import { useShardEvents } from './queries.ts'
import { ResolverAnswer } from './resolver-answer.tsx'
import { Told } from './told.tsx'

type NodeBody = RouteAnswer<'GET /api/v1/shards/{shard}/nodes/{node}'>

export function NodePage({ shard, id }: { readonly shard: string; readonly id: string }) {
  const query = useLive(`node:${shard}/${id}`)
  const body = query.data
  if (!body && query.error instanceof ApiProblem && query.error.status === 404) {
    return <NotThere page="node" what="node" id={id} shard={shard} />
  }
  return (
    <Page
      id="node"
      title={id}
      where={shard}
      ready={body !== undefined}
      crumbs={[
        { href: routes.shards(), label: 'Shards' },
        { href: routes.shard(shard), label: shard },
      ]}
      badge={body && <StateBadge state={body.node.state} level={body.node.level} label={body.node.says} />}
      lead={body && <Lead node={body.node} />}
      actions={body && <ForgetNode node={body.node} />}
    >
      {!body && (query.error ? <ErrorState error={query.error} onRetry={query.refetch} /> : <Skeleton rows={10} />)}
      {body && (
        <>
          <div className="grid gap-4 md:grid-cols-2">
            <WhyState node={body.node} />
            <Identity body={body} />
          </div>
          <Facts node={body.node} />
          <NodeMetrics shard={shard} node={id} />
          <NodeEvents shard={shard} node={id} />
          <Config body={body} />
          <RawAnswers sources={body.sources} />
        </>
      )}
    </Page>
  )
}

function Lead({ node }: { readonly node: NodeView }) {
  return (
    <p className="flex flex-wrap gap-x-4 gap-y-1">
      <RoleMark role={node.role} word />
      <span>zone {node.zone}</span>
      <span>
        answered <Age at={node.answeredAt} fresh={node.freshness} />
      </span>
      {node.freshness === 'gone' && <span className="text-text-3">values below are as they were then</span>}
    </p>
  )
}

/** Which row of the table of states held, and what it looked at. */
function WhyState({ node }: { readonly node: NodeView }) {
  return (
    <Panel title="Why this state">
      <div className="grid gap-2" data-rule={node.rule.number}>
        <p>
          Rule {node.rule.number} of 11 held first: <strong className="font-semibold">{node.message}</strong>.
        </p>
        <FactList
          facts={Object.entries(node.rule.inputs).map(([name, value]) => ({
            name,
            value: <code className="break-all font-mono text-table">{value}</code>,
          }))}
        />
        {node.error && (
          <p className="break-words text-crit">
            {node.error.message} ({node.error.code}) for <Age at={node.error.since} suffix="" />
          </p>
        )}
        {node.reasons.map((reason) => (
          <div key={reason.reason} className="grid gap-1 border-line border-t pt-2">
            <Reason reason={reason} />
          </div>
        ))}
      </div>
    </Panel>
  )
}

function Reason({ reason }: { readonly reason: NodeView['reasons'][number] }) {
  return (
    <>
      <p className="flex items-center gap-2">
        <Badge level="warn">{reason.reason}</Badge>
      </p>
      <dl className="grid gap-0.5 text-text-2">
        {Object.entries(reason)
          .filter(([name, value]) => name !== 'reason' && value !== '' && value !== null)
          .map(([name, value]) => (
            <div key={name} className="flex flex-wrap gap-x-2">
              <dt className="text-small text-text-3">{name}</dt>
              <dd className="min-w-0 break-words">{String(value)}</dd>
            </div>
          ))}
      </dl>
    </>
  )
}

type Fact = { readonly name: string; readonly value: ReactNode }

function FactList({ facts }: { readonly facts: readonly Fact[] }) {
  return (
    <dl className="grid grid-cols-[minmax(7rem,auto)_minmax(0,1fr)] gap-x-4 gap-y-1">
      {facts.map((fact) => (
        <div key={fact.name} className="contents">
          <dt className="text-text-2">{fact.name}</dt>
          <dd className="min-w-0 break-words">{fact.value}</dd>
        </div>
      ))}
    </dl>
  )
}

function Identity({ body: { node, config } }: { readonly body: NodeBody }) {
  const peers = config?.find(({ key }) => key === 'quic_port')?.value ?? null
  const told = (value: unknown, shown: ReactNode) => (
    <Told by={node.id} freshness={node.freshness} value={value}>
      {shown}
    </Told>
  )
  return (
    <Panel title="Identity">
      <FactList
        facts={[
          { name: 'Logical name', value: <Id value={`${node.shard}/${node.id}`} label="node" /> },
          { name: 'HTTP', value: <code className="font-mono text-table">{node.apiUrl}</code> },
          { name: 'TCP', value: told(node.tcp, <code className="font-mono text-table">{node.tcp}</code>) },
          { name: 'Port for other nodes', value: told(peers, <code className="font-mono text-table">{peers}</code>) },
          { name: 'By the resolver', value: <ResolverAnswer node={node} /> },
          { name: 'Version', value: told(node.version, node.version) },
          { name: 'Started', value: told(node.startedAt, <Age at={node.startedAt} />) },
          {
            name: 'Cores',
            value: told(node.cores, node.cores && `${node.cores.now} now, ${node.cores.start} at start`),
          },
          {
            name: 'Codec list',
            value: told(
              node.orderedHash,
              node.orderedHash && <Id value={node.orderedHash} label="codec list" short={12} />,
            ),
          },
        ]}
      />
    </Panel>
  )
}

/** Everything that is told, in groups that are as old as the path that tells them. */
function Facts({ node }: { readonly node: NodeView }) {
  const told = (value: unknown, shown: ReactNode) => (
    <Told by={node.id} freshness={node.freshness} value={value}>
      {shown}
    </Told>
  )
  const groups: readonly { title: string; at: string | null; facts: readonly Fact[] }[] = [
    {
      title: 'Log',
      at: node.ages.info,
      facts: [
        {
          name: 'Names as leader',
          value: told(node.namesLeader, node.namesLeader === '' ? 'nobody' : node.namesLeader),
        },
        { name: 'Term', value: told(node.term, count(node.term)) },
        { name: 'First entry', value: told(node.firstIndex, count(node.firstIndex)) },
        { name: 'Last entry', value: told(node.lastIndex, count(node.lastIndex)) },
        { name: 'Committed', value: told(node.commitIndex, count(node.commitIndex)) },
        { name: 'Applied', value: told(node.appliedIndex, count(node.appliedIndex)) },
        { name: 'Matched, by the leader', value: told(node.matchIndex, count(node.matchIndex)) },
        {
          name: 'Lag',
          value: told(
            node.lagEntries,
            `${count(node.lagEntries)} entries${node.lagSeconds === null ? '' : `, ${duration(node.lagSeconds * 1_000)}`}`,
          ),
        },
      ],
    },
    {
      title: 'Data',
      at: node.ages.status,
      facts: [
        { name: 'Packages', value: told(node.packages, shortCount(node.packages)) },
        { name: 'Properties', value: told(node.properties, shortCount(node.properties)) },
        { name: 'Segments', value: told(node.segments, count(node.segments)) },
        { name: 'Hot window', value: told(node.window, days(node.window)) },
        {
          name: 'State digest',
          value: told(
            node.digest,
            node.digest && (
              <>
                <Id value={node.digest.value} label="digest" short={12} /> at entry {count(node.digest.index)}
              </>
            ),
          ),
        },
        {
          name: 'Snapshot',
          value: told(
            node.snapshot,
            node.snapshot && (
              <>
                <Id value={node.snapshot.id} label="snapshot" short={12} />, {shortCount(node.snapshot.packages)}{' '}
                packages, {bytes(node.snapshot.bytes)}, up to entry {count(node.snapshot.lastIndex)},{' '}
                <Age at={node.snapshot.createdAt} none="time not told" />
              </>
            ),
          ),
        },
      ],
    },
    {
      title: 'Machine',
      at: node.ages.metrics,
      facts: [
        {
          name: 'Memory',
          value: told(
            node.memory,
            node.memory &&
              `${bytes(node.memory.rss)}${node.memory.share === null ? '' : `, ${percent(node.memory.share)} of the store`}`,
          ),
        },
        {
          name: 'Log on disk',
          value: told(node.wal, node.wal && `${bytes(node.wal.bytes)} in ${count(node.wal.files)} files`),
        },
        {
          name: 'Disk',
          value: told(node.disk, node.disk && (node.disk.full ? 'full' : `${bytes(node.disk.freeBytes)} free`)),
        },
        {
          name: 'Connections',
          value: told(
            node.connections,
            `${count(node.connections)}${node.connectionsLimit === null ? '' : ` of ${count(node.connectionsLimit)}`}`,
          ),
        },
        {
          name: 'CPU',
          value: told(
            node.cpu,
            `${node.cpu?.toFixed(2)}${node.cores === null ? '' : ` of ${node.cores.now}`} cores in use`,
          ),
        },
        { name: 'Queries', value: told(node.rates.queries, rate(node.rates.queries)) },
        { name: 'Writes', value: told(node.rates.writes, rate(node.rates.writes)) },
        { name: 'Read p99', value: told(node.rates.p99, duration(node.rates.p99)) },
      ],
    },
  ]
  return (
    <div className="grid gap-4 md:grid-cols-2 lg:grid-cols-3">
      {groups.map((group) => (
        <Panel
          key={group.title}
          title={group.title}
          actions={<Age at={group.at} none="never told" className="text-small" />}
        >
          <FactList facts={group.facts} />
        </Panel>
      ))}
    </div>
  )
}

function NodeEvents({ shard, node }: { readonly shard: string; readonly node: string }) {
  const events = useShardEvents(shard, { node })
  return (
    <Panel
      title="Events"
      query={events}
      isEmpty={(data) => data.events.length === 0}
      empty={{ text: 'Nothing has changed since this control plane looks.' }}
    >
      {(data) => <EventList label={`Events of ${node}`} events={data.events} />}
    </Panel>
  )
}

function Config({ body }: { readonly body: NodeBody }) {
  const { config, configError } = body
  return (
    <Panel title="Configuration" flush>
      {config === null ? (
        <p className="px-4 pb-4 text-text-2">{configError || 'The node did not tell its configuration.'}</p>
      ) : (
        <Table
          label="Configuration"
          rows={config}
          rowKey={(row) => row.key}
          columns={[
            {
              id: 'key',
              header: 'Key',
              rowHeader: true,
              cell: (row) => <code className="break-all font-mono">{row.key}</code>,
            },
            { id: 'value', header: 'Value', cell: (row) => <code className="break-all font-mono">{row.value}</code> },
            { id: 'origin', header: 'From', cell: (row) => [row.origin, row.at].filter(Boolean).join(', ') },
          ]}
        />
      )}
    </Panel>
  )
}

function RawAnswers({ sources }: { readonly sources: NodeBody['sources'] }) {
  const [open, setOpen] = useState<string>()
  return (
    <Panel title="Raw answers" flush>
      <ul aria-label="Raw answers" className="grid">
        {sources.map((source) => (
          <li key={source.path} data-source={source.path} className="border-line border-t px-4 py-2">
            <div className="flex flex-wrap items-center gap-x-4 gap-y-1">
              <Button
                kind="quiet"
                aria-expanded={open === source.path}
                onClick={() => setOpen(open === source.path ? undefined : source.path)}
              >
                <Icon name={open === source.path ? 'chevron-down' : 'chevron-right'} size={14} />
                <code className="font-mono">GET {source.path}</code>
              </Button>
              <span className="num">{source.status ?? 'no answer'}</span>
              {source.milliseconds !== null && <span className="text-text-2">{duration(source.milliseconds)}</span>}
              <Age at={source.at} none="never answered" />
              {source.error && (
                <span className="break-words text-crit">
                  {source.error.message} for <Age at={source.error.since} suffix="" />
                </span>
              )}
            </div>
            {open === source.path && (
              <CodeView
                label={`Answer of ${source.path}`}
                code={source.body === '' ? '(no body)' : pretty(source.body)}
              />
            )}
          </li>
        ))}
      </ul>
    </Panel>
  )
}

/**
 * JSON with indents; what is none is shown as it came, and so is what would not come out alike: hashes are whole numbers
 * beyond what JavaScript counts to.
 */
function pretty(body: string): string {
  try {
    const value: unknown = JSON.parse(body)
    return JSON.stringify(value) === body ? JSON.stringify(value, null, 2) : body
  } catch {
    return body
  }
}
