import { ServicesPage } from '../../../../features/registry/services-page.tsx'

export default function Page() {
  return <ServicesPage />
}
