'use client'
import { usePathname } from 'next/navigation'
import { Link } from '../../ui/link.tsx'
import { Page } from '../../ui/page.tsx'
import { EmptyState } from '../../ui/panel.tsx'
import { nearest } from './nearest.ts'
import { LINKED_PAGES } from './pages.ts'

const SHOWN = 4

/** What was looked for, and the pages whose addresses are nearest to it. */
export function NotFoundPage() {
  const path = usePathname()
  const near = nearest(
    path,
    LINKED_PAGES.map(({ href }) => href),
  ).slice(0, SHOWN)
  return (
    <Page id="not-found" title="There is no such page" ready>
      <div className="flex flex-col gap-3 rounded-panel border border-line bg-surface p-4">
        <EmptyState text={`Nothing stands at ${path}. Perhaps you look for one of these:`} />
        <ul className="flex flex-col gap-2">
          {near.map((href) => (
            <li key={href}>
              <Link href={href}>{LINKED_PAGES.find((page) => page.href === href)?.label}</Link>{' '}
              <span className="font-mono text-small text-text-3">{href}</span>
            </li>
          ))}
        </ul>
      </div>
    </Page>
  )
}
