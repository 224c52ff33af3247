import { SavedQueryPage } from '../../../../../features/playground/saved-page.tsx'

export default async function Page({ params }: { readonly params: Promise<{ id: string }> }) {
  const { id } = await params
  return <SavedQueryPage id={decodeURIComponent(id)} />
}
