/** The pages that the navigation, the keys and the palette lead to. */
import type { IconName } from '../../icons/icon.tsx'
import { routes } from '../../lib/routes.ts'

export type PageLink = {
  readonly href: string
  readonly label: string
  readonly icon: IconName
  /** `g` and then this. */
  readonly key?: string
  /** Other words it is looked for by. */
  readonly also?: string
  /** Paths that belong to it. */
  readonly under: string
}

export const MAIN_PAGES: readonly PageLink[] = [
  { href: routes.overview(), label: 'Overview', icon: 'overview', key: 'o', also: 'home attention health', under: '/' },
  { href: routes.shards(), label: 'Shards', icon: 'shards', key: 's', also: 'nodes members', under: '/shards' },
  {
    href: routes.playground(),
    label: 'Playground',
    icon: 'playground',
    key: 'p',
    also: 'query search',
    under: '/playground',
  },
  { href: routes.imports(), label: 'Imports', icon: 'imports', key: 'i', also: 'upload csv build', under: '/imports' },
  {
    href: routes.snapshots(),
    label: 'Snapshots',
    icon: 'snapshots',
    key: 'n',
    also: 'install download',
    under: '/snapshots',
  },
]

export const MORE_PAGES: readonly PageLink[] = [
  {
    href: routes.operations(),
    label: 'Operations',
    icon: 'operations',
    key: 'x',
    also: 'history running',
    under: '/operations',
  },
  { href: routes.audit(), label: 'Audit', icon: 'audit', key: 'a', also: 'log who changed', under: '/audit' },
  {
    href: routes.registry(),
    label: 'Registry',
    icon: 'registry',
    key: 'r',
    also: 'services codecs resolver',
    under: '/registry',
  },
  { href: routes.settings(), label: 'Settings', icon: 'settings', also: 'profile password', under: '/settings' },
]

export function isUnder(path: string, { under }: PageLink): boolean {
  return under === '/' ? path === '/' : path === under || path.startsWith(`${under}/`)
}
