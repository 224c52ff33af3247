import { HandoverPage } from '../../../../../features/handovers/handover-page.tsx'

export default async function Page({ params }: { readonly params: Promise<{ handover: string }> }) {
  const { handover } = await params
  return <HandoverPage id={decodeURIComponent(handover)} />
}
