import { SegmentsPage } from '../../../../../features/segments/segments-page.tsx'

export default async function Page({ params }: { readonly params: Promise<{ shard: string }> }) {
  const { shard } = await params
  return <SegmentsPage id={decodeURIComponent(shard)} />
}
