'use client'
/** The members of a shard: roles, states, log positions on one scale, and actions. */

import type { NodeView, OperationKind, ShardView } from '@vacancy/shared/contract'
import clsx from 'clsx'
import dynamic from 'next/dynamic'
import { useEffect, useMemo, useState } from 'react'
import { bytes, count, duration, percent } from '../../lib/format.ts'
import { whyNoChange } from '../../lib/quorum.ts'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { useUrlParam } from '../../lib/url.ts'
import { Age } from '../../ui/age.tsx'
import { Button } from '../../ui/button.tsx'
import { Link } from '../../ui/link.tsx'
import { Panel, Skeleton } from '../../ui/panel.tsx'
import { RoleMark } from '../../ui/role-mark.tsx'
import { StateBadge } from '../../ui/state-badge.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { useOpenPlan } from '../operations/plan-host.tsx'
import { common } from './copy.ts'
import { LeaderReports } from './leader-reports.tsx'
import { LogBar } from './log-bar.tsx'
import { type LogScale, logScaleOf } from './log-scale.ts'
import { Reported } from './reported.tsx'
import { ShardChange } from './shard-change.tsx'
import * as copy from './shard-copy.ts'
import { ShardFrame } from './shard-page.tsx'
import { TroublePanel } from './trouble.tsx'

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
        copy.members.cores(cpu?.toFixed(2))
      ) : (
        <span data-tip={copy.members.coresOf(cpu.toFixed(2), cores.now)}>{percent(cpu / cores.now)}</span>
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
    </span>
  )
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
