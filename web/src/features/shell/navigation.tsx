'use client'
import clsx from 'clsx'
import { memo } from 'react'
import { Icon } from '../../icons/icon.tsx'
import { usePath } from '../../lib/address.tsx'
import { useKey } from '../../lib/keys.ts'
import { navigate } from '../../lib/navigate.ts'
import { isUnder, MAIN_PAGES, MORE_PAGES, type PageLink } from './pages.ts'

type NavigationProps = {
  /** With words at every width: in the menu of small windows. */
  readonly words?: boolean
  readonly onGo?: () => void
}

/** The pages: words beside icons where there is room, icons with tooltips in between, behind a menu on phones. */
export const Navigation = memo(function Navigation({ words = false, onGo }: NavigationProps) {
  return (
    <nav aria-label="Pages" className="flex flex-col gap-1 p-2">
      <List pages={MAIN_PAGES} words={words} {...(onGo ? { onGo } : {})} />
      <hr className="my-2 border-line" />
      <List pages={MORE_PAGES} words={words} {...(onGo ? { onGo } : {})} />
    </nav>
  )
})

function List({ pages, words, onGo }: NavigationProps & { pages: readonly PageLink[] }) {
  const path = usePath()
  return (
    <ul className="flex flex-col gap-0.5">
      {pages.map((page) => {
        const isHere = isUnder(path, page)
        return (
          <li key={page.href}>
            <a
              href={page.href}
              aria-current={isHere ? 'page' : undefined}
              data-tip={words ? undefined : page.label}
              {...(onGo ? { onClick: onGo } : {})}
              className={clsx(
                'flex h-9 items-center gap-3 rounded-control px-3 font-medium text-table pointer-coarse:h-11',
                isHere
                  ? 'bg-surface text-accent shadow-[inset_2px_0_0_var(--color-accent)] rtl:shadow-[inset_-2px_0_0_var(--color-accent)]'
                  : 'text-text-2 hover:bg-sunken hover:text-text',
              )}
            >
              <Icon name={page.icon} />
              <span className={words ? '' : 'max-lg:sr-only'}>{page.label}</span>
            </a>
          </li>
        )
      })}
    </ul>
  )
}

/** `g` and a letter for each page that has one. */
export function PageKeys() {
  return [...MAIN_PAGES, ...MORE_PAGES].flatMap((page) => (page.key ? <PageKey key={page.href} page={page} /> : []))
}

function PageKey({ page }: { page: PageLink }) {
  useKey(`g ${page.key}`, () => navigate(page.href), `Go to ${page.label}`)
  return null
}
