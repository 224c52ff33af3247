import { ImportPage } from '../../../../features/imports/import-page.tsx'

export default async function Page({ params }: { readonly params: Promise<{ import: string }> }) {
  const { import: id } = await params
  return <ImportPage id={decodeURIComponent(id)} />
}
