import { describe, expect, test } from 'vitest'
import type { Connection } from './connection.ts'
import { turnedWorld } from './testing/turned-world.ts'
import {
  confirm,
  createTopology,
  nodeAnswered,
  nodeClosed,
  nodeFor,
  nodeForeign,
  nodeOpened,
  nodeSilent,
  type ReadsFrom,
  type ShardNode,
  STALE_MS,
  TIMEOUTS_TO_EJECT,
  writeSent,
} from './topology.ts'

const WRITE = { isWrite: true, prefersLeader: false }
const READ = { isWrite: false, prefersLeader: false }

/** The part of a connection that a topology uses. */
function connectionWith(inFlight: number): Connection {
  const onTheirWay = new Map(Array.from({ length: inFlight }, (_, i) => [i, undefined]))
  return { onTheirWay } as unknown as Connection
}

function start(options: { inFlight?: readonly number[]; reads?: ReadsFrom } = {}) {
  const { inFlight = [0, 0, 0], reads = 'followers' } = options
  const world = turnedWorld()
  const addresses = inFlight.map((_, i) => ({ address: { host: 'node', port: i + 1 }, api: undefined }))
  const topology = createTopology(world, addresses, reads)
  const connections = inFlight.map(connectionWith)
  for (const [i, connection] of connections.entries()) {
    nodeOpened(topology, topology.nodes[i] as ShardNode, connection)
  }
  return {
    world,
    topology,
    node: (i: number) => topology.nodes[i] as ShardNode,
    connection: (i: number) => connections[i] as Connection,
    to: (call: Parameters<typeof nodeFor>[1]) => {
      const node = nodeFor(topology, call)
      return node ? topology.nodes.indexOf(node) : -1
    },
  }
}

describe('a write', () => {
  test('goes to each node until one executes it, and to that node from then on', () => {
    const { topology, connection, to } = start()

    expect(to(WRITE)).toBe(0)
    nodeAnswered(topology, connection(0), true, '308')
    expect(to(WRITE)).toBe(1)
    nodeAnswered(topology, connection(1), true, 'UNDERFLOW')

    expect(to(WRITE)).toBe(1)
    expect(topology.nodes.map(({ role }) => role)).toEqual(['follower', 'leader', 'unknown'])
  })

  test('waits while another write finds the leader, unless that one takes long', () => {
    const { topology, world, to } = start()
    let isOut = true
    writeSent(topology, () => isOut, 500)

    expect(to(WRITE)).toBe(-1)
    world.advance(500)
    expect(to(WRITE)).toBe(0)
    writeSent(topology, () => isOut, 500)
    isOut = false

    expect(to(WRITE)).toBe(0)
  })

  test.each(['308', '503'])('that all nodes refuse with %s waits longer before each round', (code) => {
    const { topology, world, connection, to } = start()
    const pauses: number[] = []
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 3; i++) nodeAnswered(topology, connection(i), true, code)
      expect(to(WRITE)).toBe(-1)
      pauses.push(...world.waits())
      world.advance(1_000)
      expect(to(WRITE)).toBe(0)
    }

    expect(pauses).toEqual([15, 30, 60])
  })

  test.each([
    ['308', 'follower'],
    ['503', 'unknown'],
    ['408', 'unknown'],
  ])('refused with %s by the leader starts a new search', (code, role) => {
    const { topology, connection, node, to } = start()
    confirm(topology, node(0))
    let searches = 0
    topology.onSearch = () => searches++

    nodeAnswered(topology, connection(0), true, code)

    expect(to(WRITE)).toBe(1)
    expect([node(0).role, searches]).toEqual([role, 1])
  })

  test.each(['VALIDATION_ERROR', '429', '500'])('refused with %s does not affect the known leader', (code) => {
    const { topology, connection, node, to } = start()
    nodeAnswered(topology, connection(0), true, code)
    expect([to(WRITE), node(0).role]).toEqual([0, 'unknown'])
    confirm(topology, node(2))

    nodeAnswered(topology, connection(2), true, code)

    expect(to(WRITE)).toBe(2)
  })

  test('executed by the former leader, with a late reply, does not restore it as leader', () => {
    const { topology, connection, node, to } = start()
    confirm(topology, node(1))

    nodeAnswered(topology, connection(0), true, 'SUCCESS')

    expect(to(WRITE)).toBe(1)
  })

  test('does not go to a leader without a connection, nor to a silent one', () => {
    const { topology, connection, node, to } = start()
    confirm(topology, node(0))
    nodeClosed(topology, node(0), connection(0))
    expect(to(WRITE)).toBe(1)
    confirm(topology, node(1))

    nodeSilent(topology, connection(1), true)

    expect(to(WRITE)).toBe(2)
  })
})

describe('a read', () => {
  test('goes to the less busy of the nodes that do not lead', () => {
    const { topology, node, to } = start({ inFlight: [0, 5, 2] })
    confirm(topology, node(0))

    expect(to(READ)).toBe(2)
  })

  test.each<[ReadsFrom, number]>([
    ['followers', 2],
    ['any', 0],
    ['leader', 0],
  ])('with reads: %s', (reads, wanted) => {
    const { topology, node, to } = start({ inFlight: [0, 9, 5], reads })
    confirm(topology, node(0))
    const world = topology.world as { random: () => number }
    world.random = () => 0

    expect(to(READ)).toBe(wanted)
  })

  test('refused as stale goes to another node, and so do other reads for a while', () => {
    const { topology, world, connection, node, to } = start({ inFlight: [9, 0, 5] })
    confirm(topology, node(0))

    nodeAnswered(topology, connection(1), false, '503')
    expect(to(READ)).toBe(2)
    nodeAnswered(topology, connection(2), false, '503')
    expect(to(READ)).toBe(0)
    world.advance(STALE_MS)

    expect(to(READ)).toBe(1)
  })

  test('goes to a stale node when there is no other', () => {
    const { topology, connection, to } = start({ inFlight: [0] })
    nodeAnswered(topology, connection(0), false, '503')

    expect(to(READ)).toBe(0)
  })

  test('that requires an index not applied yet goes to the leader, if one is known', () => {
    const { topology, node, to } = start({ inFlight: [0, 0, 7] })
    confirm(topology, node(2))

    expect(to({ isWrite: false, prefersLeader: true })).toBe(2)
  })

  test('avoids a node that kept several waiting, for a second, and longer each time', () => {
    const { topology, world, connection, node, to } = start({ inFlight: [9, 0, 5] })
    confirm(topology, node(0))
    const times = (n: number) => {
      for (let i = 0; i < n; i++) nodeSilent(topology, connection(1), false)
    }

    times(TIMEOUTS_TO_EJECT - 1)
    expect(to(READ)).toBe(1)
    times(1)
    expect(to(READ)).toBe(2)
    world.advance(1_000)
    expect(to(READ)).toBe(1)
    times(TIMEOUTS_TO_EJECT)
    world.advance(1_000)
    expect(to(READ)).toBe(2)
    world.advance(1_000)

    expect(to(READ)).toBe(1)
  })
})

test('a node of another shard receives no requests', () => {
  const { topology, node, to } = start()
  nodeForeign(topology, node(0))

  expect([to(WRITE), to(READ)]).not.toContain(0)
  nodeForeign(topology, node(1))
  nodeForeign(topology, node(2))
  expect([to(WRITE), to(READ)]).toEqual([-1, -1])
})
