/**
 * HTTP of the registry and of the resolver: what routers, bridges and nodes say to them and are told (platform.md §2
 * and §3). Paths and fields that existing components use are served as they know them; everything else is an addition
 * that they pass over. Readers take keys they do not know for later additions.
 */

import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex } from '@noble/hashes/utils.js'
import { z } from 'zod'
import { LIMITS, RESERVED_SEGMENTS } from '../domain.ts'
import { ID_RULE, parseId } from '../ids.ts'
import { textFault } from '../text.ts'

export const REGISTRY_LIMITS = {
  bodyBytesMax: 65_536,
  /** A list of segments is the one large body. */
  segmentsBodyBytesMax: 32 * 1024 * 1024,
  segmentsPerPushMax: 100_000,
  componentsMax: 100_000,
  /** Lists with a version of their own: three a zone, two a shard. */
  datasetsMax: 400_000,
  /** Segments claimed or reserved by all shards together, each claim counted. */
  claimsMax: 1_000_000,
  reservationsMax: 10_000,
  /** Entries of `segment_counts` that one leader may send, and that are kept of all together. */
  segmentCountsMax: 1_000,
  segmentCountsKeptMax: 1_000_000,
  waitSecondsMax: 60,
  /** Requests of `GET /versions` that wait at once; more are answered at once. */
  waitersMax: 10_000,
} as const

export const COMPONENT_KINDS = ['router', 'bridge', 'node'] as const
export type ComponentKind = (typeof COMPONENT_KINDS)[number]

const count = z.int().nonnegative()
const id = z.string().refine((text) => parseId(text) !== undefined, `must be ${ID_RULE}`)
const text = (bytesMax: number) => z.string().max(bytesMax)
const ids = z.array(z.string())

/** What a segment's name must be; '' or what is wrong, to be put behind the name of the field. */
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

/** What a component may tell of itself with each heartbeat; kept and shown, never needed. */
export const componentDetails = z.object({
  /** Random, another one each time the process starts. */
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

/** `POST /register`: registers, and is the heartbeat. `shard` is passed over for routers. */
export const registerRequest = componentDetails.extend({
  kind: z.string(),
  id,
  zone: id,
  shard: id.nullish(),
})
export type RegisterRequest = z.infer<typeof registerRequest>

/** What `POST /register` answers; existing registries answer nothing. */
export const registerBody = z.object({
  epoch: z.string(),
  global_version: count,
  heartbeat_timeout_secs: count,
  /** Of the codec list in force: who works with another one learns it with its next heartbeat. */
  ordered_hash: z.string().optional(),
})

/** `POST /shards/{shard}/segments`: the complete list of what the shard holds. */
export const segmentsRequest = z.object({
  zone: id,
  segments: z.array(segment).max(REGISTRY_LIMITS.segmentsPerPushMax),
  node_id: id.optional(),
  /** The term in which the sender leads. */
  term: count.optional(),
  /** `segmentsChecksum` of the list. */
  checksum: z.string().optional(),
})
export type SegmentsRequest = z.infer<typeof segmentsRequest>

export const conflictBody = z.object({
  segment: z.string(),
  owner_shard: z.string(),
  owner_zone: z.string(),
})

/** The answer to a push of which not everything is the shard's; else the body is empty. */
export const pushedBody = z.object({ accepted: count, conflicts: z.array(conflictBody) })

/** A push that comes too late: another leader of the shard has pushed in a later term. */
export const staleTermBody = z.object({ error: z.literal('stale term'), term: count })

/** `GET /versions`. `epoch` and `warming` are missing in the answers of existing registries. */
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

/** `GET /codecs` as far as a node needs it: `hash` is a u64, which JSON.parse only comes near, so nobody reads it. */
export const registryCodecsBody = z.object({ rate_features: z.array(z.unknown()) })

/** `PUT /segments/{segment}`: the segment goes to that shard before it is there. */
export const reserveRequest = z.object({ shard: id })

/** `GET /segments/{segment}`: where it goes, and who says that it is theirs, the owner first. */
export const segmentBody = z.object({
  segment: z.string(),
  shard: z.string(),
  zone: z.string(),
  claims: z.array(z.object({ shard: z.string(), zone: z.string() })),
  /** Only while it is reserved and not claimed yet. */
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

/** `GET /topology`: everything the registry knows, in one document. */
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
  /** Segment → the shard it goes to. */
  segments: z.record(z.string(), z.string()),
  conflicts: conflictsBody.shape.conflicts,
  versions: z.record(z.string(), count),
})

/** `GET /ready` of a service of the fabric. */
export const fabricReadyBody = z.object({
  ready: z.boolean(),
  since: z.string(),
  reasons: z.array(z.object({ name: z.string(), says: z.string(), since: z.string() })),
})

/**
 * Sorted by UTF-8 bytes, without repeats: the form in which lists of segments are kept, compared and hashed.
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

/** Surrogates stand for what is above everything else; as code units they lie below 0xE000. */
function rankOf(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit
}

/**
 * Tells two lists of segments apart: SHA-256 over the names, each behind its byte length as u32 LE; the first 32
 * hexadecimal digits (platform.md §2.6).
 *
 * @param sorted as sortedSegments gives them
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

/** What a resolver's answer may be, at most. */
export const RESOLVER_ANSWER_BYTES_MAX = 4_096

/**
 * Where a component is. Without a port the caller's own setting counts. `port` is the one that clients and bridges
 * use, `quicPort` the one that nodes of a shard use among themselves.
 */
export type ResolvedAddress = {
  readonly host: string
  readonly port?: number
  readonly apiPort?: number
  readonly quicPort?: number
}

/**
 * Reads the answer of a resolver: a JSON object with `hostname`, `host`, `address` or `addr`, a JSON string, or text
 * (platform.md §3.2). The host may carry a port: `host:port`, `[v6]:port`.
 *
 * @param contentType of the answer; '' when there is none
 * @returns undefined when it names no valid host
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
    // An answer that says JSON and is none names no host, which is all that the caller asks.
    return undefined
  }
}

function isPort(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= 65_535
}

const HOST = /^[A-Za-z0-9._-]{1,253}$/
const V6 = /^[0-9A-Fa-f:.]{2,45}$/

/** `host`, `host:port`, an IPv6 literal, or `[v6]:port`; undefined when it is none of them. */
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
