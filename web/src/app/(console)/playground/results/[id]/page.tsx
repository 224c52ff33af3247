import { SavedResultPage } from '../../../../../features/playground/result-page.tsx'

export default async function Page({ params }: { readonly params: Promise<{ id: string }> }) {
  const { id } = await params
  return <SavedResultPage id={decodeURIComponent(id)} />
}
