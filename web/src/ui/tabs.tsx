'use client'
import clsx from 'clsx'
import { type KeyboardEvent, type ReactNode, type RefObject, useEffect, useId, useRef } from 'react'
import { usePath } from '../lib/address.tsx'
import { count } from '../lib/format.ts'

const ROW = 'flex gap-1 overflow-x-auto border-line border-b [scrollbar-width:none]'
const tabStyles = (isChosen: boolean) =>
  clsx(
    '-mb-px flex h-control shrink-0 items-center gap-1.5 whitespace-nowrap border-b-2 px-3 font-medium text-table -outline-offset-2',
    isChosen ? 'border-accent text-text' : 'border-transparent text-text-2 hover:text-text',
  )

type PathTabsProps = {
  /** Accessible name: "Shard s3". */
  readonly label: string
  readonly tabs: readonly {
    readonly href: string
    readonly label: string
    readonly count?: number
    /** Set by pages whose tabs differ in their query; otherwise the path decides. */
    readonly isHere?: boolean
  }[]
}

/** Tabs that are pages with their own URL; `[` and `]` go to the previous and next one. */
export function PathTabs({ label, tabs }: PathTabsProps) {
  const path = usePath()
  const row = useRef<HTMLElement>(null)
  useShowCurrent(row, path)
  return (
    <nav ref={row} aria-label={label} data-path-tabs="" className={ROW}>
      {tabs.map(({ href, label: text, count: number, isHere = path === href.split('?')[0] }) => (
        <a key={href} href={href} aria-current={isHere ? 'page' : undefined} className={tabStyles(isHere)}>
          {text}
          {number !== undefined && <span className="text-small text-text-3">{count(number)}</span>}
        </a>
      ))}
    </nav>
  )
}

/** Scrolls the row, and nothing else, so that the tab of the page is seen on narrow screens. */
function useShowCurrent(row: RefObject<HTMLElement | null>, path: string): void {
  useEffect(() => {
    const nav = row.current
    const here = nav?.querySelector<HTMLElement>('[aria-current]')
    if (!nav || !here) return
    const show = () => {
      nav.scrollLeft = here.offsetLeft - nav.offsetLeft - (nav.clientWidth - here.offsetWidth) / 2
    }
    const observer = new ResizeObserver(show)
    observer.observe(nav)
    return () => observer.disconnect()
  }, [row, path])
}

type ViewTabsProps = {
  readonly label: string
  readonly value: string
  readonly onChange: (id: string) => void
  readonly tabs: readonly { readonly id: string; readonly label: string }[]
  /** Content of the selected tab. */
  readonly children: ReactNode
  readonly actions?: ReactNode
}

/** Several views on one page; arrow keys move between the tabs. */
export function ViewTabs({ label, value, onChange, tabs, children, actions }: ViewTabsProps) {
  const id = useId()
  const move = (event: KeyboardEvent) => {
    const at = tabs.findIndex((tab) => tab.id === value)
    const next = {
      ArrowRight: tabs[(at + 1) % tabs.length],
      ArrowLeft: tabs[(at - 1 + tabs.length) % tabs.length],
      Home: tabs[0],
      End: tabs.at(-1),
    }[event.key]
    if (!next) return
    event.preventDefault()
    onChange(next.id)
    document.getElementById(`${id}-${next.id}`)?.focus()
  }
  return (
    <div className="flex min-w-0 flex-col gap-3">
      <div className="flex flex-wrap items-center gap-2">
        <div role="tablist" aria-label={label} onKeyDown={move} className={clsx(ROW, 'min-w-0 grow')}>
          {tabs.map((tab) => (
            <button
              key={tab.id}
              id={`${id}-${tab.id}`}
              type="button"
              role="tab"
              aria-selected={tab.id === value}
              aria-controls={tab.id === value ? `${id}-panel` : undefined}
              tabIndex={tab.id === value ? 0 : -1}
              onClick={() => onChange(tab.id)}
              className={tabStyles(tab.id === value)}
            >
              {tab.label}
            </button>
          ))}
        </div>
        {actions}
      </div>
      <div id={`${id}-panel`} role="tabpanel" aria-labelledby={`${id}-${value}`} className="min-w-0">
        {children}
      </div>
    </div>
  )
}
