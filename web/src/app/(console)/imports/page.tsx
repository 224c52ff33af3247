import { ImportsPage } from '../../../features/imports/imports-page.tsx'

export default function Page() {
  return <ImportsPage />
}
