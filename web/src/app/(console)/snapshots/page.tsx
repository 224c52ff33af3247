import { SnapshotsPage } from '../../../features/snapshots/snapshots-page.tsx'

export default function Page() {
  return <SnapshotsPage />
}
