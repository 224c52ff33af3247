'use client'
/**
 * All known snapshots: built here, or the newest of each node (docs/design/control-plane.md#snapshots).
 */
import type { SnapshotView } from '@vacancy/shared/contract'
import { bytes, count, days, NONE } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { useUrlParam } from '../../lib/url.ts'
import { useRoute } from '../../lib/use-route.ts'
import { Age } from '../../ui/age.tsx'
import { Badge } from '../../ui/badge.tsx'
import { LinkButton } from '../../ui/button.tsx'
import { Link } from '../../ui/link.tsx'
import { Page } from '../../ui/page.tsx'
import { Panel } from '../../ui/panel.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import * as copy from './copy.ts'
import { MatrixPanel, RestorablePanel, useMatrix } from './matrix.tsx'

const REFETCH_MS = 10_000

export function useSnapshots() {
  return useRoute('GET /api/v1/snapshots', {}, { refetchInterval: REFETCH_MS })
}

/** Why it was written, by an import or a node. */
const ORIGINS: Readonly<Record<SnapshotView['origin'], string>> = copy.list.origins

function Where({ snapshot: { stored, heldBy } }: { snapshot: SnapshotView }) {
  const places = [...(stored ? [copy.list.controlPlane] : []), ...heldBy.map(({ node }) => node)]
  return <span className="break-words">{places.join(', ') || NONE}</span>
}

const COLUMNS: readonly Column<SnapshotView>[] = [
  {
    id: 'name',
    header: copy.list.name,
    rowHeader: true,
    cell: ({ id, name }) => (
      <>
        <Link href={routes.snapshot(id)}>{name}</Link>
        <span className="block font-mono text-small text-text-3">{id.slice(0, 12)}</span>
      </>
    ),
    compare: (a, b) => a.name.localeCompare(b.name),
  },
  { id: 'origin', header: copy.list.origin, rank: 3, cell: ({ origin }) => ORIGINS[origin] },
  {
    id: 'shard',
    header: copy.list.shard,
    rank: 2,
    cell: ({ shard }) => <span className="font-mono">{shard}</span>,
    compare: (a, b) => a.shard.localeCompare(b.shard),
  },
  { id: 'state', header: copy.list.state, cell: (snapshot) => <SnapshotState snapshot={snapshot} /> },
  {
    id: 'packages',
    header: copy.list.packages,
    end: true,
    cell: ({ packages }) => count(packages),
    compare: (a, b) => a.packages - b.packages,
  },
  { id: 'where', header: copy.list.storedOn, rank: 4, cell: (snapshot) => <Where snapshot={snapshot} /> },
  { id: 'window', header: copy.list.nights, rank: 4, cell: ({ window }) => days(window) },
  {
    id: 'bytes',
    header: copy.list.size,
    end: true,
    rank: 3,
    cell: (snapshot) => bytes(snapshot.bytes),
    compare: (a, b) => a.bytes - b.bytes,
  },
  {
    id: 'created',
    header: copy.list.created,
    end: true,
    rank: 2,
    cell: ({ createdAt }) => <Age at={createdAt} none={copy.common.unknown} />,
    compare: (a, b) => (a.createdAt < b.createdAt ? -1 : 1),
  },
]

export function SnapshotState({ snapshot }: { snapshot: SnapshotView }) {
  const { servedBy, codecsCurrent, installable, stored, heldBy } = snapshot
  if (codecsCurrent === false) return <Badge level="crit">{copy.state.invalid}</Badge>
  if (servedBy.length > 0) return <Badge level="ok">{copy.state.serving(servedBy.join(', '))}</Badge>
  if (!stored) return <Badge level="info">{copy.state.onNodes(heldBy.map(({ node }) => node).join(', '))}</Badge>
  return installable ? (
    <Badge level="info">{copy.state.stored}</Badge>
  ) : (
    <Badge level="crit">{copy.state.countersDiffer}</Badge>
  )
}

/** All snapshots, or those of one shard. */
export function SnapshotList({ shard }: { shard?: string }) {
  const query = useSnapshots()
  const isShown = (snapshot: SnapshotView) => shard === undefined || snapshot.shard === shard
  return (
    <Panel
      title={shard === undefined ? copy.common.snapshots : copy.list.ofShard(shard)}
      flush
      query={query}
      isEmpty={({ snapshots }) => !snapshots.some(isShown)}
      empty={{
        text: copy.list.empty,
        action: (
          <LinkButton href={routes.newImport()} icon="plus">
            {copy.common.newImport}
          </LinkButton>
        ),
        code: 'vacancy build-snapshot --shard-id s1 --input-path DIR --output-path DIR',
      }}
    >
      {({ snapshots }) => (
        <Table
          label={copy.common.snapshots}
          rows={snapshots.filter(isShown)}
          columns={COLUMNS}
          rowKey={({ id }) => id}
          href={({ id }) => routes.snapshot(id)}
          rowProps={({ id }) => ({ 'data-snapshot': id })}
        />
      )}
    </Panel>
  )
}

export function SnapshotsPage() {
  const query = useSnapshots()
  const [shard] = useUrlParam('shard')
  const matrix = useMatrix(shard)
  const shown = matrix.data?.matrix?.shard ?? shard
  return (
    <Page
      id="snapshots"
      title={copy.common.snapshots}
      ready={query.data !== undefined || query.isError}
      actions={
        <LinkButton href={routes.newImport()} icon="plus">
          {copy.common.newImport}
        </LinkButton>
      }
    >
      {shown !== '' && <MatrixPanel query={matrix} shard={shown} />}
      {(matrix.data?.shards.length ?? 0) > 1 && <RestorablePanel query={matrix} />}
      <SnapshotList />
    </Page>
  )
}
