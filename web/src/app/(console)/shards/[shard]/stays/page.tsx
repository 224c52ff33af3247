import { StaysPage } from '../../../../../features/stays/stays-page.tsx'

export default async function Page({ params }: { readonly params: Promise<{ shard: string }> }) {
  const { shard } = await params
  return <StaysPage id={decodeURIComponent(shard)} />
}
