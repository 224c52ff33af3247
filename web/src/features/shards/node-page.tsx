'use client'

/** One node: identity, the reason for its state, reported values with ages, and raw responses. */

import { useMutation } from '@tanstack/react-query'
import type { NodeView, RouteAnswer } from '@vacancy/shared/contract'
import dynamic from 'next/dynamic'
import { type ReactNode, useState } from 'react'
import { Icon } from '../../icons/icon.tsx'
import { call } from '../../lib/api.ts'
import { bytes, count, days, duration, figure, percent, rate, shortCount } from '../../lib/format.ts'
import { useLive } from '../../lib/live.ts'
import { navigate } from '../../lib/navigate.ts'
import { ApiProblem } from '../../lib/problem.ts'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { Age } from '../../ui/age.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Button, LinkButton } from '../../ui/button.tsx'
import { CodeView } from '../../ui/code-view.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { EventList } from '../../ui/event-list.tsx'
import { Id } from '../../ui/id.tsx'
import { Page } from '../../ui/page.tsx'
import { ErrorState, Panel, Skeleton } from '../../ui/panel.tsx'
import { RoleMark } from '../../ui/role-mark.tsx'
import { StateBadge } from '../../ui/state-badge.tsx'
import { Table } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import { ConfigValue } from './config-value.tsx'
import { common } from './copy.ts'
import { NotFound } from './not-found.tsx'
import { useShardEvents } from './queries.ts'
import { Reported } from './reported.tsx'
import { ResolverAnswer } from './resolver-answer.tsx'
import * as copy from './shard-copy.ts'

const MetricCharts = dynamic(() => import('../metrics/metric-charts.tsx').then((module) => module.MetricCharts), {
  ssr: false,
})

/** Charts of a node, loaded on demand with the chart library. */
function NodeMetrics({ shard, node }: { readonly shard: string; readonly node: string }) {
  return <MetricCharts shard={shard} node={node} />
}

type NodeBody = RouteAnswer<'GET /api/v1/shards/{shard}/nodes/{node}'>

export function NodePage({ shard, id }: { readonly shard: string; readonly id: string }) {
  const query = useLive(`node:${shard}/${id}`)
  const body = query.data
  if (!body && query.error instanceof ApiProblem && /^(shard|node)-not-found$/.test(query.error.code)) {
    return <NotFound page="node" what="node" id={id} shard={shard} />
  }
  return (
    <Page
      id="node"
      title={id}
      where={shard}
      ready={body !== undefined}
      crumbs={[
        { href: routes.shards(), label: common.shards },
        { href: routes.shard(shard), label: shard },
      ]}
      badge={body && <StateBadge state={body.node.state} level={body.node.level} label={body.node.message} />}
      lead={body && <Lead node={body.node} />}
      actions={
        body && (
          <>
            {URL.canParse(body.node.apiUrl) && (
              <LinkButton href={routes.newHandover({ machine: new URL(body.node.apiUrl).hostname })}>
                {copy.node.prepare}
              </LinkButton>
            )}
            <ForgetNode node={body.node} />
          </>
        )
      }
    >
      {!body && (query.error ? <ErrorState error={query.error} onRetry={query.refetch} /> : <Skeleton rows={10} />)}
      {body && (
        <>
          <WhyState node={body.node} />
          <Facts node={body.node} />
          <NodeEvents shard={shard} node={id} />
          <NodeMetrics shard={shard} node={id} />
          <Identity body={body} />
          <Config body={body} />
          {body.sources.length > 0 && <RawResponses sources={body.sources} />}
        </>
      )}
    </Page>
  )
}

function Lead({ node }: { readonly node: NodeView }) {
  return (
    <p className="flex flex-wrap gap-x-4 gap-y-1">
      <RoleMark role={node.role} word />
      <span>{common.zone(node.zone)}</span>
      <span>
        {copy.node.lastResponse} <Age at={node.answeredAt} fresh={node.freshness} />
      </span>
      {node.freshness === 'gone' && <span className="text-text-3">{copy.node.lastKnownValues}</span>}
    </p>
  )
}

/** The rule that determined the state, with its inputs. Of a healthy node it is folded. */
function WhyState({ node }: { readonly node: NodeView }) {
  const isHealthy = node.level === 'ok' && node.reasons.length === 0 && !node.error
  return isHealthy ? (
    <Folded title={copy.node.whyState} note={node.message}>
      <div className="px-4 pb-4">
        <Rule node={node} />
      </div>
    </Folded>
  ) : (
    <Panel title={copy.node.whyState}>
      <Rule node={node} />
    </Panel>
  )
}

function Rule({ node }: { readonly node: NodeView }) {
  return (
    <div className="grid gap-2" data-rule={node.rule.number}>
      <p>
        {copy.node.rule(node.rule.number)} <strong className="font-semibold">{node.message}</strong>
      </p>
      <FactList
        facts={Object.entries(node.rule.inputs).map(([name, value]) => ({
          name,
          value: <code className="break-all font-mono text-table">{value}</code>,
        }))}
      />
      {node.error && (
        <p className="break-words text-crit">
          {node.error.message} ({node.error.code}) {common.for} <Age at={node.error.since} suffix="" />
        </p>
      )}
      {node.reasons.map((reason) => (
        <div key={reason.reason} className="grid gap-1 border-line border-t pt-2">
          <Reason reason={reason} />
        </div>
      ))}
    </div>
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

/** A value that the node reported, with its age. */
const factsOf =
  (node: NodeView) =>
  (name: string, value: unknown, shown: ReactNode): Fact => ({
    name,
    value: (
      <Reported by={node.id} freshness={node.freshness} value={value}>
        {shown}
      </Reported>
    ),
  })

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
  const reported = factsOf(node)
  return (
    <Panel title={copy.node.identity}>
      <FactList
        facts={[
          { name: copy.node.name, value: <Id value={`${node.shard}/${node.id}`} label="node" /> },
          { name: copy.node.http, value: <code className="font-mono text-table">{node.apiUrl}</code> },
          reported(copy.node.tcp, node.tcp, <code className="font-mono text-table">{node.tcp}</code>),
          reported(copy.node.peerPort, peers, <code className="font-mono text-table">{peers}</code>),
          { name: copy.node.resolver, value: <ResolverAnswer node={node} /> },
          reported(copy.node.version, node.version, node.version),
          reported(copy.node.started, node.startedAt, <Age at={node.startedAt} />),
          reported(copy.node.cores, node.cores, node.cores && copy.node.coresNow(node.cores.now, node.cores.start)),
          reported(
            copy.node.codecs,
            node.orderedHash,
            node.orderedHash && <Id value={node.orderedHash} label="codec list" short={12} />,
          ),
        ]}
      />
    </Panel>
  )
}

/** All reported values, grouped by the path that reports them, with its age. */
function Facts({ node }: { readonly node: NodeView }) {
  const reported = factsOf(node)
  const groups: readonly { title: string; at: string | null; facts: readonly Fact[] }[] = [
    {
      title: copy.node.log,
      at: node.ages.info,
      facts: [
        reported(
          copy.node.knownLeader,
          node.namesLeader,
          node.namesLeader === '' ? copy.node.noLeader : node.namesLeader,
        ),
        reported(copy.node.term, node.term, count(node.term)),
        reported(copy.node.firstEntry, node.firstIndex, count(node.firstIndex)),
        reported(copy.node.lastEntry, node.lastIndex, count(node.lastIndex)),
        reported(copy.node.committed, node.commitIndex, count(node.commitIndex)),
        reported(copy.node.applied, node.appliedIndex, count(node.appliedIndex)),
        reported(copy.node.matched, node.matchIndex, count(node.matchIndex)),
        reported(
          copy.node.lag,
          node.lagEntries,
          copy.node.lagText(
            count(node.lagEntries),
            node.lagSeconds === null ? undefined : duration(node.lagSeconds * 1_000),
          ),
        ),
      ],
    },
    {
      title: copy.node.data,
      at: node.ages.status,
      facts: [
        reported(copy.node.packages, node.packages, shortCount(node.packages)),
        reported(copy.node.properties, node.properties, shortCount(node.properties)),
        reported(copy.node.segments, node.segments, count(node.segments)),
        reported(copy.node.window, node.window, days(node.window)),
        reported(
          copy.node.digest,
          node.digest,
          node.digest && (
            <>
              <Id value={node.digest.value} label="digest" short={12} /> {copy.node.atEntry(count(node.digest.index))}
            </>
          ),
        ),
        reported(
          copy.node.snapshot,
          node.snapshot,
          node.snapshot && (
            <>
              <Id value={node.snapshot.id} label="snapshot" short={12} />
              {copy.node.snapshotText(
                shortCount(node.snapshot.packages),
                bytes(node.snapshot.bytes),
                count(node.snapshot.lastIndex),
              )}{' '}
              <Age at={node.snapshot.createdAt} none={common.timeUnknown} />
            </>
          ),
        ),
      ],
    },
    {
      title: copy.node.machine,
      at: node.ages.metrics,
      facts: [
        reported(
          copy.node.memory,
          node.memory,
          node.memory &&
            `${bytes(node.memory.rss)}${node.memory.share === null ? '' : copy.node.ofStore(percent(node.memory.share))}`,
        ),
        reported(copy.node.walSize, node.wal, node.wal && copy.node.walText(bytes(node.wal.bytes), node.wal.files)),
        reported(
          copy.node.disk,
          node.disk,
          node.disk && (node.disk.full ? copy.node.diskFull : copy.node.diskFree(bytes(node.disk.freeBytes))),
        ),
        reported(
          copy.node.connections,
          node.connections,
          copy.node.connectionsOf(
            count(node.connections),
            node.connectionsLimit === null ? undefined : count(node.connectionsLimit),
          ),
        ),
        reported(copy.node.cpu, node.cpu, copy.node.cpuText(figure(node.cpu), node.cores?.now)),
        reported(copy.node.queries, node.rates.queries, rate(node.rates.queries)),
        reported(copy.node.writes, node.rates.writes, rate(node.rates.writes)),
        reported(copy.node.p99, node.rates.p99, duration(node.rates.p99)),
      ],
    },
  ]
  return (
    <div className="grid gap-4 md:grid-cols-2 lg:grid-cols-3">
      {groups.map((group) => (
        <Panel
          key={group.title}
          title={group.title}
          actions={<Age at={group.at} none={copy.node.neverReported} className="text-small" />}
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
      title={copy.events.title}
      query={events}
      isEmpty={(data) => data.events.length === 0}
      empty={{ text: copy.events.empty }}
    >
      {(data) => <EventList label={copy.events.of(node)} events={data.events} />}
    </Panel>
  )
}

function Config({ body }: { readonly body: NodeBody }) {
  const { config, configError } = body
  return (
    <Folded title={copy.config.title} note={config === null ? undefined : copy.config.keys(config.length)}>
      {config === null ? (
        <p className="px-4 pb-4 text-text-2">{configError || copy.config.nodeNotReported}</p>
      ) : (
        <Table
          label={copy.config.title}
          rows={config}
          rowKey={(row) => row.key}
          columns={[
            {
              id: 'key',
              header: copy.config.key,
              rowHeader: true,
              cell: (row) => <code className="break-all font-mono">{row.key}</code>,
            },
            {
              id: 'value',
              header: copy.config.value,
              cell: (row) => <ConfigValue name={row.key} value={row.value} />,
            },
            {
              id: 'origin',
              header: copy.config.origin,
              cell: (row) => [row.origin, row.at].filter(Boolean).join(', '),
            },
          ]}
        />
      )}
    </Folded>
  )
}

type FoldedProps = { readonly title: string; readonly note: string | undefined; readonly children: ReactNode }

/** A panel that is opened on demand: it is long, and seldom what the page was opened for. */
function Folded({ title, note, children }: FoldedProps) {
  const [isOpen, setOpen] = useState(false)
  return (
    <Panel
      title={title}
      flush
      actions={
        <>
          {note !== undefined && <span className="text-small text-text-3">{note}</span>}
          <Button kind="quiet" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            <Icon name={isOpen ? 'chevron-up' : 'chevron-down'} size={14} />
            <span className="max-sm:sr-only">{isOpen ? copy.node.hide(title) : copy.node.show(title)}</span>
          </Button>
        </>
      }
    >
      {isOpen && children}
    </Panel>
  )
}

function RawResponses({ sources }: { readonly sources: NodeBody['sources'] }) {
  const [open, setOpen] = useState<string>()
  return (
    <Panel title={copy.node.raw} flush>
      <ul aria-label={copy.node.raw} className="grid">
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
              <span className="num">{source.status ?? copy.node.noResponse}</span>
              {source.milliseconds !== null && <span className="text-text-2">{duration(source.milliseconds)}</span>}
              <Age at={source.at} none={copy.node.neverResponded} />
              {source.error && (
                <span className="break-words text-crit">
                  {source.error.message} {common.for} <Age at={source.error.since} suffix="" />
                </span>
              )}
            </div>
            {open === source.path && (
              <CodeView
                label={copy.node.responseOf(source.path)}
                code={source.body === '' ? copy.node.emptyBody : pretty(source.body)}
              />
            )}
          </li>
        ))}
      </ul>
    </Panel>
  )
}

/**
 * Indents JSON. Other texts stay unchanged, and so does JSON that JavaScript would alter: hashes are integers above 2^53.
 */
function pretty(body: string): string {
  try {
    const value: unknown = JSON.parse(body)
    return JSON.stringify(value) === body ? JSON.stringify(value, null, 2) : body
  } catch {
    return body
  }
}

/** Hidden while the node responds or was not polled yet. */
function ForgetNode({ node }: { readonly node: NodeView }) {
  const why = useWhyNot('admin')
  const [isOpen, setOpen] = useState(false)
  const name = `${node.shard} / ${node.id}`
  const forget = useMutation({
    mutationFn: () =>
      call('DELETE /api/v1/shards/{shard}/nodes/{node}', { params: { shard: node.shard, node: node.id } }),
    onSuccess: () => {
      toast({ message: copy.forget.forgotten(name) })
      navigate(routes.shards())
    },
  })
  if (node.freshness !== 'gone' && node.error === null) return null
  return (
    <>
      <Button icon="trash" kind="danger" why={why} onClick={() => setOpen(true)}>
        {copy.forget.dialog(node.id)}
      </Button>
      <Dialog
        open={isOpen}
        title={copy.forget.title(name)}
        onClose={() => setOpen(false)}
        footer={
          <>
            <Button onClick={() => setOpen(false)}>{common.cancel}</Button>
            <Button kind="danger" busy={forget.isPending} onClick={() => forget.mutate()}>
              {copy.forget.confirm(node.id)}
            </Button>
          </>
        }
      >
        <p className="prose">
          {copy.forget.effect} <Age at={node.answeredAt} className="text-text" />.
        </p>
        {forget.error && (
          <p role="alert" className="pt-2 text-crit">
            {forget.error.message} {forget.error instanceof ApiProblem && forget.error.hint}
          </p>
        )}
      </Dialog>
    </>
  )
}
