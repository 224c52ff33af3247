'use client'
/** The snapshots of a shard, on its nodes and on the control plane. */

import { MatrixPanel, useMatrix } from '../snapshots/matrix.tsx'
import { SnapshotList } from '../snapshots/snapshots-page.tsx'
import { ShardFrame } from './shard-page.tsx'

export function ShardSnapshotsPage({ id }: { readonly id: string }) {
  return (
    <ShardFrame id={id} tab="snapshots">
      {() => <Snapshots id={id} />}
    </ShardFrame>
  )
}

function Snapshots({ id }: { readonly id: string }) {
  const matrix = useMatrix(id)
  return (
    <>
      <MatrixPanel query={matrix} shard={id} />
      <SnapshotList shard={id} />
    </>
  )
}
