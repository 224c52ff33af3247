import { ConsumersPage } from '../../../../features/queue/consumers-panel.tsx'

export default function Page() {
  return <ConsumersPage />
}
