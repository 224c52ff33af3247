/**
 * Links to pages in the palette, with the words by which they are found: the pages of the navigation, and others that
 * only their section links. Loaded with the palette.
 */
import type { IconName } from '../../icons/icon.tsx'
import * as copy from './page-links-copy.ts'
import { MAIN_PAGES, MORE_PAGES, type PageLink } from './pages.ts'

type SearchedLink = Omit<PageLink, 'menu'> & {
  /** Search aliases. */
  readonly also?: string | undefined
}

/** Words of pages of the navigation, by path. */
const ALSO: { readonly [path: string]: string } = {
  '/': 'home attention health',
  '/topology': 'map fabric routers bridges proxy route of a segment',
  '/shards': 'nodes members',
  '/playground': 'query search',
  '/imports': 'upload csv build',
  '/snapshots': 'install download',
  '/queue': 'jobs topics dead redrive',
  '/dashboards': 'charts dashboards engine consensus fabric queue import control plane',
  '/operations': 'history running',
  '/audit': 'log who changed',
  '/registry': 'services codecs resolver',
  '/settings': 'profile password',
}

const link = (href: string, label: string, icon: IconName, also?: string): SearchedLink => ({ href, label, icon, also })

const OTHERS: readonly SearchedLink[] = [
  link('/imports/new', copy.pages.newImport, 'upload', 'start upload csv'),
  link('/queue/consumers', copy.pages.queueConsumers, 'queue', 'workers'),
  link('/registry/services', copy.pages.services, 'registry'),
  link('/registry/datasets', copy.pages.datasets, 'registry', 'versions segments reservations claims'),
  link('/registry/codecs', copy.pages.codecs, 'registry', 'features'),
  link('/registry/resolver', copy.pages.resolver, 'registry', 'names'),
  link('/settings/profile', copy.pages.profile, 'person', 'password me'),
  link('/settings/appearance', copy.pages.appearance, 'settings', 'theme dark light density keys'),
  link('/settings/tokens', copy.pages.tokens, 'key'),
  link('/settings/people', copy.pages.people, 'person', 'users roles'),
  link('/settings/environment', copy.pages.environment, 'settings', 'label production'),
  link('/settings/about', copy.pages.about, 'info', 'version'),
]

/** Pages of the navigation first. */
export const LINKED_PAGES: readonly SearchedLink[] = [
  ...[...MAIN_PAGES, ...MORE_PAGES].map((page) => ({ ...page, also: ALSO[page.href] })),
  ...OTHERS,
]
