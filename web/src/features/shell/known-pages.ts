/**
 * The pages that the shell can draw itself, and the code of each, which is fetched when it is first needed. The folders of
 * app/(console) are the same list for the server; a test holds them together.
 */
import { type ComponentType, lazy } from 'react'
import type { Pages } from '../../lib/go.ts'
import { routes } from '../../lib/routes.ts'

/** The parts of an address that pages take: of a thing, and of the shard that it belongs to. */
type Params = { readonly id: string; readonly shard: string }
type Load = () => Promise<ComponentType<Params>>
type KnownPage = { readonly pattern: RegExp; readonly load: Load; readonly Drawn: ComponentType<Params> }

function page(path: string, load: Load): KnownPage {
  const pattern = new RegExp(`^${path.replaceAll(/:(\w+)/g, '(?<$1>[^/]+)')}$`)
  return { pattern, load, Drawn: lazy(async () => ({ default: await load() })) }
}

/** Of two that fit, the first counts. */
const PAGES: readonly KnownPage[] = [
  page('/', async () => (await import('../overview/overview-page.tsx')).OverviewPage),
  page('/shards', async () => (await import('../shards/shards-page.tsx')).ShardsPage),
  page('/shards/:id', async () => (await import('../shards/members.tsx')).ShardMembersPage),
  page('/shards/:id/snapshots', async () => (await import('../shards/shard-snapshots.tsx')).ShardSnapshotsPage),
  page('/shards/:id/events', async () => (await import('../shards/shard-events.tsx')).ShardEventsPage),
  page('/shards/:id/metrics', async () => (await import('../metrics/shard-metrics.tsx')).ShardMetricsPage),
  page('/shards/:id/config', async () => (await import('../shards/shard-config.tsx')).ShardConfigPage),
  page('/shards/:shard/nodes/:id', async () => (await import('../shards/node-page.tsx')).NodePage),
  page('/playground', async () => (await import('../playground/playground-page.tsx')).PlaygroundPage),
  page('/playground/saved/:id', async () => (await import('../playground/saved-page.tsx')).SavedQueryPage),
  page('/playground/results/:id', async () => (await import('../playground/result-page.tsx')).SavedResultPage),
  page('/imports', async () => (await import('../imports/imports-page.tsx')).ImportsPage),
  page('/imports/new', async () => (await import('../imports/new-import-page.tsx')).NewImportPage),
  page('/imports/:id', async () => (await import('../imports/import-page.tsx')).ImportPage),
  page('/snapshots', async () => (await import('../snapshots/snapshots-page.tsx')).SnapshotsPage),
  page('/snapshots/compare', async () => (await import('../snapshots/compare-page.tsx')).ComparePage),
  page('/snapshots/:id', async () => (await import('../snapshots/snapshot-page.tsx')).SnapshotPage),
  page('/operations', async () => (await import('../operations/operations-page.tsx')).OperationsPage),
  page('/operations/:id', async () => (await import('../operations/operation-page.tsx')).OperationPage),
  page('/audit', async () => (await import('../audit/audit-page.tsx')).AuditPage),
  page('/registry/services', async () => (await import('../registry/services-page.tsx')).ServicesPage),
  page('/registry/codecs', async () => (await import('../registry/codecs-page.tsx')).CodecsPage),
  page('/registry/resolver', async () => (await import('../registry/resolver-page.tsx')).ResolverPage),
  page('/settings/profile', async () => (await import('../settings/profile-page.tsx')).ProfilePage),
  page('/settings/appearance', async () => (await import('../settings/appearance-page.tsx')).AppearancePage),
  page('/settings/tokens', async () => (await import('../tokens/tokens-page.tsx')).TokensPage),
  page('/settings/people', async () => (await import('../people/people-page.tsx')).PeoplePage),
  page('/settings/environment', async () => (await import('../settings/environment-page.tsx')).EnvironmentPage),
  page('/settings/about', async () => (await import('../settings/about-page.tsx')).AboutPage),
]

/** Sections without a page of their own begin with their first one; the server sends on in the same way. */
const LEADS_ON: { readonly [path: string]: string } = { '/registry': routes.services(), '/settings': routes.settings() }

export function pageAt(path: string): KnownPage | undefined {
  return PAGES.find(({ pattern }) => pattern.test(path))
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
  resolve: (path) => LEADS_ON[path] ?? (pageAt(path) && path),
  preload: (path) => void preload(path),
}

/** The parts of an address that a page takes. */
export function paramsOf({ pattern }: KnownPage, path: string): Params {
  const found = Object.entries(pattern.exec(path)?.groups ?? {})
  return { id: '', shard: '', ...Object.fromEntries(found.map(([name, part]) => [name, decodeURIComponent(part)])) }
}
