import { beforeEach, expect, test } from 'vitest'
import { inlineExchange } from '../snapshot/exchange.ts'
import { hex } from '../snapshot/format.ts'
import { readSeedFile } from '../snapshot/load.ts'
import { heldSnapshots } from '../snapshot/snapshot.ts'
import { inlineEncoder, writeSeedFileAtOnce, writeSnapshotDirAtOnce } from '../snapshot/write.ts'
import { createSimulation, type Simulation } from '../testing/simulation.ts'
import { createTestSource } from '../testing/snapshot-source.ts'
import type { DriverFrame } from '../transport/frames.ts'
import {
  createLoads,
  LOAD_LIMITS,
  type Loads,
  loadOperationOf,
  obtainSnapshot,
  onDrop,
  onHeld,
  onHold,
  onHolds,
  onLoaded,
  onNotHeld,
  requestLoad,
  startDrop,
  startLoad,
  tickLoads,
} from './bulk-load-coordinator.ts'
import type { Answer } from './membership.ts'
import {
  createReceiver,
  createSender,
  makeCurrent,
  onChunkData,
  onChunkMissing,
  onChunkRequest,
  onOffer,
  type Receiver,
  refuseReceived,
  type Sender,
  tickReceiver,
} from './transfer.ts'

const source = createTestSource({ segments: 1, propertiesPerSegment: 3, roomTypes: 2, nights: 2 })
const encoder = inlineEncoder(source, source.planes.scratch[0])

type Node = {
  readonly name: string
  readonly loads: Loads
  readonly receiver: Receiver
  readonly sender: Sender
  hasMemory: boolean
}

let simulation: Simulation
let nodes: Map<string, Node>
let leader: string
let silent: Set<string>
let proposed: string[]
let digest: string
let tooLarge: Set<string>
let behind: string[]
const wanted = { shardId: 's1', codecsOrderedHash: source.codecs.orderedHash, codecsText: '' }

beforeEach(() => {
  simulation = createSimulation()
  nodes = new Map()
  leader = 'a'
  silent = new Set()
  proposed = []
  tooLarge = new Set()
  behind = []
  simulation.disk.syncDirectory('/')
  writeSeedFileAtOnce(simulation.env, '/load.snapshot', source, { encoder })
  digest = hex(readSeedFile(simulation.disk, '/load.snapshot').manifest.contentDigest)
  for (const name of ['a', 'b', 'c', 'x']) add(name)
})

function add(name: string): void {
  const { env, disk } = simulation
  disk.makeDirectory(`/${name}`)
  const exchange = inlineExchange(env, `/${name}`)
  const nowMs = () => env.clock.monotonicMs()
  const node: Node = {
    name,
    hasMemory: true,
    receiver: createReceiver(
      {
        send: (to, frame) => send(name, to, frame),
        exchange,
        sources: () => [...nodes.keys()].filter((other) => other !== name && !silent.has(other)),
        nowMs,
        log: env.log,
        onReady: () => {
          if (!node.hasMemory) return refuseReceived(node.receiver, 'no-memory', 'too many packages')
          makeCurrent(node.receiver, (path) => onHeld(node.loads, path))
        },
        onFailed: (reason) => onNotHeld(node.loads, reason),
        onDelayed: (reason) => expect.fail(`a load is not waited for: ${reason}`),
      },
      { shardId: 's1', codecsOrderedHash: source.codecs.orderedHash },
    ),
    sender: createSender({
      send: (to, frame) => send(name, to, frame),
      exchange,
      nowMs,
      after: (delayMs, run) => void env.schedule.after(delayMs, run),
      log: env.log,
      sendOffer: () => false,
      reportSnapshot: () => undefined,
    }),
    loads: createLoads({
      self: name,
      send: (to, frame) => send(name, to, frame),
      exchange,
      isLeader: () => name === leader,
      isReady: () => name === leader,
      voters: () => ['a', 'b', 'c'],
      others: () => [...nodes.keys()].filter((other) => other !== name),
      receive: (offer) => onOffer(node.receiver, offer),
      wanted,
      check: (path) => (tooLarge.has(name) && path !== '' ? 'it does not fit the memory' : ''),
      notPast: () => behind,
      propose: (contentDigest) => proposed.push(contentDigest) > 0,
      nowMs,
      wallMs: () => env.clock.wallMs(),
      log: env.log,
    }),
  }
  nodes.set(name, node)
}

function send(from: string, to: string, frame: DriverFrame): boolean {
  if (silent.has(from) || silent.has(to)) return false
  simulation.env.schedule.after(1, () => {
    const { loads, sender, receiver } = nodes.get(to) as Node
    if (frame.type === 'admin' && frame.kind === 'load') onHold(loads, from, frame)
    if (frame.type === 'admin' && frame.kind === 'drop-load') onDrop(loads, frame)
    if (frame.type === 'bulkHolds') onHolds(loads, from, frame)
    if (frame.type === 'chunkRequest') onChunkRequest(sender, from, frame)
    if (frame.type === 'chunkData') onChunkData(receiver, from, frame)
    if (frame.type === 'chunkMissing') onChunkMissing(receiver, from, frame)
  })
  return true
}

function pass(ms: number): void {
  for (let at = 0; at < ms; at += 100) {
    simulation.advance(100)
    for (const { receiver, loads } of nodes.values()) {
      tickReceiver(receiver)
      tickLoads(loads)
    }
  }
}

const loadsOf = (name: string) => (nodes.get(name) as Node).loads
const holds = (name: string) => heldSnapshots(simulation.disk, `/${name}`).map(({ contentDigest }) => contentDigest)

/** An operator requests a load of the file from node `at`. */
function ask(at: string): Answer[] {
  const answers: Answer[] = []
  obtainSnapshot(loadsOf(at), { file: '/load.snapshot' }, (result) => {
    if ('status' in result) answers.push(result)
    else startLoad(loadsOf(leader), result.digest, result.detail, (answer) => answers.push(answer))
  })
  pass(300)
  return answers
}

test('a snapshot file becomes the load of all members, and is proposed once a majority of voters holds it', () => {
  expect(ask('b')).toEqual([{ status: 202, text: 'load in progress' }])
  pass(1_000)

  for (const name of ['a', 'b', 'c', 'x']) expect(holds(name)).toEqual([digest])
  expect(proposed).toEqual([digest])
  expect(loadOperationOf(loadsOf('a'))).toMatchObject({
    kind: 'load',
    node: digest,
    step: expect.stringContaining('applied'),
  })

  onLoaded(loadsOf('a'), digest, 'ab'.repeat(32))
  expect(loadOperationOf(loadsOf('a'))).toBeUndefined()
  expect(loadsOf('a').finished[0]).toMatchObject({
    kind: 'load',
    node: digest,
    result: 'done',
    reason: `the previous data is snapshot ${'ab'.repeat(32)}`,
  })
})

test('learners and a minority are not enough', () => {
  silent.add('b')
  silent.add('c')
  ask('a')
  pass(5_000)

  expect(holds('x')).toEqual([digest])
  expect(proposed).toEqual([])
  expect(loadOperationOf(loadsOf('a'))?.step).toBe('waiting for a majority of voters to store it: 1 of 3')
  silent.delete('b')
  pass(LOAD_LIMITS.requestMs + 1_000)
  expect(proposed).toEqual([digest])
})

test('a load that no majority can hold fails after ten minutes with the reasons of its members', () => {
  for (const name of ['b', 'c']) (nodes.get(name) as Node).hasMemory = false
  ask('a')
  pass(LOAD_LIMITS.holdMs + 1_000)

  expect(proposed).toEqual([])
  expect(loadsOf('a').finished[0]).toMatchObject({
    result: 'failed',
    reason: expect.stringContaining('b: no-memory'),
  })
}, 20_000)

test('a member that reaches the entry without the snapshot learns where to pull it', () => {
  silent.add('c')
  ask('a')
  pass(1_000)
  onLoaded(loadsOf('a'), digest, '')
  expect(holds('c')).toEqual([])

  // The leader has changed since: any member that has the snapshot can name its source.
  leader = 'b'
  silent.delete('c')
  requestLoad(loadsOf('c'), digest)
  pass(1_000)

  expect(holds('c')).toEqual([digest])
})

test('accepts one load at a time, on a ready leader, of a snapshot that a member has', () => {
  const answers: Answer[] = []
  const start = (at: string, which: string) => {
    startLoad(loadsOf(at), which, '', (answer) => answers.push(answer))
    pass(200)
    return answers.pop()
  }
  expect(start('b', digest)).toEqual({ status: 503, text: 'no leader' })
  expect(start('a', 'ab'.repeat(32))?.status).toBe(404)
  silent.add('b')
  silent.add('c')
  ask('a')
  expect(start('a', digest)?.status).toBe(202)
  expect(start('a', 'ab'.repeat(32))).toEqual({ status: 409, text: 'another load is running' })

  leader = 'b'
  pass(200)
  expect(loadsOf('a').finished[0]).toMatchObject({
    result: 'failed',
    reason: 'leadership was lost before it was applied',
  })
})

test('an unreadable file is refused, and a malformed detail is ignored', () => {
  const answers: unknown[] = []
  obtainSnapshot(loadsOf('a'), { file: '/nothing' }, (result) => answers.push(result))
  startLoad(loadsOf('a'), digest, '{"contentDigest":', (answer) => answers.push(answer))
  pass(200)

  expect(answers).toMatchObject([{ status: 409 }, { status: 404 }])
})

test('a member that holds the snapshot and has no memory for its data counts as one that does not hold it', () => {
  for (const name of ['b', 'c']) tooLarge.add(name)
  ask('a')
  pass(5_000)

  expect(holds('b')).toEqual([digest])
  expect(proposed).toEqual([])
  tooLarge.delete('c')
  pass(LOAD_LIMITS.requestMs + 1_000)
  expect(proposed).toEqual([digest])
})

test('dropping a load removes it from all members that can be reached', () => {
  ask('a')
  pass(1_000)
  const drop = (at: string): Answer[] => {
    const answers: Answer[] = []
    startDrop(loadsOf(at), digest, (answer) => answers.push(answer))
    pass(300)
    return answers
  }
  expect(drop('a')).toEqual([{ status: 409, text: 'this load is running' }])
  onLoaded(loadsOf('a'), digest, '')

  expect(drop('b')).toEqual([{ status: 503, text: 'no leader' }])
  expect(drop('a')).toEqual([{ status: 202, text: 'drop in progress' }])
  expect(loadsOf('a').finished[0]).toMatchObject({ kind: 'drop-load', node: digest, result: 'done' })
  for (const name of ['a', 'b', 'c', 'x']) expect(holds(name)).toEqual([])
  expect(drop('a')).toMatchObject([{ status: 404 }])
})

test('a snapshot that a member may still have to load is not dropped', () => {
  ask('a')
  pass(1_000)
  onLoaded(loadsOf('a'), digest, '')
  writeSnapshotDirAtOnce(simulation.env, '/a', { ...source, index: 7 }, { encoder, origin: 'test' })
  loadsOf('a').port.exchange({ kind: 'keep', index: 7, term: source.term, loaded: digest }, () => undefined)
  pass(100)
  const answers: Answer[] = []
  const drop = () => {
    startDrop(loadsOf('a'), digest, (answer) => answers.push(answer))
    pass(300)
    return answers.pop()
  }

  behind = ['c']
  expect(drop()).toEqual({ status: 409, text: 'c may not have applied the load yet' })
  behind = []
  expect(drop()).toMatchObject({ status: 409, text: expect.stringContaining('two more snapshots') })
  expect(holds('a').length).toBe(2)
})
