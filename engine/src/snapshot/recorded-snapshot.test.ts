/**
 * The bytes of a snapshot before compression. A node reads the snapshots of earlier versions, and members exchange
 * them, as long as these stay: writing and reading with the same mistake would not be noticed otherwise.
 */

import { expect, test } from 'vitest'
import { contentOf, createSimulatedDisk } from '../testing/disk.ts'
import { createSimulation } from '../testing/simulation.ts'
import { createTestSource } from '../testing/snapshot-source.ts'
import {
  type Content,
  chunkFileName,
  decodeChunk,
  decodeManifest,
  encodeChunk,
  encodeManifest,
  hex,
  type Position,
  sha256,
} from './format.ts'
import { encodeProperties, encodeTables } from './sections.ts'
import { chunksFolder, inlineEncoder, writeSnapshotDirAtOnce } from './write.ts'

/** Kind, bytes, packages and the beginning of the SHA-256. */
const BLOCKS = {
  constant: [
    'properties 17604 0 2fd09129468702bd',
    'tables 2770 0 35ac9ba3a546083f',
    'words 32454 5807 ce59e70e2f4441e7',
    'sessions 12 0 8b26acf0b4097599',
    'settings 4 0 9f64a747e1b97f13',
  ],
  random: [
    'properties 17604 0 2fd09129468702bd',
    'tables 2770 0 35ac9ba3a546083f',
    'words 32454 5764 2befab951f4406b4',
    'sessions 12 0 8b26acf0b4097599',
    'settings 4 0 9f64a747e1b97f13',
  ],
}
const DATA = '/data'
const CODECS = 'c0'.repeat(32)
const part = (seed: number) => ({
  digest: new Uint8Array(32).fill(seed),
  bytes: 64 + seed,
  packages: seed,
  packageDigest: { lo: seed + 1, hi: seed + 2 },
})

const CONTENT: Content = {
  shardId: 's1',
  codecs: ['breakfast', 'é'],
  codecsOrderedHash: CODECS,
  lastMaintenanceDay: 20_454,
  digest: { lo: 0xdeadbeef, hi: 1 },
  properties: 12,
  packages: 2 ** 40,
  sessions: 3,
  window: { from: 20_454, to: 20_819 },
  segments: [
    { name: 'a', properties: 10, packages: 2 ** 40 },
    { name: 'b', properties: 2, packages: 0 },
  ],
  blocks: [
    { kind: 'properties', parts: [part(1)] },
    { kind: 'words', parts: [part(2), part(3)] },
  ],
}
const POSITION: Position = {
  index: 2 ** 41,
  term: 7,
  configuration: { voters: ['x', 'y'], learners: ['z'] },
  membership: {
    members: [
      { id: 1, node: 'x', incarnation: '' },
      { id: 2, node: 'y', incarnation: '0f'.repeat(16) },
      { id: 1_003, node: 'z', incarnation: '0f'.repeat(16) },
    ],
    voters: [1, 2],
    outgoing: [],
    learners: [1_003],
    staged: [],
    autoLeave: false,
  },
}

test('a manifest', () => {
  const bytes = encodeManifest({ ...CONTENT, ...POSITION })
  expect(
    hex(bytes)
      .match(/.{1,96}/g)
      ?.join('\n'),
  ).toMatchInlineSnapshot(`
    "564d4e4601000000360100009000000002000a0070726f7065727469657301000500776f726473010002007331020000
    000900627265616b666173740200c3a9c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0
    e64f0000efbeadde010000000c000000000000000001000003000000e64f000053510000020000000100610a00000000
    000000000100000100620200000000000000000000000200000000000100000001010101010101010101010101010101
    010101010101010101010101010101014100000001000000020000000300000001000200000002020202020202020202
    020202020202020202020202020202020202020202024200000002000000030000000400000003030303030303030303
    030303030303030303030303030303030303030303034300000003000000040000000500000000000000000200000700
    000000000000020000000100780100790100000001007a07006d656d6265727301006000000001000301000000000000
    0001780002000000000000000179010f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0feb03000000000000017a010f0f0f0f0f0f
    0f0f0f0f0f0f0f0f0f0f02010000000000000002000000000000000001eb0300000000000000bfa3f7be121b2c7be530
    825f1dc4e8ae0fc622a9d6fa2c5ac8d4ef52ff4ff67b"
  `)
  const { contentDigest, manifestDigest } = decodeManifest(bytes, 'MANIFEST')
  expect([contentDigest, manifestDigest].map(hex).join('\n')).toMatchInlineSnapshot(`
    "2fab7616995ad79ca718aced25bcc29dcac58ca0c61a5c5f5e14f5bdb2144d85
    bfa3f7be121b2c7be530825f1dc4e8ae0fc622a9d6fa2c5ac8d4ef52ff4ff67b"
  `)
  const elsewhere = encodeManifest({ ...CONTENT, ...POSITION, index: 9, membership: undefined, window: undefined })
  expect(elsewhere.length).toMatchInlineSnapshot(`391`)
})

test('the header of a chunk', () => {
  const { bytes } = encodeChunk('words', CODECS, new Uint8Array(1_000).fill(7))
  const frameBytes = new DataView(bytes.buffer).getUint32(28, true)
  expect(frameBytes).toBe(bytes.length - 64)
  expect(hex(bytes.subarray(0, 28))).toMatchInlineSnapshot(`"5643484b01000100776f72647300000000000000e8030000dc309845"`)
  expect(hex(bytes.subarray(32, 64))).toBe(CODECS)
})

test.each(['constant', 'random'] as const)('every block of a state with %s values', (values) => {
  const shape = { segments: 3, roomTypes: 3, propertiesPerSegment: 150, nights: 6, absent: 20, dead: 10 }
  const source = createTestSource({ ...shape, values, seed: 5, index: 9, term: 2 })
  const disk = createSimulatedDisk()
  disk.makeDirectory(DATA)
  const options = { encoder: inlineEncoder(source, source.planes.scratch[0] as number), origin: 'test' }
  const written = writeSnapshotDirAtOnce(createSimulation({ disk }).env, DATA, source, options)
  const manifest = written?.manifest ?? expect.fail('it is written')

  const rows = manifest.blocks.flatMap(({ kind, parts }) =>
    parts.map((each) => {
      const file = `${chunksFolder(DATA)}/${chunkFileName(each.digest)}`
      const expected = { kind, part: each, codecsOrderedHash: source.codecs.orderedHash, file, offset: 0 }
      const raw = decodeChunk(contentOf(disk, file), expected)
      return `${kind} ${raw.length} ${each.packages} ${hex(sha256(raw)).slice(0, 16)}`
    }),
  )
  expect(rows).toEqual(BLOCKS[values])
  expect(hex(sha256(encodeProperties(source.names, source.properties))).slice(0, 16)).toBe(rows[0]?.split(' ').at(-1))
  expect(hex(sha256(encodeTables(source.tables))).slice(0, 16)).toBe(rows[1]?.split(' ').at(-1))
})
