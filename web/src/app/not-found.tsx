import { NotFoundPage } from '../features/shell/not-found-page.tsx'
import { Shell } from '../features/shell/shell.tsx'

/** Every address that is no page. (A page that catches all would also catch the live channel's WebSocket.) */
export default function NotFound() {
  return (
    <Shell>
      <NotFoundPage />
    </Shell>
  )
}
