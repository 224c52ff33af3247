import { EnvironmentPage } from '../../../../features/settings/environment-page.tsx'

export default function Page() {
  return <EnvironmentPage />
}
