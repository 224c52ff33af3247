'use client'
/** Every snapshot that is known: built here, or the newest own one of a node (console.md §10). */
import { useQuery } from '@tanstack/react-query'
import type { ShardBrief, SnapshotView } from '@vacancy/shared/contract'
import { call } from '../../lib/api.ts'
import { bytes, count, days } from '../../lib/format.ts'
import { useLive } from '../../lib/live.ts'
import { routes } from '../../lib/routes.ts'
import { Age } from '../../ui/age.tsx'
import { Badge } from '../../ui/badge.tsx'
import { LinkButton } from '../../ui/button.tsx'
import { Link } from '../../ui/link.tsx'
import { Page } from '../../ui/page.tsx'
import { Panel } from '../../ui/panel.tsx'
import { type Column, Table } from '../../ui/table.tsx'

const AGAIN_MS = 10_000

export function useSnapshots() {
  return useQuery({
    queryKey: ['GET /api/v1/snapshots'],
    queryFn: ({ signal }) => call('GET /api/v1/snapshots', { signal }),
    refetchInterval: AGAIN_MS,
  })
}

const COLUMNS: readonly Column<SnapshotView>[] = [
  {
    id: 'name',
    header: 'Snapshot',
    rowHeader: true,
    cell: ({ id, name }) => (
      <>
        <Link href={routes.snapshot(id)}>{name}</Link>
        <span className="block font-mono text-small text-text-3">{id.slice(0, 12)}</span>
      </>
    ),
    compare: (a, b) => a.name.localeCompare(b.name),
  },
  { id: 'origin', header: 'From', rank: 3, cell: ({ origin }) => (origin === 'import' ? 'import' : 'node') },
  {
    id: 'shard',
    header: 'Shard',
    rank: 2,
    cell: ({ shard }) => <span className="font-mono">{shard}</span>,
    compare: (a, b) => a.shard.localeCompare(b.shard),
  },
  { id: 'state', header: 'State', cell: (snapshot) => <SnapshotState snapshot={snapshot} /> },
  {
    id: 'packages',
    header: 'Packages',
    end: true,
    cell: ({ packages }) => count(packages),
    compare: (a, b) => a.packages - b.packages,
  },
  { id: 'window', header: 'Nights', rank: 4, cell: ({ window }) => days(window) },
  {
    id: 'bytes',
    header: 'Size',
    end: true,
    rank: 3,
    cell: (snapshot) => bytes(snapshot.bytes),
    compare: (a, b) => a.bytes - b.bytes,
  },
  {
    id: 'created',
    header: 'Made',
    end: true,
    rank: 2,
    cell: ({ createdAt }) => <Age at={createdAt} />,
    compare: (a, b) => (a.createdAt < b.createdAt ? -1 : 1),
  },
]

export function SnapshotState({ snapshot }: { snapshot: SnapshotView }) {
  const { servedBy, codecsCurrent, installable, origin, heldBy } = snapshot
  if (codecsCurrent === false) return <Badge level="crit">other codec list</Badge>
  if (servedBy.length > 0) return <Badge level="ok">serves {servedBy.join(', ')}</Badge>
  if (origin === 'node') return <Badge level="info">held by {heldBy.map(({ node }) => node).join(', ')}</Badge>
  return installable ? <Badge level="info">stored</Badge> : <Badge level="crit">counters differ</Badge>
}

export function SnapshotsPage() {
  const query = useSnapshots()
  return (
    <Page
      id="snapshots"
      title="Snapshots"
      ready={query.data !== undefined || query.isError}
      actions={
        <LinkButton href={routes.newImport()} icon="plus">
          New import
        </LinkButton>
      }
    >
      <Restorable />
      <Panel
        title="Snapshots"
        hideTitle
        flush
        query={query}
        isEmpty={({ snapshots }) => snapshots.length === 0}
        empty={{
          says: 'No snapshot is known: none was built here, and no node has told of one.',
          action: (
            <LinkButton href={routes.newImport()} icon="plus">
              New import
            </LinkButton>
          ),
          code: 'vacancy build-snapshot --shard-id s1 --input-path DIR --output-path DIR',
        }}
      >
        {({ snapshots }) => (
          <Table
            label="Snapshots"
            rows={snapshots}
            columns={COLUMNS}
            rowKey={({ id }) => id}
            href={({ id }) => routes.snapshot(id)}
            rowProps={({ id }) => ({ 'data-snapshot': id })}
          />
        )}
      </Panel>
    </Page>
  )
}

/** Whether each shard would come back after all of its nodes had stopped: a majority of its voters has data on disk. */
function Restorable() {
  const summary = useLive('summary')
  const shards = summary.data?.shards.filter(({ mode }) => mode === 'clustered') ?? []
  if (shards.length === 0) return null
  return (
    <Panel title="Would a shard come back after a full stop?">
      <ul className="flex flex-col gap-1">
        {shards.map((shard) => (
          <li key={shard.id} data-shard={shard.id}>
            <Link href={routes.shard(shard.id)} className="font-mono">
              {shard.id}
            </Link>
            : {answerFor(shard)}
          </li>
        ))}
      </ul>
    </Panel>
  )
}

function answerFor({ voters, votersUp, leader }: ShardBrief): string {
  const majority = Math.floor(voters / 2) + 1
  if (leader === null) return 'not known: it has no leader now.'
  const most = `${votersUp} of ${voters} voters answer and have log and snapshots on disk, ${majority} needed.`
  return votersUp >= majority ? `yes, ${most}` : `only with the nodes that do not answer: ${most}`
}
