/**
 * A shard of cores in one process: no clock, no disk, no network but arrays (docs/design/testing.md#simulation). Time
 * advances in slots of about a tick. Faults are drawn from the seed: messages are lost, delayed, duplicated and
 * reordered; nodes crash with partially stored hand-overs and restart, are wiped, or have full disks; links fail in one
 * direction; members are added and removed.
 *
 * Oracles check every event (docs/design/testing.md#oracles): one leader per term, which has all committed entries; one
 * entry per index; reads see all earlier commits; committed entries are durable on a quorum; log matching
 * (docs/design/consensus.md#invariants). At the end some faults remain, and the other nodes must elect, commit and
 * catch up (docs/design/testing.md#liveness).
 */

import { assert } from '@vacancy/shared'
import { createRandom, type Random } from '@vacancy/testkit/random'
import {
  ENTRY_KIND,
  type EntryBatch,
  encodeEntry,
  entryKind,
  entryTerm,
  sliceBatch,
  viewOf,
} from '../../engine/src/raft/entry.ts'
import { lastOf, type TermRun, termAt, unappliedBatches } from '../../engine/src/raft/log.ts'
import { type Change, decodeConfiguration, isVoter, type Step, votersOnly } from '../../engine/src/raft/membership.ts'
import type { Configuration, Message, SnapshotOffer } from '../../engine/src/raft/messages.ts'
import {
  applied,
  applyConfiguration,
  campaign,
  compactedTo,
  createRaft,
  forgetLeader,
  hasReady,
  installed,
  nextCommitted,
  offerSnapshot,
  persisted,
  propose,
  proposeChange,
  provideEntries,
  type Raft,
  type RaftConfig,
  type Ready,
  readIndex,
  refused,
  reportSnapshot,
  reportUnreachable,
  setCounts,
  step,
  storeCommit,
  takeReady,
  tick,
  transferLeader,
} from '../../engine/src/raft/raft.ts'

class Violation extends Error {
  override readonly name = 'Violation'
}

function check(holds: boolean, rule: string): asserts holds {
  if (!holds) throw new Violation(rule)
}

/** Settings drawn from a seed; probabilities are per slot, in thousandths. */
type Knobs = {
  readonly voters: number
  readonly learners: number
  readonly slots: number
  readonly electionTicks: number
  readonly heartbeatTicks: number
  readonly isLockStep: boolean
  readonly preVote: boolean
  readonly checkQuorum: boolean
  readonly loss: number
  readonly duplicates: number
  readonly latency: number
  readonly stragglers: number
  readonly diskLatency: number
  readonly crashes: number
  /** Additional crashes of leaders. */
  readonly coups: number
  readonly restarts: number
  readonly wipes: number
  readonly refusals: number
  readonly partitions: number
  readonly changes: number
  readonly transfers: number
  readonly proposals: number
  readonly reads: number
  readonly compactions: number
  readonly skew: number
  readonly entryBytes: number
  readonly messageBytes: number
  readonly inflightMessages: number
  readonly inflightBytes: number
  readonly keepBytes: number
}

type Snapshot = {
  readonly index: number
  readonly term: number
  readonly configuration: Configuration
  readonly state: number
}

/** State that survives a crash. */
type Storage = {
  term: number
  vote: number
  commit: number
  snapshot: Snapshot
  /** First index of `entries`; the preceding term is `baseTerm`. */
  firstIndex: number
  baseTerm: number
  /** One entry each, with header. */
  entries: Uint8Array[]
}

type Node = {
  readonly id: number
  storage: Storage
  raft: Raft | undefined
  /** Pending hand-overs, with the time when they become durable. */
  outstanding: { readonly ready: Ready; readonly due: number }[]
  state: number
  /** Lost its promises; it never votes again. */
  isWiped: boolean
  isRoleKnown: number
}

type World = {
  readonly seed: number
  readonly knobs: Knobs
  readonly random: Random
  readonly genesis: Configuration
  readonly nodes: Map<number, Node>
  slot: number
  /** Messages by the slot in which they arrive. */
  readonly calendar: Map<number, Message[]>
  /** Blocked links as `from>to`. */
  readonly cut: Set<string>
  isQuiet: boolean
  nextCommand: number
  nextContext: number
  additions: number
  // Oracles
  readonly leaders: Map<number, number>
  /** Digest of each index that a leader committed or a node applied. */
  readonly committed: Map<number, { readonly term: number; readonly digest: number }>
  maxCommitted: number
  /** State after each index. */
  readonly states: Map<number, number>
  /** Every entry that was ever durable: its digest and the term of the preceding entry. */
  readonly written: Map<string, { readonly digest: number; readonly prevTerm: number }>
  readonly reads: Map<number, number>
  readonly applied: Map<number, number>
  readonly counts: {
    elections: number
    applied: number
    reads: number
    changes: number
    installs: number
    messages: number
  }
}

export type Outcome = { readonly world: World; readonly error: unknown }

/**
 * Runs one seed.
 *
 * @returns the violation, if any
 */
export function runSeed(seed: number): Outcome {
  const world = createWorld(seed)
  try {
    for (; world.slot < world.knobs.slots; world.slot++) {
      misbehave(world)
      work(world)
      passSlot(world)
    }
    settle(world)
    return { world, error: undefined }
  } catch (error) {
    return { world, error }
  }
}

function drawKnobs(random: Random): Knobs {
  const pick = <T>(...values: readonly T[]): T => values[random.below(values.length)] as T
  const some = (most: number, p = 500) => (random.below(1000) < p ? 1 + random.below(most) : 0)
  const isCalm = random.below(10) === 0
  const often = (most: number, p = 500) => (isCalm ? 0 : some(most, p))
  const heartbeatTicks = 1 + random.below(2)
  const preVote = random.below(5) !== 0
  return {
    voters: pick(1, 2, 3, 3, 3, 4, 5, 5, 7),
    learners: pick(0, 0, 0, 1, 1, 2),
    slots: pick(60, 150, 150, 250, 400),
    electionTicks: heartbeatTicks * (3 + random.below(5)),
    heartbeatTicks,
    isLockStep: random.below(5) === 0,
    preVote,
    // Without both, a removed node may disturb the others forever (docs/design/consensus.md#check-quorum).
    checkQuorum: !preVote || random.below(4) !== 0,
    loss: often(250),
    duplicates: often(200),
    latency: isCalm ? 0 : pick(0, 0, 1, 2, 4),
    stragglers: often(60),
    diskLatency: pick(0, 0, 1, 3, 6),
    crashes: often(25, 650),
    coups: often(300, 250),
    restarts: 50 + random.below(300),
    wipes: often(15, 150),
    refusals: often(40, 200),
    partitions: often(30, 450),
    changes: some(120, 550),
    transfers: some(40, 350),
    proposals: 100 + random.below(900),
    reads: some(300, 600),
    compactions: some(100, 500),
    skew: pick(0, 0, 100, 300),
    entryBytes: pick(1, 10, 200),
    messageBytes: pick(1, 60, 400, 1 << 20),
    inflightMessages: pick(1, 2, 3, 8, 256),
    inflightBytes: pick(1, 300, 1 << 20),
    keepBytes: pick(0, 0, 2_000, 1 << 20),
  }
}

function memberNamed(id: number) {
  return { id, node: `n${id}`, incarnation: id.toString(16).padStart(32, '0') }
}

function createWorld(seed: number): World {
  const random = createRandom(seed)
  const knobs = drawKnobs(random)
  const voters = Array.from({ length: knobs.voters }, (_, at) => memberNamed(at + 1))
  const learners = Array.from({ length: knobs.learners }, (_, at) => memberNamed(knobs.voters + at + 1))
  const genesis = {
    ...votersOnly(voters),
    members: [...voters, ...learners],
    learners: learners.map(({ id }) => id),
  }
  const world: World = {
    seed,
    knobs,
    random,
    genesis,
    nodes: new Map(),
    slot: 0,
    calendar: new Map(),
    cut: new Set(),
    isQuiet: false,
    nextCommand: 1,
    nextContext: 1,
    additions: 0,
    leaders: new Map(),
    committed: new Map(),
    maxCommitted: 0,
    states: new Map([[0, 7]]),
    written: new Map(),
    reads: new Map(),
    applied: new Map(),
    counts: { elections: 0, applied: 0, reads: 0, changes: 0, installs: 0, messages: 0 },
  }
  for (const { id } of genesis.members) addNode(world, id)
  return world
}

function addNode(world: World, id: number): void {
  const node: Node = {
    id,
    storage: emptyStorage(world),
    raft: undefined,
    outstanding: [],
    state: 7,
    isWiped: false,
    isRoleKnown: 0,
  }
  world.nodes.set(id, node)
  start(world, node)
}

function emptyStorage({ genesis }: World): Storage {
  const snapshot = { index: 0, term: 0, configuration: genesis, state: 7 }
  return { term: 0, vote: 0, commit: 0, snapshot, firstIndex: 1, baseTerm: 0, entries: [] }
}

// Processes

function start(world: World, node: Node): void {
  const { knobs, random } = world
  const { storage } = node
  const { snapshot } = storage
  const config: RaftConfig = {
    id: node.id,
    electionTicks: knobs.electionTicks,
    heartbeatTicks: knobs.heartbeatTicks,
    random: (below) => random.below(below),
    preVote: knobs.preVote,
    checkQuorum: knobs.checkQuorum,
    stepDownOnRemoval: true,
    validateChanges: true,
    isLockStep: knobs.isLockStep,
    limits: {
      messageBytes: knobs.messageBytes,
      inflightMessages: knobs.inflightMessages,
      inflightBytes: knobs.inflightBytes,
    },
    keepBytes: knobs.keepBytes,
  }
  const lastIndex = lastIndexOf(storage)
  node.raft = createRaft(config, {
    term: storage.term,
    vote: storage.vote,
    commit: Math.max(storage.commit, snapshot.index),
    firstIndex: storage.firstIndex,
    lastIndex,
    lastTerm: storedTerm(storage, lastIndex),
    terms: runsOf(storage),
    applied: snapshot.index,
    appliedTerm: snapshot.term,
    configuration: snapshot.configuration,
    entries: batchesOf(storage, snapshot.index + 1, lastIndex),
    isMute: node.isWiped,
  })
  node.state = snapshot.state
  node.outstanding = []
  node.isRoleKnown = 0
  distrust(world, node.raft)
}

/** A wiped member is recognized by the new incarnation of its folder. */
function distrust(world: World, raft: Raft): void {
  for (const { id, isWiped } of world.nodes.values()) {
    if (isWiped && raft.configuration.members.some((member) => member.id === id)) setCounts(raft, id, false)
  }
}

/** Any number of hand-overs, and a part of the next one, may be durable without confirmation. */
function crash(world: World, node: Node): void {
  const { random } = world
  for (const { ready } of node.outstanding) {
    if (ready.snapshot) break
    if (random.below(2) === 0) {
      if (random.below(2) === 0) writePart(world, node, ready)
      break
    }
    if (ready.mustStore) write(world, node, ready)
  }
  node.raft = undefined
  node.outstanding = []
}

function lastIndexOf({ firstIndex, entries }: Storage): number {
  return firstIndex + entries.length - 1
}

function storedTerm(storage: Storage, index: number): number {
  if (index === storage.firstIndex - 1) return storage.baseTerm
  const bytes = storage.entries[index - storage.firstIndex]
  return bytes ? entryTerm(viewOf(bytes), 0) : -1
}

function runsOf(storage: Storage): TermRun[] {
  const runs = [{ term: storage.baseTerm, firstIndex: storage.firstIndex - 1 }]
  for (let index = storage.firstIndex; index <= lastIndexOf(storage); index++) {
    const term = storedTerm(storage, index)
    if (term > (runs.at(-1) as TermRun).term) runs.push({ term, firstIndex: index })
  }
  return runs
}

/** Entries `from` … `to` as read by the log: one batch per term. */
function batchesOf(storage: Storage, from: number, to: number, bytesMax = Number.POSITIVE_INFINITY): EntryBatch[] {
  const batches: EntryBatch[] = []
  let bytes = 0
  for (let index = from; index <= to; ) {
    const term = storedTerm(storage, index)
    const parts: Uint8Array[] = []
    const firstIndex = index
    for (; index <= to && storedTerm(storage, index) === term; index++) {
      const entry = storage.entries[index - storage.firstIndex] as Uint8Array
      if (bytes > 0 && bytes + entry.length > bytesMax) break
      bytes += entry.length
      parts.push(entry)
    }
    if (parts.length === 0) break
    batches.push({ firstIndex, count: parts.length, bytes: joined(parts) })
    if (index <= to && storedTerm(storage, index) === term) break
  }
  return batches
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}

// Disk

function write(world: World, node: Node, { hardState, entries }: Ready): void {
  const { storage } = node
  for (const batch of entries) {
    for (let index = batch.firstIndex; index <= lastOf(batch); index++) {
      writeEntry(world, storage, index, sliceBatch(batch, index, index).bytes)
    }
  }
  setHardState(storage, hardState)
}

/** Makes the first entries of a hand-over durable, with the matching hard state. @returns the last one */
function writePart(world: World, node: Node, { hardState, entries }: Ready): number | undefined {
  const { storage } = node
  const count = entries.reduce((sum, batch) => sum + batch.count, 0)
  if (count < 2) return undefined
  let left = 1 + world.random.below(count - 1)
  for (const batch of entries) {
    for (let index = batch.firstIndex; index <= lastOf(batch) && left > 0; index++, left--) {
      writeEntry(world, storage, index, sliceBatch(batch, index, index).bytes)
    }
  }
  setHardState(storage, { ...hardState, commit: Math.min(hardState.commit, lastIndexOf(storage)) })
  return lastIndexOf(storage)
}

function setHardState(storage: Storage, { term, vote, commit }: Ready['hardState']): void {
  check(term >= storage.term, 'the stored term never decreases (A1)')
  check(term > storage.term || storage.vote === 0 || vote === storage.vote, 'the stored vote is kept (A1)')
  check(commit >= storage.commit, 'the stored commit index never decreases (A2)')
  check(commit <= lastIndexOf(storage), 'committed entries are in the stored log (A2)')
  storage.term = term
  storage.vote = vote
  storage.commit = commit
}

function writeEntry(world: World, storage: Storage, index: number, bytes: Uint8Array): void {
  check(index > storage.commit, 'no entry known to be committed is replaced on disk (A4)')
  check(index <= lastIndexOf(storage) + 1, 'the stored log has no gap (A3)')
  storage.entries.length = index - storage.firstIndex
  storage.entries.push(bytes.slice())
  const term = entryTerm(viewOf(bytes), 0)
  const digest = digestOf(bytes)
  const prevTerm = storedTerm(storage, index - 1)
  check(prevTerm <= term, 'terms in the stored log never decrease (A3)')
  const known = world.written.get(`${index} ${term}`)
  if (!known) world.written.set(`${index} ${term}`, { digest, prevTerm })
  else check(known.digest === digest && known.prevTerm === prevTerm, 'an index and a term identify one log (A16)')
}

function digestOf(bytes: Uint8Array): number {
  let digest = 0x811c9dc5
  for (const byte of bytes) digest = Math.imul(digest ^ byte, 0x01000193) >>> 0
  return digest
}

/** docs/design/consensus.md#hand-over: confirms durable hand-overs and sends their promises; more may follow. */
function runDisk(world: World, node: Node): void {
  for (;;) {
    const { raft } = node
    const next = node.outstanding[0]
    if (!raft || !next || next.due > world.slot) return
    const { ready } = next
    const isRefused = ready.entries.length > 0 && chance(world, world.knobs.refusals)
    if (isRefused) {
      node.outstanding = []
      // A hand-over larger than a group may be partially durable.
      refused(raft, ready.token, world.random.below(2) === 0 ? writePart(world, node, ready) : undefined)
    } else {
      node.outstanding.shift()
      if (ready.snapshot) install(world, node, raft, ready.snapshot)
      else if (ready.mustStore) write(world, node, ready)
      persisted(raft, ready.token)
      for (const message of ready.sendAfterPersist) send(world, message)
    }
    pump(world, node)
  }
}

function install(world: World, node: Node, raft: Raft, offer: SnapshotOffer): void {
  const { storage } = node
  const { index, snapshotTerm: term, configuration, manifest } = offer
  check(index > storage.commit, 'a snapshot advances the state')
  const state = viewOf(manifest).getUint32(0, true)
  check(world.states.get(index) === state, 'a snapshot holds the state of its index (O8)')
  node.storage = {
    ...storage,
    commit: index,
    snapshot: { index, term, configuration, state },
    firstIndex: index + 1,
    baseTerm: term,
    entries: [],
  }
  node.state = state
  world.counts.installs++
  installed(raft, index, term, configuration)
  distrust(world, raft)
}

// Driver

function pump(world: World, node: Node): void {
  const { raft } = node
  if (!raft) return
  while (hasReady(raft)) {
    if (world.knobs.isLockStep && node.outstanding.length > 0) break
    const ready = takeReady(raft)
    for (const message of ready.sendNow) send(world, message)
    for (const { context, index } of ready.readStates) onRead(world, context, index)
    for (const { context } of ready.droppedReads) world.reads.delete(context)
    for (const { peer } of ready.offers) offer(world, node, raft, peer)
    for (const { peer, firstIndex, lastIndex, bytesMax } of ready.logReads) {
      const { storage } = node
      check(lastIndex <= lastIndexOf(storage), 'only durable entries are read back')
      const isThere = firstIndex >= storage.firstIndex && !chance(world, 50)
      provideEntries(raft, peer, isThere ? batchesOf(storage, firstIndex, lastIndex, bytesMax) : 'compacted')
    }
    const latency = world.isQuiet ? 0 : world.random.below(world.knobs.diskLatency + 1)
    const before = node.outstanding.at(-1)?.due ?? 0
    node.outstanding.push({ ready, due: Math.max(before, world.slot + latency) })
    observe(world, node, raft)
  }
  observe(world, node, raft)
}

function offer(world: World, node: Node, raft: Raft, peer: number): void {
  const { index, term, configuration, state } = node.storage.snapshot
  const manifest = new Uint8Array(4)
  viewOf(manifest).setUint32(0, state, true)
  if (index === 0 || chance(world, 100)) return reportSnapshot(raft, peer, false)
  offerSnapshot(raft, peer, { index, snapshotTerm: term, configuration, manifest })
  if (chance(world, 300)) reportSnapshot(raft, peer, chance(world, 500))
}

function apply(world: World, node: Node): void {
  const { raft } = node
  if (!raft) return
  for (;;) {
    const batch = nextCommitted(raft, 1 + world.random.below(8))
    if (!batch) return
    for (let index = batch.firstIndex; index <= lastOf(batch); index++) {
      applyOne(world, node, raft, index, sliceBatch(batch, index, index).bytes)
    }
    applied(raft, lastOf(batch), batch.count, batch.bytes.length)
    pump(world, node)
  }
}

function applyOne(world: World, node: Node, raft: Raft, index: number, bytes: Uint8Array): void {
  const view = viewOf(bytes)
  const term = entryTerm(view, 0)
  const digest = digestOf(bytes)
  check(storedTerm(node.storage, index) === term, 'applied entries are durable here (H5)')
  noteCommitted(world, index, term, digest)
  node.state = Math.imul(node.state ^ digest, 0x01000193) >>> 0
  const state = world.states.get(index)
  if (state === undefined) world.states.set(index, node.state)
  else check(state === node.state, 'equal indexes have equal states (O2, O8)')
  world.counts.applied++
  const payload = bytes.subarray(13)
  if (entryKind(view, 0) === ENTRY_KIND.command) {
    const command = viewOf(payload).getUint32(0, true)
    const before = world.applied.get(command)
    check(before === undefined || before === index, 'a command proposed once takes effect once (O4)')
    world.applied.set(command, index)
  } else if (entryKind(view, 0) === ENTRY_KIND.configuration) {
    const configuration = decodeConfiguration(payload)
    applyConfiguration(raft, index, configuration)
    distrust(world, raft)
    for (const { id } of configuration.members) if (!world.nodes.has(id)) addNode(world, id)
  }
}

// Network

function send(world: World, message: Message): void {
  world.counts.messages++
  const { knobs, isQuiet } = world
  if (world.cut.has(`${message.from}>${message.to}`)) return
  if (message.type === 'append') {
    let bytes = 0
    let count = 0
    for (const batch of message.entries) {
      bytes += batch.bytes.length
      count += batch.count
    }
    check(bytes <= knobs.messageBytes || count === 1, 'a message is bounded (R1)')
  }
  if (!isQuiet && chance(world, knobs.loss)) return
  post(world, message)
  if (!isQuiet && chance(world, knobs.duplicates)) post(world, message)
}

function post(world: World, message: Message): void {
  const { knobs, random, isQuiet } = world
  let latency = isQuiet ? 0 : random.below(knobs.latency + 1)
  if (!isQuiet && chance(world, knobs.stragglers)) latency += random.below(10 * knobs.electionTicks)
  const at = world.slot + latency
  const flights = world.calendar.get(at)
  if (flights) flights.push(message)
  else world.calendar.set(at, [message])
}

/** Delivers messages of this slot and their immediate responses. An endless chain continues in the next slot. */
function deliver(world: World): void {
  for (let round = 0; round < 10; round++) {
    const flights = world.calendar.get(world.slot)
    if (!flights && round > 0) return
    world.calendar.delete(world.slot)
    if (flights && !world.isQuiet) shuffle(world, flights)
    for (const message of flights ?? []) {
      const node = world.nodes.get(message.to)
      if (!node?.raft) continue
      step(node.raft, message)
      // Several messages of a turn share a hand-over.
      if (world.random.below(3) > 0) pump(world, node)
    }
    for (const node of world.nodes.values()) {
      pump(world, node)
      runDisk(world, node)
      if (world.isQuiet || world.random.below(3) > 0) apply(world, node)
      runDisk(world, node)
    }
  }
  const late = world.calendar.get(world.slot) ?? []
  world.calendar.delete(world.slot)
  const next = world.calendar.get(world.slot + 1) ?? []
  world.calendar.set(world.slot + 1, [...late, ...next])
}

function shuffle<T>({ random }: World, list: T[]): void {
  for (let at = list.length - 1; at > 0; at--) {
    const other = random.below(at + 1)
    const value = list[at] as T
    list[at] = list[other] as T
    list[other] = value
  }
}

/** True with a probability of `perMille` thousandths; never in a quiet world. */
function chance({ random, isQuiet }: World, perMille: number): boolean {
  return perMille > 0 && !isQuiet && random.below(1000) < perMille
}

// Faults and workload

function misbehave(world: World): void {
  const { knobs, random, nodes, cut } = world
  for (const node of nodes.values()) {
    if (!node.raft) {
      if (chance(world, knobs.restarts)) start(world, node)
    } else if (chance(world, knobs.crashes)) crash(world, node)
    else if (node.raft.role === 'leader' && chance(world, knobs.coups)) crash(world, node)
  }
  if (chance(world, knobs.wipes)) wipe(world)
  if (!chance(world, knobs.partitions)) return
  if (cut.size > 0 && random.below(2) === 0) return cut.clear()
  const ids = [...nodes.keys()]
  const one = ids[random.below(ids.length)]
  const way = random.below(4)
  const half = new Set(ids.filter(() => random.below(2) === 0))
  for (const from of ids) {
    for (const to of ids) {
      if (way === 0 && half.has(from) !== half.has(to)) cut.add(`${from}>${to}`)
      if (way === 1 && from === one) cut.add(`${from}>${to}`)
      if (way === 2 && to === one) cut.add(`${from}>${to}`)
      if (way === 3 && (from === one || to === one)) cut.add(`${from}>${to}`)
    }
  }
}

/**
 * At most one voter loses its disk: more losses are not covered by the guarantees (docs/design/consensus.md#promises).
 * It returns without a vote (docs/design/consensus.md#formation).
 */
function wipe(world: World): void {
  if ([...world.nodes.values()].some(({ isWiped }) => isWiped) || world.genesis.voters.length < 3) return
  const node = world.nodes.get(1 + world.random.below(world.genesis.voters.length)) as Node
  // Not in a configuration that needs every voter.
  if (!hasQuorum(world, new Set([node.id]))) return
  crash(world, node)
  node.isWiped = true
  node.storage = emptyStorage(world)
  // At the worst time: the nodes that know its promises are down as well.
  for (const other of world.nodes.values()) {
    if (other.raft?.role === 'leader' && world.random.below(2) === 0) crash(world, other)
    if (other.raft) distrust(world, other.raft)
  }
  start(world, node)
}

function work(world: World): void {
  const { knobs, random, nodes } = world
  for (const node of nodes.values()) {
    const { raft } = node
    if (!raft) continue
    if (raft.role === 'leader') {
      if (chance(world, knobs.proposals)) give(world, raft, 1 + random.below(4))
      if (chance(world, knobs.changes)) changeMembers(world, raft)
      if (chance(world, 20)) reportUnreachable(raft, someMember(world, raft))
    } else if (chance(world, 5)) {
      forgetLeader(raft)
      campaign(raft)
    }
    if (chance(world, knobs.transfers)) transferLeader(raft, someMember(world, raft))
    if (chance(world, knobs.reads)) ask(world, raft)
    if (chance(world, knobs.compactions)) compact(world, node, raft)
    if (chance(world, 100)) storeCommit(raft)
    pump(world, node)
  }
}

function give(world: World, raft: Raft, count: number): number | undefined {
  const parts = Array.from({ length: count }, () => {
    const payload = new Uint8Array(4 + world.random.below(world.knobs.entryBytes))
    viewOf(payload).setUint32(0, world.nextCommand++, true)
    return encodeEntry(raft.term, ENTRY_KIND.command, payload)
  })
  const first = propose(raft, count, joined(parts))
  return typeof first === 'number' ? first + count - 1 : undefined
}

function someMember({ random }: World, { configuration: { members } }: Raft): number {
  return members[random.below(members.length)]?.id as number
}

function changeMembers(world: World, raft: Raft): void {
  const { random } = world
  const { configuration } = raft
  const steps: Step[] = []
  for (let left = 1 + random.below(3); left > 0; left--) {
    const id = someMember(world, raft)
    if (steps.some((step) => 'id' in step && step.id === id)) continue
    const isLearner = configuration.learners.includes(id)
    const kind = random.below(5)
    if (kind === 0 && world.additions < 4) {
      const node = `added ${world.additions++}`
      steps.push({ type: random.below(2) === 0 ? 'addLearner' : 'addVoter', node, incarnation: 'ab'.repeat(16) })
    } else if (kind === 1) steps.push({ type: 'remove', id })
    else steps.push({ type: isLearner ? 'promote' : 'demote', id })
  }
  const change: Change =
    random.below(8) === 0 ? 'leave' : { steps, ...(random.below(3) === 0 && { phase: 'joint' as const }) }
  // A node that lost its promises must not be needed for a quorum.
  if ([...world.nodes.values()].some(({ isWiped }) => isWiped)) return
  if (typeof proposeChange(raft, change) === 'number') world.counts.changes++
}

function ask(world: World, raft: Raft): void {
  const context = world.nextContext++
  if (readIndex(raft, context) === 'taken') world.reads.set(context, world.maxCommitted)
}

function onRead(world: World, context: number, index: number): void {
  const least = world.reads.get(context)
  world.reads.delete(context)
  if (least === undefined) return
  world.counts.reads++
  check(index >= least, `a read at ${index} includes the earlier commit at ${least} (O6)`)
}

function compact(world: World, node: Node, raft: Raft): void {
  const { storage } = node
  if (raft.snapshot || raft.applied <= storage.snapshot.index) return
  const { applied: index, appliedTerm: term, configuration } = raft
  check(index <= lastIndexOf(storage), 'a snapshot has its log')
  storage.snapshot = { index, term, configuration, state: node.state }
  const firstIndex = Math.max(storage.firstIndex, index + 1 - world.random.below(10))
  storage.baseTerm = storedTerm(storage, firstIndex - 1)
  storage.entries.splice(0, firstIndex - storage.firstIndex)
  storage.firstIndex = firstIndex
  compactedTo(raft, firstIndex)
}

function passSlot(world: World): void {
  for (const node of world.nodes.values()) {
    // Clocks differ: some tick twice, some not at all.
    const ticks = chance(world, world.knobs.skew) ? world.random.below(3) : 1
    for (let n = 0; n < ticks && node.raft; n++) tick(node.raft)
    // A transfer without progress is aborted (docs/design/storage.md#transfer).
    for (const { id, state } of node.raft?.peers ?? []) {
      if (node.raft && state === 'snapshot' && world.random.below(30) === 0) reportSnapshot(node.raft, id, false)
    }
    pump(world, node)
    runDisk(world, node)
  }
  deliver(world)
}

// Oracles

function observe(world: World, node: Node, raft: Raft): void {
  if (raft.role !== 'leader') return
  if (node.isRoleKnown !== raft.term) {
    node.isRoleKnown = raft.term
    world.counts.elections++
    const known = world.leaders.get(raft.term)
    check(known === undefined || known === node.id, `term ${raft.term} has one leader (O1)`)
    world.leaders.set(raft.term, node.id)
    check(isVoter(raft.configuration, raft.id), 'a leader is a voter (A12)')
    for (let index = Math.max(raft.firstIndex, world.maxCommitted - 50); index <= world.maxCommitted; index++) {
      const entry = world.committed.get(index)
      if (entry) check(termAt(raft, index) === entry.term, `a leader has the committed entry ${index} (O1)`)
    }
  }
  for (const { window } of raft.peers) {
    check(window.count <= world.knobs.inflightMessages, 'in flight is never more than the window (O14)')
  }
  if (raft.commit <= world.maxCommitted) return
  const term = termAt(raft, raft.commit)
  for (const half of [raft.configuration.voters, raft.configuration.outgoing]) {
    const durable = half.filter((id) => isDurable(world, id, raft.commit, term)).length
    check(half.length === 0 || durable * 2 > half.length, `the committed entry ${raft.commit} is on a quorum (O9)`)
  }
  world.maxCommitted = raft.commit
  const known = world.committed.get(raft.commit)
  check(known === undefined || known.term === term, 'an index is committed once (O2)')
}

function isDurable(world: World, id: number, index: number, term: number): boolean {
  const node = world.nodes.get(id)
  if (!node || node.isWiped) return false
  const { storage } = node
  return index <= storage.snapshot.index || (index < storage.firstIndex ? true : storedTerm(storage, index) === term)
}

function noteCommitted(world: World, index: number, term: number, digest: number): void {
  const known = world.committed.get(index)
  if (!known) world.committed.set(index, { term, digest })
  else check(known.term === term && known.digest === digest, `index ${index} is committed once (O2)`)
  world.maxCommitted = Math.max(world.maxCommitted, index)
}

// Liveness

/** Heals everything except some nodes that are not needed for a quorum, which stay down, receive nothing or send nothing. */
function settle(world: World): void {
  const { nodes, cut, random, knobs } = world
  world.isQuiet = true
  cut.clear()
  const outside = new Set<number>()
  for (const id of shuffled(world, [...nodes.keys()])) {
    outside.add(id)
    if (!hasQuorum(world, outside) || random.below(2) === 0) outside.delete(id)
  }
  for (const node of nodes.values()) {
    const isOutside = outside.has(node.id)
    // Without a lease, nodes that receive nothing may disturb (docs/design/consensus.md#voter-leases).
    const way = knobs.checkQuorum ? random.below(3) : 0
    if (!isOutside || way > 0) {
      if (!node.raft) start(world, node)
    } else if (node.raft) crash(world, node)
    // Pending hand-overs of slow disks are stored now.
    node.outstanding = node.outstanding.map(({ ready }) => ({ ready, due: world.slot }))
    if (!isOutside || way === 0) continue
    // Sends but receives nothing, or receives but sends nothing.
    for (const other of nodes.keys()) cut.add(way === 1 ? `${other}>${node.id}` : `${node.id}>${other}`)
  }
  const insiders = () => [...nodes.values()].filter(({ id }) => !outside.has(id))
  // Some messages in flight still arrive and may disturb for a while.
  const calm = world.slot + 2 * knobs.electionTicks
  for (const at of world.calendar.keys()) if (at > calm) world.calendar.delete(at)
  const limit = world.slot + 60 * knobs.electionTicks + 400
  let goal: { readonly index: number; readonly term: number } | undefined
  for (; ; world.slot++) {
    check(world.slot < limit, `the remaining nodes make progress (O13): ${describe(world, outside)}`)
    passSlot(world)
    const inside = insiders()
    const leader = leaderOf(inside)
    if (!leader) continue
    if (goal && leader.term !== goal.term && leader.applied < goal.index) goal = undefined
    if (!goal) {
      const index = give(world, leader, 1)
      if (index !== undefined) goal = { index, term: leader.term }
      const node = nodes.get(leader.id)
      if (node) pump(world, node)
    } else if (isSettled(inside, leader, goal.index)) break
  }
  // With a leader lease, removed members do not disturb the others (docs/design/consensus.md#voter-leases).
  if (!knobs.checkQuorum) return
  while (world.slot < calm + 4 * knobs.electionTicks) {
    passSlot(world)
    world.slot++
  }
  const term = leaderOf(insiders())?.term
  for (let n = 0; n < 8 * knobs.electionTicks; n++, world.slot++) passSlot(world)
  check(leaderOf(insiders())?.term === term, `the remaining nodes are not disturbed (O13): ${describe(world, outside)}`)
}

function shuffled<T>(world: World, list: T[]): T[] {
  shuffle(world, list)
  return list
}

/** Whether every possible configuration has a quorum without these nodes. */
function hasQuorum(world: World, outside: ReadonlySet<number>): boolean {
  const configurations = [world.genesis]
  for (const { storage, raft } of world.nodes.values()) {
    configurations.push(storage.snapshot.configuration)
    const stored = batchesOf(storage, storage.firstIndex, lastIndexOf(storage))
    for (const batch of [...stored, ...(raft ? unappliedBatches(raft) : [])]) {
      for (let index = batch.firstIndex; index <= lastOf(batch); index++) {
        const { bytes } = sliceBatch(batch, index, index)
        if (entryKind(viewOf(bytes), 0) !== ENTRY_KIND.configuration) continue
        configurations.push(decodeConfiguration(bytes.subarray(13)))
      }
    }
  }
  const isThere = (id: number) => !outside.has(id) && world.nodes.get(id)?.isWiped === false
  return configurations.every(({ voters, outgoing }) =>
    [voters, outgoing].every((half) => half.length === 0 || half.filter(isThere).length * 2 > half.length),
  )
}

function leaderOf(nodes: readonly Node[]): Raft | undefined {
  let leader: Raft | undefined
  for (const { raft } of nodes) {
    if (raft?.role === 'leader' && (!leader || raft.term > leader.term)) leader = raft
  }
  return leader
}

/** All members inside have applied the entry, and there is no joint phase. */
function isSettled(inside: readonly Node[], leader: Raft, index: number): boolean {
  if (leader.applied < index || (leader.configuration.outgoing.length > 0 && leader.configuration.autoLeave))
    return false
  const isMember = (id: number) => leader.configuration.members.some((member) => member.id === id)
  return inside.every(({ id, raft }) => !isMember(id) || (raft !== undefined && raft.applied >= index))
}

function describe(world: World, outside: ReadonlySet<number>): string {
  const lines = [...world.nodes.values()].map(({ id, raft, isWiped }) => {
    if (!raft) return `${id}: down`
    const { role, term, leader, commit, applied, lastIndex, configuration, peers } = raft
    const progress = peers.map((peer) => `${peer.id}:${peer.state[0]}${peer.match}`).join(' ')
    const { voters, outgoing, learners } = configuration
    const where = `${outside.has(id) ? ' outside' : ''}${isWiped ? ' wiped' : ''}`
    return `${id}${where}: ${role} t${term} of ${leader}, ${applied}/${commit}/${lastIndex}, ${voters}|${outgoing}|${learners} ${progress}`
  })
  return `slot ${world.slot}\n${lines.join('\n')}`
}

/** For the message of a failed test. */
export function report({ world, error }: Outcome): string {
  assert(error !== undefined, 'there is a failure to report')
  const what = error instanceof Error ? `${error.name}: ${error.message}\n${error.stack ?? ''}` : String(error)
  return `seed ${world.seed} (VACANCY_RAFT_SEED=${world.seed}), slot ${world.slot}: ${what}\n${JSON.stringify(world.knobs)}`
}
