/** All URLs of the console. */

const part = encodeURIComponent

type Query = { readonly [name: string]: string | undefined }

/** Appends query parameters to a path, without empty ones. */
function withQuery(path: string, query: Query): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value) search.set(name, value)
  return search.size === 0 ? path : `${path}?${search}`
}

export const routes = {
  overview: () => '/',
  /** The overview as it was at a moment. */
  past: (at: string) => withQuery('/', { at }),
  dashboard: (dashboard: string, query: Query = {}) => withQuery(`/dashboards/${part(dashboard)}`, query),
  topology: (query: Query = {}) => withQuery('/topology', query),
  shards: (query: Query = {}) => withQuery('/shards', query),
  shard: (shard: string, query: Query = {}) => withQuery(`/shards/${part(shard)}`, query),
  node: (shard: string, node: string) => `/shards/${part(shard)}/nodes/${part(node)}`,
  shardSnapshots: (shard: string) => `/shards/${part(shard)}/snapshots`,
  shardEvents: (shard: string) => `/shards/${part(shard)}/events`,
  shardMetrics: (shard: string) => `/shards/${part(shard)}/metrics`,
  shardConfig: (shard: string) => `/shards/${part(shard)}/config`,
  segments: (shard: string) => `/shards/${part(shard)}/segments`,
  segment: (shard: string, segment: string, query: Query = {}) =>
    withQuery(`/shards/${part(shard)}/segments/${part(segment)}`, query),
  property: (shard: string, segment: string, property: string, query: Query = {}) =>
    withQuery(`/shards/${part(shard)}/segments/${part(segment)}/properties/${part(property)}`, query),
  stays: (shard: string, query: Query = {}) => withQuery(`/shards/${part(shard)}/stays`, query),
  /** Opens a plan; opening it never runs it. */
  plan: (kind: string, shard: string, node?: string) =>
    routes.shard(shard, { plan: [kind, shard, ...(node ? [node] : [])].join(':') }),
  playground: (query: Query = {}) => withQuery('/playground', query),
  savedQuery: (id: string) => `/playground/saved/${part(id)}`,
  savedResult: (id: string) => `/playground/results/${part(id)}`,
  imports: () => '/imports',
  newImport: (query: Query = {}) => withQuery('/imports/new', query),
  import: (id: string) => `/imports/${part(id)}`,
  snapshots: (query: Query = {}) => withQuery('/snapshots', query),
  snapshot: (id: string) => `/snapshots/${part(id)}`,
  compareSnapshots: (a: string, b: string) => withQuery('/snapshots/compare', { a, b }),
  queue: (query: Query = {}) => withQuery('/queue', query),
  topic: (topic: string, query: Query = {}) => withQuery(`/queue/topics/${part(topic)}`, query),
  queueJob: (topic: string, job: string) => `/queue/topics/${part(topic)}/jobs/${part(job)}`,
  queueConsumers: () => '/queue/consumers',
  operations: (query: Query = {}) => withQuery('/operations', query),
  newHandover: (query: { readonly zone?: string; readonly machine?: string; readonly back?: string }) =>
    withQuery('/operations/handovers/new', query),
  handover: (id: string) => `/operations/handovers/${part(id)}`,
  operation: (id: string) => `/operations/${part(id)}`,
  audit: (query: Query = {}) => withQuery('/audit', query),
  registry: () => '/registry',
  datasets: (query: Query = {}) => withQuery('/registry/datasets', query),
  services: () => '/registry/services',
  codecs: () => '/registry/codecs',
  resolver: () => '/registry/resolver',
  settings: () => '/settings/profile',
  setting: (page: 'profile' | 'appearance' | 'tokens' | 'people' | 'environment' | 'about') => `/settings/${page}`,
  signIn: (next?: string) => withQuery('/sign-in', { next }),
} as const
