import { ShardSnapshotsPage } from '../../../../../features/shards/shard-snapshots.tsx'

export default async function Page({ params }: { readonly params: Promise<{ shard: string }> }) {
  const { shard } = await params
  return <ShardSnapshotsPage id={decodeURIComponent(shard)} />
}
