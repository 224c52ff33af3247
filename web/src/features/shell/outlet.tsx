'use client'
/**
 * The current page. The server renders the first one with its data; later ones are rendered here, from code preloaded in
 * idle time. Pages read the query cache, so no request is needed before they are shown.
 */
import clsx from 'clsx'
import { useSelectedLayoutSegments } from 'next/navigation'
import { Activity, memo, type ReactNode, startTransition, useEffect, useLayoutEffect, useRef, useState } from 'react'
import { useIsArriving, usePath } from '../../lib/address.tsx'
import { hasNavigatedTo, listenForLinks } from '../../lib/navigate.ts'
import { pageAt } from '../../lib/pages.ts'
import { routes } from '../../lib/routes.ts'
import { Boundary } from '../../ui/boundary.tsx'
import { useIsHydrated } from '../../ui/first-paint.ts'
import * as copy from './copy.ts'
import { PageFailed } from './page-failed.tsx'
import { CODE, preload } from './pages.ts'

/** Pages that the server renders with data. Others are rendered in the browser once their data is loaded. */
const RENDERED_BY_SERVER = new Set([routes.overview(), routes.shards()])

/** Preloaded in idle time: the most likely next pages. */
const LIKELY = [routes.overview(), routes.shards(), routes.shard('any')]

/**
 * Frequent pages stay in the document, hidden and suspended, so that returning only shows and updates them. They contain
 * no dialog that could reappear.
 */
const KEPT = [routes.overview(), routes.shards()]

/** Rendered again when the URL changes, not with the frame around it. */
export const Outlet = memo(function Outlet({ children }: { readonly children: ReactNode }) {
  const path = usePath()
  const served = `/${useSelectedLayoutSegments().map(decodeURIComponent).join('/')}`
  const isHydrated = useIsHydrated()
  const kept = useKept(path)
  useEffect(() => listenForLinks((one) => void preload(one)), [])
  useEffect(() => inIdleTime(LIKELY.map((likely) => () => void preload(likely))), [])
  useArrival(path)
  if (!isHydrated && !RENDERED_BY_SERVER.has(path)) return <Loading />
  const shown = kept.includes(path) ? kept : [...kept, path]
  return (
    <div className="grid grow grid-cols-[minmax(0,1fr)]">
      <Arriving />
      {shown.map((one) => {
        const known = decodeURIComponent(one) === served ? undefined : pageAt(one)
        const Drawn = known && CODE[known.name].Drawn
        return (
          <Kept key={one} path={one} isVisible={one === path}>
            <Boundary name={one} fallback={pageFailed}>
              {Drawn ? <Drawn {...known.params} /> : children}
            </Boundary>
          </Kept>
        )
      })}
    </div>
  )
})

/**
 * Instead of a page that failed as a whole, or whose code could not be loaded; panels handle their own errors. Failed code
 * stays failed until a reload, perhaps from a newer control plane.
 */
const pageFailed = (error: unknown) => <PageFailed error={error} reset={() => location.reload()} />

/** Until its code is loaded the page before it stays: a click is answered at least by this word. */
function Arriving() {
  if (!useIsArriving()) return null
  return (
    <p
      role="status"
      className="enter pointer-events-none fixed inset-x-0 top-14 z-40 mx-auto w-fit rounded-control border border-line bg-surface px-3 py-1 text-small text-text-2 [animation-delay:300ms] [animation-fill-mode:backwards]"
    >
      {copy.arriving}
    </p>
  )
}

/** Whether a page is in the document. */
export function isDrawn(path: string): boolean {
  return document.querySelector(`[data-kept="${CSS.escape(path)}"] > main`) !== null
}

type KeptProps = { readonly path: string; readonly isVisible: boolean; readonly children: ReactNode }

/**
 * The container of a page. React hides an inactive page by removing its boxes, which the browser then lays out again each
 * time it is shown. `content-visibility` keeps them while hiding the page from view, focus, search and screen readers. All
 * pages share one grid cell, so that they have the width of the visible page; hidden ones have no height and take no clicks.
 */
function Kept({ path, isVisible, children }: KeptProps) {
  const holder = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    const element = holder.current
    if (!element || isVisible || !CSS.supports('content-visibility', 'hidden')) return
    const keepBoxes = () => {
      for (const page of element.children) if (page instanceof HTMLElement) page.style.removeProperty('display')
    }
    keepBoxes()
    // A prerendered page is added later.
    const observer = new MutationObserver(keepBoxes)
    observer.observe(element, { childList: true })
    return () => observer.disconnect()
  }, [isVisible])
  return (
    <div
      ref={holder}
      data-kept={path}
      className={clsx(
        'col-start-1 row-start-1 min-w-0',
        !isVisible && 'self-start [contain-intrinsic-size:0] [content-visibility:hidden]',
      )}
    >
      <Activity mode={isVisible ? 'visible' : 'hidden'}>{children}</Activity>
    </div>
  )
}

/** The kept pages: visited ones, and all once idle time allows to prerender them. */
function useKept(path: string): readonly string[] {
  const [kept, setKept] = useState<readonly string[]>([])
  if (KEPT.includes(path) && !kept.includes(path)) setKept([...kept, path])
  useEffect(() => {
    const keep = (one: string) => setKept((had) => (had.includes(one) ? had : [...had, one]))
    // Only after its code is loaded: a page whose code failed to load stays failed.
    const prerender = async (one: string) => {
      if (await preload(one)) startTransition(() => keep(one))
    }
    return inIdleTime(KEPT.map((one) => () => void prerender(one)))
  }, [])
  return kept
}

function Loading() {
  return (
    <main id="content" data-page="start" data-ready="false">
      <title>Vacancy</title>
    </main>
  )
}

/**
 * After navigation the page is scrolled to the top and focused, so that its title is read. Going back keeps its scroll
 * position, and the focus unless that was in the page that is left.
 */
function useArrival(path: string): void {
  const before = useRef(path)
  useEffect(() => {
    if (before.current === path) return
    before.current = path
    const isNew = hasNavigatedTo(path)
    if (isNew) scrollTo(0, 0)
    const holder = document.querySelector(`[data-kept="${CSS.escape(path)}"]`)
    if (!holder) return
    const focus = () => {
      const page = holder.querySelector<HTMLElement>(':scope > main')
      const { activeElement } = document
      const isLeft = activeElement === document.body || activeElement?.closest('[data-kept]') !== null
      if (page && (isNew || (isLeft && !page.contains(activeElement)))) page.focus({ preventScroll: true })
      return page !== null
    }
    if (focus()) return
    // Its code is being loaded.
    const observer = new MutationObserver(() => {
      if (focus()) observer.disconnect()
    })
    observer.observe(holder, { childList: true })
    return () => observer.disconnect()
  }, [path])
}

/** Runs tasks one at a time in idle time. */
function inIdleTime([act, ...later]: readonly (() => void)[]): () => void {
  if (act === undefined) return () => {}
  let stopLater = () => {}
  const step = () => {
    act()
    stopLater = inIdleTime(later)
  }
  if (typeof requestIdleCallback !== 'function') {
    const timer = setTimeout(step, WITHOUT_IDLE_MS)
    return () => {
      clearTimeout(timer)
      stopLater()
    }
  }
  const handle = requestIdleCallback(step)
  return () => {
    cancelIdleCallback(handle)
    stopLater()
  }
}

/** Safari has no `requestIdleCallback`. */
const WITHOUT_IDLE_MS = 1_000
