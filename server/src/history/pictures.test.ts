import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ShardView, TopologyView } from '@vacancy/shared/contract'
import { createLogger } from '@vacancy/shared/node'
import { onBothDatabases } from '@vacancy/testkit/databases'
import { chance, createRandom, pick, type Random, tries } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import type { ShardMemory } from '../cluster/derive.ts'
import { differences } from '../cluster/past.ts'
import { openDatabase } from '../database/database.ts'
import type { Tables } from '../parts.ts'
import { goneNode, NOW, observedNode, shardOf } from '../testing/observed-nodes.ts'
import {
  createPictures,
  firstPicture,
  type PastState,
  PICTURES,
  type Pictures,
  pastFabric,
  pastState,
  recordAll,
  recordedFrom,
  recordFabric,
  recordGone,
  recordShard,
  stopPictures,
} from './pictures.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const MINUTE = 60_000
const NODES = ['n1', 'n2', 'n3', 'n4'] as const
const REFUSED = { code: 'ECONNREFUSED', message: 'refused' }

/** A shard of the simulated day: three voters and a learner. */
type Simulated = {
  readonly id: string
  leader: string
  term: number
  readonly down: Set<string>
  lag: number
  commit: number
  memory: ShardMemory | undefined
}

const simulated = (id: string): Simulated => ({
  ...{ id, leader: 'n1', term: 4, down: new Set(), lag: 0, commit: 50_000, memory: undefined },
})

function change(random: Random, shard: Simulated): void {
  const node = pick(random, NODES)
  if (chance(random, 0.3)) shard.lag = pick(random, [0, 0, 40, 1_500, 12_400, 90_000])
  else if (shard.down.has(node)) shard.down.delete(node)
  else if (chance(random, 0.5)) shard.down.add(node)
  else if (node !== 'n4') {
    shard.leader = node
    shard.term += 1
  }
}

function viewOf(shard: Simulated, now: number): ShardView {
  const plan = { leader: shard.leader, term: shard.term, voters: ['n1', 'n2', 'n3'], learners: ['n4'], at: now }
  const lags = { n4: [shard.lag, shard.lag / 1_000] as const }
  shard.commit += 100
  const nodes = NODES.map((id) => {
    const observed = { ...plan, id, lags, commit: shard.commit }
    const isDown = shard.down.has(id)
    const one = isDown ? goneNode(observed, REFUSED, { answeredAt: now - 41_000 }) : observedNode(observed)
    return { ...one, address: { ...one.address, shard: shard.id } }
  })
  const { view, memory } = shardOf(nodes, { id: shard.id, now, memory: shard.memory })
  shard.memory = memory
  return view
}

/** The state of a shard as this test records it. */
function described(shard: ShardView): string {
  const nodes = shard.nodes.map(
    ({ id, role, voter, state, freshness, namesLeader }) =>
      `${id} ${role} ${voter} ${state} ${freshness === 'gone' ? 'away' : 'here'} ${namesLeader}`,
  )
  const { id, state, level, leader, term, voters, votersUp, spare } = shard
  return `${id} ${state} ${level} led by ${leader} in ${term}, ${votersUp}/${voters}, ${spare}; ${nodes.join('; ')}`
}

const fabricOf = (state: 'ready' | 'unreachable', reads: number) =>
  ({
    registry: { address: 'http://127.0.0.1:1', up: true, error: '', warming: false },
    components: [
      {
        ...{ key: 'edge e1', kind: 'edge', id: 'e1', state, level: state === 'ready' ? 'ok' : 'crit', message: state },
        ...{ version: null, registered: true, lateSince: null, differences: [], reasons: [], cuts: [] },
        rates: { reads, writes: null, errors: null, p99: null },
      },
    ],
    edges: [],
    shards: [],
  }) as unknown as TopologyView

const newFile = () => join(mkdtempSync(join(tmpdir(), 'vacancy-pictures-')), 'x.sqlite')

async function open(clock: { now: number }, where: string) {
  const database = await openDatabase<Tables>(where)
  const lines: string[] = []
  const log = createLogger({ level: 'warn', format: 'json', component: 'test', write: (line) => lines.push(line) })
  const pictures = createPictures(database, log, () => clock.now)
  const close = async () => {
    await stopPictures(pictures)
    await database.destroy()
    expect(lines).toEqual([])
  }
  return { pictures, close }
}

test('the past is what was recorded then, at random moments of a simulated day', async () => {
  const random = createRandom(SEED)
  const clock = { now: NOW }
  const { pictures, close } = await open(clock, newFile())
  const shards = [simulated('s1'), simulated('s2'), simulated('s3')]
  // The record of this test: each observation, in order.
  const record = new Map(shards.map(({ id }) => [id, [] as { at: number; state: string; entries: number | null }[]]))
  let isThirdKnown = true
  while (clock.now < NOW + 24 * 60 * MINUTE) {
    clock.now += 5_000 + random.below(25_000)
    if (chance(random, 0.002)) {
      isThirdKnown = !isThirdKnown
      if (!isThirdKnown) {
        recordGone(pictures, 's3')
        record.get('s3')?.push({ at: clock.now, state: '', entries: null })
      }
    }
    for (const shard of shards) {
      if (chance(random, 0.02)) change(random, shard)
      if (shard.id === 's3' && !isThirdKnown) continue
      const view = viewOf(shard, clock.now)
      recordShard(pictures, view)
      record.get(shard.id)?.push({ at: clock.now, state: described(view), entries: view.maxLagEntries })
    }
    const known = shards.filter(({ id }) => isThirdKnown || id !== 's3')
    recordAll(
      pictures,
      known.map((shard) => viewOf({ ...shard }, clock.now)),
    )
  }
  for (let turn = 0; turn < tries(200); turn++) {
    const at = NOW + 60_000 + random.below(24 * 60 * MINUTE - 60_000)
    const state = (await pastState(pictures, at)) as PastState
    const expected = [...record.values()].flatMap((seen) => seen.findLast((one) => one.at <= at)?.state || [])
    const where = `VACANCY_SEED=${SEED}, moment ${turn}: ${new Date(at).toISOString()}`
    expect(state.shards.map(described), where).toEqual(expected)
    expect(at - state.picturedAt, where).toBeLessThan(PICTURES.everyMs + 30_000)
  }
  await close()
}, 240_000)

test('two states differ by leader, states, and nodes and shards that came or went', () => {
  const before = { at: NOW, picturedAt: NOW, shards: [viewOf(simulated('s1'), NOW), viewOf(simulated('s2'), NOW)] }
  const shard = { ...simulated('s1'), leader: 'n2', down: new Set(['n1']) }
  const after = { at: NOW, picturedAt: NOW, shards: [viewOf(shard, NOW), viewOf(simulated('s3'), NOW)] }
  expect(differences(before, after).map(({ message }) => message)).toEqual([
    'leadership of s1 moved n1 → n2',
    's1: Degraded, cannot lose another (2 of 3 voters answer, 2 needed)',
    's1 / n1: Not answering: refused',
    's3 was discovered: Healthy, can lose 1 of 3',
    's2 is no longer known',
  ])
  expect(differences(before, before)).toEqual([])
})

onBothDatabases((newDatabase) => {
  const newWhere = async () => (await newDatabase()) || newFile()

  async function recorded(clock: { now: number }): Promise<Pictures & { close(): Promise<void> }> {
    const { pictures, close } = await open(clock, await newWhere())
    recordAll(pictures, [viewOf(simulated('s1'), clock.now)])
    return Object.assign(pictures, { close })
  }

  test('a time without pictures is unknown: before the first one, and while nothing was recorded', async () => {
    const clock = { now: NOW }
    const pictures = await recorded(clock)
    expect(await firstPicture(pictures)).toBe(NOW)
    expect(await pastState(pictures, NOW - 1)).toBeUndefined()
    expect((await pastState(pictures, NOW + PICTURES.knownMs))?.shards).toHaveLength(1)
    expect(await pastState(pictures, NOW + PICTURES.knownMs + 1)).toBeUndefined()
    await pictures.close()
  })

  test('a range starts to be known at its begin, at the first picture in it, or not at all', async () => {
    const clock = { now: NOW }
    const pictures = await recorded(clock)
    const from = (from: number, to: number) => recordedFrom(pictures, { from: NOW + from, to: NOW + to })

    expect(await from(-5 * MINUTE, MINUTE)).toBe(NOW)
    expect(await from(MINUTE, 5 * MINUTE)).toBe(NOW + MINUTE)
    expect(await from(-5 * MINUTE, -1)).toBeUndefined()
    expect(await from(PICTURES.knownMs + 1, 10 * MINUTE)).toBeUndefined()
    await pictures.close()
  })

  test('the fabric of a moment is that of its last change, and unknown where nothing was recorded', async () => {
    const clock = { now: NOW }
    const pictures = await recorded(clock)
    const at = async (ms: number) => (await pastFabric(pictures, NOW + ms))?.components.map(({ state }) => state)
    recordFabric(pictures, fabricOf('ready', 10))
    for (let minute = 1; minute <= 10; minute++) {
      clock.now = NOW + minute * MINUTE
      recordAll(pictures, [viewOf(simulated('s1'), clock.now)])
      recordFabric(pictures, fabricOf(minute < 3 ? 'ready' : 'unreachable', 10 + minute))
    }

    expect(await at(-1)).toBeUndefined()
    expect(await at(3 * MINUTE - 1)).toEqual(['ready'])
    expect(await at(3 * MINUTE)).toEqual(['unreachable'])
    expect(await at(10 * MINUTE)).toEqual(['unreachable'])
    expect(await at(10 * MINUTE + PICTURES.knownMs + 1)).toBeUndefined()
    // Figures alone are recorded every five minutes.
    expect((await pastFabric(pictures, NOW + 2 * MINUTE))?.components[0]?.rates.reads).toBe(10)
    expect((await pastFabric(pictures, NOW + 9 * MINUTE))?.components[0]?.rates.reads).toBe(18)
    expect((await pastState(pictures, NOW + 9 * MINUTE))?.shards.map(({ id }) => id)).toEqual(['s1'])
    await pictures.close()
  })

  test('after a restart nothing is recorded before all shards were, and the past is still known', async () => {
    const clock = { now: NOW }
    const where = await newWhere()
    const before = await open(clock, where)
    recordAll(before.pictures, [viewOf(simulated('s1'), NOW)])
    await before.close()
    clock.now += 30_000
    const after = await open(clock, where)
    recordShard(after.pictures, viewOf({ ...simulated('s1'), leader: 'n2' }, clock.now))
    expect((await pastState(after.pictures, clock.now))?.shards[0]?.leader).toBe('n1')
    recordAll(after.pictures, [viewOf({ ...simulated('s1'), leader: 'n2' }, clock.now)])
    expect((await pastState(after.pictures, clock.now))?.shards[0]?.leader).toBe('n2')
    expect((await pastState(after.pictures, NOW))?.shards[0]?.leader).toBe('n1')
    await after.close()
  })

  test('figures alone are recorded once a minute, states at once', async () => {
    const clock = { now: NOW }
    const pictures = await recorded(clock)
    const shard = simulated('s1')
    for (let second = 1; second < 60; second++) {
      clock.now = NOW + second * 1_000
      recordShard(pictures, viewOf(shard, clock.now))
      recordAll(pictures, [viewOf(shard, clock.now)])
    }
    const count = async () => {
      await pastState(pictures, clock.now)
      return (await pictures.database.selectFrom('cluster_pictures').select('at').execute()).length
    }
    expect(await count()).toBe(1)
    shard.leader = 'n2'
    recordShard(pictures, viewOf(shard, clock.now))
    expect(await count()).toBe(2)
    clock.now = NOW + MINUTE
    recordAll(pictures, [viewOf(shard, clock.now)])
    expect(await count()).toBe(3)
    await pictures.close()
  })
})
