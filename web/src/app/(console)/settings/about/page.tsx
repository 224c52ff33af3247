import { AboutPage } from '../../../../features/settings/about-page.tsx'

export default function Page() {
  return <AboutPage />
}
