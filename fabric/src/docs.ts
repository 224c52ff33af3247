/**
 * Generates the reference pages of the fabric from their tables: `npm run docs`. A test fails when a committed page
 * is outdated.
 */

import { REGISTRY_LIMITS } from '@vacancy/shared/contract'
import { configTable, type Flag, type Flags, limitsTable, metricsTable, shortRangeOf } from '@vacancy/shared/node'
import { BRIDGE_FLAGS } from './bridge/config.ts'
import { BRIDGE_METRICS } from './bridge/metrics.ts'
import { REGISTRY_FLAGS, RESOLVER_FLAGS } from './config.ts'
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
      'Each flag is also an environment variable, such as `VACANCY_REGISTRY_STATE_FILE` or `VACANCY_RESOLVER_MAP`; a flag overrides its variable. An invalid value or an unknown flag ends the start with exit code 64. `--help` and `--version` print and exit.',
      '## vacancy registry',
      flagsTable(REGISTRY_FLAGS),
      '## vacancy resolver',
      flagsTable(RESOLVER_FLAGS),
      '## vacancy bridge',
      flagsTable(BRIDGE_FLAGS),
      '## vacancy router',
      flagsTable(ROUTER_FLAGS),
      '## vacancy proxy',
      flagsTable(PROXY_FLAGS),
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
      '## vacancy bridge',
      metricsTable(BRIDGE_METRICS),
      '## vacancy router',
      metricsTable(ROUTER_METRICS),
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

function flagsTable(flags: Flags): string {
  const rows = Object.entries<Flag>(flags).map(([name, flag]) => {
    const standard = flag.type === 'boolean' ? 'off' : flag.default === undefined ? '–' : `\`${flag.default}\``
    const range = flag.type === 'list' ? 'list, with commas' : flag.type === 'boolean' ? '' : shortRangeOf(flag)
    return `| \`--${name}\` | ${standard} | ${range} | ${flag.summary} |`
  })
  return ['| Flag | Default | Values | Description |', '|---|---|---|---|', ...rows].join('\n')
}
