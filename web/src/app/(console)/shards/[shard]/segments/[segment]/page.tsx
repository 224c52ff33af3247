import { SegmentPage } from '../../../../../../features/segments/segment-page.tsx'

type Params = { readonly shard: string; readonly segment: string }

export default async function Page({ params }: { readonly params: Promise<Params> }) {
  const { shard, segment } = await params
  return <SegmentPage shard={decodeURIComponent(shard)} id={decodeURIComponent(segment)} />
}
