'use client'
import { usePathname } from 'next/navigation'
import { nearest } from '../../lib/nearest.ts'
import { LINKED_PAGES } from '../../lib/pages.ts'
import { Link } from '../../ui/link.tsx'
import { Page } from '../../ui/page.tsx'
import { EmptyState } from '../../ui/panel.tsx'
import * as copy from './copy.ts'

const SHOWN_MAX = 4

/** The page of an unknown URL, with similar pages. */
export function NotFoundPage() {
  const path = usePathname()
  const near = nearest(
    path,
    LINKED_PAGES.map(({ href }) => href),
  ).slice(0, SHOWN_MAX)
  return (
    <Page id="not-found" title={copy.notFound.title} ready>
      <div className="flex flex-col gap-3 rounded-panel border border-line bg-surface p-4">
        <EmptyState text={copy.notFound.text(path)} />
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
