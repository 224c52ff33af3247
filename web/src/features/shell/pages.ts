/**
 * All pages of the console: path, code (loaded on demand), and their links in navigation and shortcuts; other links are
 * in page-links.ts. The folders of app/(console) are the same list for the server; a test compares them.
 */
import { type ComponentType, lazy } from 'react'
import type { IconName } from '../../icons/icon.tsx'
import type { Pages } from '../../lib/navigate.ts'
import { loadCode } from '../../ui/late.tsx'
import * as copy from './copy.ts'

/** The path parameters of pages: an id, and the shard, segment or topic it belongs to. */
type Params = { readonly id: string; readonly shard: string; readonly segment: string; readonly topic: string }
type Load = () => Promise<ComponentType<Params>>

type Link = {
  readonly label: string
  readonly icon: IconName
  /** The shortcut is `g` and this key. */
  readonly key?: string
  /** Its part of the navigation. */
  readonly menu: 'main' | 'more'
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
    link: { label: copy.pages.overview, icon: 'overview', key: 'o', menu: 'main' },
  },
  {
    path: '/topology',
    load: async () => (await import('../topology/topology-page.tsx')).TopologyPage,
    link: { label: copy.pages.topology, icon: 'topology', key: 't', menu: 'main' },
  },
  {
    path: '/shards',
    load: async () => (await import('../shards/shards-page.tsx')).ShardsPage,
    link: { label: copy.pages.shards, icon: 'shards', key: 's', menu: 'main' },
  },
  { path: '/shards/:id', load: async () => (await import('../shards/members.tsx')).ShardMembersPage },
  {
    path: '/shards/:id/snapshots',
    load: async () => (await import('../shards/shard-snapshots.tsx')).ShardSnapshotsPage,
  },
  { path: '/shards/:id/events', load: async () => (await import('../shards/shard-events.tsx')).ShardEventsPage },
  { path: '/shards/:id/metrics', load: async () => (await import('../shards/shard-metrics.tsx')).ShardMetricsPage },
  { path: '/shards/:id/config', load: async () => (await import('../shards/shard-config.tsx')).ShardConfigPage },
  { path: '/shards/:id/segments', load: async () => (await import('../segments/segments-page.tsx')).SegmentsPage },
  { path: '/shards/:id/stays', load: async () => (await import('../stays/stays-page.tsx')).StaysPage },
  {
    path: '/shards/:shard/segments/:id',
    load: async () => (await import('../segments/segment-page.tsx')).SegmentPage,
  },
  {
    path: '/shards/:shard/segments/:segment/properties/:id',
    load: async () => (await import('../segments/property-page.tsx')).PropertyPage,
  },
  { path: '/shards/:shard/nodes/:id', load: async () => (await import('../shards/node-page.tsx')).NodePage },
  {
    path: '/playground',
    load: async () => (await import('../playground/playground-page.tsx')).PlaygroundPage,
    link: { label: copy.pages.playground, icon: 'playground', key: 'p', menu: 'main' },
  },
  { path: '/playground/saved/:id', load: async () => (await import('../playground/saved-page.tsx')).SavedQueryPage },
  {
    path: '/playground/results/:id',
    load: async () => (await import('../playground/result-page.tsx')).SavedResultPage,
  },
  {
    path: '/imports',
    load: async () => (await import('../imports/imports-page.tsx')).ImportsPage,
    link: { label: copy.pages.imports, icon: 'imports', key: 'i', menu: 'main' },
  },
  { path: '/imports/new', load: async () => (await import('../imports/new-import-page.tsx')).NewImportPage },
  { path: '/imports/:id', load: async () => (await import('../imports/import-page.tsx')).ImportPage },
  {
    path: '/snapshots',
    load: async () => (await import('../snapshots/snapshots-page.tsx')).SnapshotsPage,
    link: { label: copy.pages.snapshots, icon: 'snapshots', key: 'n', menu: 'main' },
  },
  { path: '/snapshots/compare', load: async () => (await import('../snapshots/compare-page.tsx')).ComparePage },
  { path: '/snapshots/:id', load: async () => (await import('../snapshots/snapshot-page.tsx')).SnapshotPage },
  {
    path: '/queue',
    load: async () => (await import('../queue/queue-page.tsx')).QueuePage,
    link: { label: copy.pages.queue, icon: 'queue', key: 'q', menu: 'main' },
  },
  { path: '/queue/topics/:id', load: async () => (await import('../queue/topic-page.tsx')).TopicPage },
  { path: '/queue/topics/:topic/jobs/:id', load: async () => (await import('../queue/job-page.tsx')).JobPage },
  { path: '/queue/consumers', load: async () => (await import('../queue/consumers-panel.tsx')).ConsumersPage },
  {
    path: '/dashboards',
    redirectsTo: '/dashboards/engine',
    link: { label: copy.pages.metrics, icon: 'metrics', key: 'm', menu: 'main' },
  },
  { path: '/dashboards/:id', load: async () => (await import('../metrics/dashboard-page.tsx')).DashboardPage },
  {
    path: '/operations',
    load: async () => (await import('../operations/operations-page.tsx')).OperationsPage,
    link: { label: copy.pages.operations, icon: 'operations', key: 'x', menu: 'more' },
  },
  {
    path: '/operations/handovers/new',
    load: async () => (await import('../handovers/new-handover-page.tsx')).NewHandoverPage,
  },
  {
    path: '/operations/handovers/:id',
    load: async () => (await import('../handovers/handover-page.tsx')).HandoverPage,
  },
  { path: '/operations/:id', load: async () => (await import('../operations/operation-page.tsx')).OperationPage },
  {
    path: '/audit',
    load: async () => (await import('../audit/audit-page.tsx')).AuditPage,
    link: { label: copy.pages.audit, icon: 'audit', key: 'a', menu: 'more' },
  },
  {
    path: '/registry',
    redirectsTo: '/registry/services',
    link: { label: copy.pages.registry, icon: 'registry', key: 'r', menu: 'more' },
  },
  { path: '/registry/services', load: async () => (await import('../registry/services-page.tsx')).ServicesPage },
  { path: '/registry/datasets', load: async () => (await import('../registry/datasets-page.tsx')).DatasetsPage },
  { path: '/registry/codecs', load: async () => (await import('../registry/codecs-page.tsx')).CodecsPage },
  { path: '/registry/resolver', load: async () => (await import('../registry/resolver-page.tsx')).ResolverPage },
  {
    path: '/settings',
    redirectsTo: '/settings/profile',
    link: { label: copy.pages.settings, icon: 'settings', menu: 'more' },
  },
  { path: '/settings/profile', load: async () => (await import('../settings/profile-page.tsx')).ProfilePage },
  { path: '/settings/appearance', load: async () => (await import('../settings/appearance-page.tsx')).AppearancePage },
  { path: '/settings/tokens', load: async () => (await import('../tokens/tokens-page.tsx')).TokensPage },
  { path: '/settings/people', load: async () => (await import('../people/people-page.tsx')).PeoplePage },
  {
    path: '/settings/environment',
    load: async () => (await import('../settings/environment-page.tsx')).EnvironmentPage,
  },
  { path: '/settings/about', load: async () => (await import('../settings/about-page.tsx')).AboutPage },
]

type KnownPage = { readonly pattern: RegExp; readonly load: Load; readonly Drawn: ComponentType<Params> }

const KNOWN: readonly KnownPage[] = TABLE.flatMap((row) => {
  if (!('load' in row)) return []
  const { path, load } = row
  const pattern = new RegExp(`^${path.replaceAll(/:(\w+)/g, '(?<$1>[^/]+)')}$`)
  return { pattern, load, Drawn: lazy(async () => ({ default: await loadCode(load) })) }
})

const REDIRECTS = new Map(TABLE.flatMap((row) => ('redirectsTo' in row ? [[row.path, row.redirectsTo] as const] : [])))

export type PageLink = Link & { readonly href: string }

const LINKS: readonly PageLink[] = TABLE.flatMap(({ path, link }) => (link ? { ...link, href: path } : []))

export const MAIN_PAGES = LINKS.filter(({ menu }) => menu === 'main')
export const MORE_PAGES = LINKS.filter(({ menu }) => menu === 'more')

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
    segment: '',
    topic: '',
    ...Object.fromEntries(found.map(([name, part]) => [name, decodeURIComponent(part)])),
  }
}
