import { CodecsPage } from '../../../../features/registry/codecs-page.tsx'

export default function Page() {
  return <CodecsPage />
}
