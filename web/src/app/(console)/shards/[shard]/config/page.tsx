import { ShardConfigPage } from '../../../../../features/shards/shard-config.tsx'

export default async function Page({ params }: { readonly params: Promise<{ shard: string }> }) {
  const { shard } = await params
  return <ShardConfigPage id={decodeURIComponent(shard)} />
}
