import { OperationsPage } from '../../../features/operations/operations-page.tsx'

export default function Page() {
  return <OperationsPage />
}
