import { createRandom } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import type { DigestMark } from '../store/apply-context.ts'
import { COMMAND_HEADER_BYTES, KIND } from '../store/command.ts'
import { createSimulatedDisk } from '../testing/disk.ts'
import { configurationOf } from '../testing/raft-fixture.ts'
import { type Command, give, startToy, type ToyOptions, type ToyReplica } from '../testing/toy-replica.ts'
import { freeDeleted, markAfterChanges, peerDigest } from './applying.ts'
import { startSnapshot } from './maintenance.ts'
import type { Replica } from './replica-state.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)

/** A leader alone, and the commands that it applied. */
function begin(options: ToyOptions = {}) {
  const toy = startToy(createSimulatedDisk(), options)
  const { machine } = toy.replica
  const { apply } = machine
  const applied: { index: number; kind: number; body: string }[] = []
  Object.assign(machine, {
    digestMarks: () => [],
    apply: (index: number, bytes: Uint8Array, start: number, end: number) => {
      const kind = new DataView(bytes.buffer, bytes.byteOffset).getUint16(start, true)
      applied.push({
        index,
        kind,
        body: Buffer.from(bytes.subarray(start + COMMAND_HEADER_BYTES, end)).toString('hex'),
      })
      return apply(index, bytes, start, end)
    },
  })
  toy.simulation.settle()
  return { toy, replica: toy.replica, machine, applied }
}

const commands = (from: number, count: number): Command[] =>
  Array.from({ length: count }, (_, i) => ({ token: from + i, value: from + i }))

const write = (toy: ToyReplica, from: number, count = 1) => {
  give(toy, commands(from, count))
  toy.simulation.settle()
}

// Snapshots

test.each([
  [9, 0],
  [10, 1],
  [11, 1],
])('%d entries after the last snapshot, of 10, start %d', (entries, started) => {
  const { toy, replica } = begin({ snapshotTriggerCount: 10 })
  // One entry is that of the term.
  write(toy, 1, entries - 1)
  expect(replica.snapshotRunning).toBe(started === 1)
})

// Deleted segments

test('the memory of deleted segments is freed in slices, one at a time, and not during a snapshot', () => {
  const { toy, replica, machine } = begin({ snapshotTakesMs: 3 })
  const { simulation } = toy
  let slices = 4
  const sweptAt: number[] = []
  Object.assign(machine, {
    hasDeleted: () => slices > 0,
    sweep: () => {
      sweptAt.push(simulation.env.clock.monotonicMs())
      return --slices > 0
    },
  })
  freeDeleted(replica)
  freeDeleted(replica)
  simulation.advance(2)
  expect(sweptAt).toEqual([1, 2])
  write(toy, 1)
  startSnapshot(replica, 'requested')
  // The slice that is due looks again after the snapshot.
  simulation.advance(50)
  expect(sweptAt.length).toBe(4)
  expect(sweptAt[2]).toBeGreaterThanOrEqual(5)
  expect([slices, replica.isFreeing]).toEqual([0, false])
})

test.each<[string, Partial<Replica>]>([
  ['a node that stops', { isStopping: true }],
  ['a node whose data are being replaced', { loading: { index: 9, digest: '', phase: 'replacing' } }],
])('%s frees no memory', (_, change) => {
  const { toy, replica, machine } = begin()
  let swept = 0
  Object.assign(machine, { hasDeleted: () => true, sweep: () => ++swept > 0 })
  freeDeleted(replica)
  Object.assign(replica, change)
  toy.simulation.advance(50)
  expect(swept).toBe(0)
})

test('a node frees the memory of nights that another leader dropped, in slices', () => {
  const { toy, replica, machine } = begin()
  let slices = 3
  Object.assign(machine, { lastMaintenanceDay: () => 20_000, sweep: () => --slices > 0 })
  write(toy, 1)
  expect([replica.maintainedDay, replica.maintenanceDay, slices]).toEqual([20_000, 0, 2])
  expect(replica.lastMaintenanceMs).toBe(toy.simulation.env.clock.wallMs())
  toy.simulation.advance(10)
  expect(slices).toBe(0)
  write(toy, 2)
  toy.simulation.advance(10)
  expect(slices).toBe(0)
})

// Digests

const bodyOf = ({ index, lo, hi }: DigestMark) =>
  Buffer.concat([Buffer.from(Float64Array.of(index).buffer), Buffer.from(Uint32Array.of(lo, hi).buffer)]).toString(
    'hex',
  )

/** A leader that commits alone, and has three voters while a digest is reported. */
function leaderWith(marks: readonly DigestMark[]) {
  const world = begin()
  const configuration = { ...configurationOf({ voters: [1, 2, 3] }) }
  let isReporting = false
  Object.assign(world.machine, { digestMarks: () => (isReporting ? marks : []) })
  const checks = () => world.applied.filter(({ kind }) => kind === KIND.digestCheck).map(({ body }) => body)
  const report = (peer: number, mark: DigestMark) => {
    const { raft } = world.replica
    const own = raft.configuration
    raft.configuration = configuration
    isReporting = true
    try {
      peerDigest(world.replica, peer, mark)
    } finally {
      raft.configuration = own
      isReporting = false
    }
    world.toy.simulation.settle()
  }
  return { ...world, checks, report }
}

const FIRST = { index: 100, lo: 1, hi: 2 }
const SECOND = { index: 200, lo: 0xffffffff, hi: 4 }

test('a leader logs its newest digest that a majority reports, once', () => {
  const { replica, checks, report } = leaderWith([FIRST, SECOND])
  report(2, { ...SECOND, index: 300 })
  expect(checks()).toEqual([])
  report(2, FIRST)
  expect(checks()).toEqual([bodyOf(FIRST)])
  report(3, FIRST)
  expect(checks()).toHaveLength(1)
  report(3, SECOND)
  expect(checks()).toEqual([bodyOf(FIRST), bodyOf(SECOND)])
  expect([replica.digestChecks, replica.lastDigestIndex]).toEqual([2, 200])
  report(2, SECOND)
  expect(checks()).toHaveLength(2)
})

test('a leader that a majority contradicts ends with both digests, one that a minority contradicts does not', () => {
  const { checks, report } = leaderWith([SECOND])
  report(2, { ...SECOND, hi: 5 })
  expect(checks()).toEqual([])
  const contradict = () => report(3, { ...SECOND, lo: 5 })
  expect(contradict).toThrow(expect.objectContaining({ code: 'digest_mismatch' }))
  expect(contradict).toThrow(/200.*4-ffffffff/)
})

test.each<[string, (replica: Replica) => void]>([
  ['a node that does not lead', ({ raft }) => Object.assign(raft, { role: 'follower' })],
  ['a node that stops', (replica) => Object.assign(replica, { isStopping: true })],
  ['a leader that has logged a later digest', (replica) => Object.assign(replica, { lastDigestIndex: 200 })],
  ['a leader whose disk is full', (replica) => Object.assign(replica, { isDiskFull: true })],
])('%s logs no digest', (_, change) => {
  const { replica, checks, report } = leaderWith([SECOND])
  change(replica)
  report(2, SECOND)
  expect([checks(), replica.digestChecks]).toEqual([[], 0])
})

test('replicas note their digests at most every 5 s, and only after a change', () => {
  const { toy, replica, applied } = begin({ featureLevel: 1 })
  const marks = (atMs: number) => {
    markAfterChanges(replica, atMs)
    toy.simulation.settle()
    return applied.filter(({ kind }) => kind === KIND.digestCheck).length
  }
  expect(marks(60_000)).toBe(0)
  write(toy, 1)
  expect([marks(4_999), marks(5_000), marks(9_999), marks(10_000)]).toEqual([0, 1, 1, 1])
  // A digest check is no change.
  write(toy, 2)
  expect([marks(9_999), marks(10_000), marks(20_000)]).toEqual([1, 2, 2])
  expect(applied.filter(({ kind }) => kind === KIND.digestCheck).every(({ body }) => body === '00'.repeat(16))).toBe(
    true,
  )
})

test.each<[string, (replica: Replica) => void, number]>([
  ['a follower', ({ raft }) => Object.assign(raft, { role: 'follower' }), 1],
  ['a leader of a shard with older members', () => undefined, 0],
])('%s has no digests noted', (_, change, featureLevel) => {
  const { toy, replica, applied } = begin({ featureLevel })
  write(toy, 1)
  change(replica)
  markAfterChanges(replica, 60_000)
  toy.simulation.settle()
  expect(applied.some(({ kind }) => kind === KIND.digestCheck)).toBe(false)
})

// Slices of work

test('a slice of applying ends after 1,024 commands or 2 ms, and other work comes in between', () => {
  const random = createRandom(SEED)
  for (let round = 0; round < 5; round++) {
    const { toy, replica } = begin({ wal: { fileBytes: 1 << 20, reserveBytes: 512 } })
    const count = 1 + random.below(4_000)
    give(toy, commands(1, count))
    toy.simulation.settle()
    const turns = toy.turns.slice(1)
    const why = `seed ${SEED}, round ${round}, ${count} commands`
    expect(
      turns.reduce((sum, each) => sum + each, 0),
      why,
    ).toBe(count)
    expect(Math.max(...turns), why).toBeLessThanOrEqual(1_024)
    expect(replica.raft.applied, why).toBe(count + 1)
    expect(toy.answers.size, why).toBe(count)
  }
})

test('entries that wait for a snapshot are applied after it, each once and in order', () => {
  let pages = 0
  const { toy } = begin({ snapshotTakesMs: 50, lacksSparePages: () => pages-- <= 0 })
  write(toy, 1)
  startSnapshot(toy.replica, 'requested')
  pages = 6
  give(toy, commands(2, 10))
  toy.simulation.settle()
  const during = toy.values.length
  expect(during).toBeGreaterThan(1)
  expect(during).toBeLessThan(11)
  expect(toy.answers.size).toBe(during)
  toy.simulation.advance(60)
  expect(toy.values).toEqual(commands(1, 11).map(({ value }) => value))
  expect(toy.hurries).toBeGreaterThan(0)
  expect([...toy.answers.values()].map(({ index }) => index)).toEqual(toy.values.map((_, n) => n + 2))
})
