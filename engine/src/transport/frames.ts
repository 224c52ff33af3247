/**
 * Encoding of the frames between members of a shard (docs/design/protocol.md#peer-frames): raft messages, and those of
 * the driver for formation, membership, admin calls and snapshot transfer. The transport prepends length and checksum.
 *
 *   offset  size  field
 *   0       1     version of the protocol; stays here in all versions
 *   1       1     kind (its code in KINDS)
 *   2       2     zero
 *   4       16    cluster id; zeros before the shard is formed
 *   20      16    genesis, 128 random bits of the first entry; zeros before it is applied
 *   36      8     first bytes of the ordered codec hash
 *   44      n     body of the kind: its fields in the order of KINDS, without a trailer
 *
 * The genesis is explained in docs/design/consensus.md#formation. Numbers are little endian; terms, indexes and ids are
 * u64 that fit a safe integer (docs/design/consensus.md#determinism). A text is u16 length and UTF-8; a list is u16
 * count and its items; a digest is its 32 bytes, hexadecimal in memory. Raft messages begin with from, to and term.
 *
 * Input is hostile until it is decoded. Decoding never throws and allocates at most a small multiple of the frame.
 * Large bytes (entries, chunks, manifests) are views of the frame, so the frame must not be reused. Encoding asserts: a
 * frame that breaks a bound is a bug in this program.
 */

import { assert } from '@vacancy/shared'
import {
  ENTRY_BYTES_MAX,
  ENTRY_HEADER_BYTES,
  ENTRY_KIND,
  type EntryBatch,
  entryKind,
  entryLength,
  entryTerm,
  viewOf,
} from '../raft/entry.ts'
import type { AppendMessage, Configuration, Member, Message, Sample } from '../raft/messages.ts'
import { FORMATION_LIMITS, type FormationReport } from './formation-report.ts'
import {
  bad,
  bytesOf,
  checked,
  createWriter,
  digest,
  type Field,
  FRAME_BYTES_MAX,
  FRAME_PAYLOAD_BYTES_MAX,
  flag,
  hex,
  id,
  list,
  maybe,
  optionalHex,
  optionalId,
  payload,
  putBytes,
  putU32,
  type Reader,
  record,
  takeBytes,
  takeU32,
  text,
  u16,
  u32,
  u64,
  type Writer,
  word,
  words,
} from './frame-fields.ts'
import type { StreamKind } from './transport.ts'

export const PROTOCOL_VERSION = 1
export const FRAME_ID_BYTES = 16
export const FRAME_CODEC_HASH_BYTES = 8
export const FRAME_HEADER_BYTES = 44
/** Version, kind and two zeros. */
const HEADER_WORD_BYTES = 4

const FRAME_LIMITS = {
  /** Members, and each list of raft ids, of a configuration. 7 voters in both halves and 16 learners fit. */
  members: 64,
  /** Names of `--initial-voters`. */
  voters: FORMATION_LIMITS.voters,
  /** Node ids in a formation frame. */
  nodes: FORMATION_LIMITS.members,
  /** Digests in one chunkHave; more need several frames. */
  digests: 16_384,
  reasonBytes: 64,
  textBytes: 4_096,
} as const

/** Sender identity in every frame. All arrays have their fixed length; zeros mean "not known yet". */
export type FrameCommon = {
  readonly version: number
  readonly clusterId: Uint8Array
  readonly genesis: Uint8Array
  /** The first eight bytes of `CodecList.orderedHash`. */
  readonly codecHash: Uint8Array
}

/** A node's report about itself, from which nodes also learn of each other (formation.ts). */
type FormationFrame = FormationReport & { readonly type: 'formation' }
type JoinFrame = {
  readonly type: 'join'
  readonly node: string
  readonly incarnation: string
  readonly isInitialVoter: boolean
}
type JoinedFrame = {
  readonly type: 'joined'
  /** Raft id of the requesting node. */
  readonly member: number
  readonly configuration: Configuration
}
/** Reply to a join, or to a formation frame of a node that this shard refuses. */
type RefusedFrame = { readonly type: 'refused'; readonly reason: string; readonly detail: string }

export const ADMIN_KINDS = [
  'promote',
  'demote',
  'transfer',
  'load',
  'drop-load',
  'set-time',
  'setting',
  'leave',
] as const
type AdminKind = (typeof ADMIN_KINDS)[number]
export type AdminFrame = {
  readonly type: 'admin'
  /** Chosen by the requesting node; the reply repeats it. */
  readonly id: number
  readonly kind: AdminKind
  /** Empty for loads. */
  readonly node: string
  /** Content digest of the snapshot to load; otherwise empty. */
  readonly digest: string
  /** Other parameters of a kind as JSON; empty for none. */
  readonly detail: string
}
type AdminReplyFrame = {
  readonly type: 'adminReply'
  readonly id: number
  readonly ok: boolean
  /** HTTP status. */
  readonly status: number
  readonly text: string
}
type ChunkHaveFrame = {
  readonly type: 'chunkHave'
  /** Chunks that the sender has; undefined requests them. */
  readonly digests: readonly string[] | undefined
}
export type ChunkRequestFrame = {
  readonly type: 'chunkRequest'
  readonly id: number
  readonly digest: string
  readonly offset: number
  readonly length: number
}
export type ChunkDataFrame = {
  readonly type: 'chunkData'
  readonly id: number
  readonly digest: string
  readonly offset: number
  readonly bytes: Uint8Array
}
export type ChunkMissingFrame = { readonly type: 'chunkMissing'; readonly id: number; readonly digest: string }
export type OfferReplyFrame = {
  readonly type: 'offerReply'
  readonly index: number
  readonly ok: boolean
  readonly reason: string
}
/** A member reports to the leader whether it could load a snapshot (bulk load). */
export type BulkHoldsFrame = {
  readonly type: 'bulkHolds'
  readonly digest: string
  readonly isComplete: boolean
  readonly reason: string
}

/** A member's supported rules and memory, for decisions that concern all members. Sent once a second. */
export type FactsFrame = {
  readonly type: 'facts'
  /** Newest rules of apply that the member's program knows (store.ts). */
  readonly featureLevel: number
  /** Bytes that the member has for data; 0 for no limit. */
  readonly memoryBudget: number
  /** Shard time of a leader; 0 from others. */
  readonly shardTimeMs: number
}

export type DriverFrame =
  | FactsFrame
  | FormationFrame
  | JoinFrame
  | JoinedFrame
  | RefusedFrame
  | AdminFrame
  | AdminReplyFrame
  | ChunkHaveFrame
  | ChunkRequestFrame
  | ChunkDataFrame
  | ChunkMissingFrame
  | OfferReplyFrame
  | BulkHoldsFrame

export type PeerFrame = Message | DriverFrame
type Type = PeerFrame['type']
type FrameOf<T extends Type> = PeerFrame & { readonly type: T }

/** Why a frame is dropped; each reason has a counter. */
const FRAME_FAULTS = [
  /** Too short or too long, or its fields are inconsistent. */
  'malformed',
  'version',
  /** A kind this program does not know: the sender is newer. */
  'kind',
  'cluster',
  'genesis',
  'codecs',
  'addressee',
  /** Its sender field names another node than the connection. */
  'sender',
] as const
export type FrameFault = (typeof FRAME_FAULTS)[number]

export type DecodedFrame = { readonly common: FrameCommon; readonly frame: PeerFrame }

/** Frame bytes of a message. */
export function encodeFrame(common: FrameCommon, frame: PeerFrame): Uint8Array {
  assert(common.clusterId.length === FRAME_ID_BYTES, 'a cluster id has 16 bytes')
  assert(common.genesis.length === FRAME_ID_BYTES, 'a genesis has 16 bytes')
  assert(common.codecHash.length === FRAME_CODEC_HASH_BYTES, 'a frame has 8 bytes of the codec hash')
  const { code, fields } = KINDS[frame.type]
  const writer = createWriter(roomFor(frame))
  putBytes(writer, Uint8Array.of(common.version, code, 0, 0))
  putBytes(writer, common.clusterId)
  putBytes(writer, common.genesis)
  putBytes(writer, common.codecHash)
  for (const [name, field] of fields) field.put(writer, frame[name as keyof PeerFrame])
  assert(writer.at <= FRAME_BYTES_MAX, 'a frame keeps its bound')
  return bytesOf(writer)
}

/**
 * Reads a frame. Entries, chunk bytes and manifests are views of `bytes`.
 *
 * @returns the frame, or its fault; never throws
 */
export function decodeFrame(bytes: Uint8Array): DecodedFrame | FrameFault {
  if (bytes.length < FRAME_HEADER_BYTES || bytes.length > FRAME_BYTES_MAX) return 'malformed'
  if (bytes[0] !== PROTOCOL_VERSION) return 'version'
  const type = TYPE_OF_CODE[bytes[1]]
  if (type === undefined) return 'kind'
  if (bytes[2] !== 0 || bytes[3] !== 0) return 'malformed'
  const reader: Reader = { bytes, view: viewOf(bytes), at: HEADER_WORD_BYTES, isBad: false }
  const common: FrameCommon = {
    version: PROTOCOL_VERSION,
    clusterId: takeBytes(reader, FRAME_ID_BYTES),
    genesis: takeBytes(reader, FRAME_ID_BYTES),
    codecHash: takeBytes(reader, FRAME_CODEC_HASH_BYTES),
  }
  const frame: { [name: string]: unknown } = { type }
  for (const [name, field] of KINDS[type].fields) {
    frame[name] = field.take(reader, frame)
    if (reader.isBad) return 'malformed'
  }
  // By the type of KINDS every field of its kind is present.
  return reader.at === bytes.length ? { common, frame: frame as unknown as PeerFrame } : 'malformed'
}

/** The stream that carries a frame (transport.ts). */
export function streamOf(frame: PeerFrame): StreamKind {
  return KINDS[frame.type].stream
}

/** Whether a frame is for the raft core. */
export function isRaftMessage(frame: PeerFrame): frame is Message {
  return KINDS[frame.type].isRaft
}

/** The receiver that frames must match. */
export type FrameOwner = {
  readonly common: FrameCommon
  /** Own raft id; 0 while it is unknown, which refuses all raft messages. */
  readonly raftId: number
  /** Node id of a raft id, as far as known. */
  nodeOf(raftId: number): string | undefined
}

/**
 * Checks whether a decoded frame may be handled (docs/design/protocol.md#peer-frames,
 * docs/design/consensus.md#formation). Formation frames pass with any codec hash, because formation reports nodes with
 * another list to the operator.
 *
 * @param peer node named by the transport
 * @returns '' when it may
 */
function faultOf(owner: FrameOwner, peer: string, { common, frame }: DecodedFrame): FrameFault | '' {
  const own = owner.common
  if (common.version !== own.version) return 'version'
  if (!fits(own.clusterId, common.clusterId)) return 'cluster'
  if (!fits(own.genesis, common.genesis)) return 'genesis'
  if (frame.type !== 'formation' && !isSame(own.codecHash, common.codecHash)) return 'codecs'
  if (frame.type === 'join' && frame.node !== peer) return 'sender'
  if (!isRaftMessage(frame)) return ''
  // Raft works within one cluster only: here zeros match nothing.
  if (isZero(common.clusterId) || isZero(own.clusterId)) return 'cluster'
  if (owner.raftId === 0 || frame.to !== owner.raftId) return 'addressee'
  const sender = owner.nodeOf(frame.from)
  return sender === undefined || sender === peer ? '' : 'sender'
}

export type FrameFaults = { [fault in FrameFault]: number }

export function createFrameFaults(): FrameFaults {
  return Object.fromEntries(FRAME_FAULTS.map((fault) => [fault, 0])) as FrameFaults
}

/**
 * Decodes and checks a frame of a peer. Counts the reason of a refusal.
 *
 * @returns undefined when the frame is to be dropped without a reply
 */
export function admitFrame(
  owner: FrameOwner,
  peer: string,
  bytes: Uint8Array,
  faults: FrameFaults,
  onFault?: (fault: FrameFault) => void,
): PeerFrame | undefined {
  const decoded = decodeFrame(bytes)
  const fault = typeof decoded === 'string' ? decoded : faultOf(owner, peer, decoded)
  if (fault !== '') {
    faults[fault]++
    onFault?.(fault)
  }
  return fault === '' && typeof decoded !== 'string' ? decoded.frame : undefined
}

const isZero = (bytes: Uint8Array): boolean => bytes.every((byte) => byte === 0)
const isSame = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && a.every((byte, i) => byte === b[i])
/** Two ids match when they are equal or one side does not know its own yet. */
const fits = (a: Uint8Array, b: Uint8Array): boolean => isSame(a, b) || isZero(a) || isZero(b)

/** A field for each property of a frame, in their order on the wire. */
type FieldsOf<F> = { readonly [K in Exclude<keyof F, 'type'>]: Field<F[K]> }

type Kind<T extends Type> = {
  /** Wire code; never reused for another kind. */
  readonly code: number
  readonly stream: StreamKind
  readonly isRaft: boolean
  readonly fields: readonly (readonly [name: string, field: Field<unknown>])[]
  readonly type: T
}

function kind<T extends Type>(type: T, code: number, stream: StreamKind, fields: FieldsOf<FrameOf<T>>): Kind<T> {
  return {
    code,
    stream,
    isRaft: code < FIRST_DRIVER_CODE,
    fields: Object.entries(fields as { [name: string]: Field<unknown> }),
    type,
  } as Kind<T>
}

const FIRST_DRIVER_CODE = 64
const FORMATION_STATES = ['formed', 'seeded', 'empty'] as const
const { reasonBytes, textBytes } = FRAME_LIMITS

/** 64-bit half words of a digest may be signed; they are encoded unsigned. */
const half: Field<number> = { put: (writer, value) => putU32(writer, value >>> 0), take: takeU32 }

const sample: Field<Sample> = record<Sample>({
  wallMs: u64,
  isDiskFull: flag,
  digestIndex: u64,
  digestLo: half,
  digestHi: half,
  applied: u64,
})

const raftIds = list(u64, FRAME_LIMITS.members)
const member: Field<Member> = record<Member>({ id: u64, node: id, incarnation: optionalHex(FRAME_ID_BYTES) })
const configuration: Field<Configuration> = checked(
  record<Configuration>({
    members: list(member, FRAME_LIMITS.members),
    voters: raftIds,
    outgoing: raftIds,
    learners: raftIds,
    staged: raftIds,
    autoLeave: flag,
  }),
  keepsRules,
)

/**
 * The rules of docs/design/consensus.md#membership, which the core asserts: a frame of a peer must not end this node.
 */
function keepsRules({ members, voters, outgoing, learners, staged, autoLeave }: Configuration): boolean {
  const ids = members.map(({ id }) => id)
  const known = new Set([...voters, ...outgoing, ...learners])
  if (![ids, voters, outgoing, learners, staged].every(ascends)) return false
  if (voters.length === 0 || (outgoing.length === 0 && autoLeave)) return false
  if (known.size !== ids.length || !ids.every((id) => known.has(id))) return false
  if (learners.some((id) => voters.includes(id) || outgoing.includes(id))) return false
  return staged.every((id) => outgoing.includes(id) && !voters.includes(id))
}

const ascends = (ids: readonly number[]): boolean => ids.every((id, i) => id > (ids[i - 1] ?? 0))

/** Entries follow each other without separators: a new term begins a new batch. */
const entries: Field<readonly EntryBatch[]> = { put: putEntries, take: takeEntries }

function putEntries(writer: Writer, batches: readonly EntryBatch[]): void {
  const count = batches.reduce((sum, batch) => sum + batch.count, 0)
  const bytes = batches.reduce((sum, batch) => sum + batch.bytes.length, 0)
  assert(bytes <= FRAME_PAYLOAD_BYTES_MAX || count === 1, 'a message has 1 MiB of entries, or one entry')
  for (const [i, batch] of batches.entries()) {
    const before = batches[i - 1]
    assert(!before || batch.firstIndex === before.firstIndex + before.count, 'entries are contiguous')
    assert(batch.count > 0, 'a batch has an entry')
  }
  putU32(writer, count)
  putU32(writer, bytes)
  for (const batch of batches) putBytes(writer, batch.bytes)
}

/** Views of the frame, one batch per term. Every entry header is checked, so that later code may rely on it. */
function takeEntries(reader: Reader, before: object): readonly EntryBatch[] {
  const { term: termMax, prevIndex, prevTerm } = before as AppendMessage
  const count = takeU32(reader)
  const length = takeU32(reader)
  const bytes = takeBytes(reader, length)
  const batches: EntryBatch[] = []
  if (reader.isBad || count * ENTRY_HEADER_BYTES > length) return bad(reader, batches)
  if (!Number.isSafeInteger(prevIndex + count)) return bad(reader, batches)
  const view = viewOf(bytes)
  let [at, term] = [0, prevTerm]
  let [start, firstIndex] = [0, prevIndex + 1]
  const endBatch = (next: number): void => {
    if (at > start) batches.push({ firstIndex, count: next - firstIndex, bytes: bytes.subarray(start, at) })
    start = at
    firstIndex = next
  }
  for (let index = prevIndex + 1; index <= prevIndex + count; index++) {
    if (length - at < ENTRY_HEADER_BYTES) return bad(reader, batches)
    const entryBytes = entryLength(view, at)
    const termOf = entryTerm(view, at)
    if (!KNOWN_ENTRY_KINDS.has(entryKind(view, at)) || entryBytes > ENTRY_BYTES_MAX) return bad(reader, batches)
    if (entryBytes > length - at - ENTRY_HEADER_BYTES) return bad(reader, batches)
    // Terms never decrease (docs/design/consensus.md#invariants) and none is greater than the leader's. −1 is a term
    // that is not a safe integer.
    if (termOf < term || termOf > termMax) return bad(reader, batches)
    if (termOf > term) endBatch(index)
    term = termOf
    at += ENTRY_HEADER_BYTES + entryBytes
  }
  endBatch(prevIndex + count + 1)
  return at === length ? batches : bad(reader, batches)
}

const KNOWN_ENTRY_KINDS: ReadonlySet<number> = new Set(Object.values(ENTRY_KIND))

const head = { from: u64, to: u64, term: u64 }
const voteFields = { ...head, lastIndex: u64, lastTerm: u64, isForced: flag, commit: u64, commitTerm: u64 }
const voteReplyFields = { ...head, isGranted: flag, commit: u64, commitTerm: u64 }

/** Every kind: its code, its stream, its fields in order. A new message field does not compile until it is here. */
const KINDS: { readonly [T in Type]: Kind<T> } = {
  preVote: kind('preVote', 1, 'control', voteFields),
  preVoteReply: kind('preVoteReply', 2, 'control', voteReplyFields),
  vote: kind('vote', 3, 'control', voteFields),
  voteReply: kind('voteReply', 4, 'control', voteReplyFields),
  append: kind('append', 5, 'append', { ...head, prevIndex: u64, prevTerm: u64, commit: u64, entries }),
  appendReply: kind('appendReply', 6, 'append', {
    ...head,
    index: u64,
    isRejected: flag,
    hintIndex: u64,
    hintTerm: u64,
  }),
  heartbeat: kind('heartbeat', 7, 'control', { ...head, commit: u64, readRound: u64, sample: maybe(sample) }),
  heartbeatReply: kind('heartbeatReply', 8, 'control', { ...head, readRound: u64, sample: maybe(sample) }),
  snapshot: kind('snapshot', 9, 'bulk', {
    ...head,
    index: u64,
    snapshotTerm: u64,
    configuration,
    manifest: payload,
  }),
  timeoutNow: kind('timeoutNow', 10, 'control', head),
  transferLeader: kind('transferLeader', 11, 'control', { ...head, target: u64 }),
  readIndex: kind('readIndex', 12, 'control', { ...head, context: u64 }),
  readIndexReply: kind('readIndexReply', 13, 'control', { ...head, context: u64, index: u64 }),

  formation: kind('formation', 64, 'control', {
    shard: id,
    votersDigest: digest,
    voters: list(id, FRAME_LIMITS.voters),
    codecHash: digest,
    formatVersion: u32,
    incarnation: hex(FRAME_ID_BYTES),
    echo: optionalHex(FRAME_ID_BYTES),
    formsWithMajority: flag,
    state: word(FORMATION_STATES),
    contentDigest: optionalHex(32),
    index: u64,
    term: u64,
    clusterId: optionalHex(FRAME_ID_BYTES),
    isFounder: flag,
    isUntouched: flag,
    leader: optionalId,
    members: list(id, FRAME_LIMITS.nodes),
  }),
  join: kind('join', 65, 'control', { node: id, incarnation: hex(FRAME_ID_BYTES), isInitialVoter: flag }),
  joined: kind('joined', 66, 'control', { member: u64, configuration }),
  refused: kind('refused', 67, 'control', { reason: words(reasonBytes), detail: words(textBytes) }),
  admin: kind('admin', 68, 'control', {
    id: u64,
    kind: word(ADMIN_KINDS),
    node: optionalId,
    digest: optionalHex(32),
    detail: text(textBytes),
  }),
  adminReply: kind('adminReply', 69, 'control', { id: u64, ok: flag, status: u16, text: words(textBytes) }),
  chunkHave: kind('chunkHave', 70, 'bulk', { digests: maybe(list(digest, FRAME_LIMITS.digests)) }),
  chunkRequest: kind('chunkRequest', 71, 'bulk', { id: u64, digest, offset: u32, length: u32 }),
  chunkData: kind('chunkData', 72, 'bulk', { id: u64, digest, offset: u32, bytes: payload }),
  chunkMissing: kind('chunkMissing', 73, 'bulk', { id: u64, digest }),
  offerReply: kind('offerReply', 74, 'control', { index: u64, ok: flag, reason: words(textBytes) }),
  facts: kind('facts', 76, 'control', { featureLevel: u32, memoryBudget: u64, shardTimeMs: u64 }),
  bulkHolds: kind('bulkHolds', 75, 'control', { digest, isComplete: flag, reason: words(textBytes) }),
}

const TYPE_OF_CODE: (Type | undefined)[] = []
for (const { code, type } of Object.values(KINDS)) {
  assert(TYPE_OF_CODE[code] === undefined, 'a code belongs to one kind')
  TYPE_OF_CODE[code] = type
}

/** Most frames are heartbeats, votes and acknowledgements. */
const SMALL_FRAME_BYTES = 192

/** Buffer size for a frame; only large ones need an estimate. */
function roomFor(frame: PeerFrame): number {
  if (frame.type === 'append') return frame.entries.reduce((sum, { bytes }) => sum + bytes.length, SMALL_FRAME_BYTES)
  if (frame.type === 'chunkData') return frame.bytes.length + SMALL_FRAME_BYTES
  if (frame.type === 'snapshot') return frame.manifest.length + SMALL_FRAME_BYTES
  return SMALL_FRAME_BYTES
}
