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
  stopTopology,
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

describe('a search for the leader', () => {
  test('tries another node when the time of the searching write is over, not before', () => {
    const { topology, world, to } = start()
    writeSent(topology, () => true, 500)
    world.advance(499)
    expect(to(WRITE)).toBe(-1)
    world.advance(1)
    expect(to(WRITE)).toBe(0)
  })

  test('pauses once after each round, asks the API, and has calls try again', () => {
    const { topology, world, connection, to } = start()
    const seen: string[] = []
    topology.onSearch = () => seen.push('search')
    topology.changed = () => seen.push('changed')
    for (let i = 0; i < 3; i++) nodeAnswered(topology, connection(i), true, '308')
    expect(seen.splice(0)).toEqual(['changed', 'changed', 'changed'])

    expect([to(WRITE), to(WRITE)]).toEqual([-1, -1])
    expect(seen.splice(0)).toEqual(['search'])
    expect(world.waits()).toEqual([15])
    world.advance(15)

    expect(seen).toEqual(['changed'])
    expect(to(WRITE)).toBe(0)
  })

  test('does not pause while no node is open, and not after its end', () => {
    const { topology, world, connection, node, to } = start()
    for (let i = 0; i < 3; i++) nodeClosed(topology, node(i), connection(i))
    expect([to(WRITE), world.waits()]).toEqual([-1, []])

    const other = start()
    for (let i = 0; i < 3; i++) nodeAnswered(other.topology, other.connection(i), true, '308')
    other.to(WRITE)
    stopTopology(other.topology)
    expect(other.world.waits()).toEqual([])
  })

  test('ends with a confirmation: its pause, its refusals and its rounds are forgotten', () => {
    const { topology, world, connection, node, to } = start()
    const refuseAll = () => {
      for (let i = 0; i < 3; i++) nodeAnswered(topology, connection(i), true, '503')
      to(WRITE)
    }
    refuseAll()
    world.advance(15)
    refuseAll()
    expect(world.waits()).toEqual([30])
    let changes = 0
    topology.changed = () => changes++

    confirm(topology, node(1))
    expect([changes, world.waits(), to(WRITE), topology.refusedBy.size]).toEqual([1, [], 1, 0])
    confirm(topology, node(2))
    expect([changes, to(WRITE)]).toEqual([1, 1])

    nodeAnswered(topology, connection(1), true, '308')
    refuseAll()
    expect(world.waits()).toEqual([15])
  })

  test('a leader that is only known by its role goes first, and is not confirmed', () => {
    const { topology, connection, node, to } = start()
    confirm(topology, node(0))
    nodeAnswered(topology, connection(0), true, '503')
    expect(topology.leader).toBeUndefined()
    expect(topology.isConfirmed).toBe(false)
    confirm(topology, node(2))
    expect(topology.nodes.map(({ role }) => role)).toEqual(['unknown', 'unknown', 'leader'])
    expect(to(WRITE)).toBe(2)
  })

  test('the next leader makes the one before a follower', () => {
    const { topology, node } = start()
    confirm(topology, node(0))
    topology.isConfirmed = false
    confirm(topology, node(1))
    expect(topology.nodes.map(({ role }) => role)).toEqual(['follower', 'leader', 'unknown'])
  })

  test('a later write is not a search once the leader is confirmed', () => {
    const { topology, node, to } = start()
    confirm(topology, node(1))
    writeSent(topology, () => true, 500)
    expect(topology.probe).toBeUndefined()
    expect(to(WRITE)).toBe(1)
  })

  test('begins when the last connection of the leader is lost, or it belongs to another shard', () => {
    const { topology, connection, node } = start()
    let searches = 0
    topology.onSearch = () => searches++
    const second = connectionWith(0)
    nodeOpened(topology, node(0), second)
    confirm(topology, node(0))

    nodeClosed(topology, node(0), connection(0))
    expect(searches).toBe(0)
    nodeClosed(topology, node(1), connection(1))
    expect(searches).toBe(0)
    nodeClosed(topology, node(0), second)
    expect([searches, node(0).role]).toEqual([1, 'unknown'])

    confirm(topology, node(2))
    nodeForeign(topology, node(1))
    expect(searches).toBe(1)
    nodeForeign(topology, node(2))
    expect(searches).toBe(2)
  })

  test('a read that has no reply in time does not make the leader doubtful', () => {
    const { topology, connection, node, to } = start()
    confirm(topology, node(0))
    nodeSilent(topology, connection(0), false)
    expect(to(WRITE)).toBe(0)
  })
})

describe('a node', () => {
  /** Whether node 1, the idle one, receives reads. */
  const used = ({ to }: ReturnType<typeof start>) => to(READ) === 1
  const shard = () => {
    const started = start({ inFlight: [9, 0, 5] })
    confirm(started.topology, started.node(0))
    return started
  }

  test.each([
    ['503', false],
    ['405', false],
    ['429', true],
    ['NOT_FOUND', true],
    ['SUCCESS', true],
  ])('that replied to a read with %s receives more: %s', (code, isUsed) => {
    const started = shard()
    nodeAnswered(started.topology, started.connection(1), false, code)
    expect(used(started)).toBe(isUsed)
    started.world.advance(STALE_MS - 1)
    expect(used(started)).toBe(isUsed)
    started.world.advance(1)
    expect(used(started)).toBe(true)
  })

  test('that was stale is used again at once after it served a read, not after another refusal', () => {
    const started = shard()
    const answer = (code: string) => nodeAnswered(started.topology, started.connection(1), false, code)
    answer('503')
    answer('429')
    expect(used(started)).toBe(false)
    answer('SUCCESS')
    expect(used(started)).toBe(true)
  })

  test('is avoided for 1, 2, 4, 8, 16 and 30 seconds; any reply starts again', () => {
    const started = shard()
    const { topology, world, connection } = started
    const avoidedMs = () => {
      for (let i = 0; i < TIMEOUTS_TO_EJECT; i++) nodeSilent(topology, connection(1), false)
      let ms = 0
      for (; !used(started); ms += 500) world.advance(500)
      return ms
    }
    expect(Array.from({ length: 7 }, avoidedMs)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000])

    nodeAnswered(topology, connection(1), true, '429')
    expect(avoidedMs()).toBe(1_000)
  })

  test('is avoided only for silence in a row', () => {
    const started = shard()
    const { topology, connection } = started
    for (let i = 0; i < 5; i++) {
      nodeSilent(topology, connection(1), false)
      nodeSilent(topology, connection(1), false)
      nodeAnswered(topology, connection(1), false, 'NOT_FOUND')
    }
    expect(used(started)).toBe(true)
  })

  test('is blamed for lost connections, each once', () => {
    const { topology, world, node, to } = start({ inFlight: [9, 0, 5] })
    confirm(topology, node(0))
    const connections = [1, 2, 3].map(() => connectionWith(0))
    for (const connection of connections) nodeOpened(topology, node(1), connection)
    for (const connection of connections.slice(0, 2)) {
      nodeClosed(topology, node(1), connection)
      nodeClosed(topology, node(1), connection)
    }
    expect(to(READ)).toBe(1)
    nodeClosed(topology, node(1), connections[2] as Connection)
    expect(to(READ)).toBe(2)
    world.advance(1_000)
    expect(to(READ)).toBe(1)
  })

  test('is not affected by replies on a connection that it no longer has', () => {
    const { topology, connection, node, to } = start()
    nodeClosed(topology, node(0), connection(0))
    nodeAnswered(topology, connection(0), true, 'SUCCESS')
    nodeSilent(topology, connection(0), true)
    expect(node(0)).toMatchObject({ role: 'unknown', timeouts: 1 })
    expect(to(WRITE)).toBe(1)
  })

  test('of two as busy the first one chosen is used; all their connections count', () => {
    const { topology, node, to } = start({ inFlight: [1, 1, 1], reads: 'any' })
    // Half of three is the second node; half of the two others is the third.
    expect(to(READ)).toBe(1)
    nodeOpened(topology, node(1), connectionWith(1))
    expect(to(READ)).toBe(2)
  })

  test('that leads serves reads that prefer it, unless it is avoided', () => {
    const { topology, connection, node, to } = start({ inFlight: [9, 0, 5] })
    confirm(topology, node(0))
    const preferring = { isWrite: false, prefersLeader: true }
    expect(to(preferring)).toBe(0)
    nodeAnswered(topology, connection(0), false, '503')
    expect(to(preferring)).toBe(1)
  })

  test('that leads serves reads when the others are avoided, and an avoided one when nothing else is left', () => {
    const { topology, connection, node, to } = start({ inFlight: [9, 0, 5] })
    confirm(topology, node(0))
    for (const i of [1, 2]) nodeAnswered(topology, connection(i), false, '503')
    expect(to(READ)).toBe(0)
    nodeAnswered(topology, connection(0), false, '503')
    expect(to(READ)).toBe(1)
  })
})
