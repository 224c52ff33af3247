import { DashboardPage } from '../../../../features/metrics/dashboard-page.tsx'

export default async function Page({ params }: { readonly params: Promise<{ dashboard: string }> }) {
  const { dashboard } = await params
  return <DashboardPage id={decodeURIComponent(dashboard)} />
}
