/**
 * All pages of the console: path, code (loaded on demand), and their links in navigation, shortcuts and palette. The
 * folders of app/(console) are the same list for the server; a test compares them.
 */
import { type ComponentType, lazy } from 'react'
import type { IconName } from '../../icons/icon.tsx'
import type { Pages } from '../../lib/navigate.ts'
import * as copy from './copy.ts'

/** The path parameters of pages: an id, and the shard or topic it belongs to. */
type Params = { readonly id: string; readonly shard: string; readonly topic: string }
type Load = () => Promise<ComponentType<Params>>

type Link = {
  readonly label: string
  readonly icon: IconName
  /** The shortcut is `g` and this key. */
  readonly key?: string
  /** Search aliases. */
  readonly also?: string
  /** Its part of the navigation; other pages are linked by the palette and their section. */
  readonly menu?: 'main' | 'more'
}

/** The first matching path wins. `:name` is a path parameter. */
type Row = { readonly path: string; readonly link?: Link } & (
  | { readonly load: Load }
  /** A section without its own page shows its first one; the server redirects the same way. */
  | { readonly redirectsTo: string }
)

const TABLE: readonly Row[] = [
  {
    path: '/',
    load: async () => (await import('../overview/overview-page.tsx')).OverviewPage,
    link: { label: copy.pages.overview, icon: 'overview', key: 'o', also: 'home attention health', menu: 'main' },
  },
  {
    path: '/topology',
    load: async () => (await import('../topology/topology-page.tsx')).TopologyPage,
    link: {
      ...{ label: copy.pages.topology, icon: 'topology', key: 't', menu: 'main' },
      also: 'map fabric routers bridges proxy route of a segment',
    },
  },
  {
    path: '/shards',
    load: async () => (await import('../shards/shards-page.tsx')).ShardsPage,
    link: { label: copy.pages.shards, icon: 'shards', key: 's', also: 'nodes members', menu: 'main' },
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
    link: { label: copy.pages.playground, icon: 'playground', key: 'p', also: 'query search', menu: 'main' },
  },
  { path: '/playground/saved/:id', load: async () => (await import('../playground/saved-page.tsx')).SavedQueryPage },
  {
    path: '/playground/results/:id',
    load: async () => (await import('../playground/result-page.tsx')).SavedResultPage,
  },
  {
    path: '/imports',
    load: async () => (await import('../imports/imports-page.tsx')).ImportsPage,
    link: { label: copy.pages.imports, icon: 'imports', key: 'i', also: 'upload csv build', menu: 'main' },
  },
  {
    path: '/imports/new',
    load: async () => (await import('../imports/new-import-page.tsx')).NewImportPage,
    link: { label: copy.pages.newImport, icon: 'upload', also: 'start upload csv' },
  },
  { path: '/imports/:id', load: async () => (await import('../imports/import-page.tsx')).ImportPage },
  {
    path: '/snapshots',
    load: async () => (await import('../snapshots/snapshots-page.tsx')).SnapshotsPage,
    link: { label: copy.pages.snapshots, icon: 'snapshots', key: 'n', also: 'install download', menu: 'main' },
  },
  { path: '/snapshots/compare', load: async () => (await import('../snapshots/compare-page.tsx')).ComparePage },
  { path: '/snapshots/:id', load: async () => (await import('../snapshots/snapshot-page.tsx')).SnapshotPage },
  {
    path: '/queue',
    load: async () => (await import('../queue/queue-page.tsx')).QueuePage,
    link: { label: copy.pages.queue, icon: 'queue', key: 'q', also: 'jobs topics dead redrive', menu: 'main' },
  },
  { path: '/queue/topics/:id', load: async () => (await import('../queue/topic-page.tsx')).TopicPage },
  { path: '/queue/topics/:topic/jobs/:id', load: async () => (await import('../queue/job-page.tsx')).JobPage },
  {
    path: '/queue/consumers',
    load: async () => (await import('../queue/consumers-panel.tsx')).ConsumersPage,
    link: { label: copy.pages.queueConsumers, icon: 'queue', also: 'workers' },
  },
  {
    path: '/operations',
    load: async () => (await import('../operations/operations-page.tsx')).OperationsPage,
    link: { label: copy.pages.operations, icon: 'operations', key: 'x', also: 'history running', menu: 'more' },
  },
  { path: '/operations/:id', load: async () => (await import('../operations/operation-page.tsx')).OperationPage },
  {
    path: '/audit',
    load: async () => (await import('../audit/audit-page.tsx')).AuditPage,
    link: { label: copy.pages.audit, icon: 'audit', key: 'a', also: 'log who changed', menu: 'more' },
  },
  {
    path: '/registry',
    redirectsTo: '/registry/services',
    link: { label: copy.pages.registry, icon: 'registry', key: 'r', also: 'services codecs resolver', menu: 'more' },
  },
  {
    path: '/registry/services',
    load: async () => (await import('../registry/services-page.tsx')).ServicesPage,
    link: { label: copy.pages.services, icon: 'registry' },
  },
  {
    path: '/registry/datasets',
    load: async () => (await import('../registry/datasets-page.tsx')).DatasetsPage,
    link: { label: copy.pages.datasets, icon: 'registry', also: 'versions segments reservations claims' },
  },
  {
    path: '/registry/codecs',
    load: async () => (await import('../registry/codecs-page.tsx')).CodecsPage,
    link: { label: copy.pages.codecs, icon: 'registry', also: 'features' },
  },
  {
    path: '/registry/resolver',
    load: async () => (await import('../registry/resolver-page.tsx')).ResolverPage,
    link: { label: copy.pages.resolver, icon: 'registry', also: 'names' },
  },
  {
    path: '/settings',
    redirectsTo: '/settings/profile',
    link: { label: copy.pages.settings, icon: 'settings', also: 'profile password', menu: 'more' },
  },
  {
    path: '/settings/profile',
    load: async () => (await import('../settings/profile-page.tsx')).ProfilePage,
    link: { label: copy.pages.profile, icon: 'person', also: 'password me' },
  },
  {
    path: '/settings/appearance',
    load: async () => (await import('../settings/appearance-page.tsx')).AppearancePage,
    link: { label: copy.pages.appearance, icon: 'settings', also: 'theme dark light density keys' },
  },
  {
    path: '/settings/tokens',
    load: async () => (await import('../tokens/tokens-page.tsx')).TokensPage,
    link: { label: copy.pages.tokens, icon: 'key' },
  },
  {
    path: '/settings/people',
    load: async () => (await import('../people/people-page.tsx')).PeoplePage,
    link: { label: copy.pages.people, icon: 'person', also: 'users roles' },
  },
  {
    path: '/settings/environment',
    load: async () => (await import('../settings/environment-page.tsx')).EnvironmentPage,
    link: { label: copy.pages.environment, icon: 'settings', also: 'label production' },
  },
  {
    path: '/settings/about',
    load: async () => (await import('../settings/about-page.tsx')).AboutPage,
    link: { label: copy.pages.about, icon: 'info', also: 'version' },
  },
]

type KnownPage = { readonly pattern: RegExp; readonly load: Load; readonly Drawn: ComponentType<Params> }

const KNOWN: readonly KnownPage[] = TABLE.flatMap((row) => {
  if (!('load' in row)) return []
  const { path, load } = row
  const pattern = new RegExp(`^${path.replaceAll(/:(\w+)/g, '(?<$1>[^/]+)')}$`)
  return { pattern, load, Drawn: lazy(async () => ({ default: await load() })) }
})

const REDIRECTS = new Map(TABLE.flatMap((row) => ('redirectsTo' in row ? [[row.path, row.redirectsTo] as const] : [])))

export type PageLink = Link & { readonly href: string }

const LINKS: readonly PageLink[] = TABLE.flatMap(({ path, link }) => (link ? { ...link, href: path } : []))

export const MAIN_PAGES = LINKS.filter(({ menu }) => menu === 'main')
export const MORE_PAGES = LINKS.filter(({ menu }) => menu === 'more')
/** Pages of the navigation first. */
export const LINKED_PAGES = [...MAIN_PAGES, ...MORE_PAGES, ...LINKS.filter(({ menu }) => menu === undefined)]

/** Whether a path belongs to a page of the navigation. */
export function isUnder(path: string, { href }: PageLink): boolean {
  return path === href || (href !== '/' && path.startsWith(`${href}/`))
}

export function pageAt(path: string): KnownPage | undefined {
  return KNOWN.find(({ pattern }) => pattern.test(path))
}

/** Loads the code of a page in advance. @returns whether it loaded; a failure is shown when the page is opened */
export async function preload(path: string): Promise<boolean> {
  const load = pageAt(path)?.load()
  if (!load) return false
  return await load.then(
    () => true,
    () => false,
  )
}

export const KNOWN_PAGES: Pages = {
  resolve: (path) => REDIRECTS.get(path) ?? (pageAt(path) && path),
  preload: (path) => void preload(path),
}

/** The path parameters of a page. */
export function paramsOf({ pattern }: KnownPage, path: string): Params {
  const found = Object.entries(pattern.exec(path)?.groups ?? {})
  return {
    id: '',
    shard: '',
    topic: '',
    ...Object.fromEntries(found.map(([name, part]) => [name, decodeURIComponent(part)])),
  }
}
