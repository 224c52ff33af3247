import { TopicPage } from '../../../../../features/queue/topic-page.tsx'

export default async function Page({ params }: { readonly params: Promise<{ topic: string }> }) {
  const { topic } = await params
  return <TopicPage id={decodeURIComponent(topic)} />
}
