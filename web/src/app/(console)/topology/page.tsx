import { TopologyPage } from '../../../features/topology/topology-page.tsx'

export default function Page() {
  return <TopologyPage />
}
