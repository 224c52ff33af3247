import { OperationPage } from '../../../../features/operations/operation-page.tsx'

export default async function Page({ params }: { readonly params: Promise<{ op: string }> }) {
  const { op } = await params
  return <OperationPage id={decodeURIComponent(op)} />
}
