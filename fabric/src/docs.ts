/**
 * Generates the reference pages of the fabric from their tables: `npm run docs`. A test fails when a committed page
 * is outdated.
 */

import { REGISTRY_LIMITS } from '@vacancy/shared/contract'
import {
  configTable,
  type Flag,
  type Flags,
  limitsTable,
  type MetricsTable,
  metricsTable,
  shortRangeOf,
  variableOf,
} from '@vacancy/shared/node'
import { BRIDGE_FLAGS } from './bridge/config.ts'
import { BRIDGE_METRICS } from './bridge/metrics.ts'
import { COMPONENTS, REGISTRY_FLAGS, RESOLVER_FLAGS } from './config.ts'
import { REGISTRY_METRICS, RESOLVER_METRICS } from './metrics.ts'
import { PROXY_FLAGS, PROXY_SCHEMA } from './proxy/config.ts'
import { PROXY_METRICS } from './proxy/metrics.ts'
import { ROUTER_FLAGS } from './router/config.ts'
import { ROUTER_METRICS } from './router/metrics.ts'

/** Every generated page by its file name. */
export function pages(): { readonly [file: string]: string } {
  return {
    'fabric-config.md': page(
      'Flags of the fabric',
      'the tables of flags in `fabric/src`',
      `Each flag is also an environment variable with the prefix of its program: ${PREFIXES}. A flag overrides its variable. Unknown variables that begin with \`VACANCY_\` are named in the log, and so are those that a platform makes from the name of a service, such as \`VACANCY_REGISTRY_PORT=tcp://…\`: they are ignored. An invalid value or an unknown flag ends the start with exit code 64. \`--help\` and \`--version\` print and exit.`,
      '## Flags of several programs',
      sharedFlagsTable(),
      ...Object.entries(PROGRAMS).flatMap(([name, flags]) => [`## vacancy ${name}`, flagsTable(ownFlags(flags))]),
      'Each key below is a flag with `-` for `_`, too, and a key of the configuration file. A flag overrides its variable, which overrides the file. An unknown key ends the start.',
      configTable(PROXY_SCHEMA),
      '## Limits of the registry',
      'No flag changes them. A request beyond one is refused.',
      limitsTable(REGISTRY_LIMITS, LIMIT_MEANINGS),
    ),
    'fabric-metrics.md': page(
      'Metrics of the fabric',
      'the tables of metrics in `fabric/src`',
      '`GET /metrics` responds in the Prometheus text format 0.0.4, with the `process_*` and `nodejs_*` metrics of prom-client besides these.',
      '## vacancy registry',
      metricsTable(REGISTRY_METRICS),
      '## vacancy resolver',
      metricsTable(RESOLVER_METRICS),
      '## vacancy router and vacancy bridge',
      'Both have these, `router_` and `bridge_` in front. The hops of a bridge are the nodes of its shard.',
      metricsTable(sharedMetrics()),
      '## vacancy router',
      metricsTable(ownMetrics(ROUTER_METRICS)),
      '## vacancy bridge',
      metricsTable(ownMetrics(BRIDGE_METRICS)),
      '## vacancy proxy',
      metricsTable(PROXY_METRICS),
    ),
  }
}

const LIMIT_MEANINGS: { readonly [name in keyof typeof REGISTRY_LIMITS]: string } = {
  bodyBytesMax: 'Bytes of a request body.',
  segmentsBodyBytesMax: 'Bytes of a request body that is a segment list.',
  segmentsPerPushMax: 'Segments in one list.',
  componentsMax: 'Registered routers, bridges and nodes.',
  datasetsMax: 'Versioned lists: three per zone, two per shard.',
  claimsMax: 'Segments claimed or reserved by all shards together. Each claim counts.',
  reservationsMax: 'Segments routed to a shard that does not have them yet.',
  segmentCountsMax: 'Segments whose properties one leader counts in a heartbeat.',
  segmentCountsKeptMax: 'The same of all leaders together.',
  waitSecondsMax: 'Seconds that `GET /versions` waits for a change.',
  waitersMax: 'Requests that wait at the same time. Further ones are answered immediately.',
}

function page(title: string, source: string, ...blocks: readonly string[]): string {
  const made = `<!-- Generated from ${source} by \`npm run docs\`. Change it there. -->`
  return `${[`# ${title}`, made, ...blocks.map((block) => block.trimEnd())].join('\n\n')}\n`
}

const PROGRAMS: { readonly [name: string]: Flags } = {
  registry: REGISTRY_FLAGS,
  resolver: RESOLVER_FLAGS,
  bridge: BRIDGE_FLAGS,
  router: ROUTER_FLAGS,
  proxy: PROXY_FLAGS,
}

const PREFIXES = Object.entries(COMPONENTS)
  .map(([program, component]) => `\`${variableOf(component, '')}…\` of \`vacancy ${program}\``)
  .join(', ')

/** Programs that have a flag with the same row, by that row. */
function programsByRow(): Map<string, string[]> {
  const programs = new Map<string, string[]>()
  for (const [program, flags] of Object.entries(PROGRAMS))
    for (const entry of Object.entries(flags)) {
      const row = flagRow(entry)
      programs.set(row, [...(programs.get(row) ?? []), program])
    }
  return programs
}

/** Flags of which no other program has an equal one. */
function ownFlags(flags: Flags): Flags {
  const programs = programsByRow()
  return Object.fromEntries(Object.entries(flags).filter((entry) => programs.get(flagRow(entry))?.length === 1))
}

function sharedFlagsTable(): string {
  const rows = [...programsByRow()].filter(([, programs]) => programs.length > 1)
  return [
    '| Flag | Default | Values | Description | Programs |',
    '|---|---|---|---|---|',
    ...rows.map(([row, programs]) => `${row} ${programs.length === 5 ? 'all' : programs.join(', ')} |`),
  ].join('\n')
}

/** Names without the prefix of their program of the metrics that routers and bridges have. */
const SHARED_METRICS = Object.keys(ROUTER_METRICS)
  .filter((name) => name.startsWith('router_') && Object.hasOwn(BRIDGE_METRICS, name.replace('router_', 'bridge_')))
  .map((name) => name.replace('router_', ''))

function sharedMetrics(): MetricsTable {
  const rows = SHARED_METRICS.map((name) => [name, (ROUTER_METRICS as MetricsTable)[`router_${name}`]])
  return Object.fromEntries(rows)
}

function ownMetrics(metrics: MetricsTable): MetricsTable {
  const rows = Object.entries(metrics).filter(
    ([name]) => !SHARED_METRICS.includes(name.replace(/^(?:router|bridge)_/, '')),
  )
  return Object.fromEntries(rows)
}

function flagsTable(flags: Flags): string {
  const rows = Object.entries(flags).map(flagRow)
  return ['| Flag | Default | Values | Description |', '|---|---|---|---|', ...rows].join('\n')
}

function flagRow([name, flag]: readonly [string, Flag]): string {
  const standard = flag.type === 'boolean' ? 'off' : flag.default === undefined ? '' : `\`${flag.default}\``
  const range = flag.type === 'list' ? 'list, with commas' : flag.type === 'boolean' ? '' : shortRangeOf(flag)
  return `| \`--${name}\` | ${standard} | ${range} | ${flag.summary} |`
}
