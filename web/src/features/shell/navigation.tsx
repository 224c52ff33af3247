'use client'
import type { AttentionItem, Summary } from '@vacancy/shared/contract'
import clsx from 'clsx'
import { memo } from 'react'
import { Icon } from '../../icons/icon.tsx'
import { usePath } from '../../lib/address.tsx'
import { useKey } from '../../lib/keys.ts'
import { useLive } from '../../lib/live.ts'
import { navigate } from '../../lib/navigate.ts'
import { isUnder, MAIN_PAGES, MORE_PAGES, type PageLink } from '../../lib/pages.ts'
import { routes } from '../../lib/routes.ts'
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

/** The page that shows the items of each area. */
const PAGE_OF: { readonly [area in AttentionItem['area']]: string } = {
  shards: routes.shards(),
  fabric: routes.topology(),
  queue: routes.queue(),
  imports: routes.imports(),
  operations: routes.operations(),
  'control-plane': routes.overview(),
}

/** Items that need attention, by page. */
function badgesOf({ attention }: Pick<Summary, 'attention'>): { readonly [href: string]: number } {
  const badges: { [href: string]: number } = {}
  for (const { area, asideUntil } of attention)
    if (asideUntil === null) badges[PAGE_OF[area]] = (badges[PAGE_OF[area]] ?? 0) + 1
  return badges
}

function List({ pages, withLabels, onNavigate }: NavigationProps & { pages: readonly PageLink[] }) {
  const path = usePath()
  const badges = useLive('summary', badgesOf).data
  return (
    <ul className="flex flex-col gap-0.5">
      {pages.map((page) => {
        const isHere = isUnder(path, page)
        const badge = badges?.[page.href]
        return (
          <li key={page.href}>
            <a
              href={page.href}
              aria-current={isHere ? 'page' : undefined}
              data-tip={withLabels ? undefined : page.label}
              {...(onNavigate ? { onClick: onNavigate } : {})}
              className={clsx(
                'relative flex h-9 items-center gap-3 rounded-control px-3 font-medium text-table pointer-coarse:h-11',
                isHere
                  ? 'bg-surface text-accent shadow-[inset_2px_0_0_var(--color-accent)] rtl:shadow-[inset_-2px_0_0_var(--color-accent)]'
                  : 'text-text-2 hover:bg-sunken hover:text-text',
              )}
            >
              <Icon name={page.icon} />
              <span className={withLabels ? '' : 'max-lg:sr-only'}>{page.label}</span>
              {badge !== undefined && (
                <span
                  className={clsx(
                    'num ms-auto rounded-full bg-warn-bg px-1.5 text-small text-text',
                    !withLabels && 'max-lg:absolute max-lg:end-0.5 max-lg:top-0',
                  )}
                >
                  <span aria-hidden="true">{badge}</span>
                  <span className="sr-only">{copy.shell.badge(badge)}</span>
                </span>
              )}
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
