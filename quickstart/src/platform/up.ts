/** What `vacancy quickstart up` starts, and how it shows that it works. */

import { resolve } from 'node:path'
import { count } from '@vacancy/shared/node'
import { TYPED } from '../launch.ts'
import { ask } from './ask.ts'
import { type PlatformFiles, type Sample, writeQueries } from './files.ts'
import { includes, nodesOf, ofKind, type Plan, planOf, publicAddress, type Spec, shardName, shardsOf } from './plan.ts'
import { type Platform, step, within } from './platform.ts'
import { type SampleQuery, sampleQueries } from './queries.ts'
import { querySample } from './sample.ts'
import { type Start, startAndStay } from './start.ts'

/** Young objects of a process take 2 MiB instead of 16: more than a dozen of them share this machine. */
const NODE_OPTIONS = '--max-semi-space-size=2'
/** Of each shard and night on sale. */
const PACKAGES = 160

/** Six nodes on one machine: small ones. */
export const PLATFORM_CONFIG = `# Configuration of the nodes of a quick start. docs/config.md has every key.
# Ports and data_dir are flags of the nodes.
serving_threads: 1
# The times of elections and heartbeats are the default ones; fewer ticks need less CPU time.
raft_tick_ms: 90
raft_election_tick: 20
raft_heartbeat_tick: 5
memory_max_bytes: 67108864
session_table_bytes: 1048576
wal_file_bytes: 4194304
`

export type UpFlags = Pick<Start, 'dir' | 'settings' | 'consolePort' | 'orderSeed'> & {
  readonly spec: Spec
  readonly days: number
  readonly seed: number
}

export function sampleOf({ spec, days, seed }: Pick<UpFlags, 'spec' | 'days' | 'seed'>): Sample {
  return { packages: spec.shards * days * PACKAGES, days, seed }
}

export async function up(flags: UpFlags): Promise<void> {
  const { spec } = flags
  let queries: readonly SampleQuery[] = []
  await startAndStay({
    ...flags,
    sample: sampleOf(flags),
    config: PLATFORM_CONFIG,
    planOf: (_, isOneAddress) => planOf({ ...spec, isOneAddress: spec.isOneAddress || isOneAddress }),
    hasJobs: true,
    nodeOptions: NODE_OPTIONS,
    onDay: async ({ plan, files }, day) => {
      queries = await writeSampleQueries(plan, files, day)
    },
    show: async (platform) => {
      await firstQuery(platform, queries)
      return nextSteps(platform)
    },
  })
}

export async function writeSampleQueries(
  plan: Plan,
  files: PlatformFiles,
  day: number,
): Promise<readonly SampleQuery[]> {
  const queries = sampleQueries(await querySample(files, shardsOf(plan)), day)
  const [proxy] = includes(plan.spec.level, 'full') ? ofKind(plan, 'proxy') : []
  writeQueries(files, queries, proxy ? `http://localhost:${publicAddress(proxy).port}` : 'a proxy')
  return queries
}

/** All segments are known, and a search is answered. */
async function firstQuery({ plan, stopping }: Platform, queries: readonly SampleQuery[]): Promise<void> {
  const segments = queries.find(({ query }) => query.command === 'GETSEGMENTS')
  const search = queries.find(({ query }) => query.command === 'SEARCHAVAIL')
  if (segments === undefined || search === undefined) throw new Error('the sample has both queries')
  await step('first query', async () => {
    await within(stopping, async () => {
      const missing = segments.check(await ask(plan, segments.query))
      return missing === '' ? [] : [`${segments.name}: ${missing}`]
    })
    let found = 0
    await within(stopping, async () => {
      const { status, body } = await ask(plan, search.query)
      found = (body as { properties?: unknown[] }).properties?.length ?? 0
      return status === 200 ? [] : [`${search.name}: ${JSON.stringify(body)}`]
    })
    return `${segments.states}; ${search.name} found ${count(found, 'property', 'properties')}`
  })
}

function nextSteps({ plan, files }: Platform): (readonly [string, string])[] {
  const { dir } = files
  const command = (text: string) => `${TYPED} quickstart ${text} --dir ${dir}`
  const addresses = plan.components
    .filter(
      ({ kind, name }) =>
        kind === 'registry' || kind === 'edge-router' || name === nodesOf(plan, shardName(0))[0]?.name,
    )
    .map((each) => `${each.name} ${publicAddress(each).host}:${publicAddress(each).port}`)
  const [proxy] = ofKind(plan, 'proxy')
  const [bridge] = ofKind(plan, 'bridge')
  return [
    ['Addresses', `${addresses.join(', ')}; all: ${command('status')}`],
    ...(proxy
      ? [
          [
            'HTTP',
            `curl -s -d @${files.queries}/03-search.json http://localhost:${publicAddress(proxy).port}/api`,
          ] as const,
        ]
      : []),
    ['Query', command('query')],
    ...(bridge ? [['Kill', `${command(`kill ${bridge.name}`)}, then restart`] as const] : []),
    ['Files', `${resolve(dir)}: queries, logs, data, tokens`],
    ['Stop', 'Ctrl-C keeps the data; vacancy quickstart down removes it'],
  ]
}
