/**
 * HTTP of the registry and of the resolver, for routers, bridges and nodes (docs/design/http.md#registry,
 * docs/design/http.md#resolver). Paths and fields of existing components are unchanged; everything else is an
 * extension that they ignore. Readers ignore unknown keys, so that later versions can add some.
 */

import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex } from '@noble/hashes/utils.js'
import { z } from 'zod'
import { LIMITS, RESERVED_SEGMENTS } from '../domain.ts'
import { ID_RULE, parseId } from '../ids.ts'
import { textFault } from '../text.ts'

export const REGISTRY_LIMITS = {
  bodyBytesMax: 65_536,
  /** A segment list is the only large body. */
  segmentsBodyBytesMax: 32 * 1024 * 1024,
  segmentsPerPushMax: 100_000,
  componentsMax: 100_000,
  /** Versioned lists: three per zone, two per shard. */
  datasetsMax: 400_000,
  /** Segments claimed or reserved by all shards together. Each claim counts. */
  claimsMax: 1_000_000,
  reservationsMax: 10_000,
  /** Entries of `segment_counts` that one leader may send, and that are kept in total. */
  segmentCountsMax: 1_000,
  segmentCountsKeptMax: 1_000_000,
  waitSecondsMax: 60,
  /** Concurrent waiting `GET /versions` requests. Further ones are answered immediately. */
  waitersMax: 10_000,
} as const

export const COMPONENT_KINDS = ['router', 'bridge', 'node'] as const
export type ComponentKind = (typeof COMPONENT_KINDS)[number]

const count = z.int().nonnegative()
const id = z.string().refine((text) => parseId(text) !== undefined, `must be ${ID_RULE}`)
const text = (bytesMax: number) => z.string().max(bytesMax)
const ids = z.array(z.string())

/** The rule for segment names: '' or what is wrong, to follow the name of the field. */
export function segmentFault(name: string): string {
  if (!name.isWellFormed()) return 'is not valid Unicode'
  const bytes = encoder.encode(name)
  const fault = textFault(bytes, 0, bytes.length, LIMITS.nameBytesMax)
  if (fault !== '') return fault
  return RESERVED_SEGMENTS.includes(name) ? 'is reserved' : ''
}

const encoder = new TextEncoder()

const segment = z.string().superRefine((name, context) => {
  const fault = segmentFault(name)
  if (fault !== '') context.addIssue({ code: 'custom', message: fault })
})

/** What a component may report with each heartbeat. Stored and displayed only. */
const componentDetails = z.object({
  /** Random, and different each time the process starts. */
  instance: text(128).optional(),
  version: text(64).optional(),
  role: z.enum(['leader', 'follower', 'learner']).optional(),
  term: count.optional(),
  leader_id: id.optional(),
  health: text(64).optional(),
  started_at: text(64).optional(),
  api_url: text(512).optional(),
  /** From a leader: properties by segment. */
  segment_counts: z
    .record(z.string().max(LIMITS.nameBytesMax), count)
    .refine((counts) => Object.keys(counts).length <= REGISTRY_LIMITS.segmentCountsMax, {
      message: `has more than ${REGISTRY_LIMITS.segmentCountsMax} segments`,
    })
    .optional(),
})
export type ComponentDetails = z.infer<typeof componentDetails>

/** `POST /register`: registers, and is the heartbeat. `shard` is ignored for routers. */
export const registerRequest = componentDetails.extend({
  kind: z.string(),
  id,
  zone: id,
  shard: id.nullish(),
})
export type RegisterRequest = z.infer<typeof registerRequest>

/** The reply to `POST /register`. Existing registries reply without a body. */
export const registerBody = z.object({
  epoch: z.string(),
  global_version: count,
  heartbeat_timeout_secs: count,
  /** Hash of the current codec list, so that a component with another list learns of it with its next heartbeat. */
  ordered_hash: z.string().optional(),
})

/** `POST /shards/{shard}/segments`: the complete list of the shard's segments. */
export const segmentsRequest = z.object({
  zone: id,
  segments: z.array(segment).max(REGISTRY_LIMITS.segmentsPerPushMax),
  node_id: id.optional(),
  /** The term in which the sender leads. */
  term: count.optional(),
  /** `segmentsChecksum` of the list. */
  checksum: z.string().optional(),
})
const conflictBody = z.object({
  segment: z.string(),
  owner_shard: z.string(),
  owner_zone: z.string(),
})

/** The reply to a push when some of the segments belong to other shards; else the body is empty. */
export const pushedBody = z.object({ accepted: count, conflicts: z.array(conflictBody) })

/** The reply to an outdated push: another leader of the shard has pushed in a later term. */
export const staleTermBody = z.object({ error: z.literal('stale term'), term: count })

/** `GET /versions`. Existing registries omit `epoch` and `warming`. */
export const versionsBody = z.object({
  global_version: count,
  versions: z.record(z.string(), count),
  epoch: z.string().optional(),
  warming: z.boolean().optional(),
})

/** `GET /zones/{zone}/routers`. */
export const zoneRoutersBody = z.object({ version: count, routers: ids })
/** `GET /zones/{zone}/segments`. */
export const zoneSegmentsBody = z.object({ version: count, segments: ids })
/** `GET /zones/{zone}/shards`: those with a live bridge. */
export const zoneShardsBody = z.object({ version: count, shards: z.record(z.string(), z.object({ bridges: ids })) })
/** `GET /shards/{shard}/segments`. */
export const shardSegmentsBody = z.object({ version: count, zone: z.string(), segments: ids })
/** `GET /shards/{shard}/nodes`. */
export const shardNodesBody = z.object({ version: count, nodes: ids })

/** `GET /codecs`, as far as a node needs it. `hash` is a u64, which JSON.parse rounds, so it is not read. */
export const registryCodecsBody = z.object({ rate_features: z.array(z.unknown()) })

/** `PUT /segments/{segment}`: routes the segment to the shard before the shard has it. */
export const reserveRequest = z.object({ shard: id })

/** `GET /segments/{segment}`: the shard it is routed to, and the shards that claim it, the owner first. */
export const segmentBody = z.object({
  segment: z.string(),
  shard: z.string(),
  zone: z.string(),
  claims: z.array(z.object({ shard: z.string(), zone: z.string() })),
  /** Only while it is reserved and not yet claimed. */
  reserved_until: z.iso.datetime().optional(),
})

export const zonesBody = z.object({ zones: ids })
export const shardsBody = z.object({
  shards: z.record(z.string(), z.object({ zone: z.string(), nodes: count, bridges: count, segments: count })),
})
export const conflictsBody = z.object({
  conflicts: z.array(conflictBody.extend({ claims: z.array(z.object({ shard: z.string(), zone: z.string() })) })),
})

const component = componentDetails.extend({ id: z.string(), zone: z.string(), age_secs: z.number().nonnegative() })
const sharded = component.extend({ shard: z.string() })

/** `GET /topology`: the complete state of the registry in one document. */
export const topologyBody = z.object({
  epoch: z.string(),
  global_version: count,
  warming: z.boolean(),
  heartbeat_timeout_secs: count,
  zones: ids,
  shards: z.record(z.string(), z.object({ zone: z.string(), term: count, nodes: ids, bridges: ids, segments: count })),
  routers: z.array(component),
  bridges: z.array(sharded),
  nodes: z.array(sharded),
  /** Segment → the shard it is routed to. */
  segments: z.record(z.string(), z.string()),
  conflicts: conflictsBody.shape.conflicts,
  /** Segments routed to a shard that does not claim them yet; existing registries omit it. */
  reservations: z.array(z.object({ segment: z.string(), shard: z.string(), until: z.iso.datetime() })).optional(),
  versions: z.record(z.string(), count),
})

/** `GET /ready` of a service of the fabric. */
export const fabricReadyBody = z.object({
  ready: z.boolean(),
  since: z.string(),
  reasons: z.array(z.object({ name: z.string(), message: z.string(), since: z.string() })),
})

/**
 * Sorted by UTF-8 bytes, without repeats: the canonical form in which segment lists are stored, compared and hashed.
 */
export function sortedSegments(names: Iterable<string>): string[] {
  return [...new Set(names)].sort(compareText)
}

/** Order of the UTF-8 bytes of two texts, without encoding them: UTF-16 differs from it above U+FFFF only. */
export function compareText(a: string, b: string): number {
  const shared = Math.min(a.length, b.length)
  for (let i = 0; i < shared; i++) {
    const x = a.charCodeAt(i)
    const y = b.charCodeAt(i)
    if (x !== y) return rankOf(x) - rankOf(y)
  }
  return a.length - b.length
}

/** Surrogates encode the code points above all others, but as code units they are below 0xE000. */
function rankOf(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit
}

/**
 * Fingerprint of a segment list: SHA-256 over the names, each preceded by its byte length as u32 LE; the first 32
 * hexadecimal digits (docs/design/http.md#segment-ownership).
 *
 * @param sorted as returned by sortedSegments
 */
export function segmentsChecksum(sorted: readonly string[]): string {
  const state = sha256.create()
  const length = new Uint8Array(4)
  for (const name of sorted) {
    const bytes = encoder.encode(name)
    new DataView(length.buffer).setUint32(0, bytes.length, true)
    state.update(length).update(bytes)
  }
  return bytesToHex(state.digest()).slice(0, 32)
}

/** Largest reply of a resolver. */
export const RESOLVER_ANSWER_BYTES_MAX = 4_096

/**
 * Where a component listens. Without a port, the caller's own setting applies. Clients and bridges use `port`; the
 * nodes of a shard use `quicPort` among themselves.
 */
export type ResolvedAddress = {
  readonly host: string
  readonly port?: number
  readonly apiPort?: number
  readonly quicPort?: number
}

/**
 * Parses a resolver's reply: a JSON object with `hostname`, `host`, `address` or `addr`, a JSON string, or text
 * (docs/design/http.md#resolver). The host may include a port: `host:port`, `[v6]:port`.
 *
 * @param contentType of the reply; '' when it has none
 * @returns undefined when the reply has no valid host
 */
export function readResolverAnswer(contentType: string, body: string): ResolvedAddress | undefined {
  if (body.length > RESOLVER_ANSWER_BYTES_MAX) return undefined
  const trimmed = body.trim()
  if (trimmed.startsWith('{') || trimmed.startsWith('"') || /^application\/json\b/i.test(contentType)) {
    const value = parseJson(trimmed)
    if (typeof value === 'string') return parseAddress(value)
    return typeof value === 'object' && value !== null ? readObject(value as { [name: string]: unknown }) : undefined
  }
  return parseAddress((trimmed.split('\n', 1)[0] as string).trim())
}

function readObject(value: { readonly [name: string]: unknown }): ResolvedAddress | undefined {
  const host = value['hostname'] ?? value['host'] ?? value['address'] ?? value['addr']
  const address = typeof host === 'string' ? parseAddress(host) : undefined
  if (address === undefined) return undefined
  const port = value['port'] ?? value['tcp_port']
  const apiPort = value['api_port']
  const quicPort = value['quic_port']
  if (![port, apiPort, quicPort].every((number) => number === undefined || isPort(number))) return undefined
  return {
    ...address,
    ...(isPort(port) && { port }),
    ...(isPort(apiPort) && { apiPort }),
    ...(isPort(quicPort) && { quicPort }),
  }
}

function parseJson(source: string): unknown {
  try {
    return JSON.parse(source)
  } catch {
    // Invalid JSON has no host. The caller needs no more detail.
    return undefined
  }
}

function isPort(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= 65_535
}

const HOST = /^[A-Za-z0-9._-]{1,253}$/
const V6 = /^[0-9A-Fa-f:.]{2,45}$/

/** `host`, `host:port`, an IPv6 literal, or `[v6]:port`; undefined for anything else. */
export function parseAddress(written: string): ResolvedAddress | undefined {
  const bracketed = /^\[([^\]]+)\](?::(\d{1,5}))?$/.exec(written)
  if (bracketed) return V6.test(bracketed[1] as string) ? withPort(bracketed[1] as string, bracketed[2]) : undefined
  if ((written.match(/:/g)?.length ?? 0) > 1) return V6.test(written) ? { host: written } : undefined
  const [host, port] = written.split(':') as [string, string?]
  return HOST.test(host) ? withPort(host, port) : undefined
}

function withPort(host: string, port: string | undefined): ResolvedAddress | undefined {
  if (port === undefined) return { host }
  return /^\d{1,5}$/.test(port) && isPort(Number(port)) ? { host, port: Number(port) } : undefined
}
