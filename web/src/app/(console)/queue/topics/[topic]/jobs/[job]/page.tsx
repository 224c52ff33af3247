import { JobPage } from '../../../../../../../features/queue/job-page.tsx'

export default async function Page({ params }: { readonly params: Promise<{ topic: string; job: string }> }) {
  const { topic, job } = await params
  return <JobPage topic={decodeURIComponent(topic)} id={decodeURIComponent(job)} />
}
