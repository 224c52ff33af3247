import { ResolverPage } from '../../../../features/registry/resolver-page.tsx'

export default function Page() {
  return <ResolverPage />
}
