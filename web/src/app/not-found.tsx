import { NotFoundPage } from '../features/shell/not-found-page.tsx'
import { Shell } from '../features/shell/shell.tsx'

/** Every address that is no page. (A page that catches all would also catch the live channel's WebSocket.) */
export default function NotFound() {
  return (
    // Next puts this into every page, in case that it is needed: data in it would travel with all of them.
    <Shell first={undefined}>
      <NotFoundPage />
    </Shell>
  )
}
