/**
 * Every page of the console: its address, its code, which is fetched when it is first needed, and how the navigation, the
 * keys and the palette lead to it. The folders of app/(console) are the same list for the server; a test
 * compares them.
 */
import { type ComponentType, lazy } from 'react'
import type { IconName } from '../../icons/icon.tsx'
import type { Pages } from '../../lib/navigate.ts'

/** The parts of an address that pages take: of a thing, and of the shard that it belongs to. */
type Params = { readonly id: string; readonly shard: string }
type Load = () => Promise<ComponentType<Params>>

type Link = {
  readonly label: string
  readonly icon: IconName
  /** `g` and then this. */
  readonly key?: string
  /** Other words it is looked for by. */
  readonly also?: string
  /** Its part of the navigation; the palette and its section lead to the others. */
  readonly menu?: 'main' | 'more'
}

/** Of two whose paths fit, the first counts. `:name` is a part of the address that the page takes. */
type Row = { readonly path: string; readonly link?: Link } & (
  | { readonly load: Load }
  /** A section without a page of its own begins with its first one; the server redirects in the same way. */
  | { readonly leadsTo: string }
)

const TABLE: readonly Row[] = [
  {
    path: '/',
    load: async () => (await import('../overview/overview-page.tsx')).OverviewPage,
    link: { label: 'Overview', icon: 'overview', key: 'o', also: 'home attention health', menu: 'main' },
  },
  {
    path: '/shards',
    load: async () => (await import('../shards/shards-page.tsx')).ShardsPage,
    link: { label: 'Shards', icon: 'shards', key: 's', also: 'nodes members', menu: 'main' },
  },
  { path: '/shards/:id', load: async () => (await import('../shards/members.tsx')).ShardMembersPage },
  {
    path: '/shards/:id/snapshots',
    load: async () => (await import('../shards/shard-snapshots.tsx')).ShardSnapshotsPage,
  },
  { path: '/shards/:id/events', load: async () => (await import('../shards/shard-events.tsx')).ShardEventsPage },
  { path: '/shards/:id/metrics', load: async () => (await import('../metrics/shard-metrics.tsx')).ShardMetricsPage },
  { path: '/shards/:id/config', load: async () => (await import('../shards/shard-config.tsx')).ShardConfigPage },
  { path: '/shards/:shard/nodes/:id', load: async () => (await import('../shards/node-page.tsx')).NodePage },
  {
    path: '/playground',
    load: async () => (await import('../playground/playground-page.tsx')).PlaygroundPage,
    link: { label: 'Playground', icon: 'playground', key: 'p', also: 'query search', menu: 'main' },
  },
  { path: '/playground/saved/:id', load: async () => (await import('../playground/saved-page.tsx')).SavedQueryPage },
  {
    path: '/playground/results/:id',
    load: async () => (await import('../playground/result-page.tsx')).SavedResultPage,
  },
  {
    path: '/imports',
    load: async () => (await import('../imports/imports-page.tsx')).ImportsPage,
    link: { label: 'Imports', icon: 'imports', key: 'i', also: 'upload csv build', menu: 'main' },
  },
  {
    path: '/imports/new',
    load: async () => (await import('../imports/new-import-page.tsx')).NewImportPage,
    link: { label: 'New import', icon: 'upload', also: 'start upload csv' },
  },
  { path: '/imports/:id', load: async () => (await import('../imports/import-page.tsx')).ImportPage },
  {
    path: '/snapshots',
    load: async () => (await import('../snapshots/snapshots-page.tsx')).SnapshotsPage,
    link: { label: 'Snapshots', icon: 'snapshots', key: 'n', also: 'install download', menu: 'main' },
  },
  { path: '/snapshots/compare', load: async () => (await import('../snapshots/compare-page.tsx')).ComparePage },
  { path: '/snapshots/:id', load: async () => (await import('../snapshots/snapshot-page.tsx')).SnapshotPage },
  {
    path: '/operations',
    load: async () => (await import('../operations/operations-page.tsx')).OperationsPage,
    link: { label: 'Operations', icon: 'operations', key: 'x', also: 'history running', menu: 'more' },
  },
  { path: '/operations/:id', load: async () => (await import('../operations/operation-page.tsx')).OperationPage },
  {
    path: '/audit',
    load: async () => (await import('../audit/audit-page.tsx')).AuditPage,
    link: { label: 'Audit', icon: 'audit', key: 'a', also: 'log who changed', menu: 'more' },
  },
  {
    path: '/registry',
    leadsTo: '/registry/services',
    link: { label: 'Registry', icon: 'registry', key: 'r', also: 'services codecs resolver', menu: 'more' },
  },
  {
    path: '/registry/services',
    load: async () => (await import('../registry/services-page.tsx')).ServicesPage,
    link: { label: 'Registry: services', icon: 'registry' },
  },
  {
    path: '/registry/codecs',
    load: async () => (await import('../registry/codecs-page.tsx')).CodecsPage,
    link: { label: 'Registry: codec list', icon: 'registry', also: 'features' },
  },
  {
    path: '/registry/resolver',
    load: async () => (await import('../registry/resolver-page.tsx')).ResolverPage,
    link: { label: 'Registry: resolver', icon: 'registry', also: 'names' },
  },
  {
    path: '/settings',
    leadsTo: '/settings/profile',
    link: { label: 'Settings', icon: 'settings', also: 'profile password', menu: 'more' },
  },
  {
    path: '/settings/profile',
    load: async () => (await import('../settings/profile-page.tsx')).ProfilePage,
    link: { label: 'Settings: profile', icon: 'person', also: 'password me' },
  },
  {
    path: '/settings/appearance',
    load: async () => (await import('../settings/appearance-page.tsx')).AppearancePage,
    link: { label: 'Settings: appearance', icon: 'settings', also: 'theme dark light density keys' },
  },
  {
    path: '/settings/tokens',
    load: async () => (await import('../tokens/tokens-page.tsx')).TokensPage,
    link: { label: 'Settings: API tokens', icon: 'key' },
  },
  {
    path: '/settings/people',
    load: async () => (await import('../people/people-page.tsx')).PeoplePage,
    link: { label: 'Settings: people', icon: 'person', also: 'users roles' },
  },
  {
    path: '/settings/environment',
    load: async () => (await import('../settings/environment-page.tsx')).EnvironmentPage,
    link: { label: 'Settings: environment', icon: 'settings', also: 'label production' },
  },
  {
    path: '/settings/about',
    load: async () => (await import('../settings/about-page.tsx')).AboutPage,
    link: { label: 'Settings: about', icon: 'info', also: 'version' },
  },
]

type KnownPage = { readonly pattern: RegExp; readonly load: Load; readonly Drawn: ComponentType<Params> }

const KNOWN: readonly KnownPage[] = TABLE.flatMap((row) => {
  if (!('load' in row)) return []
  const { path, load } = row
  const pattern = new RegExp(`^${path.replaceAll(/:(\w+)/g, '(?<$1>[^/]+)')}$`)
  return { pattern, load, Drawn: lazy(async () => ({ default: await load() })) }
})

const LEADS_TO = new Map(TABLE.flatMap((row) => ('leadsTo' in row ? [[row.path, row.leadsTo] as const] : [])))

export type PageLink = Link & { readonly href: string }

const LINKS: readonly PageLink[] = TABLE.flatMap(({ path, link }) => (link ? { ...link, href: path } : []))

export const MAIN_PAGES = LINKS.filter(({ menu }) => menu === 'main')
export const MORE_PAGES = LINKS.filter(({ menu }) => menu === 'more')
/** Those of the navigation first. */
export const LINKED_PAGES = [...MAIN_PAGES, ...MORE_PAGES, ...LINKS.filter(({ menu }) => menu === undefined)]

/** Whether a path belongs to a page of the navigation. */
export function isUnder(path: string, { href }: PageLink): boolean {
  return path === href || (href !== '/' && path.startsWith(`${href}/`))
}

export function pageAt(path: string): KnownPage | undefined {
  return KNOWN.find(({ pattern }) => pattern.test(path))
}

/** Fetches the code of a page ahead of time. @returns whether it is there; a page that cannot be had says so where it is drawn */
export async function preload(path: string): Promise<boolean> {
  const load = pageAt(path)?.load()
  if (!load) return false
  return await load.then(
    () => true,
    () => false,
  )
}

export const KNOWN_PAGES: Pages = {
  resolve: (path) => LEADS_TO.get(path) ?? (pageAt(path) && path),
  preload: (path) => void preload(path),
}

/** The parts of an address that a page takes. */
export function paramsOf({ pattern }: KnownPage, path: string): Params {
  const found = Object.entries(pattern.exec(path)?.groups ?? {})
  return { id: '', shard: '', ...Object.fromEntries(found.map(([name, part]) => [name, decodeURIComponent(part)])) }
}
