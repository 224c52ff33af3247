'use client'
import { Page } from '../../ui/page.tsx'
import { ErrorState } from '../../ui/panel.tsx'

type PageFailedProps = { readonly error: Error; readonly reset: () => void }

/** A page that failed as a whole; panels catch their own faults. */
export function PageFailed({ error, reset }: PageFailedProps) {
  return (
    <Page id="error" title="This page failed" ready>
      <div className="rounded-panel border border-line bg-surface p-4">
        <ErrorState error={error} onRetry={reset} />
      </div>
    </Page>
  )
}
