/**
 * The included resolver: ids to hosts from a file, a flag, patterns of names, or the ids themselves
 * (docs/design/http.md#resolver). Where ids say nothing about hosts, the operator provides one that knows the machines.
 */

import { type Clock, parseId, suggestion, VacancyError } from '@vacancy/shared'
import { type ResolvedAddress, readResolverAnswer } from '@vacancy/shared/contract'
import {
  type ConfigView,
  createReadiness,
  type HttpAnswer,
  HttpError,
  json,
  type Log,
  METRICS_CONTENT_TYPE,
  readText,
  readYamlKeys,
  registerMetrics,
  text,
  watchFiles,
} from '@vacancy/shared/node'
import { createDoor } from './access.ts'
import { configRoute } from './config-page.ts'
import { createListener, open, probed } from './http.ts'
import { RESOLVER_METRICS } from './metrics.ts'

/** How long callers may cache a reply. */
const MAX_AGE_SECONDS = 5

const KINDS = ['nodes', 'bridges', 'routers'] as const
type Kind = (typeof KINDS)[number]

/** Addresses by id; nodes by shard and id. */
export type ResolverTable = { readonly [kind in Kind]: ReadonlyMap<string, ResolvedAddress> } & {
  /** Serves all three. */
  readonly any: ReadonlyMap<string, ResolvedAddress>
  /** Hosts of ids without an entry: `{id}` is replaced, and in that of nodes `{shard}`. */
  readonly patterns: { readonly [kind in Kind]?: string }
}

const EMPTY_TABLE: ResolverTable = {
  nodes: new Map(),
  bridges: new Map(),
  routers: new Map(),
  any: new Map(),
  patterns: {},
}

const nodeKey = (shard: string, node: string) => `${shard}/${node}`

/**
 * Parses a table: `shards` (shard → node → host), `bridges` and `routers` (id → host), `patterns` (nodes, bridges or
 * routers → host with placeholders). A host may have a port, and without placeholders may be a mapping of `hostname`,
 * `port`, `api_port` and `quic_port`.
 *
 * @throws VacancyError invalid_config, one line per error
 */
export function parseTable(source: string, file: string): Omit<ResolverTable, 'any'> {
  const faults: string[] = []
  const table = { nodes: new Map(), bridges: new Map(), routers: new Map() } as {
    readonly [kind in Kind]: Map<string, ResolvedAddress>
  }
  const patterns: { [kind in Kind]?: string } = {}
  for (const { key, line, value } of readYamlKeys(source, file, faults)) {
    const at = `${file}:${line}: ${key}`
    if (key === 'shards') {
      for (const [shard, nodes] of entriesOf(value, at, faults)) {
        for (const [node, host] of entriesOf(nodes, `${at}: ${shard}`, faults)) {
          put(table.nodes, nodeKey(shard, node), host, `${at}: ${shard}: ${node}`, faults)
        }
      }
    } else if (key === 'bridges' || key === 'routers') {
      for (const [id, host] of entriesOf(value, at, faults)) put(table[key], id, host, `${at}: ${id}`, faults)
    } else if (key === 'patterns') {
      for (const [name, pattern] of entriesOf(value, at, faults)) {
        const kind = KINDS.find((each) => each === name)
        if (kind === undefined) faults.push(`${at}: ${name}: there are ${KINDS.join(', ')}${suggestion(name, KINDS)}`)
        else if (isPattern(kind, pattern)) patterns[kind] = pattern
        else
          faults.push(`${at}: ${kind}: must be a host with {id}${kind === 'nodes' ? ', which may have {shard}' : ''}`)
      }
    } else {
      faults.push(`${at}: the file has shards, bridges, routers and patterns`)
    }
  }
  if (faults.length > 0) throw new VacancyError('invalid_config', { reason: faults.join('\n') })
  return { ...table, patterns }
}

function isPattern(kind: Kind, pattern: unknown): pattern is string {
  if (typeof pattern !== 'string' || !pattern.includes('{id}')) return false
  return filled(pattern, kind === 'nodes' ? { id: 'x', shard: 'x' } : { id: 'x' }) !== undefined
}

/** The host of an id by a pattern; undefined when that is none. */
function filled(pattern: string, values: { readonly [name: string]: string }): ResolvedAddress | undefined {
  // What is no id could end the name before the rest of the pattern.
  if (Object.values(values).some((value) => parseId(value) === undefined)) return undefined
  return readResolverAnswer(
    '',
    pattern.replace(/\{(\w+)\}/g, (placeholder, name) => values[name] ?? placeholder),
  )
}

function entriesOf(value: unknown, at: string, faults: string[]): [string, unknown][] {
  if (value === null) return []
  if (typeof value === 'object' && !Array.isArray(value)) return Object.entries(value as object)
  faults.push(`${at}: must be a mapping of ids`)
  return []
}

function put(table: Map<string, ResolvedAddress>, id: string, host: unknown, at: string, faults: string[]): void {
  const address = readResolverAnswer('application/json', JSON.stringify(host))
  if (address) table.set(id, address)
  else faults.push(`${at}: must be host, host:port, or a mapping of hostname, port, api_port and quic_port`)
}

/**
 * Parses `id=host` pairs.
 *
 * @throws VacancyError usage_error naming the pair
 */
export function parseMap(pairs: readonly string[]): ReadonlyMap<string, ResolvedAddress> {
  return new Map(
    pairs.map((pair) => {
      const equals = pair.indexOf('=')
      const address = equals > 0 ? readResolverAnswer('', pair.slice(equals + 1)) : undefined
      if (address) return [pair.slice(0, equals), address]
      throw new VacancyError('usage_error', { reason: `--map: ${pair} is not id=host or id=host:port` })
    }),
  )
}

export type ResolverOptions = {
  readonly host: string
  readonly port: number
  readonly file: string | undefined
  readonly map: ReadonlyMap<string, ResolvedAddress>
  readonly echoes: boolean
  readonly format: 'text' | 'json'
  readonly version: string
  /** For `/config`. */
  readonly config: ConfigView
  readonly clock: Clock
  readonly log: Log
  /** Requests still in progress this long after the stop are cut off. */
  readonly drainMs: number
  readonly lookMs?: number
}

export type RunningResolver = {
  readonly port: number
  /** Reloads the file; throws invalid_config and keeps the old table. */
  readonly reload: () => void
  readonly stop: () => Promise<void>
}

/**
 * Starts the resolver.
 *
 * @throws VacancyError port_taken, invalid_config
 */
export async function startResolver(options: ResolverOptions): Promise<RunningResolver> {
  const { file, log } = options
  const read = (): ResolverTable =>
    file === undefined
      ? { ...EMPTY_TABLE, any: options.map }
      : { ...parseTable(readText(file, 'invalid_config'), file), any: options.map }
  let table = read()
  const reload = () => {
    table = read()
    log.info({ file, entries: sizeOf(table) }, 'table read again')
  }
  const metrics = registerMetrics(RESOLVER_METRICS, { process: true })
  metrics.onCollect(() => {
    for (const kind of [...KINDS, 'any'] as const) metrics.of.resolver_entries.set({ kind }, table[kind].size)
  })
  const readiness = createReadiness(options.clock)
  const find = (kind: Kind, id: string, shard?: string): HttpAnswer => {
    const pattern = table.patterns[kind]
    const address =
      table.any.get(id) ??
      table[kind].get(shard === undefined ? id : nodeKey(shard, id)) ??
      (pattern && filled(pattern, shard === undefined ? { id } : { id, shard }))
    if (address) return found(options.format, address)
    if (options.echoes) return found(options.format, { host: id })
    throw new HttpError(404, 'unknown id')
  }
  const healthy = () => json(200, { status: 'ok' })
  const listener = createListener({
    routes: [
      open('/shards/{shard}/nodes/{node}', ({ path }) =>
        find('nodes', path['node'] as string, path['shard'] as string),
      ),
      open('/bridges/{id}', ({ path }) => find('bridges', path['id'] as string)),
      open('/routers/{id}', ({ path }) => find('routers', path['id'] as string)),
      probed('/health', healthy),
      // Existing set-ups use only this path of the development resolver.
      probed('/health', healthy, 'POST'),
      probed('/healthz', () => text(200, 'OK')),
      probed('/ready', () => {
        const ready = readiness.read()
        return json(ready.ready ? 200 : 503, ready)
      }),
      open('/', () => json(200, viewOf(table))),
      // Without tokens, only callers on the same machine are admitted.
      configRoute(createDoor({ tokens: () => undefined, publicRead: true, clock: options.clock }), options.config),
      probed('/metrics', async () => ({
        status: 200,
        headers: { 'Content-Type': METRICS_CONTENT_TYPE },
        body: await metrics.text(),
      })),
    ],
    tls: undefined,
    serverName: `vacancy/${options.version}`,
    log,
    host: options.host,
    port: options.port,
    onAnswer: (endpoint, status) =>
      metrics.of.resolver_requests_total.inc({ endpoint: endpoint || 'none', status: String(status) }),
  })
  const port = await listener.listening
  log.warn({}, 'this resolver requires no token: let only components of the platform reach it')
  const unwatch = watchFiles(
    file === undefined ? [] : [file],
    () => {
      try {
        reload()
      } catch (error) {
        metrics.of.resolver_file_errors_total.inc()
        throw error
      }
    },
    { log, message: 'the table changed but cannot be used; the old one stays' },
    options.lookMs,
  )
  return {
    port,
    reload,
    async stop() {
      readiness.set('stopping', 'The resolver is shutting down.')
      unwatch()
      await listener.close(options.drainMs)
    },
  }
}

function sizeOf({ nodes, bridges, routers, any }: ResolverTable): number {
  return nodes.size + bridges.size + routers.size + any.size
}

function found(format: ResolverOptions['format'], address: ResolvedAddress): HttpAnswer {
  const headers = { 'Cache-Control': `max-age=${MAX_AGE_SECONDS}` }
  return format === 'json' ? json(200, objectOf(address), headers) : text(200, textOf(address), headers)
}

function objectOf({ host, port, apiPort, quicPort }: ResolvedAddress) {
  return {
    hostname: host,
    ...(port !== undefined && { port }),
    ...(apiPort !== undefined && { api_port: apiPort }),
    ...(quicPort !== undefined && { quic_port: quicPort }),
  }
}

function textOf({ host, port }: ResolvedAddress): string {
  if (port === undefined) return host
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/** The table as a document; nodes by `shard/node`. */
function viewOf(table: ResolverTable) {
  const view = (entries: ReadonlyMap<string, ResolvedAddress>) =>
    Object.fromEntries([...entries].map(([id, address]) => [id, textOf(address)]))
  return {
    nodes: view(table.nodes),
    bridges: view(table.bridges),
    routers: view(table.routers),
    any: view(table.any),
    patterns: table.patterns,
  }
}
