/**
 * The bytes of every frame and handshake. Members of different versions understand each other as long as these stay:
 * encoding and decoding with the same mistake would not be noticed otherwise.
 */

import { expect, test } from 'vitest'
import { ENTRY_KIND, encodeEntry } from '../raft/entry.ts'
import { decodeFrame, encodeFrame, FRAME_HEADER_BYTES, type FrameCommon, type PeerFrame, streamOf } from './frames.ts'
import { encodeHello, encodeRefusal, encodeWelcome, REFUSALS } from './handshake.ts'

const COMMON: FrameCommon = {
  version: 1,
  clusterId: Uint8Array.from({ length: 16 }, (_, i) => i + 1),
  genesis: Uint8Array.from({ length: 16 }, (_, i) => 0xa0 + i),
  codecHash: Uint8Array.from({ length: 8 }, (_, i) => 0xf0 + i),
}
const hexOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

const head = { from: 1, to: 1_002, term: 2 ** 32 + 3 }
const ballot = { ...head, lastIndex: 4, lastTerm: 5, isForced: true, commit: 6, commitTerm: 7 }
const answer = { ...head, isGranted: true, commit: 6, commitTerm: 7 }
const sample = { wallMs: 8, isDiskFull: true, digestIndex: 9, digestLo: 10, digestHi: 11, applied: 12 }
const incarnation = '0f'.repeat(16)
const digest = 'd1'.repeat(32)
const configuration = {
  members: [
    { id: 1, node: 'a', incarnation: '' },
    { id: 2, node: 'b', incarnation },
    { id: 1_003, node: 'c', incarnation },
  ],
  voters: [1, 2],
  outgoing: [1],
  learners: [1_003],
  staged: [],
  autoLeave: true,
}
const entries = [
  {
    firstIndex: 41,
    count: 2,
    bytes: new Uint8Array([
      ...encodeEntry(2, ENTRY_KIND.command, Uint8Array.of(1, 2, 3)),
      ...encodeEntry(2, ENTRY_KIND.empty, new Uint8Array(0)),
    ]),
  },
  { firstIndex: 43, count: 1, bytes: encodeEntry(3, ENTRY_KIND.configuration, Uint8Array.of(9)) },
]

const FRAMES: { readonly [T in PeerFrame['type']]: PeerFrame & { readonly type: T } } = {
  preVote: { type: 'preVote', ...ballot },
  preVoteReply: { type: 'preVoteReply', ...answer },
  vote: { type: 'vote', ...ballot },
  voteReply: { type: 'voteReply', ...answer, isGranted: false },
  append: { type: 'append', ...head, commit: 6, prevIndex: 40, prevTerm: 1, entries },
  appendReply: { type: 'appendReply', ...head, index: 13, isRejected: true, hintIndex: 14, hintTerm: 15 },
  heartbeat: { type: 'heartbeat', ...head, commit: 6, readRound: 16, sample },
  heartbeatReply: { type: 'heartbeatReply', ...head, readRound: 16, sample: undefined },
  snapshot: {
    type: 'snapshot',
    ...head,
    index: 17,
    snapshotTerm: 18,
    configuration,
    manifest: Uint8Array.of(1, 2, 3, 4),
  },
  timeoutNow: { type: 'timeoutNow', ...head },
  transferLeader: { type: 'transferLeader', ...head, target: 19 },
  readIndex: { type: 'readIndex', ...head, context: 20 },
  readIndexReply: { type: 'readIndexReply', ...head, context: 20, index: 21 },
  formation: {
    type: 'formation',
    shard: 'shard-1',
    votersDigest: digest,
    voters: ['a', 'b'],
    codecHash: 'c0'.repeat(32),
    formatVersion: 1,
    incarnation,
    echo: '',
    formsWithMajority: true,
    state: 'seeded',
    contentDigest: digest,
    index: 22,
    term: 23,
    clusterId: '',
    isFounder: true,
    isUntouched: false,
    leader: 'a',
    members: ['a', 'c'],
  },
  join: { type: 'join', node: 'c', incarnation, isInitialVoter: true },
  joined: { type: 'joined', member: 1_003, configuration },
  refused: { type: 'refused', reason: 'full', detail: 'é' },
  admin: { type: 'admin', id: 24, kind: 'drop-load', node: 'b', digest, detail: 'x' },
  adminReply: { type: 'adminReply', id: 24, ok: true, status: 409, text: 'no' },
  chunkHave: { type: 'chunkHave', digests: [digest] },
  chunkRequest: { type: 'chunkRequest', id: 25, digest, offset: 26, length: 27 },
  chunkData: { type: 'chunkData', id: 25, digest, offset: 26, bytes: Uint8Array.of(5, 6) },
  chunkMissing: { type: 'chunkMissing', id: 25, digest },
  offerReply: { type: 'offerReply', index: 28, ok: true, reason: 'held' },
  facts: { type: 'facts', featureLevel: 1, memoryBudget: 2 ** 33, shardTimeMs: 29 },
  bulkHolds: { type: 'bulkHolds', digest, isComplete: true, reason: '' },
}

test('the header of a frame', () => {
  const bytes = encodeFrame(COMMON, FRAMES.timeoutNow)
  expect(hexOf(bytes.subarray(0, FRAME_HEADER_BYTES))).toMatchInlineSnapshot(
    `"010a00000102030405060708090a0b0c0d0e0f10a0a1a2a3a4a5a6a7a8a9aaabacadaeaff0f1f2f3f4f5f6f7"`,
  )
})

test('the kind, stream and body of every frame', () => {
  const rows = Object.values(FRAMES).map((frame) => {
    const bytes = encodeFrame(COMMON, frame)
    expect(decodeFrame(bytes)).toEqual({ common: COMMON, frame })
    return `${frame.type} ${bytes[1]} ${streamOf(frame)} ${hexOf(bytes.subarray(FRAME_HEADER_BYTES))}`
  })
  expect(rows.join('\n')).toMatchInlineSnapshot(`
    "preVote 1 control 0100000000000000ea030000000000000300000001000000040000000000000005000000000000000106000000000000000700000000000000
    preVoteReply 2 control 0100000000000000ea0300000000000003000000010000000106000000000000000700000000000000
    vote 3 control 0100000000000000ea030000000000000300000001000000040000000000000005000000000000000106000000000000000700000000000000
    voteReply 4 control 0100000000000000ea0300000000000003000000010000000006000000000000000700000000000000
    append 5 append 0100000000000000ea030000000000000300000001000000280000000000000001000000000000000600000000000000030000002b00000002000000000000000103000000010203020000000000000002000000000300000000000000030100000009
    appendReply 6 append 0100000000000000ea0300000000000003000000010000000d00000000000000010e000000000000000f00000000000000
    heartbeat 7 control 0100000000000000ea030000000000000300000001000000060000000000000010000000000000000108000000000000000109000000000000000a0000000b0000000c00000000000000
    heartbeatReply 8 control 0100000000000000ea030000000000000300000001000000100000000000000000
    snapshot 9 bulk 0100000000000000ea0300000000000003000000010000001100000000000000120000000000000003000100000000000000010061000200000000000000010062010f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0feb03000000000000010063010f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f020001000000000000000200000000000000010001000000000000000100eb030000000000000000010400000001020304
    timeoutNow 10 control 0100000000000000ea030000000000000300000001000000
    transferLeader 11 control 0100000000000000ea0300000000000003000000010000001300000000000000
    readIndex 12 control 0100000000000000ea0300000000000003000000010000001400000000000000
    readIndexReply 13 control 0100000000000000ea03000000000000030000000100000014000000000000001500000000000000
    formation 64 control 070073686172642d31d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d10200010061010062c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0010000000f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f00010101d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1160000000000000017000000000000000001000100610200010061010063
    join 65 control 0100630f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f01
    joined 66 control eb0300000000000003000100000000000000010061000200000000000000010062010f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0feb03000000000000010063010f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f020001000000000000000200000000000000010001000000000000000100eb03000000000000000001
    refused 67 control 040066756c6c0200c3a9
    admin 68 control 18000000000000000401006201d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1010078
    adminReply 69 control 180000000000000001990102006e6f
    chunkHave 70 bulk 010100d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1
    chunkRequest 71 bulk 1900000000000000d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d11a0000001b000000
    chunkData 72 bulk 1900000000000000d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d11a000000020000000506
    chunkMissing 73 bulk 1900000000000000d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1
    offerReply 74 control 1c0000000000000001040068656c64
    facts 76 control 0100000000000000020000001d00000000000000
    bulkHolds 75 control d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1010000"
  `)
})

test('the handshakes', () => {
  const hello = { instance: incarnation, from: 'a', to: 'b' }
  const bytes = [
    ...(['control', 'bulk'] as const).map((stream) => encodeHello({ ...hello, stream })),
    encodeWelcome({ instance: incarnation, node: 'b' }),
    ...REFUSALS.map(encodeRefusal),
  ]
  expect(bytes.map(hexOf).join('\n')).toMatchInlineSnapshot(`
    "565045480101000f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f010061010062
    565045480101020f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f010061010062
    5650454801020f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f010062
    56504548010300
    56504548010301
    56504548010302
    56504548010303
    56504548010304
    56504548010305"
  `)
})
