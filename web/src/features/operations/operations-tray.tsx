'use client'
/** Where the operations over all pages are shown, until their outcome was seen (tray-list.tsx). */

import { Suspense, useEffect } from 'react'
import { followOperations, openTray, useFollowed } from '../../lib/followed-operations.ts'
import { useLive } from '../../lib/live.ts'
import { Button } from '../../ui/button.tsx'
import { late } from '../../ui/late.tsx'
import { isRunning } from './operation-view.ts'
import * as copy from './tray-copy.ts'

/** Number of running operations, in the header; opens and closes the tray. */
export function OperationsButton() {
  const running = useLive('ops').data?.operations.filter(isRunning).length ?? 0
  const { ids, isOpen } = useFollowed()
  if (running === 0 && ids.length === 0) return null
  return (
    <Button kind="quiet" aria-expanded={isOpen} onClick={() => openTray(!isOpen)}>
      {running === 0 ? copy.tray.title : copy.tray.count(running)}
    </Button>
  )
}

// Loaded with the first operation: most visits have none.
const TrayList = late(async () => (await import('./tray-list.tsx')).default)

export function OperationsTray() {
  const ops = useLive('ops')
  const { ids, isOpen } = useFollowed()
  const running = ops.data?.operations.filter(isRunning)
  useEffect(() => {
    if (running && running.length > 0) followOperations(running.map((operation) => operation.id))
  }, [running])
  const isShown = isOpen && ids.length > 0
  return (
    <aside
      id="operations"
      aria-label={copy.tray.title}
      tabIndex={-1}
      className={
        isShown
          ? 'fixed end-4 bottom-4 z-30 max-h-[50dvh] w-[min(28rem,calc(100vw-2rem))] overflow-y-auto rounded-panel border border-line bg-overlay shadow-layer'
          : 'sr-only'
      }
    >
      {ids.length > 0 && (
        <Suspense>
          <TrayList ids={ids} isShown={isShown} />
        </Suspense>
      )}
    </aside>
  )
}
