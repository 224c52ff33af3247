'use client'
import { Page } from '../../ui/page.tsx'
import { ErrorState } from '../../ui/panel.tsx'
import * as copy from './copy.ts'

type PageFailedProps = { readonly error: unknown; readonly reset: () => void }

/** A page that failed as a whole; panels handle their own errors. */
export function PageFailed({ error, reset }: PageFailedProps) {
  return (
    <Page id="error" title={copy.failed} ready>
      <div className="rounded-panel border border-line bg-surface p-4">
        <ErrorState error={error} onRetry={reset} />
      </div>
    </Page>
  )
}
