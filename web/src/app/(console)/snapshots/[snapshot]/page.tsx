import { SnapshotPage } from '../../../../features/snapshots/snapshot-page.tsx'

export default async function Page({ params }: { readonly params: Promise<{ snapshot: string }> }) {
  const { snapshot } = await params
  return <SnapshotPage id={decodeURIComponent(snapshot)} />
}
