'use client'
/**
 * The page of the address. The first one is written by the server, with its first data; each later one is drawn here,
 * from code that was fetched while nothing else was to do: what a page shows comes from the query cache, so nothing needs
 * to be asked before it stands.
 */
import clsx from 'clsx'
import { useSelectedLayoutSegments } from 'next/navigation'
import {
  Activity,
  Component,
  memo,
  type ReactNode,
  startTransition,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
} from 'react'
import { usePath } from '../../lib/address.tsx'
import { hasNavigatedTo, listenForLinks } from '../../lib/navigate.ts'
import { routes } from '../../lib/routes.ts'
import { useIsHydrated } from '../../ui/first-paint.ts'
import { PageFailed } from './page-failed.tsx'
import { KNOWN_PAGES, pageAt, paramsOf, preload } from './pages.ts'

/** Pages that the server draws with their data. Others are drawn in the browser, once they have asked for theirs. */
const DRAWN_BY_SERVER = new Set([routes.overview(), routes.shards()])

/** Fetched when the browser has nothing to do: where people go first. */
const LIKELY = [routes.overview(), routes.shards(), routes.shard('any')]

/**
 * Where people come back to all the time: these stay in the document, hidden and at rest, so that going there is showing
 * what stands and bringing it up to date. They hold no dialog that could come back with them.
 */
const KEPT = [routes.overview(), routes.shards()]

/** Drawn again when the address changes, not with the frame around it. */
export const Outlet = memo(function Outlet({ children }: { readonly children: ReactNode }) {
  const path = usePath()
  const served = `/${useSelectedLayoutSegments().map(decodeURIComponent).join('/')}`
  const isHydrated = useIsHydrated()
  const kept = useKept(path)
  useEffect(() => listenForLinks(KNOWN_PAGES), [])
  useEffect(() => inIdleTime(LIKELY.map((likely) => () => void preload(likely))), [])
  useArrival(path)
  if (!isHydrated && !DRAWN_BY_SERVER.has(path)) return <NotYet />
  const shown = kept.includes(path) ? kept : [...kept, path]
  return (
    <div className="grid grow grid-cols-[minmax(0,1fr)]">
      {shown.map((one) => {
        const known = decodeURIComponent(one) === served ? undefined : pageAt(one)
        return (
          <Kept key={one} path={one} isSeen={one === path}>
            <PageBoundary>{known ? <known.Drawn {...paramsOf(known, one)} /> : children}</PageBoundary>
          </Kept>
        )
      })}
    </div>
  )
})

/** Whether a page stands in the document. */
export function isDrawn(path: string): boolean {
  return document.querySelector(`[data-kept="${CSS.escape(path)}"] > main`) !== null
}

type KeptProps = { readonly path: string; readonly isSeen: boolean; readonly children: ReactNode }

/**
 * A page in its place. React hides one that stays by taking its boxes away, and the browser then makes them anew each
 * time it is shown; with `content-visibility` it keeps them, and they are as hidden: from view, focus, search and
 * readers. All lie in one cell, so that their width is that of the page that is seen; hidden ones have no height, so
 * that no click meets them.
 */
function Kept({ path, isSeen, children }: KeptProps) {
  const holder = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    const element = holder.current
    if (!element || isSeen || !CSS.supports('content-visibility', 'hidden')) return
    const keepBoxes = () => {
      for (const page of element.children) if (page instanceof HTMLElement) page.style.removeProperty('display')
    }
    keepBoxes()
    // A page that is drawn ahead comes later.
    const observer = new MutationObserver(keepBoxes)
    observer.observe(element, { childList: true })
    return () => observer.disconnect()
  }, [isSeen])
  return (
    <div
      ref={holder}
      data-kept={path}
      className={clsx(
        'col-start-1 row-start-1 min-w-0',
        !isSeen && 'self-start [contain-intrinsic-size:0] [content-visibility:hidden]',
      )}
    >
      <Activity mode={isSeen ? 'visible' : 'hidden'}>{children}</Activity>
    </div>
  )
}

/** The pages that stay: those that were seen, and all of them once there is time to draw them ahead. */
function useKept(path: string): readonly string[] {
  const [kept, setKept] = useState<readonly string[]>([])
  if (KEPT.includes(path) && !kept.includes(path)) setKept([...kept, path])
  useEffect(() => {
    const keep = (one: string) => setKept((had) => (had.includes(one) ? had : [...had, one]))
    // Not before its code is there: a page that was drawn without it stays failed, also for who goes there later.
    const drawAhead = async (one: string) => {
      if (await preload(one)) startTransition(() => keep(one))
    }
    return inIdleTime(KEPT.map((one) => () => void drawAhead(one)))
  }, [])
  return kept
}

function NotYet() {
  return (
    <main id="content" data-page="start" data-ready="false">
      <title>Vacancy</title>
    </main>
  )
}

/** A page that was gone to begins at its top and has the focus: its title is read. */
function useArrival(path: string): void {
  const before = useRef(path)
  useEffect(() => {
    if (before.current === path) return
    before.current = path
    if (!hasNavigatedTo(path)) return
    scrollTo(0, 0)
    document.getElementById('content')?.focus({ preventScroll: true })
  }, [path])
}

/** One at a time, so that none of them is felt. */
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

/** Safari tells no idle time. */
const WITHOUT_IDLE_MS = 1_000

/** Panels catch their own faults; this is for a page as a whole, and for code that cannot be fetched. */
class PageBoundary extends Component<{ readonly children: ReactNode }, { error: Error | undefined }> {
  override state: { error: Error | undefined } = { error: undefined }

  static getDerivedStateFromError(error: unknown) {
    return { error: error instanceof Error ? error : new Error(String(error)) }
  }

  override render() {
    const { error } = this.state
    if (error === undefined) return this.props.children
    // What failed to load stays failed until the page is loaded anew, perhaps from a newer control plane.
    return <PageFailed error={error} reset={() => location.reload()} />
  }
}
