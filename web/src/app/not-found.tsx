import { NotFoundPage } from '../features/shell/not-found-page.tsx'
import { Shell } from '../features/shell/shell.tsx'

/** The page of unknown URLs. (A catch-all route would also catch the live channel's WebSocket.) */
export default function NotFound() {
  return (
    // Next includes this in every page, so it must contain no data.
    <Shell first={undefined}>
      <NotFoundPage />
    </Shell>
  )
}
