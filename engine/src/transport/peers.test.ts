import { beforeEach, expect, test } from 'vitest'
import { createSimulatedDisk } from '../testing/disk.ts'
import { createSimulation, type Simulation } from '../testing/simulation.ts'
import { retryMs } from './dial.ts'
import { encodeFrame, type FrameCommon, type PeerFrame } from './frames.ts'
import { bytesOfHex, createPeers, eventsOf, type Peers, refusePeer, sendFrame, wantPeers } from './peers.ts'
import { TRANSPORT_LIMITS } from './transport-state.ts'

const CODECS = 'c0ffee00'.repeat(8)
const VOTE: PeerFrame = { type: 'timeoutNow', from: 2, to: 1, term: 3 }
const CHUNK: PeerFrame = { type: 'chunkMissing', id: 1, digest: '0f'.repeat(32) }
const ID = new Uint8Array(16).fill(1)

let simulation: Simulation
let peers: Peers
let sent: string[]
let isAccepting: boolean
beforeEach(() => {
  simulation = createSimulation({ disk: createSimulatedDisk() })
  peers = createPeers('a', CODECS, simulation.env)
  peers.raftId = 1
  peers.nodeOf = (id) => (id === 2 ? 'b' : undefined)
  sent = []
  isAccepting = true
  peers.transport = {
    send(peer, stream, frame) {
      sent.push(`${peer} ${stream} ${frame.length}`)
      return isAccepting
    },
    queuedBytes: () => 0,
    setPeers: (nodes) => sent.push(`wanted ${nodes.join(' ')}`),
    close: async () => undefined,
  }
})

/** A frame of peer `b`. @returns the types of frames that reached the handler */
function receive(frame: PeerFrame, common: Partial<FrameCommon> = {}): string[] {
  const taken: string[] = []
  peers.handler = { onFrame: (peer, { type }) => taken.push(`${peer} ${type}`) }
  eventsOf(peers).onFrame('b', 'control', encodeFrame({ ...peers.common, ...common }, frame))
  return taken
}
const logged = () => simulation.lines.map(({ message }) => message)

test('hexadecimal digits are bytes, and nothing else is', () => {
  expect([...bytesOfHex('00ff7a')]).toEqual([0, 255, 122])
  expect([...peers.common.codecHash]).toEqual([0xc0, 0xff, 0xee, 0, 0xc0, 0xff, 0xee, 0])
  for (const text of ['0', '0g', 'FF', '00ff0']) expect(() => bytesOfHex(text)).toThrow('hexadecimal digits')
})

test('frames are sent on the stream of their kind, and counted by whether a connection took them', () => {
  expect(sendFrame(peers, 'b', VOTE)).toBe(true)
  isAccepting = false
  expect(sendFrame(peers, 'b', CHUNK)).toBe(false)
  peers.transport = undefined
  expect(sendFrame(peers, 'b', VOTE)).toBe(false)

  expect(sent).toEqual(['b control 68', 'b bulk 84'])
  expect([peers.sent, peers.unsent]).toEqual([1, 2])
  expect(() => sendFrame(peers, 'a', VOTE)).toThrow('a node does not send to itself')
})

test('other nodes are wanted once each, and only changes reach the transport', () => {
  for (const nodes of [['c', 'a', 'b', 'c'], ['b', 'c'], ['c'], [], ['a']]) wantPeers(peers, nodes)
  expect(sent).toEqual(['wanted b c', 'wanted c', 'wanted '])
})

test('received frames reach the handler of the moment', () => {
  peers.common.clusterId = ID
  expect(receive(VOTE)).toEqual(['b timeoutNow'])
  peers.handler = undefined
  eventsOf(peers).onFrame('b', 'control', encodeFrame(peers.common, VOTE))
  expect(peers.received).toBe(2)
})

test('nodes with an open bulk stream are known', () => {
  const events = eventsOf(peers)
  const seen: unknown[] = []
  events.onOpen('x', 'bulk')
  peers.handler = {
    onFrame: () => undefined,
    onOpen: (...opened) => seen.push(opened),
    onClosed: (...closed) => seen.push(closed),
  }
  events.onOpen('b', 'control')
  events.onOpen('b', 'bulk')
  events.onOpen('c', 'append')
  expect([...peers.connected]).toEqual(['x', 'b'])

  events.onClosed('b', 'control', false)
  expect([...peers.connected]).toEqual(['x', 'b'])
  events.onClosed('b', 'bulk', true)

  expect([...peers.connected]).toEqual(['x'])
  expect(seen).toEqual([
    ['b', 'control'],
    ['b', 'bulk'],
    ['c', 'append'],
    ['b', 'control', false],
    ['b', 'bulk', true],
  ])
})

test.each<[string, Partial<FrameCommon>, PeerFrame, string]>([
  ['version', { version: 2 }, CHUNK, 'it runs another version of the protocol between nodes'],
  [
    'cluster',
    { clusterId: ID.map(() => 9) },
    CHUNK,
    'it belongs to another cluster of that name: another one was founded, or restored',
  ],
  ['genesis', { genesis: ID.map(() => 9) }, CHUNK, 'it belongs to this shard before it was restored'],
  ['codecs', { codecHash: new Uint8Array(8) }, CHUNK, 'its codec list differs'],
  ['sender', {}, { ...VOTE, from: 3 }, 'it sends under the id of another node'],
])('a frame of another %s is dropped, counted and logged', (fault, common, frame, why) => {
  peers.common.clusterId = ID
  peers.common.genesis = ID
  peers.nodeOf = () => 'c'

  expect(receive(frame, common)).toEqual([])

  expect(peers.faults).toMatchObject({ [fault]: 1 })
  expect(peers.refused).toEqual({ [fault]: 1 })
  expect(peers.received).toBe(0)
  expect(logged()).toEqual([`peer refused: ${why}`])
})

test('bytes that are no frame, and frames of an unknown kind, are refused by name', () => {
  const events = eventsOf(peers)
  events.onFrame('b', 'control', new Uint8Array(3))
  const unknown = encodeFrame(peers.common, CHUNK)
  unknown[1] = 200
  events.onFrame('b', 'control', unknown)
  expect(peers.refused).toEqual({ malformed: 1, kind: 1 })
  expect(logged()).toEqual([
    'peer refused: it sends frames that cannot be read',
    'peer refused: it sends messages that this version does not support',
  ])
})

test('late frames are dropped without a refusal: for another member, or before the shard is formed', () => {
  peers.common.clusterId = ID
  expect(receive({ ...VOTE, to: 7 })).toEqual([])
  peers.common.clusterId = new Uint8Array(16)
  expect(receive(VOTE)).toEqual([])
  peers.common.clusterId = ID
  expect(receive(VOTE, { clusterId: ID.map((_, i) => (i === 15 ? 2 : 1)) })).toEqual([])

  expect(peers.faults).toMatchObject({ addressee: 1, cluster: 2 })
  expect(peers.refused).toEqual({ cluster: 1 })
})

test('a refusal is logged again after a minute, by peer and reason', () => {
  const refuse = (peer: string, reason: string) => refusePeer(peers, peer, reason, 'it is late')
  for (const [peer, reason] of [
    ['b', 'x'],
    ['b', 'x'],
    ['b', 'y'],
    ['c', 'x'],
  ] as const)
    refuse(peer, reason)
  expect(peers.refused).toEqual({ x: 3, y: 1 })
  expect(simulation.lines).toHaveLength(3)
  simulation.advance(59_999)
  refuse('b', 'x')
  expect(simulation.lines).toHaveLength(3)
  simulation.advance(1)
  refuse('b', 'x')
  expect(simulation.lines).toHaveLength(4)
})

test('peers without end that are refused take a bounded memory', () => {
  for (let i = 0; i < 256; i++) refusePeer(peers, `peer-${i}`, 'x', 'it is late')
  expect(peers.loggedMs.size).toBe(256)
  refusePeer(peers, 'one-more', 'x', 'it is late')
  expect([...peers.loggedMs.keys()]).toEqual(['one-more x'])
  const unlogged = createPeers('a', CODECS)
  refusePeer(unlogged, 'b', 'x', 'it is late')
  expect(unlogged.refused).toEqual({ x: 1 })
})

test.each([
  [0, 25, 50],
  [1, 50, 100],
  [5, 800, 1_600],
  [6, 1_000, 2_000],
  [1_000, 1_000, 2_000],
])('after %i failures the next attempt waits %i to %i ms', (failedBefore, least, most) => {
  expect(retryMs(TRANSPORT_LIMITS, failedBefore, -1)).toBe(least)
  expect(retryMs(TRANSPORT_LIMITS, failedBefore, 127)).toBe((least + most) / 2)
  expect(retryMs(TRANSPORT_LIMITS, failedBefore, 255)).toBe(most)
})
