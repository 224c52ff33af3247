/** What a client is told when it connects: every option with its default, checked once. */

import type { ConnectionOptions } from 'node:tls'
import { badArgument } from './errors.ts'

export type ClientOptions = {
  /** Name or address of the node, or of the router with `envelope: 'router'`. Default 127.0.0.1. */
  readonly host?: string
  /** Default 7777. */
  readonly port?: number
  /** Sent with LOGIN when given. Nodes with an auth file may require it. */
  readonly token?: string
  /** `true`, or Node's own TLS options (`ca`, `cert`, `key`, `servername`). Default: plain TCP. */
  readonly tls?: boolean | ConnectionOptions
  /** Sockets to the node. Writes keep the order of their calls on one socket only. Default 1. */
  readonly connections?: number
  /** Milliseconds a call may take, repeats included. Default 2000. */
  readonly deadlineMs?: number
  /** Milliseconds within which `connect` must have a connection, and each later attempt at one. Default 5000. */
  readonly connectDeadlineMs?: number
  /** Requests on their way at once, a socket. Default 1024. */
  readonly maxInFlight?: number
  /** Calls that may wait for their turn beyond those; more are refused with `backpressure`. Default 10000. */
  readonly maxQueued?: number
  /** Send a request key with every write, so that it can be repeated. Off for servers that refuse it. Default true. */
  readonly requestKeys?: boolean
  /** `router`: frames travel in envelopes that name their segment. Default: bare frames, as a node takes them. */
  readonly envelope?: 'router'
}

export type Settings = {
  readonly host: string
  readonly port: number
  readonly token: string | undefined
  readonly tls: ConnectionOptions | undefined
  readonly connections: number
  readonly deadlineMs: number
  readonly connectDeadlineMs: number
  readonly maxInFlight: number
  readonly maxQueued: number
  readonly requestKeys: boolean
  readonly isRouter: boolean
}

const CONNECTIONS_MAX = 1024
/** Timers of Node go no further: 24.8 days. */
export const DEADLINE_MS_MAX = 2 ** 31 - 1
const IN_FLIGHT_MAX = 1_000_000
const QUEUED_MAX = 10_000_000
const PORT_MAX = 65_535

/** @throws VacancyRequestError that names the option */
export function checkOptions(options: ClientOptions): Settings {
  const { host = '127.0.0.1', port = 7777, token, tls = false, envelope, requestKeys = true } = options
  if (typeof host !== 'string' || host === '') throw badArgument(undefined, 'host must be a name or an address')
  if (token !== undefined && (typeof token !== 'string' || token === '')) {
    throw badArgument(undefined, 'token must be text and not empty')
  }
  if (envelope !== undefined && envelope !== 'router')
    throw badArgument(undefined, "envelope must be 'router' or absent")
  if (envelope === 'router' && token !== undefined) throw badArgument(undefined, 'a router takes no token')
  return {
    host,
    port: wholeNumber('port', port, PORT_MAX),
    token,
    tls: tls === true ? {} : tls || undefined,
    connections: wholeNumber('connections', options.connections ?? 1, CONNECTIONS_MAX),
    deadlineMs: wholeNumber('deadlineMs', options.deadlineMs ?? 2000, DEADLINE_MS_MAX),
    connectDeadlineMs: wholeNumber('connectDeadlineMs', options.connectDeadlineMs ?? 5000, DEADLINE_MS_MAX),
    maxInFlight: wholeNumber('maxInFlight', options.maxInFlight ?? 1024, IN_FLIGHT_MAX),
    maxQueued: wholeNumber('maxQueued', options.maxQueued ?? 10_000, QUEUED_MAX),
    requestKeys,
    isRouter: envelope === 'router',
  }
}

export function wholeNumber(name: string, value: unknown, max: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= max) return value
  throw badArgument(undefined, `${name} must be a whole number, 1 to ${max}, got ${String(value)}`)
}
