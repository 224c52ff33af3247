// What the chart in deploy/helm/vacancy has of the tables of the programs, made by `npm run docs`: the schema of its values,
// with each setting of each program, and the alerts.
import { alertFiles } from './alerts.mjs'
import { commandNamed, rowsOf } from './command-lines.mjs'

export const CHART = 'deploy/helm/vacancy'

/**
 * Flags that are no settings of the chart: those that it sets itself, names of files and addresses, the limit of memory, times
 * to stop, and what is for one start of one node.
 */
const NO_SETTING = [
  /(?:^|-)(?:port|file|path|dir|folder|ca|cert|key|addr|host|hosts|url)$/,
  /^(?:node|shard|zone|router|bridge)-id$/,
  /(?:^|-)(?:drain-secs|shutdown-grace-ms)$/,
  /^(?:config|mode|map|echo|registry|resolver|fabric|initial-voters|seed|memory-max-bytes)$/,
  /^(?:allow-anonymous|insecure-cluster|auth-enabled|require-login|http-enabled|https-enabled|upstream-.*)$/,
  /^(?:rejoin|accept-date|reset-state|accept-codec-change|seed-ids|discovery-.*)$/,
]

const text = (rules = {}) => ({ type: 'string', ...rules })
const choice = (...values) => ({ enum: values })
const count = (minimum, maximum) => ({ type: 'integer', minimum, maximum })
const anyOf = (...schemas) => ({ anyOf: schemas })
/** An object with these keys and no other. */
const only = (properties, rules = {}) => ({ type: 'object', additionalProperties: false, properties, ...rules })
const map = { type: 'object', additionalProperties: text() }
const yes = { type: 'boolean' }
const objects = { type: 'array', items: { type: 'object' } }

const NAME = text({ pattern: '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$' })
const BYTES = text({ pattern: '^[1-9][0-9]*(Mi|Gi|Ti)$' })
const REPLICAS = count(0, 100)
const BASE = {
  replicas: REPLICAS,
  cpu: anyOf({ type: 'number', exclusiveMinimum: 0 }, text({ pattern: '^[0-9]+m$' })),
  memory: BYTES,
}
const DISK = { disk: BYTES, storageClass: text() }
const LOGIN = { login: yes }
const POSTGRES = { postgres: yes }
const SERVICE = { service: only({ type: choice('ClusterIP', 'NodePort', 'LoadBalancer'), annotations: map }) }

/** Section of the values → its command, and its keys beside `settings`. */
export const SECTIONS = {
  node: [
    'vacancy run-clustered',
    { voters: choice(1, 3, 5, 7), learners: count(0, 16), cpu: count(1, 1_024), memory: BYTES, ...DISK },
  ],
  bridge: ['vacancy bridge', { ...BASE, ...DISK }],
  registry: ['vacancy registry', { ...BASE, ...DISK }],
  resolver: ['vacancy resolver', BASE],
  zoneRouter: ['vacancy router', { ...BASE, ...DISK }],
  edgeRouter: ['vacancy router', { ...BASE, ...DISK, ...LOGIN, ...SERVICE }],
  proxy: ['vacancy proxy', { ...BASE, ...LOGIN, tlsSecret: text(), ...SERVICE }],
  queue: ['vacancy queue serve', { ...BASE, ...DISK, ...POSTGRES, ...SERVICE }],
  controlPlane: [
    'vacancy control-plane',
    { ...BASE, replicas: count(0, 1), ...DISK, ...POSTGRES, url: text(), ...SERVICE },
  ],
}

function settingsOf(name) {
  const rows = Object.entries(rowsOf(commandNamed(name)))
  return rows.filter(([flag, { secret }]) => !secret && !NO_SETTING.some((rule) => rule.test(flag)))
}

function settingSchema({ type, min, max, choices }) {
  const schemas = {
    integer: {
      type: 'integer',
      ...(min !== undefined && { minimum: min }),
      ...(max !== undefined && { maximum: max }),
    },
    boolean: yes,
    choice: { enum: choices },
    list: { type: 'array', items: text({ minLength: 1 }) },
    text: text(),
  }
  return schemas[type]
}

function sectionSchema([command, keys]) {
  const settings = settingsOf(command).map(([flag, row]) => [flag, { description: row.summary, ...settingSchema(row) }])
  return only({ ...keys, settings: only(Object.fromEntries(settings)) })
}

// biome-ignore lint/suspicious/noThenProperty: a word of JSON Schema.
const isMode = (mode, then) => ({ if: { properties: { mode: { const: mode } } }, then: { properties: then } })

const SCHEMA = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  ...only(
    {
      // Helm adds it to the values of a chart that another one has.
      global: { type: 'object' },
      mode: choice('shard', 'platform'),
      image: only({
        repository: text({ minLength: 1 }),
        tag: text(),
        pullPolicy: choice('Always', 'IfNotPresent', 'Never'),
        pullSecrets: { type: 'array', items: NAME },
      }),
      platform: NAME,
      secret: NAME,
      zone: text(),
      zones: { type: 'array', items: NAME, uniqueItems: true },
      codecs: { type: 'array', items: text({ minLength: 1 }), maxItems: 24, uniqueItems: true },
      certificates: only({ secret: text(), shared: yes }),
      clusterDomain: text({ minLength: 1 }),
      listenAddress: choice('0.0.0.0', '::'),
      runAsUser: anyOf(count(1, 4_294_967_295), { type: 'null' }),
      spread: choice('required', 'preferred'),
      nodeSelector: map,
      tolerations: objects,
      priorityClassName: text(),
      networkPolicy: only({ enabled: yes, clients: objects, monitoring: objects }),
      monitoring: only({ enabled: yes, labels: map }),
      ...Object.fromEntries(Object.entries(SECTIONS).map(([name, section]) => [name, sectionSchema(section)])),
    },
    {
      required: ['mode', 'secret'],
      allOf: [
        isMode('shard', { zone: NAME, certificates: { properties: { secret: NAME } } }),
        isMode('platform', { zones: { minItems: 1 }, codecs: { minItems: 1 } }),
      ],
    },
  ),
}

/** Text of the files by their paths in the repository. */
export function helmFiles() {
  return {
    [`${CHART}/values.schema.json`]: `${JSON.stringify(SCHEMA, undefined, 2)}\n`,
    // Helm reads no file outside of a chart.
    [`${CHART}/alerts.yml`]: alertFiles()['deploy/observability/alerts.yml'],
  }
}
