'use client'
/**
 * The snapshots on the nodes of a shard, and whether the shard would recover after a full stop
 * (docs/design/control-plane.md#snapshots).
 */
import type { Restorable, RouteAnswer, SnapshotMatrix } from '@vacancy/shared/contract'
import type { ReactNode } from 'react'
import { Icon } from '../../icons/icon.tsx'
import { count, NONE } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { useRoute } from '../../lib/use-route.ts'
import { Age } from '../../ui/age.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Link } from '../../ui/link.tsx'
import { Panel } from '../../ui/panel.tsx'
import { RoleMark } from '../../ui/role-mark.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import * as copy from './copy.ts'

type Matrix = RouteAnswer<'GET /api/v1/snapshots/matrix'>
type Node = SnapshotMatrix['nodes'][number]
type Snapshot = SnapshotMatrix['snapshots'][number]

const REFETCH_MS = 5_000
/** Stored snapshots that no node reports are shown up to this number; the list has all of them. */
const UNREPORTED_MAX = 2
const ORDER: readonly Restorable['verdict'][] = ['no', 'unknown', 'yes']
const VERDICT_LEVELS = { yes: 'ok', no: 'crit', unknown: 'unk' } as const

/** @param shard '' for the only shard */
export function useMatrix(shard: string) {
  return useRoute(
    'GET /api/v1/snapshots/matrix',
    { query: shard === '' ? {} : { shard } },
    { refetchInterval: REFETCH_MS },
  )
}
export type MatrixQuery = ReturnType<typeof useMatrix>

const RESTORABLE: readonly Column<Restorable>[] = [
  {
    id: 'shard',
    header: copy.recovery.shard,
    rowHeader: true,
    width: '12rem',
    compare: (a, b) => a.shard.localeCompare(b.shard),
    cell: ({ shard }) => (
      <Link href={routes.shardSnapshots(shard)} className="font-mono">
        {shard}
      </Link>
    ),
  },
  {
    id: 'verdict',
    header: copy.recovery.verdict,
    width: '8rem',
    compare: (a, b) => ORDER.indexOf(a.verdict) - ORDER.indexOf(b.verdict),
    cell: ({ verdict }) => <Badge level={VERDICT_LEVELS[verdict]}>{copy.recovery.verdicts[verdict]}</Badge>,
  },
  { id: 'reason', header: copy.recovery.reason, cell: (one) => <Verdict {...one} /> },
]

function Verdict({ message, same }: Restorable) {
  return (
    <span className="break-words">
      {message}.{same !== '' && <span className="block text-small text-text-3">{copy.recovery.files(same)}</span>}
    </span>
  )
}

/** All shards, the worst first. */
export function RestorablePanel({ query }: { query: MatrixQuery }) {
  return (
    <Panel title={copy.recovery.title} flush query={query}>
      {({ shards }) => (
        <Table
          label={copy.recovery.table}
          rows={shards}
          columns={RESTORABLE}
          rowKey={({ shard }) => shard}
          sort={{ column: 'verdict', down: false }}
          rowProps={({ shard, verdict }) => ({ 'data-shard': shard, 'data-verdict': verdict })}
          card={(one) => (
            <div className="flex flex-col gap-1">
              <span className="flex items-center gap-2">
                <Link href={routes.shardSnapshots(one.shard)} className="font-mono">
                  {one.shard}
                </Link>
                <Badge level={VERDICT_LEVELS[one.verdict]}>{copy.recovery.asked[one.verdict]}</Badge>
              </span>
              <Verdict {...one} />
            </div>
          )}
        />
      )}
    </Panel>
  )
}

/** Nodes as rows, snapshots as columns, with the verdict above. */
export function MatrixPanel({ query, shard }: { query: MatrixQuery; shard: string }) {
  return (
    <Panel
      title={copy.matrix.title(shard)}
      flush
      query={query}
      isEmpty={({ matrix }) => matrix === null || matrix.nodes.length === 0}
      empty={{ text: copy.matrix.empty(shard) }}
      data={{ 'data-matrix': shard }}
    >
      {({ shards, matrix }: Matrix) =>
        matrix && <MatrixView matrix={matrix} verdict={verdictOf(shards, matrix.shard)} />
      }
    </Panel>
  )
}

const verdictOf = (shards: readonly Restorable[], shard: string) => shards.find((one) => one.shard === shard)

function MatrixView({ matrix, verdict }: { matrix: SnapshotMatrix; verdict: Restorable | undefined }) {
  const unreported = matrix.snapshots.filter(({ id }) => !matrix.nodes.some(({ holds }) => holds === id))
  const hidden = unreported.slice(UNREPORTED_MAX)
  const shown = matrix.snapshots.filter((one) => !hidden.includes(one))
  const silent = matrix.nodes.filter(({ report }) => report !== 'current')
  const columns: readonly Column<Node>[] = [
    {
      id: 'node',
      header: copy.matrix.node,
      rowHeader: true,
      cell: ({ node, role, voter }) => (
        <span className="inline-flex items-center gap-2">
          <RoleMark role={role} />
          <Link href={routes.node(matrix.shard, node)} className="font-mono">
            {node}
          </Link>
          {voter === false && <span className="text-small text-text-3">{copy.matrix.learner}</span>}
        </span>
      ),
    },
    ...shown.map(
      (one): Column<Node> => ({
        id: one.id,
        header: copy.matrix.head(one.id.slice(0, 8), one.majority),
        tip: headTip(one, matrix),
        cell: (node) => <Cell node={node} snapshot={one} />,
      }),
    ),
    { id: 'log', header: copy.matrix.logIndex, end: true, cell: ({ lastIndex }) => count(lastIndex) },
    { id: 'updated', header: copy.matrix.updated, end: true, cell: (node) => <ReportAge node={node} /> },
  ]
  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-col gap-1 px-4 pt-1">
        {verdict && (
          <p className="flex flex-wrap items-start gap-2" data-verdict={verdict.verdict}>
            <Badge level={VERDICT_LEVELS[verdict.verdict]}>{copy.recovery.asked[verdict.verdict]}</Badge>
            <Verdict {...verdict} />
          </p>
        )}
        {silent.length > 0 && (
          <p className="text-warn">
            {copy.matrix.silent(
              silent.map(({ node, error }) => (error === '' ? node : `${node} (${error})`)).join(', '),
            )}
          </p>
        )}
      </div>
      <Table
        label={copy.matrix.title(matrix.shard)}
        rows={matrix.nodes}
        columns={columns}
        rowKey={({ node }) => node}
        rowProps={({ node, report, holds }) => ({
          'data-node': node,
          'data-report': report,
          'data-holds': holds ?? '',
        })}
        card={(node) => <NodeCard node={node} shown={shown} matrix={matrix} />}
      />
      <p className="prose px-4 pb-4 text-small text-text-3">
        {copy.matrix.hint}
        {hidden.length > 0 && copy.matrix.hidden(hidden.length)}
      </p>
    </div>
  )
}

function headTip({ name, voters, stored, codecsCurrent }: Snapshot, matrix: SnapshotMatrix): string {
  return [
    copy.matrix.headTip(name, voters, matrix.voters),
    stored ? copy.matrix.stored : copy.matrix.onlyOnNodes,
    ...(codecsCurrent === false ? [copy.matrix.invalid] : []),
  ].join('; ')
}

function Cell({ node: { holds, report }, snapshot }: { node: Node; snapshot: Snapshot }): ReactNode {
  if (holds === snapshot.id) {
    return (
      <span
        className={
          report === 'current' ? 'inline-flex items-center gap-1 text-ok' : 'inline-flex items-center gap-1 text-text-3'
        }
      >
        <Icon name={report === 'current' ? 'check' : 'clock'} size={14} />
        {report === 'current' ? copy.matrix.newest : copy.matrix.newestLastKnown}
      </span>
    )
  }
  if (report === 'none') return <span className="text-text-3">{copy.matrix.notReported}</span>
  return (
    <span
      className="text-text-3"
      data-tip={holds === null ? copy.matrix.noSnapshot : copy.matrix.otherNewest(holds.slice(0, 8))}
    >
      {NONE}
    </span>
  )
}

function ReportAge({ node: { report, at } }: { node: Node }) {
  if (report === 'current') return <Age at={at} />
  return <Age at={at} fresh="gone" none={copy.matrix.never} />
}

/** A node on narrow screens. */
function NodeCard({ node, shown, matrix }: { node: Node; shown: readonly Snapshot[]; matrix: SnapshotMatrix }) {
  const held = shown.find(({ id }) => id === node.holds)
  return (
    <div className="flex flex-col gap-1">
      <span className="flex items-center gap-2">
        <RoleMark role={node.role} />
        <Link href={routes.node(matrix.shard, node.node)} className="font-mono">
          {node.node}
        </Link>
      </span>
      {held ? (
        <span className="flex flex-wrap items-center gap-2">
          <Cell node={node} snapshot={held} />
          <span className="font-mono text-small">{held.id.slice(0, 8)}…</span>
          {held.majority && <span className="text-small text-text-2">{copy.matrix.likeMajority}</span>}
        </span>
      ) : (
        <span className="text-text-3">{node.report === 'none' ? copy.matrix.notReported : copy.matrix.noSnapshot}</span>
      )}
      <span className="text-small text-text-3">
        {copy.matrix.updated} <ReportAge node={node} />
      </span>
    </div>
  )
}
