/**
 * Every page of the console. Routes, navigation, shortcuts, the palette and the pages kept over a link all read this
 * table; its code is in features/shell/pages.ts. The folders of app/(console) are the same list for the server: a test
 * compares them.
 */
import type { IconName } from '../icons/icon.tsx'

type PageRow = {
  /** `:name` is a path parameter. The first matching path wins. */
  readonly path: `/${string}`
  /** A section without its own page shows this one; the server redirects the same way. */
  readonly redirectsTo?: string
  /** In the palette, with more words by which it is found; with `menu` in that part of the navigation as well. */
  readonly link?: {
    readonly label: string
    readonly icon: IconName
    readonly words?: string
    readonly menu?: 'main' | 'more'
    /** The shortcut is `g` and this key. */
    readonly key?: string
  }
  /** Has a time range, which links between such pages keep. */
  readonly showsTime?: true
}

export const PAGES = {
  overview: {
    path: '/',
    link: { label: 'Overview', icon: 'overview', key: 'o', menu: 'main', words: 'home attention health' },
  },
  topology: {
    path: '/topology',
    link: {
      label: 'Topology',
      icon: 'topology',
      key: 't',
      menu: 'main',
      words: 'map fabric routers bridges proxy route of a segment',
    },
  },
  shards: {
    path: '/shards',
    link: { label: 'Shards', icon: 'shards', key: 's', menu: 'main', words: 'nodes members' },
  },
  shard: { path: '/shards/:id' },
  shardSnapshots: { path: '/shards/:id/snapshots' },
  shardEvents: { path: '/shards/:id/events' },
  shardMetrics: { path: '/shards/:id/metrics', showsTime: true },
  shardConfig: { path: '/shards/:id/config' },
  segments: { path: '/shards/:id/segments' },
  stays: { path: '/shards/:id/stays' },
  segment: { path: '/shards/:shard/segments/:id' },
  property: { path: '/shards/:shard/segments/:segment/properties/:id' },
  node: { path: '/shards/:shard/nodes/:id', showsTime: true },
  playground: {
    path: '/playground',
    link: { label: 'Playground', icon: 'playground', key: 'p', menu: 'main', words: 'query search' },
  },
  savedQuery: { path: '/playground/saved/:id' },
  savedResult: { path: '/playground/results/:id' },
  imports: {
    path: '/imports',
    link: { label: 'Imports', icon: 'imports', key: 'i', menu: 'main', words: 'upload csv build' },
  },
  newImport: { path: '/imports/new', link: { label: 'New import', icon: 'upload', words: 'start upload csv' } },
  import: { path: '/imports/:id' },
  snapshots: {
    path: '/snapshots',
    link: { label: 'Snapshots', icon: 'snapshots', key: 'n', menu: 'main', words: 'install download' },
  },
  compareSnapshots: { path: '/snapshots/compare' },
  snapshot: { path: '/snapshots/:id' },
  golden: {
    path: '/golden',
    link: { label: 'Golden searches', icon: 'check', key: 'e', menu: 'more', words: 'expectations saved quality' },
  },
  queue: {
    path: '/queue',
    link: { label: 'Queue', icon: 'queue', key: 'q', menu: 'main', words: 'jobs topics dead redrive' },
  },
  topic: { path: '/queue/topics/:id' },
  queueJob: { path: '/queue/topics/:topic/jobs/:id' },
  queueConsumers: { path: '/queue/consumers', link: { label: 'Queue: consumers', icon: 'queue', words: 'workers' } },
  dashboards: {
    path: '/dashboards',
    redirectsTo: '/dashboards/engine',
    link: {
      label: 'Metrics',
      icon: 'metrics',
      key: 'm',
      menu: 'main',
      words: 'charts dashboards engine consensus fabric queue import control plane',
    },
  },
  dashboard: { path: '/dashboards/:id', showsTime: true },
  operations: {
    path: '/operations',
    link: { label: 'Operations', icon: 'operations', key: 'x', menu: 'more', words: 'history running' },
  },
  failures: {
    path: '/failures',
    link: {
      label: 'What if',
      icon: 'plug-off',
      key: 'w',
      menu: 'more',
      words: 'failure matrix loss of a zone machine',
    },
  },
  newHandover: { path: '/operations/handovers/new' },
  handover: { path: '/operations/handovers/:id' },
  operation: { path: '/operations/:id' },
  audit: {
    path: '/audit',
    link: { label: 'Audit', icon: 'audit', key: 'a', menu: 'more', words: 'log who changed' },
  },
  registry: {
    path: '/registry',
    redirectsTo: '/registry/services',
    link: { label: 'Registry', icon: 'registry', key: 'r', menu: 'more', words: 'services codecs resolver' },
  },
  services: { path: '/registry/services', link: { label: 'Registry: services', icon: 'registry' } },
  datasets: {
    path: '/registry/datasets',
    link: { label: 'Registry: datasets', icon: 'registry', words: 'versions segments reservations claims' },
  },
  codecs: { path: '/registry/codecs', link: { label: 'Registry: codec list', icon: 'registry', words: 'features' } },
  resolver: { path: '/registry/resolver', link: { label: 'Registry: resolver', icon: 'registry', words: 'names' } },
  settings: {
    path: '/settings',
    redirectsTo: '/settings/profile',
    link: { label: 'Settings', icon: 'settings', menu: 'more', words: 'profile password' },
  },
  profile: { path: '/settings/profile', link: { label: 'Settings: profile', icon: 'person', words: 'password me' } },
  appearance: {
    path: '/settings/appearance',
    link: { label: 'Settings: appearance', icon: 'settings', words: 'theme dark light density keys' },
  },
  tokens: { path: '/settings/tokens', link: { label: 'Settings: API tokens', icon: 'key' } },
  people: { path: '/settings/people', link: { label: 'Settings: people', icon: 'person', words: 'users roles' } },
  environment: {
    path: '/settings/environment',
    link: { label: 'Settings: environment', icon: 'settings', words: 'label production' },
  },
  about: { path: '/settings/about', link: { label: 'Settings: about', icon: 'info', words: 'version' } },
} as const satisfies { readonly [name: string]: PageRow }

type Table = typeof PAGES
/** Pages with code of their own. */
export type PageName = {
  [name in keyof Table]: Table[name] extends { redirectsTo: string } ? never : name
}[keyof Table]

export type PageLink = NonNullable<PageRow['link']> & { readonly href: string }

const ROWS: readonly (readonly [string, PageRow])[] = Object.entries(PAGES)
const LINKS: readonly PageLink[] = ROWS.flatMap(([, { path, link }]) => (link ? { ...link, href: path } : []))
export const MAIN_PAGES = LINKS.filter(({ menu }) => menu === 'main')
export const MORE_PAGES = LINKS.filter(({ menu }) => menu === 'more')
/** Pages of the navigation first. */
export const LINKED_PAGES = [...MAIN_PAGES, ...MORE_PAGES, ...LINKS.filter(({ menu }) => menu === undefined)]

/** Whether a path belongs to a page of the navigation. */
export function isUnder(path: string, { href }: PageLink): boolean {
  return path === href || (href !== '/' && path.startsWith(`${href}/`))
}

/** The path parameters of pages: an id, and the shard, segment or topic it belongs to. */
export type PageParams = {
  readonly id: string
  readonly shard: string
  readonly segment: string
  readonly topic: string
}

const PATTERNS = ROWS.map(([name, { path, redirectsTo, showsTime = false }]) => ({
  name: name as PageName,
  pattern: new RegExp(`^${path.replaceAll(/:(\w+)/g, '(?<$1>[^/]+)')}$`),
  redirectsTo,
  showsTime,
}))

type FoundPage = {
  readonly name: PageName
  /** After a redirect. */
  readonly path: string
  readonly params: PageParams
  readonly showsTime: boolean
}

/** The page shown for a path; undefined when there is none. */
export function pageAt(path: string): FoundPage | undefined {
  for (const { name, pattern, redirectsTo, showsTime } of PATTERNS) {
    const match = pattern.exec(path)
    if (!match) continue
    if (redirectsTo !== undefined) return pageAt(redirectsTo)
    const found = Object.entries(match.groups ?? {}).map(([param, part]) => [param, decodeURIComponent(part)])
    return {
      name,
      path,
      params: { id: '', shard: '', segment: '', topic: '', ...Object.fromEntries(found) },
      showsTime,
    }
  }
  return undefined
}
