/** Options of `connect`: every option with its default, validated once. */

import type { ConnectionOptions } from 'node:tls'
import { unknownName } from '@vacancy/shared'
import type { Address } from './connection.ts'
import { badArgument } from './errors.ts'
import type { ReadsFrom } from './topology.ts'

/** The address of a node of a shard. */
export type NodeAddress = {
  readonly host: string
  /** Default 7777. */
  readonly port?: number
  /** Base URL of its HTTP API, such as `http://10.0.0.1:8080`, also used to find the leader. */
  readonly api?: string
}

/** The address of an edge router. */
export type RouterAddress = {
  readonly host: string
  /** Default 9000. */
  readonly port?: number
}

export type ClientOptions = {
  /**
   * Edge routers, as `host`, `host:port` or an object, instead of `host` and `port`. Each socket stays with the router
   * that answers and goes to the next one when it is lost.
   */
  readonly routers?: readonly (string | RouterAddress)[]
  /**
   * Nodes of one shard, as `host`, `host:port` or with the address of their API, instead of `host` and `port`. List
   * all of them: there is no discovery of further nodes.
   */
  readonly nodes?: readonly (string | NodeAddress)[]
  /**
   * Which nodes of a shard serve reads: the nodes that do not lead while there are any (default), any node, or the
   * leader.
   */
  readonly reads?: ReadsFrom
  /** Reads see every earlier acknowledged write of this client, on any node. Default false. */
  readonly readYourWrites?: boolean
  /** Name or address of the node, or of the router with `envelope: 'router'`. Default 127.0.0.1. */
  readonly host?: string
  /** Default 7777, of a router 9000. */
  readonly port?: number
  /** Sent with LOGIN if given. Nodes and edge routers with an auth file may require it. */
  readonly token?: string
  /** `true`, or Node's own TLS options (`ca`, `cert`, `key`, `servername`). Default: plain TCP. */
  readonly tls?: boolean | ConnectionOptions
  /** Sockets to the node. Writes keep call order only on a single socket. Default 1. */
  readonly connections?: number
  /** Deadline of a call in milliseconds, retries included. Default 2000. */
  readonly deadlineMs?: number
  /** Milliseconds within which `connect`, and each reconnect, must have a connection. Default 5000. */
  readonly connectDeadlineMs?: number
  /** Maximum requests in flight per socket. Default 1024. */
  readonly maxInFlight?: number
  /** Calls that may be queued beyond those; further ones are refused with `backpressure`. Default 10000. */
  readonly maxQueued?: number
  /**
   * Send a request key with every write, so that it can be retried. Disable it for servers that refuse it. Default
   * true.
   */
  readonly requestKeys?: boolean
  /**
   * Retry refused and interrupted calls, and failed connections, within the deadlines. Disable it for tools that report
   * the first failure. Default true.
   */
  readonly retry?: boolean
  /**
   * `router`: frames are sent in envelopes that name their segment. Implied by `routers`. Default: bare frames, as a
   * node expects.
   */
  readonly envelope?: 'router'
}

export type Settings = {
  /** A single node, the nodes of a shard, or routers of which one is enough. */
  readonly nodes: readonly { readonly address: Address; readonly api: string | undefined }[]
  readonly isShard: boolean
  readonly reads: ReadsFrom
  readonly readYourWrites: boolean
  readonly token: string | undefined
  readonly tls: ConnectionOptions | undefined
  readonly connections: number
  readonly deadlineMs: number
  readonly connectDeadlineMs: number
  readonly maxInFlight: number
  readonly maxQueued: number
  readonly requestKeys: boolean
  readonly retry: boolean
  readonly isRouter: boolean
}

const CONNECTIONS_MAX = 1024
/** The limit of Node's timers: 24.8 days. */
export const DEADLINE_MS_MAX = 2 ** 31 - 1
const IN_FLIGHT_MAX = 1_000_000
const QUEUED_MAX = 10_000_000
const PORT_MAX = 65_535
const PORT = 7777
const ROUTER_PORT = 9000
/** Voters and learners of a shard, with a margin. */
const NODES_MAX = 32
const READS_FROM: readonly ReadsFrom[] = ['followers', 'any', 'leader']

const OPTIONS: { readonly [name in keyof Required<ClientOptions>]: true } = {
  ...{ routers: true, nodes: true, reads: true, readYourWrites: true, host: true, port: true, token: true, tls: true },
  ...{ connections: true, deadlineMs: true, connectDeadlineMs: true, maxInFlight: true, maxQueued: true },
  ...{ requestKeys: true, retry: true, envelope: true },
}
const OPTION_NAMES = Object.keys(OPTIONS)
const ADDRESS_NAMES: readonly (keyof NodeAddress)[] = ['host', 'port', 'api']

/** What is wrong with the name of an option; '' if nothing. */
export function optionFault(options: object, known: readonly string[]): string {
  for (const name in options) if (!known.includes(name)) return `the option ${unknownName(name, known)}`
  return ''
}

/** @throws VacancyRequestError that names the option */
export function checkOptions(options: ClientOptions): Settings {
  if (typeof options !== 'object' || options === null)
    throw badArgument(undefined, "connect takes options, such as { nodes: ['10.0.0.1:7777'] }")
  const fault = optionFault(options, OPTION_NAMES)
  if (fault !== '') throw badArgument(undefined, fault)
  const { token, tls = false, envelope, requestKeys = true, retry = true } = options
  const { reads = 'followers', readYourWrites = false } = options
  if (token !== undefined && (typeof token !== 'string' || token === '')) {
    throw badArgument(undefined, 'token must be text and not empty')
  }
  if (envelope !== undefined && envelope !== 'router')
    throw badArgument(undefined, "envelope must be 'router' or absent")
  const isRouter = envelope === 'router' || options.routers !== undefined
  if (isRouter && options.nodes) throw badArgument(undefined, 'nodes cannot be combined with routers')
  if (!READS_FROM.includes(reads)) throw badArgument(undefined, `reads must be one of ${READS_FROM.join(', ')}`)
  return {
    nodes: nodesOf(options, isRouter),
    isShard: options.nodes !== undefined,
    reads,
    readYourWrites,
    token,
    tls: tls === true ? {} : tls || undefined,
    connections: wholeNumber('connections', options.connections ?? 1, CONNECTIONS_MAX),
    deadlineMs: wholeNumber('deadlineMs', options.deadlineMs ?? 2000, DEADLINE_MS_MAX),
    connectDeadlineMs: wholeNumber('connectDeadlineMs', options.connectDeadlineMs ?? 5000, DEADLINE_MS_MAX),
    maxInFlight: wholeNumber('maxInFlight', options.maxInFlight ?? 1024, IN_FLIGHT_MAX),
    maxQueued: wholeNumber('maxQueued', options.maxQueued ?? 10_000, QUEUED_MAX),
    requestKeys,
    retry,
    isRouter,
  }
}

function nodesOf({ nodes, routers, host, port }: ClientOptions, isRouter: boolean): Settings['nodes'] {
  const usual = isRouter ? ROUTER_PORT : PORT
  const [name, listed] = nodes === undefined ? (['routers', routers] as const) : (['nodes', nodes] as const)
  if (listed === undefined) return [nodeOf({ host: host ?? '127.0.0.1', port: port ?? usual }, usual)]
  if (host !== undefined || port !== undefined) throw badArgument(undefined, `give ${name}, or host and port`)
  if (!Array.isArray(listed) || listed.length === 0 || listed.length > NODES_MAX) {
    throw badArgument(undefined, `${name} must list 1 to ${NODES_MAX} addresses`)
  }
  const found = listed.map((each: string | NodeAddress) =>
    nodeOf(typeof each === 'string' ? parseNode(name, each) : each, usual),
  )
  const different = new Set(found.map(({ address }) => `${address.host} ${address.port}`))
  if (different.size < found.length) throw badArgument(undefined, `${name} must be different`)
  return found
}

/** `host`, `host:port`, `[::1]` or `[::1]:port`. */
function parseNode(option: string, text: string): NodeAddress {
  const { name, bare, port } = /^(?:\[(?<name>[^\]]+)\]|(?<bare>[^:[\]]+))(?::(?<port>\d+))?$/.exec(text)?.groups ?? {}
  const host = name ?? bare
  if (host === undefined)
    throw badArgument(undefined, `${option} must be given as host:port, got ${text.slice(0, 300)}`)
  return port === undefined ? { host } : { host, port: Number(port) }
}

function nodeOf(node: NodeAddress, usualPort: number): Settings['nodes'][number] {
  const { host, port, api } = node
  const fault = optionFault(node, ADDRESS_NAMES)
  if (fault !== '') throw badArgument(undefined, `of an address ${fault}`)
  if (typeof host !== 'string' || host === '') throw badArgument(undefined, 'host must be a name or an address')
  const isUrl = api === undefined || (URL.canParse(api) && /^https?:$/.test(new URL(api).protocol))
  if (!isUrl) throw badArgument(undefined, `api must be the address of an HTTP API, got ${String(api).slice(0, 300)}`)
  return { address: { host, port: wholeNumber('port', port ?? usualPort, PORT_MAX) }, api }
}

export function wholeNumber(name: string, value: unknown, max: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= max) return value
  throw badArgument(undefined, `${name} must be a whole number, 1 to ${max}, got ${String(value)}`)
}
