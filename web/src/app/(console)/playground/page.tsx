import { PlaygroundPage } from '../../../features/playground/playground-page.tsx'

export default function Page() {
  return <PlaygroundPage />
}
