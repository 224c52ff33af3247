import { beforeEach, expect, test } from 'vitest'
import type { Exchange, ExchangeAnswer } from '../snapshot/exchange.ts'
import { beginCommand, encodeBulkLoad, KIND, writeBytes, writeU32 } from '../store/command.ts'
import { createSimulatedDisk } from '../testing/disk.ts'
import { give, startToy, type ToyReplica } from '../testing/toy-replica.ts'
import { beginProposal, createProposals, endProposal, REFUSED, takeProposals } from '../threads/writes.ts'
import { beginLoading, createLoader, LOADING_LIMITS, type Loader, proceed, retryLookup } from './bulk-load-apply.ts'
import { snapshotFailed, startSnapshot } from './maintenance.ts'
import { proposeBatch } from './proposals.ts'
import type { Link, Replica } from './replica-state.ts'

const REPLACING_MS = 40
const DIGEST = 'ab'.repeat(32)
const BEFORE = 'cd'.repeat(32)

let toy: ToyReplica
let loader: Loader
/** Snapshots that this node holds, by digest. */
let held: Set<string>
let requested: number[]
let fault: string
/** Completed steps, in order. */
let steps: string[]

beforeEach(() => {
  toy = startToy(createSimulatedDisk(), { snapshotTakesMs: 70 })
  held = new Set([DIGEST])
  requested = []
  steps = []
  fault = ''
  const { replica, simulation } = toy
  const { env } = simulation
  loader = createLoader({
    env,
    replica,
    exchange,
    request: () => requested.push(env.clock.monotonicMs()),
    check: () => fault,
    replace(path, digest, done) {
      expect(path).toBe(`load-${digest}`)
      expect(replica.snapshotRunning).toBe(false)
      // The load alone may use the memory now.
      expect(startSnapshot(replica, 'requested')).toBe(false)
      steps.push(`replaced behind ${toy.values.length}`)
      env.schedule.after(REPLACING_MS, done)
    },
    onPhase: () => steps.push(replica.loading?.phase ?? 'over'),
  })
  replica.link = linkTo(replica)
  const beat = (): void => {
    proceed(loader)
    env.schedule.after(100, beat)
  }
  beat()
  simulation.settle()
})

function linkTo(replica: Replica): Link {
  const nothing = () => undefined
  return {
    ...{ send: nothing, onReadState: nothing, onReadDropped: nothing, onOffer: nothing, onInstall: nothing },
    ...{
      keptIndex: () => Number.POSITIVE_INFINITY,
      onConfiguration: nothing,
      onApplied: nothing,
      onRole: nothing,
      hasBegun: () => true,
    },
    voterClocks: () => [],
    onLoadEntry: () => beginLoading(loader),
    onLoaded: ({ index }) => steps.push(`applied at ${index}: ${replica.raft.applied >= index}, kept ${loader.before}`),
  }
}

const exchange: Exchange = (request, done) => {
  toy.simulation.env.schedule.after(3, () => done(answerTo(request)))
}

function answerTo(request: Parameters<Exchange>[0]): ExchangeAnswer {
  if (request.kind === 'find') {
    const path = `load-${request.contentDigest}`
    const found = { index: 1, term: 1, manifest: new Uint8Array(0), manifestDigest: '', membership: undefined, path }
    return { state: 'found', found: held.has(request.contentDigest) ? found : undefined }
  }
  if (request.kind !== 'keep') throw new Error(`unexpected request ${request.kind}`)
  const kept = toy.snapshots.find(({ index }) => index === request.index)
  if (!kept) return { state: 'refused', error: { code: 'corrupt_data' } }
  steps.push(`kept ${kept.values.length}`)
  return { state: 'kept', path: `before-${BEFORE}` }
}

/** One batch of writes with loads among them. */
function giveMixed(what: readonly (number | string)[]): void {
  const proposals = createProposals()
  for (const [i, each] of what.entries()) {
    const writer = beginProposal(proposals)
    if (typeof each === 'number') {
      beginCommand(writer, KIND.setAvailability)
      writeU32(writer, each)
    } else {
      beginCommand(writer, KIND.bulkLoad)
      const bytes = Uint8Array.from(each.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16))
      const body = encodeBulkLoad(bytes, 20_000)
      writeBytes(writer, body, 0, body.length)
    }
    endProposal(proposals, typeof each === 'number' ? each : 1_000 + i)
  }
  proposeBatch(toy.replica, toy.sinks[0] ?? 0, takeProposals(proposals))
}

test('apply stops before a load in the middle of a batch, keeps the state there, and continues when it is in place', () => {
  giveMixed([1, 2, DIGEST, 3, 4])
  toy.simulation.settle()

  expect(toy.values).toEqual([1, 2])
  expect([...toy.answers.keys()]).toEqual([1, 2])
  expect(toy.replica.raft.commit).toBe(toy.replica.raft.lastIndex)
  // It would wait behind the load. A refusal guarantees that it is in no log.
  give(toy, [{ token: 9, value: 9 }])
  expect(toy.answers.get(9)?.code).toBe(REFUSED.notServing)

  toy.simulation.advance(1_000)
  expect(toy.values).toEqual([1, 2, 3, 4])
  expect(steps).toEqual([
    'keeping',
    'kept 2',
    'replacing',
    'replaced behind 2',
    `applied at 4: true, kept ${BEFORE}`,
    'over',
  ])
  give(toy, [{ token: 10, value: 10 }])
  toy.simulation.settle()
  expect(toy.values).toEqual([1, 2, 3, 4, 10])
  expect(toy.answers.get(4)).toMatchObject({ code: 0, index: 6 })
})

test('several loads in one batch run one after the other', () => {
  giveMixed([1, DIGEST, 2, DIGEST, DIGEST, 3])
  toy.simulation.advance(2_000)

  expect(toy.values).toEqual([1, 2, 3])
  expect(steps.filter((step) => step.startsWith('replaced'))).toEqual([
    'replaced behind 1',
    'replaced behind 2',
    'replaced behind 2',
  ])
  expect(toy.replica.loading).toBeUndefined()
})

test('a missing snapshot is requested until it arrives', () => {
  held.clear()
  giveMixed([1, DIGEST, 2])
  toy.simulation.advance(3 * LOADING_LIMITS.requestMs + 500)
  expect(toy.replica.loading?.phase).toBe('awaited')
  expect(requested.length).toBe(4)

  held.add(DIGEST)
  retryLookup(loader)
  toy.simulation.advance(500)

  expect(toy.values).toEqual([1, 2])
  expect(requested.length).toBe(4)
})

test('a node without memory for the data waits and remains a voter', () => {
  fault = '7 bytes of memory are missing'
  giveMixed([1, DIGEST, 2])
  toy.simulation.advance(LOADING_LIMITS.retryMs + 500)
  expect(toy.replica.loading?.phase).toBe('awaited')
  expect(toy.simulation.lines.filter(({ level }) => level === 'error').length).toBe(2)
  expect(toy.replica.raft.role).toBe('leader')

  fault = ''
  toy.simulation.advance(LOADING_LIMITS.retryMs + 500)
  expect(toy.values).toEqual([1, 2])
})

test('writing the previous state is retried until it succeeds', () => {
  const { replica, simulation } = toy
  const { snapshots } = replica
  let tries = 0
  Object.assign(replica, {
    snapshots: {
      ...snapshots,
      start: () => {
        tries++
        simulation.env.schedule.after(10, () => snapshotFailed(replica, 'the disk is full'))
      },
    },
  })
  giveMixed([1, DIGEST, 2])
  simulation.advance(3 * LOADING_LIMITS.retryMs)
  expect(tries).toBeGreaterThan(1)
  expect(tries).toBeLessThan(5)
  expect(toy.values).toEqual([1])

  Object.assign(replica, { snapshots })
  simulation.advance(3 * LOADING_LIMITS.retryMs)
  expect(toy.values).toEqual([1, 2])
})
