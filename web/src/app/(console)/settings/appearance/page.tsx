import { AppearancePage } from '../../../../features/settings/appearance-page.tsx'

export default function Page() {
  return <AppearancePage />
}
