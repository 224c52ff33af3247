import type { Clock } from '@vacancy/shared'
import { afterEach, expect, test } from 'vitest'
import { clientsView, createProber, type Prober, probeDue, setWays, stopProber } from './prober.ts'
import type { ProbeResult } from './results.ts'
import { type Way, type WayFacts, waysIn } from './ways.ts'

const INTERVAL_MS = 5_000
const START = Date.parse('2026-11-22T12:00:00Z')
const OK: ProbeResult = { search: { kind: 'answered', ms: 2 }, hold: { kind: 'answered', ms: 6 } }
const FOLLOWER: ProbeResult = { search: { kind: 'answered', ms: 2 }, hold: { kind: 'elsewhere' } }
const NO_LEADER: ProbeResult = {
  search: { kind: 'answered', ms: 2 },
  hold: { kind: 'failed', code: '503', message: 'no leader' },
}
const REFUSED: ProbeResult = {
  search: { kind: 'failed', code: 'connection_failed', message: 'connection refused' },
  hold: undefined,
}

const LATE: ProbeResult = {
  search: { kind: 'failed', code: 'deadline_exceeded', message: 'no answer' },
  hold: undefined,
}

/** A prober whose clock and answers belong to the test. */
function proberOf(intervalMs = INTERVAL_MS) {
  let ms = 0
  const clock = { monotonicMs: () => ms, wallMs: () => START + ms } as Clock
  const world = {
    sent: [] as string[],
    forgotten: [] as string[],
    defects: [] as unknown[],
    answers: new Map<string, ProbeResult | 'never'>(),
    prober: undefined as unknown as Prober,
    /** One probe of what is due now; answers arrive before it resolves. */
    async turn(afterMs = 0) {
      ms += afterMs
      probeDue(world.prober)
      await new Promise(setImmediate)
    },
    state: (shard = 's1') => clientsView(world.prober).shards.find((each) => each.shard === shard),
    summary: () => clientsView(world.prober).clients,
  }
  world.prober = createProber({
    ...{ intervalMs, clock, random: () => 0, onResult: () => {} },
    log: { error: (fields: unknown) => void world.defects.push(fields) } as never,
    forget: ({ key }) => void world.forgotten.push(key),
    probe: ({ key }) => {
      world.sent.push(key)
      const answer = world.answers.get(key) ?? OK
      // While its deadline passes, nothing of this process runs.
      if (answer === LATE) ms += 2_000
      return answer === 'never' ? new Promise(() => {}) : Promise.resolve(answer)
    },
  })
  open = world.prober
  return world
}
let open: Prober | undefined
afterEach(() => {
  if (open) stopProber(open)
})

const waysTo = (shards: readonly string[], nodes: readonly string[], more: Partial<WayFacts> = {}) =>
  waysIn({
    shards,
    segmentOf: (shard) => `${shard}-segment`,
    edges: [],
    nodesOf: (shard) =>
      nodes.map((id) => ({ id, shard, zone: 'z', apiUrl: '', tcp: { host: '10.0.0.1', port: Number(id.slice(1)) } })),
    ...more,
  })

test('nothing is green before it was measured', async () => {
  const world = proberOf()
  setWays(world.prober, waysTo(['s1'], ['n1', 'n2']))

  expect(world.summary()).toMatchObject({ state: 'waiting', answered: 0, unmeasured: 1, search: null, hold: null })
  expect(world.state()).toMatchObject({ state: 'waiting', ways: [{ state: 'waiting' }, { state: 'waiting' }] })

  world.answers.set('s1 node n2', FOLLOWER)
  await world.turn()
  expect(world.state()).toMatchObject({
    ...{ state: 'answers', search: { p50: 2, p99: 2 }, hold: { p50: 6, p99: 6 } },
    ways: [
      { id: 'n1', message: 'Searches and holds are answered' },
      { id: 'n2', message: 'Searches are answered; writes go to the leader' },
    ],
  })
  expect(world.summary()).toMatchObject({ state: 'measured', shards: 1, answered: 1, unmeasured: 0 })
})

test('a failure is repeated soon, and is an outage when it repeats', async () => {
  const world = proberOf()
  setWays(world.prober, waysTo(['s1'], ['n1', 'n2']))
  await world.turn()
  world.answers.set('s1 node n2', REFUSED)

  await world.turn(INTERVAL_MS)
  expect(world.state()).toMatchObject({ state: 'answers' })
  await world.turn(1_000)
  expect(world.state()).toMatchObject({ state: 'partly', message: 'through n2: Searches fail: connection refused' })
  expect(world.state()?.ways[1]).toMatchObject({
    ...{ state: 'fails', code: 'connection_failed', failing: 'search' },
    since: new Date(START + INTERVAL_MS).toISOString(),
    search: { answered: 1, failed: 2 },
  })

  world.answers.set('s1 node n1', REFUSED)
  await world.turn(INTERVAL_MS)
  await world.turn(INTERVAL_MS)
  expect(world.state()).toMatchObject({ state: 'fails' })
  expect(world.summary()).toMatchObject({ failing: 1, answered: 0 })

  world.answers.clear()
  await world.turn(INTERVAL_MS)
  expect(world.state()).toMatchObject({ state: 'answers' })
})

test('clients cannot book when no node accepts a write, but a change of the leader is no outage', async () => {
  const world = proberOf()
  setWays(world.prober, waysTo(['s1'], ['n1', 'n2']))
  world.answers.set('s1 node n2', FOLLOWER)
  await world.turn()
  // Both were probed while they did not lead.
  world.answers.set('s1 node n1', FOLLOWER)
  await world.turn(INTERVAL_MS)
  expect(world.state()).toMatchObject({ state: 'answers' })

  await world.turn(INTERVAL_MS)
  await world.turn(INTERVAL_MS)
  expect(world.state()).toMatchObject({ state: 'fails', message: 'Holds fail: no node accepts a write' })

  world.answers.set('s1 node n1', NO_LEADER).set('s1 node n2', NO_LEADER)
  await world.turn(INTERVAL_MS)
  await world.turn(1_000)
  expect(world.state()).toMatchObject({ state: 'fails', message: 'Holds fail: no leader' })
})

test('a way in that never answers holds up no other one, is probed once at a time, and fails', async () => {
  const world = proberOf()
  setWays(world.prober, waysTo(['s1', 's2'], ['n1']))
  world.answers.set('s1 node n1', 'never')
  for (let turn = 0; turn < 8; turn++) await world.turn(turn === 0 ? 0 : INTERVAL_MS)

  expect(world.sent.filter((key) => key.startsWith('s1'))).toHaveLength(1)
  expect(world.sent.filter((key) => key.startsWith('s2'))).toHaveLength(8)
  expect(world.state('s1')).toMatchObject({ state: 'fails', message: 'Searches fail: no answer for 15 s' })
  expect(world.state('s2')).toMatchObject({ state: 'answers' })
})

test('only so many probes run at once, and failing ways leave room for the others', async () => {
  const world = proberOf()
  const shards = Array.from({ length: 60 }, (_, n) => `s${n + 1}`)
  setWays(world.prober, waysTo(shards, ['n1']))
  for (const shard of shards) world.answers.set(`${shard} node n1`, 'never')
  await world.turn()
  expect(world.sent).toHaveLength(32)

  const failing = proberOf()
  setWays(failing.prober, waysTo(shards, ['n1']))
  for (const shard of shards) failing.answers.set(`${shard} node n1`, REFUSED)
  for (let turn = 0; turn < 2; turn++) await failing.turn()
  for (const shard of shards.slice(0, 40)) failing.answers.set(`${shard} node n1`, 'never')
  failing.sent.length = 0
  await failing.turn(INTERVAL_MS)
  expect(failing.sent).toHaveLength(16)
})

test('a way in that is gone or moved is forgotten with its results, and its late answer is dropped', async () => {
  const world = proberOf()
  setWays(world.prober, waysTo(['s1'], ['n1', 'n2']))
  await world.turn()
  setWays(world.prober, waysTo(['s1'], ['n1']))

  expect(world.forgotten).toEqual(['s1 node n2'])
  expect(world.state()?.ways.map(({ id, state }) => `${id} ${state}`)).toEqual(['n1 answers'])

  const moved = waysTo(['s1'], ['n1']).map((each) => ({
    ...each,
    ways: each.ways.map((way): Way => ({ ...way, address: { host: '10.0.0.9', port: 1 } })),
  }))
  setWays(world.prober, moved)
  expect(world.state()).toMatchObject({ state: 'waiting' })
})

test('a deadline that this process was too late for says nothing of the way in', async () => {
  const world = proberOf()
  setWays(world.prober, waysTo(['s1'], ['n1']))
  await world.turn()
  world.answers.set('s1 node n1', LATE)
  for (let turn = 0; turn < 4; turn++) await world.turn(INTERVAL_MS)

  expect(world.sent).toHaveLength(5)
  expect(world.state()).toMatchObject({ state: 'answers', ways: [{ search: { answered: 1, failed: 0 } }] })
})

test('switched off, nothing is sent and nothing is claimed', async () => {
  const world = proberOf(0)
  setWays(world.prober, waysTo(['s1'], ['n1']))
  await world.turn(INTERVAL_MS)

  expect(world.sent).toEqual([])
  expect(world.summary()).toMatchObject({ state: 'off', answered: 0, search: null })
})

test('edge routers take the place of nodes; what cannot be probed is named with its reason', () => {
  const edges = [
    { id: 'e1', address: { host: '10.0.9.1', port: 9000 } },
    { id: 'e2', address: undefined },
  ]
  const [first, second] = waysTo(['s1', 's2'], ['n1'], {
    edges,
    segmentOf: (shard) => (shard === 's1' ? 'tyrol' : undefined),
  })

  expect(first?.ways.map(({ key, segment }) => `${key} ${segment}`)).toEqual(['s1 edge e1 tyrol'])
  expect(first?.unprobed.map(({ why }) => why)).toEqual(['e2 has not reported where it accepts clients'])
  expect(second?.ways).toEqual([])
  expect(second?.unprobed[0]?.why).toBe('no segment of s2 is known')
})
