import { ShardsPage } from '../../../features/shards/shards-page.tsx'

export default function Page() {
  return <ShardsPage />
}
