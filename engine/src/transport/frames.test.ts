import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ENTRY_BYTES_MAX, ENTRY_KIND, type EntryBatch, type EntryKind, encodeEntry } from '../raft/entry.ts'
import type { AppendMessage, Configuration } from '../raft/messages.ts'
import { FRAME_BYTES_MAX, FRAME_PAYLOAD_BYTES_MAX } from './frame-fields.ts'
import {
  ADMIN_KINDS,
  admitFrame,
  createFrameFaults,
  decodeFrame,
  encodeFrame,
  FRAME_HEADER_BYTES,
  type FrameCommon,
  type FrameOwner,
  isRaftMessage,
  type PeerFrame,
  PROTOCOL_VERSION,
  streamOf,
} from './frames.ts'

const COMMON: FrameCommon = {
  version: PROTOCOL_VERSION,
  clusterId: new Uint8Array(16).fill(1),
  genesis: new Uint8Array(16).fill(2),
  codecHash: new Uint8Array(8).fill(3),
}
const UNFORMED: FrameCommon = { ...COMMON, clusterId: new Uint8Array(16), genesis: new Uint8Array(16) }

const number = fc.oneof(fc.nat(300), fc.maxSafeNat(), fc.constantFrom(0, Number.MAX_SAFE_INTEGER))
const u32 = fc.integer({ min: 0, max: 2 ** 32 - 1 })
const flag = fc.boolean()
const name = fc.stringMatching(/^[A-Za-z0-9_-]{1,128}$/)
const someName = fc.oneof(name, fc.constant(''))
const hex = (bytes: number) =>
  fc.uint8Array({ minLength: bytes, maxLength: bytes }).map((drawn) => Buffer.from(drawn).toString('hex'))
const someHex = (bytes: number) => fc.oneof(hex(bytes), fc.constant(''))
const wellFormed = (bytesMax: number) =>
  fc
    .string({ unit: 'binary', maxLength: bytesMax })
    .filter((text) => text.isWellFormed() && Buffer.byteLength(text) <= bytesMax)
const sample = fc.option(
  fc.record({
    wallMs: number,
    isDiskFull: flag,
    digestIndex: number,
    digestLo: u32,
    digestHi: u32,
    applied: number,
  }),
  { nil: undefined },
)
type Place = 'voter' | 'both' | 'outgoing' | 'staged' | 'learner'
/**
 * Configurations allowed by docs/design/consensus.md#membership: each member has a place; outgoing and staged only
 * while joint.
 */
const configuration = fc
  .record({
    places: fc.uniqueArray(
      fc.tuple(
        fc.integer({ min: 2, max: 5000 }),
        fc.constantFrom<Place>('voter', 'both', 'outgoing', 'staged', 'learner'),
        name,
        someHex(16),
      ),
      { maxLength: 22, selector: ([id]) => id },
    ),
    autoLeave: flag,
  })
  .map(({ places, autoLeave }): Configuration => {
    const all = [[1, 'both', 'first', ''] as const, ...places.sort(([a], [b]) => a - b)]
    const idsOf = (...of: Place[]) => all.filter(([, place]) => of.includes(place)).map(([id]) => id)
    return {
      members: all.map(([id, , node, incarnation]) => ({ id, node, incarnation })),
      voters: idsOf('voter', 'both'),
      outgoing: idsOf('both', 'outgoing', 'staged'),
      learners: idsOf('learner'),
      staged: idsOf('staged'),
      autoLeave,
    }
  })

/** Entries of ascending terms, one batch per term, as decoding yields them. */
const append: fc.Arbitrary<AppendMessage> = fc
  .record({
    from: number,
    to: number,
    commit: number,
    prevIndex: fc.nat(1e6),
    prevTerm: fc.nat(5),
    terms: fc.array(
      fc.record({
        skip: fc.integer({ min: 1, max: 3 }),
        payloads: fc.array(fc.uint8Array({ maxLength: 40 }), { minLength: 1, maxLength: 5 }),
        kind: fc.constantFrom<EntryKind>(...Object.values(ENTRY_KIND)),
      }),
      { maxLength: 4 },
    ),
  })
  .map(({ terms, ...head }) => {
    let [term, firstIndex] = [head.prevTerm, head.prevIndex + 1]
    const entries = terms.map(({ skip, payloads, kind }): EntryBatch => {
      term += skip
      const bytes = Buffer.concat(payloads.map((payload) => encodeEntry(term, kind, payload)))
      const batch = { firstIndex, count: payloads.length, bytes: new Uint8Array(bytes) }
      firstIndex += payloads.length
      return batch
    })
    return { type: 'append', term, ...head, entries }
  })

const head = { from: number, to: number, term: number }
const of = <T extends PeerFrame['type']>(type: T, fields: object) =>
  fc.record({ type: fc.constant(type), ...fields }) as unknown as fc.Arbitrary<PeerFrame>

const KINDS: { readonly [T in PeerFrame['type']]: fc.Arbitrary<PeerFrame> } = {
  preVote: of('preVote', {
    ...head,
    lastIndex: number,
    lastTerm: number,
    isForced: flag,
    commit: number,
    commitTerm: number,
  }),
  preVoteReply: of('preVoteReply', { ...head, isGranted: flag, commit: number, commitTerm: number }),
  vote: of('vote', {
    ...head,
    lastIndex: number,
    lastTerm: number,
    isForced: flag,
    commit: number,
    commitTerm: number,
  }),
  voteReply: of('voteReply', { ...head, isGranted: flag, commit: number, commitTerm: number }),
  append,
  appendReply: of('appendReply', { ...head, index: number, isRejected: flag, hintIndex: number, hintTerm: number }),
  heartbeat: of('heartbeat', { ...head, commit: number, readRound: number, sample }),
  heartbeatReply: of('heartbeatReply', { ...head, readRound: number, sample }),
  snapshot: of('snapshot', {
    ...head,
    index: number,
    snapshotTerm: number,
    configuration,
    manifest: fc.uint8Array({ maxLength: 300 }),
  }),
  timeoutNow: of('timeoutNow', head),
  transferLeader: of('transferLeader', { ...head, target: number }),
  readIndex: of('readIndex', { ...head, context: number }),
  readIndexReply: of('readIndexReply', { ...head, context: number, index: number }),
  formation: of('formation', {
    shard: name,
    votersDigest: hex(32),
    voters: fc.array(name, { maxLength: 7 }),
    codecHash: hex(32),
    formatVersion: u32,
    incarnation: hex(16),
    echo: someHex(16),
    formsWithMajority: flag,
    state: fc.constantFrom('formed', 'seeded', 'empty'),
    contentDigest: someHex(32),
    index: number,
    term: number,
    clusterId: someHex(16),
    isFounder: flag,
    isUntouched: flag,
    leader: someName,
    members: fc.array(name, { maxLength: 30 }),
  }),
  join: of('join', { node: name, incarnation: hex(16), isInitialVoter: flag }),
  joined: of('joined', { member: number, configuration }),
  refused: of('refused', { reason: wellFormed(64), detail: wellFormed(4096) }),
  admin: of('admin', {
    id: number,
    kind: fc.constantFrom(...ADMIN_KINDS),
    node: someName,
    digest: someHex(32),
    detail: wellFormed(4096),
  }),
  adminReply: of('adminReply', { id: number, ok: flag, status: fc.nat(65535), text: wellFormed(4096) }),
  chunkHave: of('chunkHave', { digests: fc.option(fc.array(hex(32), { maxLength: 20 }), { nil: undefined }) }),
  chunkRequest: of('chunkRequest', { id: number, digest: hex(32), offset: u32, length: u32 }),
  chunkData: of('chunkData', { id: number, digest: hex(32), offset: u32, bytes: fc.uint8Array({ maxLength: 300 }) }),
  chunkMissing: of('chunkMissing', { id: number, digest: hex(32) }),
  offerReply: of('offerReply', { index: number, ok: flag, reason: wellFormed(4096) }),
  facts: of('facts', { featureLevel: u32, memoryBudget: number, shardTimeMs: number }),
  bulkHolds: of('bulkHolds', { digest: hex(32), isComplete: flag, reason: wellFormed(4096) }),
}
const anyFrame = fc.oneof(...Object.values(KINDS))

test.for(Object.entries(KINDS))('%s frames survive encoding and decoding', ([type, frames]) => {
  fc.assert(
    fc.property(frames, (frame) => {
      const decoded = decodeFrame(encodeFrame(COMMON, frame))

      expect(decoded).toEqual({ common: COMMON, frame })
      expect(frame.type).toBe(type)
    }),
    { numRuns: 50 },
  )
})

test('a frame cut or extended at any byte is refused', () => {
  fc.assert(
    fc.property(anyFrame, (frame) => {
      const bytes = encodeFrame(COMMON, frame)

      for (let length = 0; length < bytes.length; length++) {
        expect(decodeFrame(bytes.subarray(0, length))).toBe('malformed')
      }
      expect(decodeFrame(Uint8Array.of(...bytes, 0))).toBe('malformed')
    }),
    { numRuns: 100 },
  )
})

/** Expects a frame or a reason, and that a frame can be encoded again. */
function mustBeSane(bytes: Uint8Array): void {
  const decoded = decodeFrame(bytes)
  if (typeof decoded === 'string') return
  const again = encodeFrame(decoded.common, decoded.frame)
  expect(decodeFrame(again)).toEqual(decoded)
}

test('no flipped bit makes decoding throw', () => {
  fc.assert(
    fc.property(anyFrame, fc.nat(), (frame, at) => {
      const bytes = encodeFrame(COMMON, frame)
      const bit = at % (bytes.length * 8)
      bytes[bit >> 3] = bytes[bit >> 3] ^ (1 << (bit & 7))

      mustBeSane(bytes)
    }),
    { numRuns: 2000 },
  )
})

test('random bytes after a header never make decoding throw', () => {
  const kinds = fc.constantFrom(...Array.from({ length: 80 }, (_, code) => code))
  fc.assert(
    fc.property(kinds, fc.uint8Array({ maxLength: 400 }), (code, body) => {
      const bytes = new Uint8Array(FRAME_HEADER_BYTES + body.length)
      bytes[0] = PROTOCOL_VERSION
      bytes[1] = code
      bytes.set(body, FRAME_HEADER_BYTES)

      mustBeSane(bytes)
    }),
    { numRuns: 2000 },
  )
})

const APPEND = {
  type: 'append',
  from: 1,
  to: 2,
  term: 7,
  prevIndex: 10,
  prevTerm: 3,
  commit: 9,
  entries: [],
} as const satisfies AppendMessage
const batch = (firstIndex: number, term: number, ...texts: readonly string[]): EntryBatch => ({
  firstIndex,
  count: texts.length,
  bytes: new Uint8Array(
    Buffer.concat(texts.map((text) => encodeEntry(term, ENTRY_KIND.command, new TextEncoder().encode(text)))),
  ),
})

test('entries of an append are views of the frame', () => {
  const bytes = encodeFrame(COMMON, { ...APPEND, entries: [batch(11, 7, 'a', 'bc')] })

  const decoded = decodeFrame(bytes)

  if (typeof decoded === 'string' || decoded.frame.type !== 'append') throw new Error('an append was encoded')
  expect(decoded.frame.entries[0]?.bytes.buffer).toBe(bytes.buffer)
})

test('batches of one term are merged, a new term begins another', () => {
  const entries = [batch(11, 3, 'a'), batch(12, 3, 'b', 'c'), batch(14, 5, 'd')]

  const decoded = decodeFrame(encodeFrame(COMMON, { ...APPEND, entries }))

  expect(decoded).toEqual({
    common: COMMON,
    frame: { ...APPEND, entries: [batch(11, 3, 'a', 'b', 'c'), batch(14, 5, 'd')] },
  })
})

test.for([
  ['of a term before that of the previous entry', [batch(11, 2, 'a')]],
  ['with decreasing terms', [batch(11, 5, 'a'), batch(12, 4, 'b')]],
  ['of a term after the leader’s', [batch(11, 8, 'a')]],
  ['of an unknown kind', [{ firstIndex: 11, count: 1, bytes: encodeEntry(7, 9 as EntryKind, new Uint8Array(3)) }]],
  ['that are fewer than their count', [{ firstIndex: 11, count: 2, bytes: encodeEntry(7, 1, new Uint8Array(30)) }]],
  ['that are more than their count', [{ ...batch(11, 7, 'a', 'b'), count: 1 }]],
] as const)('entries %s are refused', ([, entries]) => {
  expect(decodeFrame(encodeFrame(COMMON, { ...APPEND, entries }))).toBe('malformed')
})

test('one entry of the largest size, and a full message of small ones, fit in a frame', () => {
  const largest = encodeEntry(7, ENTRY_KIND.command, new Uint8Array(ENTRY_BYTES_MAX))
  const small = encodeEntry(7, ENTRY_KIND.command, new Uint8Array(3))
  const count = Math.floor(FRAME_PAYLOAD_BYTES_MAX / small.length)
  const many = new Uint8Array(count * small.length)
  for (let i = 0; i < count; i++) many.set(small, i * small.length)

  for (const [length, bytes] of [
    [1, largest],
    [count, many],
  ] as const) {
    const frame = { ...APPEND, entries: [{ firstIndex: 11, count: length, bytes }] }
    const encoded = encodeFrame(COMMON, frame)
    expect(encoded.length).toBeLessThanOrEqual(FRAME_BYTES_MAX)
    expect(decodeFrame(encoded)).toEqual({ common: COMMON, frame })
  }
})

test('the bytes of a heartbeat do not change', () => {
  const bytes = encodeFrame(COMMON, { type: 'heartbeat', from: 1, to: 2, term: 3, commit: 4, readRound: 5 })

  expect(Buffer.from(bytes).toString('hex')).toBe(
    `01070000${'01'.repeat(16)}${'02'.repeat(16)}${'03'.repeat(8)}` +
      `0100000000000000${'0200000000000000'}${'0300000000000000'}${'0400000000000000'}${'0500000000000000'}00`,
  )
})

test('a text for people that is too long is cut between characters, not refused', () => {
  const decoded = decodeFrame(encodeFrame(COMMON, { type: 'refused', reason: 'é'.repeat(40), detail: 'x' }))

  expect(decoded).toMatchObject({ frame: { reason: 'é'.repeat(32), detail: 'x' } })
})

const PLAIN: Configuration = {
  members: [1, 2].map((id) => ({ id, node: `n${id}`, incarnation: '' })),
  voters: [1],
  outgoing: [],
  learners: [2],
  staged: [],
  autoLeave: false,
}

test.for([
  ['whose ids do not ascend', { voters: [2, 1], learners: [] }],
  ['without a voter', { voters: [], learners: [1, 2] }],
  ['with a voter that is a learner', { voters: [1, 2] }],
  ['with a member that has no place', { learners: [] }],
  ['with a place without a member', { learners: [2, 3] }],
  ['that stages a remaining voter', { staged: [1] }],
  ['that is not joint and has autoLeave', { autoLeave: true }],
] as const)('a configuration %s is refused', ([, change]) => {
  const bytes = encodeFrame(COMMON, { type: 'joined', member: 2, configuration: { ...PLAIN, ...change } })

  expect(decodeFrame(bytes)).toBe('malformed')
})

const OWNER: FrameOwner = { common: COMMON, raftId: 2, nodeOf: (id) => ({ 1: 'a', 2: 'b' })[id] }
const HEARTBEAT: PeerFrame = { type: 'heartbeat', from: 1, to: 2, term: 3, commit: 4, readRound: 0, sample: undefined }
const JOIN: PeerFrame = { type: 'join', node: 'a', incarnation: 'ab'.repeat(16), isInitialVoter: false }
const FORMATION: PeerFrame = {
  type: 'formation',
  shard: 's1',
  votersDigest: '11'.repeat(32),
  voters: ['a', 'b', 'c'],
  codecHash: '22'.repeat(32),
  formatVersion: 1,
  incarnation: '33'.repeat(16),
  echo: '',
  formsWithMajority: false,
  state: 'empty',
  contentDigest: '',
  index: 0,
  term: 0,
  clusterId: '',
  isFounder: false,
  isUntouched: false,
  leader: '',
  members: ['a'],
}
const other = (length: number) => new Uint8Array(length).fill(9)

test.for([
  ['a raft message of this cluster', OWNER, COMMON, HEARTBEAT, ''],
  ['of another cluster', OWNER, { ...COMMON, clusterId: other(16) }, HEARTBEAT, 'cluster'],
  ['a raft message of a node that is not formed', OWNER, UNFORMED, HEARTBEAT, 'cluster'],
  ['a raft message to a node that is not formed', { ...OWNER, common: UNFORMED }, COMMON, HEARTBEAT, 'cluster'],
  ['of a shard restored from the same snapshot', OWNER, { ...COMMON, genesis: other(16) }, HEARTBEAT, 'genesis'],
  ['of a node that has not applied the genesis yet', OWNER, { ...COMMON, genesis: new Uint8Array(16) }, HEARTBEAT, ''],
  ['of a node with another codec list', OWNER, { ...COMMON, codecHash: other(8) }, HEARTBEAT, 'codecs'],
  ['to another member', { ...OWNER, raftId: 3 }, COMMON, HEARTBEAT, 'addressee'],
  ['to a node that does not know its raft id', { ...OWNER, raftId: 0 }, COMMON, HEARTBEAT, 'addressee'],
  ['in the name of another node', OWNER, COMMON, { ...HEARTBEAT, from: 2 }, 'sender'],
  ['of a member that is not known yet', OWNER, COMMON, { ...HEARTBEAT, from: 1007 }, ''],
  ['a node that joins', OWNER, UNFORMED, JOIN, ''],
  ['a node that joins under another name', OWNER, UNFORMED, { ...JOIN, node: 'c' }, 'sender'],
  ['formation of a node with another codec list', OWNER, { ...UNFORMED, codecHash: other(8) }, FORMATION, ''],
  ['formation of another cluster', OWNER, { ...COMMON, clusterId: other(16) }, FORMATION, 'cluster'],
  ['of a program with another version', OWNER, { ...COMMON, version: 2 }, HEARTBEAT, 'version'],
] as const)('%s: admitted or counted', ([, owner, common, frame, fault]) => {
  const faults = createFrameFaults()

  const admitted = admitFrame(owner, 'a', encodeFrame(common, frame as PeerFrame), faults)

  expect(admitted).toEqual(fault === '' ? frame : undefined)
  expect(faults).toEqual({ ...createFrameFaults(), ...(fault === '' ? {} : { [fault]: 1 }) })
})

test('a kind that only newer programs know has its own counter', () => {
  const bytes = encodeFrame(COMMON, HEARTBEAT)
  bytes[1] = 200

  expect(decodeFrame(bytes)).toBe('kind')
})

test('bulk frames never use the control stream, and only raft messages reach the core', () => {
  expect(streamOf(HEARTBEAT)).toBe('control')
  expect(streamOf(APPEND)).toBe('append')
  expect(streamOf({ type: 'chunkMissing', id: 1, digest: '00'.repeat(32) })).toBe('bulk')
  expect([HEARTBEAT, APPEND, JOIN, FORMATION].map(isRaftMessage)).toEqual([true, true, false, false])
})
