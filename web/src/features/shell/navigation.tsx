'use client'
import clsx from 'clsx'
import { memo } from 'react'
import { Icon } from '../../icons/icon.tsx'
import { usePath } from '../../lib/address.tsx'
import { useKey } from '../../lib/keys.ts'
import { navigate } from '../../lib/navigate.ts'
import { isUnder, MAIN_PAGES, MORE_PAGES, type PageLink } from '../../lib/pages.ts'
import * as copy from './copy.ts'

type NavigationProps = {
  /** Shows labels at every width, for the menu of small windows. */
  readonly withLabels?: boolean
  readonly onNavigate?: () => void
}

/** Links to the pages: icons with labels, icons with tooltips in narrower windows, a menu on phones. */
export const Navigation = memo(function Navigation({ withLabels = false, onNavigate }: NavigationProps) {
  return (
    <nav aria-label={copy.shell.navigation} className="flex flex-col gap-1 p-2">
      <List pages={MAIN_PAGES} withLabels={withLabels} {...(onNavigate ? { onNavigate } : {})} />
      <hr className="my-2 border-line" />
      <List pages={MORE_PAGES} withLabels={withLabels} {...(onNavigate ? { onNavigate } : {})} />
    </nav>
  )
})

function List({ pages, withLabels, onNavigate }: NavigationProps & { pages: readonly PageLink[] }) {
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
              data-tip={withLabels ? undefined : page.label}
              {...(onNavigate ? { onClick: onNavigate } : {})}
              className={clsx(
                'flex h-9 items-center gap-3 rounded-control px-3 font-medium text-table pointer-coarse:h-11',
                isHere
                  ? 'bg-surface text-accent shadow-[inset_2px_0_0_var(--color-accent)] rtl:shadow-[inset_-2px_0_0_var(--color-accent)]'
                  : 'text-text-2 hover:bg-sunken hover:text-text',
              )}
            >
              <Icon name={page.icon} />
              <span className={withLabels ? '' : 'max-lg:sr-only'}>{page.label}</span>
            </a>
          </li>
        )
      })}
    </ul>
  )
}

/** Registers `g` and a letter for each page that has one. */
export function PageKeys() {
  return [...MAIN_PAGES, ...MORE_PAGES].flatMap((page) => (page.key ? <PageKey key={page.href} page={page} /> : []))
}

function PageKey({ page }: { page: PageLink }) {
  useKey(`g ${page.key}`, () => navigate(page.href), copy.keys.goTo(page.label))
  return null
}
