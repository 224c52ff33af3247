import { ComparePage } from '../../../../features/snapshots/compare-page.tsx'

export default function Page() {
  return <ComparePage />
}
