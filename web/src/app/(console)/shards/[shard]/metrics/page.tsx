import { ShardMetricsPage } from '../../../../../features/shards/shard-metrics.tsx'

export default async function Page({ params }: { readonly params: Promise<{ shard: string }> }) {
  const { shard } = await params
  return <ShardMetricsPage id={decodeURIComponent(shard)} />
}
