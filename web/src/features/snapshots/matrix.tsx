'use client'
/**
 * Which node of a shard holds which snapshot, and whether the shard would come back after a full stop
 * (docs/design/control-plane.md#snapshots).
 */
import { useQuery } from '@tanstack/react-query'
import type { Restorable, RouteAnswer, SnapshotMatrix } from '@vacancy/shared/contract'
import type { ReactNode } from 'react'
import { Icon } from '../../icons/icon.tsx'
import { call } from '../../lib/api.ts'
import { count, counted, NONE } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { Age } from '../../ui/age.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Link } from '../../ui/link.tsx'
import { Panel } from '../../ui/panel.tsx'
import { RoleMark } from '../../ui/role-mark.tsx'
import { type Column, Table } from '../../ui/table.tsx'

type Matrix = RouteAnswer<'GET /api/v1/snapshots/matrix'>
type Node = SnapshotMatrix['nodes'][number]
type Snapshot = SnapshotMatrix['snapshots'][number]

const AGAIN_MS = 5_000
/** Stored ones that no node tells of are drawn up to this many; all of them stand in the list. */
const UNHELD_MAX = 2
const ORDER: readonly Restorable['verdict'][] = ['no', 'unknown', 'yes']
const VERDICTS = {
  yes: { level: 'ok', word: 'yes' },
  no: { level: 'crit', word: 'no' },
  unknown: { level: 'unk', word: 'not known' },
} as const

/** @param shard whose matrix is wanted; '' for that of the only one */
export function useMatrix(shard: string) {
  return useQuery({
    queryKey: ['GET /api/v1/snapshots/matrix', shard],
    queryFn: ({ signal }) => call('GET /api/v1/snapshots/matrix', { query: shard === '' ? {} : { shard }, signal }),
    refetchInterval: AGAIN_MS,
  })
}
export type MatrixQuery = ReturnType<typeof useMatrix>

const RESTORABLE: readonly Column<Restorable>[] = [
  {
    id: 'shard',
    header: 'Shard',
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
    header: 'Comes back',
    width: '8rem',
    compare: (a, b) => ORDER.indexOf(a.verdict) - ORDER.indexOf(b.verdict),
    cell: ({ verdict }) => <Badge level={VERDICTS[verdict].level}>{VERDICTS[verdict].word}</Badge>,
  },
  { id: 'says', header: 'Why', cell: (one) => <Words {...one} /> },
]

function Words({ message, same }: Restorable) {
  return (
    <span className="break-words">
      {message}.{same !== '' && <span className="block text-small text-text-3">Of the files alone: {same}.</span>}
    </span>
  )
}

/** Every shard, the worst first. */
export function RestorablePanel({ query }: { query: MatrixQuery }) {
  return (
    <Panel title="Would a shard come back after a full stop?" flush query={query}>
      {({ shards }) => (
        <Table
          label="Shards after a full stop"
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
                <Badge level={VERDICTS[one.verdict].level}>{VERDICTS[one.verdict].word}</Badge>
              </span>
              <Words {...one} />
            </div>
          )}
        />
      )}
    </Panel>
  )
}

/** Nodes in rows, snapshots in columns; in words above it what they mean together. */
export function MatrixPanel({ query, shard }: { query: MatrixQuery; shard: string }) {
  return (
    <Panel
      title={`Nodes and snapshots of ${shard}`}
      flush
      query={query}
      isEmpty={({ matrix }) => matrix === null || matrix.nodes.length === 0}
      empty={{ text: `No node of ${shard} is known.` }}
      data={{ 'data-matrix': shard }}
    >
      {({ shards, matrix }: Matrix) => matrix && <MatrixView matrix={matrix} answer={answerOf(shards, matrix.shard)} />}
    </Panel>
  )
}

const answerOf = (shards: readonly Restorable[], shard: string) => shards.find((one) => one.shard === shard)

function MatrixView({ matrix, answer }: { matrix: SnapshotMatrix; answer: Restorable | undefined }) {
  const unheld = matrix.snapshots.filter(({ id }) => !matrix.nodes.some(({ holds }) => holds === id))
  const left = unheld.slice(UNHELD_MAX)
  const shown = matrix.snapshots.filter((one) => !left.includes(one))
  const silent = matrix.nodes.filter(({ report }) => report !== 'current')
  const columns: readonly Column<Node>[] = [
    {
      id: 'node',
      header: 'Node',
      rowHeader: true,
      cell: ({ node, role, voter }) => (
        <span className="inline-flex items-center gap-2">
          <RoleMark role={role} />
          <Link href={routes.node(matrix.shard, node)} className="font-mono">
            {node}
          </Link>
          {voter === false && <span className="text-small text-text-3">no voter</span>}
        </span>
      ),
    },
    ...shown.map(
      (one): Column<Node> => ({
        id: one.id,
        header: `${one.id.slice(0, 8)}…${one.majority ? ' (majority)' : ''}`,
        tip: headTip(one, matrix),
        cell: (node) => <Cell node={node} snapshot={one} />,
      }),
    ),
    { id: 'log', header: 'Log goes to', end: true, cell: ({ lastIndex }) => count(lastIndex) },
    { id: 'told', header: 'Told', end: true, cell: (node) => <Told node={node} /> },
  ]
  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-col gap-1 px-4 pt-1">
        {answer && (
          <p className="flex flex-wrap items-start gap-2" data-verdict={answer.verdict}>
            <Badge level={VERDICTS[answer.verdict].level}>{VERDICTS[answer.verdict].word}</Badge>
            <Words {...answer} />
          </p>
        )}
        {silent.length > 0 && (
          <p className="text-warn">
            {silent.map(({ node, error }) => (error === '' ? node : `${node} (${error})`)).join(', ')}{' '}
            {silent.length === 1 ? 'did' : 'do'} not answer: what stands there is the last that was told, if anything.
          </p>
        )}
      </div>
      <Table
        label={`Nodes and snapshots of ${matrix.shard}`}
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
        A node tells of its newest snapshot only; older ones that it may keep stand in no column. From its snapshot each
        goes on with its own log, so nodes may hold different ones and still have the same data.
        {left.length > 0 && ` ${counted(left.length, 'stored snapshot')} that no node tells of are left out here.`}
      </p>
    </div>
  )
}

function headTip({ name, voters, stored, codecsCurrent }: Snapshot, matrix: SnapshotMatrix): string {
  return [
    `${name}, newest of ${voters} of ${matrix.voters} voters`,
    stored ? 'its file lies on the control plane' : 'only on nodes',
    ...(codecsCurrent === false ? ['invalid: made with another codec list'] : []),
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
        {report === 'current' ? 'newest' : 'newest, last told'}
      </span>
    )
  }
  if (report === 'none') return <span className="text-text-3">not told</span>
  return (
    <span
      className="text-text-3"
      data-tip={holds === null ? 'It tells of no snapshot' : `Its newest is ${holds.slice(0, 8)}…`}
    >
      {NONE}
    </span>
  )
}

function Told({ node: { report, at } }: { node: Node }) {
  if (report === 'current') return <Age at={at} />
  return <Age at={at} fresh="gone" none="nothing" />
}

/** A node where there is no room for columns. */
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
          {held.majority && <span className="text-small text-text-2">as the majority</span>}
        </span>
      ) : (
        <span className="text-text-3">{node.report === 'none' ? 'not told' : 'tells of no snapshot'}</span>
      )}
      <span className="text-small text-text-3">
        Told <Told node={node} />
      </span>
    </div>
  )
}
