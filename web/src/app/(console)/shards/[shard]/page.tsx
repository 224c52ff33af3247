import { ShardMembersPage } from '../../../../features/shards/members.tsx'

export default async function Page({ params }: { readonly params: Promise<{ shard: string }> }) {
  const { shard } = await params
  return <ShardMembersPage id={decodeURIComponent(shard)} />
}
