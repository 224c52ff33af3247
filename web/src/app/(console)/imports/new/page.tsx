import { NewImportPage } from '../../../../features/imports/new-import-page.tsx'

export default function Page() {
  return <NewImportPage />
}
