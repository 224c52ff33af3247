'use client'
import {
  createContext,
  Fragment,
  type ReactNode,
  type RefObject,
  useContext,
  useId,
  useLayoutEffect,
  useRef,
} from 'react'
import { Icon } from '../icons/icon.tsx'
import * as copy from './copy.ts'
import { useIsHydrated } from './first-paint.ts'
import { Link } from './link.tsx'

/** Number of attention items, shown before every window title. Provided by the shell. */
export const AttentionContext = createContext(0)

type PageProps = {
  /** Name of the route: `shard`, `settings-tokens`. */
  readonly id: string
  readonly title: string
  /** Its parent, for the window title: "s3", "Settings". */
  readonly where?: string
  /** The first data is rendered; exposed as `data-ready` once the page is also hydrated. */
  readonly ready: boolean
  readonly crumbs?: readonly { readonly href: string; readonly label: string }[]
  /** Beside the title, for the state. */
  readonly badge?: ReactNode
  /** A sentence or facts below the title. */
  readonly lead?: ReactNode
  readonly actions?: ReactNode
  readonly tabs?: ReactNode
  /** The heading where it is not the title: a section whose tabs name its parts. */
  readonly heading?: string
  readonly children: ReactNode
}

export function Page({ id, title, where, ready, crumbs, badge, lead, actions, tabs, heading, children }: PageProps) {
  const attention = useContext(AttentionContext)
  const isHydrated = useIsHydrated()
  const titleId = useId()
  const name = [title, where, 'Vacancy'].filter(Boolean).join(' · ')
  const windowTitle = attention > 0 ? `(${attention}) ${name}` : name
  const main = useRef<HTMLElement>(null)
  useVisiblePage(main, ready && isHydrated, windowTitle)
  return (
    <main
      ref={main}
      id={CONTENT_ID}
      tabIndex={-1}
      aria-labelledby={titleId}
      data-page={id}
      data-ready={false}
      className="mx-auto flex w-full min-w-0 max-w-400 flex-col gap-4 p-4 outline-none md:px-6 md:py-5"
    >
      {!isHydrated && <title>{windowTitle}</title>}
      <header className="flex flex-col gap-1.5">
        {crumbs && crumbs.length > 0 && (
          <nav aria-label={copy.page.breadcrumb} className="flex flex-wrap items-center gap-1 text-small text-text-3">
            {crumbs.map((crumb, at) => (
              <Fragment key={crumb.href}>
                {at > 0 && <Icon name="chevron-right" size={12} className="rtl:-scale-x-100" />}
                <Link href={crumb.href} className="text-text-2">
                  {crumb.label}
                </Link>
              </Fragment>
            ))}
          </nav>
        )}
        <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
          <h1 id={titleId} className="min-w-0 break-words text-title">
            {heading ?? title}
          </h1>
          {badge}
          {actions && <div className="ms-auto flex flex-wrap items-center gap-2">{actions}</div>}
        </div>
        {lead && <div className="text-text-2">{lead}</div>}
      </header>
      {tabs}
      {children}
    </main>
  )
}

const CONTENT_ID = 'content'

/** Of the pages kept in the document (features/shell/outlet.tsx) the visible one is the content and sets the window title. */
function useVisiblePage(main: RefObject<HTMLElement | null>, isReady: boolean, windowTitle: string): void {
  // On each render: the title from the server is removed with the first one.
  useLayoutEffect(() => {
    document.title = windowTitle
  })
  useLayoutEffect(() => {
    const element = main.current
    if (!element) return
    element.id = CONTENT_ID
    element.setAttribute('data-ready', String(isReady))
    return () => {
      element.removeAttribute('id')
      element.setAttribute('data-ready', 'false')
    }
  }, [main, isReady])
}
