import { NewHandoverPage } from '../../../../../features/handovers/new-handover-page.tsx'

export default function Page() {
  return <NewHandoverPage />
}
