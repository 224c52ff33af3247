/** Every page of the console, with its address in a running stack. */

import { JOBS_TOPIC } from './jobs.ts'
import type { Stack } from './stack.ts'

export type PageOf = { readonly name: string; readonly path: string }

export function pagesOf({ shard }: Pick<Stack, 'shard'>): PageOf[] {
  return [
    { name: 'overview', path: '/' },
    { name: 'topology', path: '/topology' },
    { name: 'shards', path: '/shards' },
    { name: 'shard', path: `/shards/${shard}` },
    { name: 'shard-segments', path: `/shards/${shard}/segments` },
    { name: 'segment', path: `/shards/${shard}/segments/dolomites?property=alp_000006` },
    {
      name: 'property',
      path: `/shards/${shard}/segments/dolomites/properties/alp_000006?metric=availability`,
    },
    { name: 'shard-stays', path: `/shards/${shard}/stays` },
    { name: 'shard-snapshots', path: `/shards/${shard}/snapshots` },
    { name: 'shard-events', path: `/shards/${shard}/events` },
    { name: 'shard-metrics', path: `/shards/${shard}/metrics` },
    { name: 'shard-config', path: `/shards/${shard}/config` },
    { name: 'node', path: `/shards/${shard}/nodes/n1` },
    { name: 'dashboard', path: '/dashboards/engine' },
    { name: 'dashboard-control-plane', path: '/dashboards/console' },
    { name: 'plan', path: `/shards/${shard}?plan=transfer:${shard}:n2` },
    { name: 'operations', path: '/operations' },
    { name: 'failures', path: '/failures' },
    { name: 'new-handover', path: '/operations/handovers/new?zone=zone-1' },
    { name: 'playground', path: '/playground' },
    { name: 'imports', path: '/imports' },
    { name: 'new-import', path: '/imports/new' },
    { name: 'snapshots', path: '/snapshots' },
    { name: 'golden', path: '/golden' },
    { name: 'queue', path: '/queue' },
    { name: 'queue-topic', path: `/queue/topics/${JOBS_TOPIC}` },
    { name: 'queue-dead', path: `/queue/topics/${JOBS_TOPIC}?state=dead&job=job-1` },
    { name: 'queue-charts', path: `/queue/topics/${JOBS_TOPIC}?state=charts` },
    { name: 'queue-tail', path: `/queue/topics/${JOBS_TOPIC}?state=tail` },
    { name: 'queue-config', path: `/queue/topics/${JOBS_TOPIC}?state=config` },
    { name: 'queue-job', path: `/queue/topics/${JOBS_TOPIC}/jobs/job-1` },
    { name: 'queue-consumers', path: '/queue/consumers' },
    { name: 'audit', path: '/audit' },
    { name: 'registry-services', path: '/registry/services' },
    { name: 'registry-datasets', path: '/registry/datasets' },
    { name: 'registry-codecs', path: '/registry/codecs' },
    { name: 'codec-editor', path: '/registry/codecs?change=list' },
    { name: 'registry-resolver', path: '/registry/resolver' },
    { name: 'profile', path: '/settings/profile' },
    { name: 'appearance', path: '/settings/appearance' },
    { name: 'tokens', path: '/settings/tokens' },
    { name: 'people', path: '/settings/people' },
    { name: 'environment', path: '/settings/environment' },
    { name: 'about', path: '/settings/about' },
    { name: 'not-found', path: `/shards/nothing-here` },
  ]
}
