import { PeoplePage } from '../../../../features/people/people-page.tsx'

export default function Page() {
  return <PeoplePage />
}
