import { NodePage } from '../../../../../../features/shards/node-page.tsx'

export default async function Page({ params }: { readonly params: Promise<{ shard: string; node: string }> }) {
  const { shard, node } = await params
  return <NodePage shard={decodeURIComponent(shard)} id={decodeURIComponent(node)} />
}
