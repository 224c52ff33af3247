'use client'
/**
 * The snapshots on the nodes of a shard, and whether the shard would recover after a full stop
 * (docs/design/control-plane.md#snapshots).
 */
import type { Restorable, RouteAnswer, SnapshotMatrix } from '@vacancy/shared/contract'
import clsx from 'clsx'
import { count } from '../../lib/format.ts'
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

const REFETCH_MS = 5_000
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
    width: '12rem',
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
              <span className="flex flex-wrap items-center gap-2">
                <Link href={routes.shardSnapshots(one.shard)} className="font-mono">
                  {one.shard}
                </Link>
                <Badge level={VERDICT_LEVELS[one.verdict]}>{copy.recovery.sentence(one.verdict)}</Badge>
              </span>
              <Verdict {...one} />
            </div>
          )}
        />
      )}
    </Panel>
  )
}

/** The nodes with their newest snapshots, and the verdict above. */
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
  const silent = matrix.nodes.filter(({ report }) => report !== 'current')
  const [node, newest, log, updated] = columnsOf(matrix)
  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-col gap-1 px-4 pt-1">
        {verdict && (
          <p className="flex flex-wrap items-start gap-x-2 gap-y-1" data-verdict={verdict.verdict}>
            <Badge level={VERDICT_LEVELS[verdict.verdict]}>{copy.recovery.sentence(verdict.verdict)}.</Badge>{' '}
            <Verdict {...verdict} />
          </p>
        )}
        {silent.length > 0 && (
          <p className="text-warn">
            {copy.matrix.silent(
              silent.map(({ node: id, error }) => (error === '' ? id : `${id} (${error})`)).join(', '),
            )}
          </p>
        )}
      </div>
      <Table
        label={copy.matrix.title(matrix.shard)}
        rows={matrix.nodes}
        columns={[node, newest, log, updated]}
        rowKey={({ node: id }) => id}
        rowProps={({ node: id, report, holds }) => ({
          'data-node': id,
          'data-report': report,
          'data-holds': holds ?? '',
        })}
        card={(one) => (
          <div className="flex flex-col gap-1">
            {node.cell(one)}
            {newest.cell(one)}
            <span className="text-small text-text-3">
              {copy.matrix.updated} <ReportAge node={one} />
            </span>
          </div>
        )}
      />
      <p className="prose px-4 pb-4 text-small text-text-3">{copy.matrix.hint}</p>
    </div>
  )
}

function columnsOf(matrix: SnapshotMatrix): readonly [Column<Node>, Column<Node>, Column<Node>, Column<Node>] {
  return [
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
    { id: 'newest', header: copy.matrix.newest, cell: (node) => <Newest node={node} matrix={matrix} /> },
    { id: 'log', header: copy.matrix.logIndex, end: true, cell: ({ lastIndex }) => count(lastIndex) },
    { id: 'updated', header: copy.matrix.updated, end: true, cell: (node) => <ReportAge node={node} /> },
  ]
}

/** The newest snapshot of a node, and whether a majority of the voters has the same. */
function Newest({ node: { holds, report }, matrix: { snapshots, voters } }: { node: Node; matrix: SnapshotMatrix }) {
  const snapshot = snapshots.find(({ id }) => id === holds)
  if (!snapshot) {
    return <span className="text-text-3">{report === 'none' ? copy.matrix.notReported : copy.matrix.noSnapshot}</span>
  }
  const hasMajority = snapshots.some(({ majority }) => majority)
  return (
    <span className="inline-flex flex-wrap items-center gap-x-2">
      <Link
        href={routes.snapshot(snapshot.id)}
        className="font-mono"
        data-tip={copy.matrix.heldBy(snapshot.name, snapshot.voters, voters, snapshot.stored)}
      >
        {snapshot.id.slice(0, 8)}…
      </Link>
      {hasMajority && (
        <span className={clsx('text-small', snapshot.majority ? 'text-ok' : 'text-warn')}>
          {snapshot.majority ? copy.matrix.likeMajority : copy.matrix.unlikeMajority}
        </span>
      )}
      {snapshot.codecsCurrent === false && <span className="text-crit text-small">{copy.matrix.invalid}</span>}
      {report !== 'current' && <span className="text-small text-text-3">{copy.matrix.lastKnown}</span>}
    </span>
  )
}

function ReportAge({ node: { report, at } }: { node: Node }) {
  if (report === 'current') return <Age at={at} />
  return <Age at={at} fresh="gone" none={copy.matrix.never} />
}
