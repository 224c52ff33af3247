/** The code of each page, loaded on demand. */
import { type ComponentType, lazy } from 'react'
import { type PageName, type PageParams, pageAt } from '../../lib/pages.ts'
import { loadCode } from '../../ui/late.tsx'

type Page = ComponentType<PageParams>

const code = (load: () => Promise<Page>) => ({ load, Drawn: lazy(async () => ({ default: await loadCode(load) })) })

export const CODE: { readonly [name in PageName]: ReturnType<typeof code> } = {
  overview: code(async () => (await import('../overview/overview-page.tsx')).OverviewPage),
  topology: code(async () => (await import('../topology/topology-page.tsx')).TopologyPage),
  shards: code(async () => (await import('../shards/shards-page.tsx')).ShardsPage),
  shard: code(async () => (await import('../shards/members.tsx')).ShardMembersPage),
  shardSnapshots: code(async () => (await import('../shards/shard-snapshots.tsx')).ShardSnapshotsPage),
  shardEvents: code(async () => (await import('../shards/shard-events.tsx')).ShardEventsPage),
  shardMetrics: code(async () => (await import('../shards/shard-metrics.tsx')).ShardMetricsPage),
  shardConfig: code(async () => (await import('../shards/shard-config.tsx')).ShardConfigPage),
  segments: code(async () => (await import('../segments/segments-page.tsx')).SegmentsPage),
  stays: code(async () => (await import('../stays/stays-page.tsx')).StaysPage),
  segment: code(async () => (await import('../segments/segment-page.tsx')).SegmentPage),
  property: code(async () => (await import('../segments/property-page.tsx')).PropertyPage),
  node: code(async () => (await import('../shards/node-page.tsx')).NodePage),
  playground: code(async () => (await import('../playground/playground-page.tsx')).PlaygroundPage),
  savedQuery: code(async () => (await import('../playground/saved-page.tsx')).SavedQueryPage),
  savedResult: code(async () => (await import('../playground/result-page.tsx')).SavedResultPage),
  imports: code(async () => (await import('../imports/imports-page.tsx')).ImportsPage),
  newImport: code(async () => (await import('../imports/new-import-page.tsx')).NewImportPage),
  import: code(async () => (await import('../imports/import-page.tsx')).ImportPage),
  snapshots: code(async () => (await import('../snapshots/snapshots-page.tsx')).SnapshotsPage),
  compareSnapshots: code(async () => (await import('../snapshots/compare-page.tsx')).ComparePage),
  snapshot: code(async () => (await import('../snapshots/snapshot-page.tsx')).SnapshotPage),
  golden: code(async () => (await import('../golden/golden-page.tsx')).GoldenPage),
  queue: code(async () => (await import('../queue/queue-page.tsx')).QueuePage),
  topic: code(async () => (await import('../queue/topic-page.tsx')).TopicPage),
  queueJob: code(async () => (await import('../queue/job-page.tsx')).JobPage),
  queueConsumers: code(async () => (await import('../queue/consumers-panel.tsx')).ConsumersPage),
  dashboard: code(async () => (await import('../metrics/dashboard-page.tsx')).DashboardPage),
  failures: code(async () => (await import('../failures/failures-page.tsx')).FailuresPage),
  operations: code(async () => (await import('../operations/operations-page.tsx')).OperationsPage),
  newHandover: code(async () => (await import('../handovers/new-handover-page.tsx')).NewHandoverPage),
  handover: code(async () => (await import('../handovers/handover-page.tsx')).HandoverPage),
  operation: code(async () => (await import('../operations/operation-page.tsx')).OperationPage),
  audit: code(async () => (await import('../audit/audit-page.tsx')).AuditPage),
  services: code(async () => (await import('../registry/services-page.tsx')).ServicesPage),
  datasets: code(async () => (await import('../registry/datasets-page.tsx')).DatasetsPage),
  codecs: code(async () => (await import('../registry/codecs-page.tsx')).CodecsPage),
  resolver: code(async () => (await import('../registry/resolver-page.tsx')).ResolverPage),
  profile: code(async () => (await import('../settings/profile-page.tsx')).ProfilePage),
  appearance: code(async () => (await import('../settings/appearance-page.tsx')).AppearancePage),
  tokens: code(async () => (await import('../tokens/tokens-page.tsx')).TokensPage),
  people: code(async () => (await import('../people/people-page.tsx')).PeoplePage),
  environment: code(async () => (await import('../settings/environment-page.tsx')).EnvironmentPage),
  about: code(async () => (await import('../settings/about-page.tsx')).AboutPage),
}

/** Loads the code of a page in advance. @returns whether it loaded; a failure is shown when the page is opened */
export async function preload(path: string): Promise<boolean> {
  const page = pageAt(path)
  if (!page) return false
  return await CODE[page.name].load().then(
    () => true,
    () => false,
  )
}
