import { PropertyPage } from '../../../../../../../../features/segments/property-page.tsx'

type Params = { readonly shard: string; readonly segment: string; readonly property: string }

export default async function Page({ params }: { readonly params: Promise<Params> }) {
  const { shard, segment, property } = await params
  return (
    <PropertyPage
      shard={decodeURIComponent(shard)}
      segment={decodeURIComponent(segment)}
      id={decodeURIComponent(property)}
    />
  )
}
