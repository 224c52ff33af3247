import fc from 'fast-check'
import { expect, test } from 'vitest'
import { storedTopology, storeTopology, topologyFrom } from './discovery.ts'
import {
  type BridgeNode,
  electedLeader,
  identityFault,
  isSameTopology,
  NO_TOPOLOGY,
  type NodeReport,
  nextTopology,
  type Topology,
} from './topology.ts'

const place = (id: string) => ({ host: id, tcpPort: 7777, apiPort: 8080 })

function report(id: string, leaderId: string, more: Partial<NodeReport> = {}): NodeReport {
  const health = id === leaderId ? 'active_leader' : 'active_follower'
  return { id, address: place(id), health, leaderId, members: undefined, lag: undefined, ...more }
}

const probed = (reports: readonly NodeReport[], more: readonly string[] = []) =>
  new Set([...reports.map(({ id }) => id), ...more])

const rolesOf = ({ nodes }: Topology) => Object.fromEntries([...nodes].map(([id, { role }]) => [id, role]))

test('the leader that the nodes name leads, and those that name it and serve follow', () => {
  const reports = [
    report('a', 'a'),
    report('b', 'a', { lag: 7 }),
    report('c', 'a', { health: 'active' }),
    report('d', 'x'),
  ]

  const { topology, isFound } = nextTopology(NO_TOPOLOGY, reports, probed(reports))

  expect(isFound).toBe(true)
  expect(topology.leader).toBe('a')
  expect(rolesOf(topology)).toEqual({ a: 'leader', b: 'follower', c: 'other', d: 'other' })
  expect(topology.nodes.get('b')).toEqual({
    id: 'b',
    address: place('b'),
    role: 'follower',
    health: 'active_follower',
    lag: 7,
  })
})

test('a node that is named but does not answer as leader does not lead: nothing changes', () => {
  const before = [report('a', 'a'), report('b', 'a'), report('c', 'a')]
  const present = nextTopology(NO_TOPOLOGY, before, probed(before)).topology
  const during = [report('b', 'b', { health: 'active_follower' }), report('c', 'b')]

  expect(nextTopology(present, during, probed(during, ['a']))).toEqual({ topology: present, isFound: false })
})

test('a bridge without a topology takes the followers that agree, although their leader does not answer', () => {
  const reports = [report('b', 'a'), report('c', 'a')]

  const { topology, isFound } = nextTopology(NO_TOPOLOGY, reports, probed(reports, ['a']))

  expect(isFound).toBe(false)
  expect(topology.leader).toBe(undefined)
  expect(rolesOf(topology)).toEqual({ b: 'follower', c: 'follower' })
})

test('a promoted follower leads, and the old leader is no follower until it reports so', () => {
  const before = [report('a', 'a'), report('b', 'a'), report('c', 'a')]
  const present = nextTopology(NO_TOPOLOGY, before, probed(before)).topology
  const after = [report('b', 'b'), report('c', 'b')]

  const { topology } = nextTopology(present, after, probed(after, ['a']))

  expect(rolesOf(topology)).toEqual({ b: 'leader', c: 'follower', a: 'other' })
  expect(topology.nodes.get('a')?.health).toBe('unreachable')
})

test('a node that no node names any more is dropped', () => {
  const before = [report('a', 'a'), report('b', 'a'), report('c', 'a')]
  const present = nextTopology(NO_TOPOLOGY, before, probed(before)).topology
  const after = [report('a', 'a'), report('b', 'a')]

  expect([...nextTopology(present, after, probed(after)).topology.nodes.keys()]).toEqual(['a', 'b'])
})

const members = { voters: ['a', 'b', 'c'], term: 1 }

test('where nodes report the voters, a strict majority of those that answered must name the leader', () => {
  const cut = report('a', 'a', { members })
  const [b, c] = [report('b', '', { members }), report('c', '', { members })]

  expect(electedLeader([cut, b, c], 'a')).toBe('')
  expect(electedLeader([cut, b], 'a')).toBe('')
  expect(electedLeader([cut, report('b', 'a', { members }), c], undefined)).toBe('a')
  expect(electedLeader([cut], undefined)).toBe('a')
})

test('learners have no vote, and the newest configuration counts', () => {
  const old = report('l', 'x', { members: { voters: ['l'], term: 1 } })
  const reports = [report('a', 'a', { members: { ...members, term: 2 } }), old, report('m', 'x'), report('n', 'x')]

  expect(electedLeader(reports, 'x')).toBe('a')
})

test('elsewhere the most named leads; with equal counts the present one stays', () => {
  const [a, b] = [report('a', 'a'), report('b', 'b')]

  expect(electedLeader([a, b], 'b')).toBe('b')
  expect(electedLeader([a, b], 'a')).toBe('a')
  expect(electedLeader([report('c', 'x'), b], undefined)).toBe('b')
  expect(electedLeader([report('c', 'a'), a, b], 'b')).toBe('a')
  expect(electedLeader([report('c', ''), report('d', '')], 'a')).toBe('')
})

test('a node of another shard, zone or id is recognized; missing parts are tolerated', () => {
  const expected = { node: 'n1', shard: 's1', zone: 'z1' }

  expect(identityFault(expected, expected)).toBe('')
  expect(identityFault({ node: 'n1', shard: undefined, zone: '' }, expected)).toBe('')
  expect(identityFault({ ...expected, shard: 's2' }, expected)).toBe('it is of shard s2, not s1')
  expect(identityFault({ ...expected, node: 'n2' }, expected)).toBe('it is of node n2, not n1')
  expect(identityFault({ ...expected, zone: 'z2' }, expected)).toBe('it is of zone z2, not z1')
})

const id = fc.constantFrom('a', 'b', 'c', 'd')
const anyReport = fc.record({
  id,
  address: id.map(place),
  health: fc.constantFrom('active_leader', 'active_follower', 'active'),
  leaderId: fc.constantFrom('a', 'b', 'c', ''),
  members: fc.option(
    fc.record({ voters: fc.uniqueArray(id, { maxLength: 3 }), term: fc.integer({ min: 0, max: 3 }) }),
    { nil: undefined },
  ),
  lag: fc.option(fc.nat(100), { nil: undefined }),
})
const rounds = fc.array(fc.uniqueArray(anyReport, { selector: (each) => each.id }), { maxLength: 6 })

test('after any rounds there is at most one leader, it answered as such, and followers agree with it', () => {
  fc.assert(
    fc.property(rounds, (history) => {
      let topology = NO_TOPOLOGY
      for (const reports of history) {
        const before = topology
        const next = nextTopology(before, reports, probed(reports, [...before.nodes.keys()]))
        topology = next.topology
        const leaders = [...topology.nodes.values()].filter(({ role }) => role === 'leader')
        expect(leaders.map((node) => node.id)).toEqual(topology.leader === undefined ? [] : [topology.leader])
        if (!next.isFound) {
          if (before.nodes.size > 0) expect(topology).toBe(before)
          continue
        }
        const { leader } = topology
        const own = reports.find((each) => each.id === leader)
        expect(own).toMatchObject({ health: 'active_leader', leaderId: leader })
        for (const node of topology.nodes.values()) {
          if (node.role === 'follower') {
            expect(reports.find((each) => each.id === node.id)).toMatchObject({
              health: 'active_follower',
              leaderId: leader,
            })
          }
        }
        expect(isSameTopology(topology, topology)).toBe(true)
      }
    }),
    { numRuns: 1_000 },
  )
})

test('a topology survives the cache, without lags', () => {
  fc.assert(
    fc.property(fc.uniqueArray(anyReport, { selector: (each) => each.id }), (reports) => {
      const { topology } = nextTopology(NO_TOPOLOGY, reports, probed(reports))

      const restored = topologyFrom(storedTopology.parse(JSON.parse(JSON.stringify(storeTopology(topology, 's', 'z')))))

      expect(isSameTopology(restored, topology)).toBe(true)
      expect([...restored.nodes.values()].every(({ lag }: BridgeNode) => lag === undefined)).toBe(true)
    }),
  )
})
