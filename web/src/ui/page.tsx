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
import { useIsAlive } from './first-paint.ts'
import { Link } from './link.tsx'

/** How many things need attention: stands in front of every title. The shell knows it. */
export const AttentionContext = createContext(0)

type PageProps = {
  /** Name of the route: `shard`, `settings-tokens`. */
  readonly id: string
  readonly title: string
  /** Where it is, for the window's title: "s3", "Settings". */
  readonly where?: string
  /** The first data is drawn; told to the outside once it also answers to the user. */
  readonly ready: boolean
  readonly crumbs?: readonly { readonly href: string; readonly label: string }[]
  /** Beside the title: the state. */
  readonly badge?: ReactNode
  /** A sentence or facts under the title. */
  readonly lead?: ReactNode
  readonly actions?: ReactNode
  readonly tabs?: ReactNode
  readonly children: ReactNode
}

export function Page({ id, title, where, ready, crumbs, badge, lead, actions, tabs, children }: PageProps) {
  const attention = useContext(AttentionContext)
  const isAlive = useIsAlive()
  const titleId = useId()
  const name = [title, where, 'Vacancy'].filter(Boolean).join(' · ')
  const windowTitle = attention > 0 ? `(${attention}) ${name}` : name
  const main = useRef<HTMLElement>(null)
  useSeen(main, ready && isAlive, windowTitle)
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
      {!isAlive && <title>{windowTitle}</title>}
      <header className="flex flex-col gap-1.5">
        {crumbs && crumbs.length > 0 && (
          <nav aria-label="Where this page is" className="flex flex-wrap items-center gap-1 text-small text-text-3">
            {crumbs.map((crumb) => (
              <Fragment key={crumb.href}>
                <Link href={crumb.href} className="text-text-2">
                  {crumb.label}
                </Link>
                <Icon name="chevron-right" size={12} className="rtl:-scale-x-100" />
              </Fragment>
            ))}
          </nav>
        )}
        <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
          <h1 id={titleId} className="min-w-0 break-words text-title">
            {title}
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

/** Of the pages in the document (features/shell/outlet.tsx) the one that is seen is the content and names the window. */
function useSeen(main: RefObject<HTMLElement | null>, isReady: boolean, windowTitle: string): void {
  // Each time: the title that the server wrote goes away with the first drawing here.
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
