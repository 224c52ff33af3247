import { DatasetsPage } from '../../../../features/registry/datasets-page.tsx'

export default function Page() {
  return <DatasetsPage />
}
