'use client'
/** The members of a shard: roles, states, log positions on one scale, and actions. */

import type { NodeView, OperationKind, ShardView } from '@vacancy/shared/contract'
import clsx from 'clsx'
import dynamic from 'next/dynamic'
import { useEffect, useId, useMemo, useState } from 'react'
import { Icon } from '../../icons/icon.tsx'
import { bytes, count, duration, figure, percent } from '../../lib/format.ts'
import { whyNoChange } from '../../lib/quorum.ts'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { useUrlParam } from '../../lib/url.ts'
import { Age, Duration } from '../../ui/age.tsx'
import { Badge } from '../../ui/badge.tsx'
import { BANNER_TINTS } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { CodeView } from '../../ui/code-view.tsx'
import { Link } from '../../ui/link.tsx'
import { Panel, Skeleton } from '../../ui/panel.tsx'
import { RoleMark } from '../../ui/role-mark.tsx'
import { STATE_ICONS, StateBadge } from '../../ui/state-badge.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { useOpenPlan } from '../operations/plan-host.tsx'
import { common } from './copy.ts'
import { type LogScale, logBarOf, logBarText, logScaleOf } from './log-scale.ts'
import { Reported } from './reported.tsx'
import * as copy from './shard-copy.ts'
import { ShardFrame } from './shard-page.tsx'
import { bestCandidate, electionText, type LeaderReport, leaderReports, troubleOf, votersAway } from './shard-view.ts'

export function ShardMembersPage({ id }: { readonly id: string }) {
  return (
    <ShardFrame id={id} tab="members">
      {(shard) => (
        <>
          <TroublePanel shard={shard} />
          <Members shard={shard} />
          {shard.mode === 'clustered' && <LeaderReports shard={shard} />}
          <ShardChange shard={shard} />
          {shard.mode === 'clustered' && <Leadership shard={shard.id} />}
        </>
      )}
    </ShardFrame>
  )
}

// Below the main content: its code is loaded after the rest of the page.
const Leadership = dynamic(() => import('./leadership.tsx'), { ssr: false, loading: LeadershipLoading })

function LeadershipLoading() {
  return (
    <Panel title={copy.leadership.title}>
      <Skeleton rows={3} />
    </Panel>
  )
}

function Members({ shard }: { readonly shard: ShardView }) {
  const [focus] = useUrlParam('focus')
  const scale = useMemo(() => logScaleOf(shard.nodes, shard.leader), [shard])
  const columns = useMemo(() => columnsOf(shard, scale), [shard, scale])
  const handedTo = useHandover(shard.leader)
  return (
    <Panel title={copy.members.title} flush className="[&_tr[data-handover]]:bg-info-bg">
      <Table
        label={copy.members.title}
        className="relative"
        rows={shard.nodes}
        columns={columns}
        rowKey={(node) => node.id}
        href={(node) => routes.node(shard.id, node.id)}
        focus={focus}
        rowProps={(node) => ({
          'data-node': node.id,
          'data-role': node.role,
          'data-state': node.state,
          'data-freshness': node.freshness,
          'data-handover': node.id === handedTo ? '' : undefined,
        })}
        card={(node) => <MemberCard shard={shard} node={node} scale={scale} />}
      />
    </Panel>
  )
}

const HANDOVER_MS = 2_000

/** The node that became leader while the page was open: its row is tinted for two seconds. */
function useHandover(leader: string | null): string | undefined {
  const [before, setBefore] = useState(leader)
  const [handedTo, setHandedTo] = useState<string>()
  if (leader !== before) {
    setBefore(leader)
    setHandedTo(leader ?? undefined)
  }
  useEffect(() => {
    if (handedTo === undefined) return
    const timer = setTimeout(() => setHandedTo(undefined), HANDOVER_MS)
    return () => clearTimeout(timer)
  }, [handedTo])
  return handedTo
}

function columnsOf(shard: ShardView, scale: LogScale | undefined): readonly Column<NodeView>[] {
  return [
    { id: 'role', header: copy.members.role, width: '6rem', cell: (node) => <RoleMark role={node.role} word /> },
    {
      id: 'node',
      header: copy.members.node,
      rowHeader: true,
      className: 'whitespace-nowrap',
      cell: (node) => <NodeName shard={shard.id} node={node} />,
      compare: (a, b) => (a.id < b.id ? -1 : 1),
    },
    { id: 'state', header: copy.members.state, className: 'min-w-44', cell: (node) => <NodeState node={node} /> },
    {
      id: 'log',
      header: copy.members.log,
      rank: 2,
      width: '13%',
      tip: copy.members.logTip,
      cell: (node) => <LogBar node={node} scale={scale} />,
    },
    {
      id: 'lag',
      header: copy.members.lag,
      end: true,
      cell: (node) => <Lag node={node} />,
      compare: (a, b) => lagOf(a) - lagOf(b),
      className: 'whitespace-nowrap',
    },
    {
      id: 'p99',
      header: copy.members.p99,
      end: true,
      rank: 3,
      tip: copy.members.p99Tip,
      className: 'whitespace-nowrap',
      cell: (node) => <ReadLatency node={node} />,
      compare: (a, b) => (a.rates.p99 ?? -1) - (b.rates.p99 ?? -1),
    },
    { id: 'snapshot', header: copy.members.snapshot, rank: 4, cell: (node) => <SnapshotAge node={node} /> },
    {
      id: 'memory',
      header: copy.members.memory,
      end: true,
      rank: 3,
      className: 'whitespace-nowrap',
      cell: (node) => <Memory node={node} />,
    },
    {
      id: 'cpu',
      header: copy.members.cpu,
      end: true,
      rank: 4,
      className: 'whitespace-nowrap',
      cell: (node) => <Cpu node={node} />,
    },
    {
      id: 'actions',
      header: copy.members.actions,
      cell: (node) => <MemberActions shard={shard} node={node} isQuiet />,
    },
  ]
}

function lagOf(node: NodeView): number {
  return node.lagEntries ?? -1
}

function NodeName({ shard, node }: { readonly shard: string; readonly node: NodeView }) {
  return (
    <>
      <Link href={routes.node(shard, node.id)} className="font-mono">
        {node.id}
      </Link>{' '}
      <span className="text-small text-text-3">{node.zone}</span>
    </>
  )
}

/** The state, with its age once it is no longer live. */
export function NodeState({ node }: { readonly node: NodeView }) {
  return (
    <span className="inline-flex flex-wrap items-center gap-x-2 gap-y-0.5">
      <StateBadge state={node.state} level={node.level} label={node.message} />
      {node.state === 'catching-up' && node.etaSeconds !== null && (
        <span className="text-small text-text-3">{copy.members.caughtUpIn(duration(node.etaSeconds * 1_000))}</span>
      )}
      {node.freshness === 'delayed' && <Age at={node.answeredAt} fresh="delayed" className="text-small" />}
      {node.freshness === 'gone' && (
        <span className="text-small text-text-3">
          {copy.members.lastSeen} <Age at={node.answeredAt} fresh="gone" />
        </span>
      )}
      {node.freshness === 'never' && <span className="text-small text-text-3">{copy.members.neverSeen}</span>}
    </span>
  )
}

function Lag({ node }: { readonly node: NodeView }) {
  if (node.role === 'leader') return <span className="text-text-3">{copy.members.isLeader}</span>
  return (
    <Reported by={node.id} freshness={node.freshness} value={node.lagEntries}>
      {count(node.lagEntries)}
      {node.lagSeconds !== null && node.lagSeconds > 0 && (
        <span className="text-text-2"> · {duration(node.lagSeconds * 1_000)}</span>
      )}
    </Reported>
  )
}

function ReadLatency({ node }: { readonly node: NodeView }) {
  return (
    <Reported by={node.id} freshness={node.freshness} value={node.rates.p99}>
      {duration(node.rates.p99)}
    </Reported>
  )
}

function SnapshotAge({ node }: { readonly node: NodeView }) {
  const { snapshot } = node
  return (
    <Reported by={node.id} freshness={node.freshness} value={snapshot}>
      {snapshot && (
        <>
          <span className="font-mono text-small" data-tip={snapshot.id}>
            {snapshot.id.slice(0, 8)}
          </span>{' '}
          <Age at={snapshot.createdAt} none={common.timeUnknown} />
        </>
      )}
    </Reported>
  )
}

function Memory({ node }: { readonly node: NodeView }) {
  const { memory } = node
  return (
    <Reported by={node.id} freshness={node.freshness} value={memory}>
      {memory && (
        <span data-tip={memory.share === null ? undefined : copy.members.storeMemory(percent(memory.share))}>
          {bytes(memory.rss)}
        </span>
      )}
    </Reported>
  )
}

function Cpu({ node }: { readonly node: NodeView }) {
  const { cpu, cores } = node
  return (
    <Reported by={node.id} freshness={node.freshness} value={cpu}>
      {cores === null || cpu === null ? (
        copy.members.cores(figure(cpu))
      ) : (
        <span data-tip={copy.members.coresOf(figure(cpu), cores.now)}>{percent(cpu / cores.now)}</span>
      )}
    </Reported>
  )
}

type MemberActionsProps = {
  readonly shard: ShardView
  readonly node: NodeView
  /** In a row, where the values come first. */
  readonly isQuiet?: boolean
}

/**
 * The plans for a member. A leader keeps its first button, disabled, so that the focus stays on it when leadership
 * arrives.
 */
function MemberActions({ shard, node, isQuiet = false }: MemberActionsProps) {
  const openPlan = useOpenPlan()
  const whyNot = useWhyNot('admin') ?? whyNoChange(shard)
  if (shard.mode !== 'clustered') return null
  const isLearner = node.voter === false || (node.voter === null && node.role === 'learner')
  const action = (label: string, kind: OperationKind, why?: string) => (
    <Button
      aria-label={`${label} ${node.id}`}
      why={why ?? whyNot}
      onClick={() => openPlan({ kind, shard: shard.id, node: node.id })}
      kind={isQuiet ? 'quiet' : 'default'}
      className={clsx('!h-7 pointer-coarse:!h-11', isQuiet && '!px-1.5')}
    >
      {label}
    </Button>
  )
  if (isLearner) return action(copy.members.promote, 'promote')
  const noTransfer = shard.leader === node.id ? copy.members.isLeaderAlready(node.id) : undefined
  return (
    <span className={clsx('inline-flex max-sm:flex-wrap', isQuiet ? '-ms-1.5 gap-0.5' : 'gap-1.5')}>
      {action(
        copy.members.makeLeader,
        'transfer',
        noTransfer ?? (shard.leader === null ? copy.transfer.noLeader : undefined),
      )}
      {action(copy.members.demote, 'demote')}
      {isAway(node) && action(copy.members.replace, 'replace-voter')}
    </span>
  )
}

/** The time to give its place to another node. */
function isAway({ freshness }: NodeView): boolean {
  return freshness === 'gone' || freshness === 'never'
}

type MemberCardProps = Pick<MemberActionsProps, 'shard' | 'node'> & { readonly scale: LogScale | undefined }

function MemberCard({ shard, node, scale }: MemberCardProps) {
  return (
    <div className="grid gap-2">
      <div className="flex items-center justify-between gap-2">
        <RoleMark role={node.role} word />
        <NodeName shard={shard.id} node={node} />
      </div>
      <NodeState node={node} />
      <LogBar node={node} scale={scale} />
      <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-0.5 text-table">
        <dt className="text-text-2">{copy.members.lag}</dt>
        <dd className="num">
          <Lag node={node} />
        </dd>
        <dt className="text-text-2">{copy.members.p99}</dt>
        <dd className="num">
          <ReadLatency node={node} />
        </dd>
        <dt className="text-text-2">{copy.members.snapshot}</dt>
        <dd className="text-end">
          <SnapshotAge node={node} />
        </dd>
        <dt className="text-text-2">{copy.members.memory}</dt>
        <dd className="num">
          <Memory node={node} />
        </dd>
        <dt className="text-text-2">{copy.members.cpu}</dt>
        <dd className="num">
          <Cpu node={node} />
        </dd>
      </dl>
      <MemberActions shard={shard} node={node} />
    </div>
  )
}

/** The leader that each node reports: one line while they agree, a table when they do not. */
function LeaderReports({ shard }: { readonly shard: ShardView }) {
  const { reports, agree } = leaderReports(shard)
  const majority = copy.leaderReports.majority(
    shard.majority,
    shard.voters,
    shard.term === null ? undefined : count(shard.term),
  )
  if (agree) {
    return (
      <Panel title={copy.leaderReports.title} data={{ 'data-agree': 'true' }}>
        <p className="flex flex-wrap gap-x-4 gap-y-1">
          {reports.map((report) => (
            <span key={report.node} className="font-mono text-table">
              {report.node} → {leaderText(report)}
            </span>
          ))}
          <span className="text-text-2">{majority}</span>
        </p>
      </Panel>
    )
  }
  const byNode = new Map(shard.nodes.map((node) => [node.id, node]))
  return (
    <Panel title={copy.leaderReports.titleDisagree} flush data={{ 'data-agree': 'false' }}>
      <p className="px-4 pb-1 text-text-2">{majority}</p>
      <Table
        label={copy.leaderReports.title}
        rows={reports}
        rowKey={(report) => report.node}
        rowProps={(report) => ({ 'data-node': report.node })}
        columns={[
          {
            id: 'node',
            header: copy.leaderReports.node,
            rowHeader: true,
            cell: (report) => <span className="font-mono">{report.node}</span>,
          },
          {
            id: 'names',
            header: copy.leaderReports.leader,
            cell: (report) => <span className="font-mono">{leaderText(report)}</span>,
          },
          { id: 'health', header: copy.leaderReports.health, cell: (report) => byNode.get(report.node)?.health ?? '–' },
          {
            id: 'term',
            header: copy.leaderReports.term,
            end: true,
            cell: (report) => count(byNode.get(report.node)?.term),
          },
          {
            id: 'at',
            header: copy.leaderReports.answered,
            cell: (report) => <Age at={byNode.get(report.node)?.answeredAt} />,
          },
        ]}
      />
    </Panel>
  )
}

function leaderText({ names }: LeaderReport): string {
  return names === null ? copy.leaderReports.notReported : names === '' ? copy.leaderReports.none : names
}

/** A log position as a bar on the scale of its shard, with a text description. */
function LogBar({ node, scale }: { readonly node: NodeView; readonly scale: LogScale | undefined }) {
  const bar = scale && logBarOf(node, scale)
  const text = logBarText(node, bar, count)
  if (!bar) {
    return (
      <span className="text-text-3" data-tip={text}>
        –<span className="sr-only">{text}</span>
      </span>
    )
  }
  const percent = (share: number) => `${(share * 100).toFixed(2)}%`
  return (
    <span role="img" aria-label={text} data-tip={text} className="relative block h-3 min-w-24">
      {/* The missing part: a dashed line from the end of the log to the end of the scale. */}
      <span className="absolute inset-x-0 top-1.5 border-line-strong border-t border-dashed" />
      <span
        data-filled=""
        className="absolute inset-y-0.5 start-0 bg-[color-mix(in_srgb,var(--color-text-2)_35%,var(--color-surface))]"
        style={{ width: percent(bar.uncommittedTo) }}
      />
      <span
        data-filled=""
        className="absolute inset-y-0.5 start-0 bg-text-2"
        style={{ width: percent(bar.committedTo) }}
      />
      <span className="absolute inset-y-0 end-0 border-line-strong border-e" />
    </span>
  )
}

/** The change of members or leadership that the nodes report, requested here or elsewhere. */
function ShardChange({ shard }: { readonly shard: ShardView }) {
  const { change, lastChange } = shard
  if (!change && !lastChange) return null
  return (
    <Panel title={copy.change.title}>
      <div className="grid gap-2">
        {change && (
          <p className="flex flex-wrap items-center gap-2" data-change={change.kind}>
            <Badge level="info" icon="clock">
              {copy.change.inProgress}
            </Badge>
            {copy.change.of(change.kind)} <span className="font-mono">{change.node}</span>
            {change.step !== '' && <span className="text-text-2">{change.step}</span>}
            <span className="text-text-3">
              {common.for} <Duration from={change.startedAt} />
            </span>
          </p>
        )}
        {lastChange && (
          <p className="flex flex-wrap items-center gap-2">
            <Badge level={lastChange.result === 'done' ? 'ok' : 'warn'}>{lastChange.result}</Badge>
            {copy.change.last(lastChange.kind)} <span className="font-mono">{lastChange.node}</span>
            {lastChange.reason !== '' && <span className="break-words text-text-2">{lastChange.reason}</span>}
            <Age at={lastChange.at} />
          </p>
        )}
      </div>
    </Panel>
  )
}

/**
 * A shard that accepts no writes: since when, what to do, the best candidate, the runbook and the evidence
 * (docs/design/console.md#panels). In the colour of the state.
 */
function TroublePanel({ shard }: { readonly shard: ShardView }) {
  const title = useId()
  const trouble = troubleOf(shard)
  if (!trouble) return null
  const away = votersAway(shard)
  const best = bestCandidate(shard)
  return (
    <section
      aria-labelledby={title}
      data-trouble={shard.state}
      className={clsx('grid gap-3 rounded-panel border px-4 py-3', BANNER_TINTS[shard.level])}
    >
      <div className="flex items-start gap-3">
        <Icon name={STATE_ICONS[shard.state]} className="mt-1" />
        <div className="grid min-w-0 gap-1">
          <h2 id={title} className="text-section">
            {trouble.title} {common.for} <Duration from={shard.since} />:{' '}
            {copy.trouble.voters(shard.votersUp, shard.voters, shard.majority)}
          </h2>
          <p className="prose text-text">
            {electionText(shard)} {trouble.effect}
          </p>
        </div>
      </div>
      <ul aria-label={copy.trouble.actions} className="grid gap-2 text-text sm:ps-7">
        {away.length > 0 && (
          <li className="grid gap-1">
            <span>{copy.trouble.bringBack(Math.max(1, shard.majority - shard.votersUp), away.length)}</span>
            <span className="flex flex-wrap gap-x-4 gap-y-1">
              {away.map((node) => (
                <Away key={node.id} shard={shard.id} node={node} />
              ))}
            </span>
          </li>
        )}
        {away.length === 0 && shard.waitsFor !== '' && <li>{shard.waitsFor}</li>}
        {best && shard.state !== 'forming' && (
          <li data-candidate={best.id}>
            <span className="font-mono font-semibold">{best.id}</span>{' '}
            {copy.trouble.candidate(count(best.lastIndex), shard.state === 'quorum-lost')}
          </li>
        )}
        <li className="prose text-text-2">{trouble.causes}</li>
      </ul>
      {shard.state === 'quorum-lost' && <Runbook />}
      <Evidence shard={shard} />
    </section>
  )
}

function Away({ shard, node }: { readonly shard: string; readonly node: NodeView }) {
  return (
    <span data-needed={node.id} className="inline-flex flex-wrap items-center gap-x-2">
      <Link href={routes.node(shard, node.id)} className="font-mono font-semibold">
        {node.id}
      </Link>
      <span>{node.error?.message ?? node.message}</span>
      <span className="text-small text-text-2">
        {copy.trouble.seen} <Age at={node.answeredAt} none={copy.trouble.never} className="!text-text-2" />
      </span>
    </span>
  )
}

/** What to do when the nodes cannot be brought back: the steps of docs/clusters.md. */
function Runbook() {
  return (
    <details className="text-text sm:ps-7">
      <summary className="w-fit font-medium">{copy.runbook.title}</summary>
      <ol className="grid list-decimal gap-1 ps-5 pt-2">
        {copy.runbook.steps.map(({ text, command }) => (
          <li key={text} className="prose">
            {text}
            {command !== undefined && <CodeView hideLabel label={command} code={command} className="my-1" />}
          </li>
        ))}
      </ol>
      <p className="pt-2 text-small text-text-2">{copy.runbook.source}</p>
    </details>
  )
}

/** What each voter last reported about its log. */
function Evidence({ shard }: { readonly shard: ShardView }) {
  const voters = shard.nodes.filter((node) => node.voter !== false)
  return (
    <details className="text-text sm:ps-7">
      <summary className="w-fit font-medium">{copy.trouble.evidence(voters.length)}</summary>
      <Table
        label={copy.trouble.table}
        className="mt-2 rounded-control border border-line bg-surface"
        rows={voters}
        rowKey={(node) => node.id}
        rowProps={(node) => ({ 'data-voter': node.id })}
        columns={[
          {
            id: 'node',
            header: copy.trouble.voter,
            rowHeader: true,
            cell: (node) => <span className="font-mono">{node.id}</span>,
          },
          { id: 'last', header: copy.trouble.lastEntry, end: true, cell: (node) => count(node.lastIndex) },
          { id: 'term', header: copy.trouble.term, end: true, cell: (node) => count(node.term) },
          {
            id: 'seen',
            header: copy.trouble.lastSeen,
            cell: (node) => <Age at={node.answeredAt} fresh={node.freshness} />,
          },
          {
            id: 'error',
            header: copy.trouble.lastError,
            rank: 2,
            cell: (node) => (node.error ? `${node.error.message} (${node.apiUrl})` : common.none),
          },
        ]}
      />
    </details>
  )
}
