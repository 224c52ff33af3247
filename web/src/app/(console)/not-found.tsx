import { NotFoundPage } from '../../features/shell/not-found-page.tsx'

export default function NotFound() {
  return <NotFoundPage />
}
