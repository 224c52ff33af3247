import { QueuePage } from '../../../features/queue/queue-page.tsx'

export default function Page() {
  return <QueuePage />
}
