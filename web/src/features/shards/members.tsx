'use client'
/** The members of a shard: role as a shape, state in three ways, log positions on one scale, and what can be done. */

import type { NodeView, OperationKind, ShardView } from '@vacancy/shared/contract'
import dynamic from 'next/dynamic'
import { useEffect, useMemo, useState } from 'react'
import { bytes, count, counted, duration, percent } from '../../lib/format.ts'
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
import { LogBar } from './log-bar.tsx'
import { type LogScale, logScaleOf } from './log-scale.ts'
import { ShardChange } from './shard-change.tsx'
import { ShardFrame } from './shard-page.tsx'
import { Told } from './told.tsx'
import { TroublePanel } from './trouble.tsx'
import { WhoLeads } from './who-leads.tsx'

export function ShardMembersPage({ id }: { readonly id: string }) {
  return (
    <ShardFrame id={id} tab="members">
      {(shard) => (
        <>
          <TroublePanel shard={shard} />
          <Members shard={shard} />
          {shard.mode === 'clustered' && <WhoLeads shard={shard} />}
          <ShardChange shard={shard} />
          {shard.mode === 'clustered' && <Leadership shard={shard.id} />}
        </>
      )}
    </ShardFrame>
  )
}

// Below what somebody came for: its code comes after the rest of the page.
const Leadership = dynamic(() => import('./leadership.tsx'), { ssr: false, loading: LeadershipToCome })

function LeadershipToCome() {
  return (
    <Panel title="Leadership timeline, last 24 h">
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
    <Panel title="Members" flush className="[&_tr[data-handover]]:bg-info-bg">
      <Table
        label="Members"
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

/** Who took over leadership a moment ago, while somebody looked: its row is tinted so that the eye finds it. */
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
    { id: 'role', header: 'Role', width: '6rem', cell: (node) => <RoleMark role={node.role} word /> },
    {
      id: 'node',
      header: 'Node',
      rowHeader: true,
      cell: (node) => <NodeName shard={shard.id} node={node} />,
      compare: (a, b) => (a.id < b.id ? -1 : 1),
    },
    { id: 'state', header: 'State', className: 'min-w-44', cell: (node) => <NodeState node={node} /> },
    {
      id: 'log',
      header: 'Log position',
      rank: 2,
      width: '18%',
      tip: 'On one scale: from the first to the last entry of the leader',
      cell: (node) => <LogBar node={node} scale={scale} />,
    },
    {
      id: 'lag',
      header: 'Lag',
      end: true,
      cell: (node) => <Lag node={node} />,
      compare: (a, b) => lagOf(a) - lagOf(b),
      className: 'whitespace-nowrap',
    },
    { id: 'snapshot', header: 'Snapshot', rank: 4, cell: (node) => <SnapshotAge node={node} /> },
    {
      id: 'memory',
      header: 'Memory',
      end: true,
      rank: 3,
      className: 'whitespace-nowrap',
      cell: (node) => <Memory node={node} />,
    },
    {
      id: 'cpu',
      header: 'CPU',
      end: true,
      rank: 4,
      className: 'whitespace-nowrap',
      cell: (node) => <Cpu node={node} />,
    },
    { id: 'actions', header: 'Actions', cell: (node) => <MemberActions shard={shard} node={node} /> },
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

/** The state, and how old it is once it is no longer live. */
export function NodeState({ node }: { readonly node: NodeView }) {
  return (
    <span className="inline-flex flex-wrap items-center gap-x-2 gap-y-0.5">
      <StateBadge state={node.state} level={node.level} label={node.says} />
      {node.state === 'catching-up' && node.etaSeconds !== null && (
        <span className="text-small text-text-3">caught up in {duration(node.etaSeconds * 1_000)}</span>
      )}
      {node.freshness === 'delayed' && <Age at={node.answeredAt} fresh="delayed" className="text-small" />}
      {node.freshness === 'gone' && (
        <span className="text-small text-text-3">
          last seen <Age at={node.answeredAt} fresh="gone" />
        </span>
      )}
      {node.freshness === 'never' && (
        <span className="text-small text-text-3">never seen since the control plane runs</span>
      )}
    </span>
  )
}

function Lag({ node }: { readonly node: NodeView }) {
  if (node.role === 'leader') return <span className="text-text-3">leads</span>
  return (
    <Told by={node.id} freshness={node.freshness} value={node.lagEntries}>
      {count(node.lagEntries)}
      {node.lagSeconds !== null && node.lagSeconds > 0 && (
        <span className="text-text-2"> · {duration(node.lagSeconds * 1_000)}</span>
      )}
    </Told>
  )
}

function SnapshotAge({ node }: { readonly node: NodeView }) {
  const { snapshot } = node
  return (
    <Told by={node.id} freshness={node.freshness} value={snapshot}>
      {snapshot && (
        <>
          <span className="font-mono text-small" data-tip={snapshot.id}>
            {snapshot.id.slice(0, 8)}
          </span>{' '}
          <Age at={snapshot.createdAt} none="time not told" />
        </>
      )}
    </Told>
  )
}

function Memory({ node }: { readonly node: NodeView }) {
  const { memory } = node
  return (
    <Told by={node.id} freshness={node.freshness} value={memory}>
      {memory && (
        <span data-tip={memory.share === null ? undefined : `${percent(memory.share)} of the store's memory is in use`}>
          {bytes(memory.rss)}
        </span>
      )}
    </Told>
  )
}

function Cpu({ node }: { readonly node: NodeView }) {
  const { cpu, cores } = node
  return (
    <Told by={node.id} freshness={node.freshness} value={cpu}>
      {cores === null || cpu === null ? (
        `${cpu?.toFixed(2)} cores`
      ) : (
        <span data-tip={`${cpu.toFixed(2)} of ${counted(cores.now, 'core')}`}>{percent(cpu / cores.now)}</span>
      )}
    </Told>
  )
}

type MemberActionsProps = { readonly shard: ShardView; readonly node: NodeView }

/**
 * What can be planned for a member. A leader keeps its first button, unusable: the one who pressed it keeps the focus
 * while leadership arrives.
 */
function MemberActions({ shard, node }: MemberActionsProps) {
  const openPlan = useOpenPlan()
  const held = useWhyNot('admin')
  if (shard.mode !== 'clustered') return null
  const isLearner = node.voter === false || (node.voter === null && node.role === 'learner')
  const action = (label: string, kind: OperationKind, why?: string) => (
    <Button
      aria-label={`${label} ${node.id}`}
      why={why ?? held}
      onClick={() => openPlan({ kind, shard: shard.id, node: node.id })}
      className="!h-7 pointer-coarse:!h-11"
    >
      {label}
    </Button>
  )
  if (isLearner) return action('Promote…', 'promote')
  const noTransfer = shard.leader === node.id ? `${node.id} leads already` : undefined
  return (
    <span className="inline-flex gap-1.5 max-sm:flex-wrap">
      {action(
        'Make leader…',
        'transfer',
        noTransfer ?? (shard.leader === null ? 'Nothing to transfer: no leader' : undefined),
      )}
      {action('Demote…', 'demote')}
    </span>
  )
}

type MemberCardProps = MemberActionsProps & { readonly scale: LogScale | undefined }

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
        <dt className="text-text-2">Lag</dt>
        <dd className="num">
          <Lag node={node} />
        </dd>
        <dt className="text-text-2">Snapshot</dt>
        <dd className="text-end">
          <SnapshotAge node={node} />
        </dd>
        <dt className="text-text-2">Memory</dt>
        <dd className="num">
          <Memory node={node} />
        </dd>
        <dt className="text-text-2">CPU</dt>
        <dd className="num">
          <Cpu node={node} />
        </dd>
      </dl>
      <MemberActions shard={shard} node={node} />
    </div>
  )
}
