import { ShardEventsPage } from '../../../../../features/shards/shard-events.tsx'

export default async function Page({ params }: { readonly params: Promise<{ shard: string }> }) {
  const { shard } = await params
  return <ShardEventsPage id={decodeURIComponent(shard)} />
}
