/**
 * The core alone as a simulated program: raft/ with an array as its log, a delay as its disk, and messages passed as
 * values. The fastest way to test elections, replication, membership and transfer. Whole nodes are simulated by
 * driver-node.ts.
 */

import { assert } from '@vacancy/shared'
import { between, chance, type Random, shuffle, streamOf } from '@vacancy/testkit/random'
import { scheduleIn } from '@vacancy/testkit/scheduler'
import {
  ENTRY_HEADER_BYTES,
  ENTRY_KIND,
  type EntryBatch,
  encodeEntry,
  entryKind,
  entryLength,
  entryTerm,
  viewOf,
} from '../../engine/src/raft/entry.ts'
import { termAt } from '../../engine/src/raft/log.ts'
import { type Change, decodeConfiguration, isVoter, type Step, votersOnly } from '../../engine/src/raft/membership.ts'
import type { Configuration, Message } from '../../engine/src/raft/messages.ts'
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
  owesCommit,
  persisted,
  propose,
  proposeChange,
  provideEntries,
  type Raft,
  type Ready,
  readIndex,
  refused,
  reportSnapshot,
  reportUnreachable,
  sendCommit,
  setCounts,
  step,
  storeCommit,
  takeReady,
  tick,
  transferLeader,
} from '../../engine/src/raft/raft.ts'
import { createCommandWriter } from '../../engine/src/store/command.ts'
import type { StreamKind } from '../../engine/src/transport/transport.ts'
import {
  type CoreLog,
  type CoreSnapshot,
  createStorage,
  fillStorage,
  firstSnapshot,
  healStorage,
  openLog,
  storageAfterCrash,
} from './core-log.ts'
import { cutLinks } from './faults.ts'
import type { Fault } from './knobs.ts'
import { onApplied, onState, violate } from './oracles.ts'
import {
  applyToy,
  createToyMachine,
  encodeToy,
  restoreToy,
  type ToyCommand,
  type ToyMachine,
  writeToyCommand,
} from './toy-machine.ts'
import { note } from './trace.ts'
import {
  type Action,
  endProcess,
  type Host,
  nodeOf,
  type Program,
  type Running,
  restartLater,
  type SimulatedNode,
  type World,
} from './world.ts'

type WaitingWrite = { readonly term: number; readonly token: number }
type PendingRead = { readonly token: number; readonly register: number; readonly least: number }
type WaitingRead = { readonly index: number; readonly token: number; readonly register: number }

type CoreNode = {
  readonly host: Host
  readonly probesBack: Random
  readonly id: number
  readonly log: CoreLog
  readonly raft: Raft
  readonly machine: ToyMachine
  configuration: Configuration
  snapshotIndex: number
  snapshotsInstalled: number
  isApplying: boolean
  /** A commit index waits to be sent. */
  isOwing: boolean
  /** Unconfirmed hand-overs, oldest first. */
  readonly unconfirmed: Ready[]
  readonly writes: Map<number, WaitingWrite>
  /** `least`: what was committed before. */
  readonly pendingReads: Map<number, PendingRead>
  reads: WaitingRead[]
  nextContext: number
  /** Newest term that it led. */
  ledTerm: number
  ticks: number
}

const TAIL_BATCHES_MAX = 200_000
const WAITING_MAX = 10_000
/** Committed entries that are looked for in the log of a new leader. */
const LOOKED_BACK = 50

export const coreProgram: Program = {
  name: 'core',
  encode,
  durableEvery: 1,
  createStorage: (world) => createStorage(firstSnapshot(firstConfiguration(world))),
  afterCrash: storageAfterCrash,
  start: startCore,
  // Frames have a checksum; a connection is closed on an invalid one.
  damage: () => undefined,
  meet(world, node, fault) {
    if (fault.kind === 'wipe') return wipe(world, node, fault)
    if (fault.kind !== 'fulldisk') return false
    fillStorage(world, node, fault.lengthUs)
    return true
  },
  heal: (_world, node) => healStorage(node),
}

const writer = createCommandWriter(64)

function encode(command: ToyCommand): Uint8Array {
  writer.at = 0
  writeToyCommand(writer, command)
  return writer.bytes.slice(0, writer.at)
}

function firstConfiguration({ knobs: { voters }, nodes }: World): Configuration {
  const members = nodes.map(({ number, name }) => ({ id: number, node: name, incarnation: incarnationOf(number) }))
  const learners = members.slice(voters).map(({ id }) => id)
  return { ...votersOnly(members.slice(0, voters)), members, learners }
}

function incarnationOf(number: number): string {
  return number.toString(16).padStart(32, '0')
}

function startCore(host: Host): Running {
  const { node, world } = host
  const { knobs } = world
  const id = node.raftId
  const isMute = node.wipedAt > 0
  const log = openLog(host, {
    onStored(ready) {
      assert(core.unconfirmed[0] === ready, 'hand-overs are confirmed in order')
      confirm(core)
      confirmIdle(core)
      pump(core)
    },
    onRefused(token, storedTo) {
      core.unconfirmed.length = 0
      refused(raft, token, storedTo)
      pump(core)
    },
    onInstalled: (snapshot) => install(core, snapshot),
    onCompacted: (firstIndex) => {
      if (firstIndex > raft.firstIndex) compactedTo(raft, firstIndex)
    },
  })
  const { snapshot, ...recovered } = log.recovered
  const raft = createRaft(
    { ...raftConfig(host, id), preVote: knobs.preVote, checkQuorum: knobs.checkQuorum, isLockStep: knobs.isLockStep },
    {
      ...recovered,
      applied: snapshot.index,
      appliedTerm: snapshot.term,
      configuration: snapshot.configuration,
      isMute,
    },
  )
  distrustWiped(world, raft)
  const machine = createToyMachine()
  restoreToy(machine, snapshot.state)
  onState(world.oracles, node.number, snapshot.index, machine.digestLo, machine.digestHi)
  const core: CoreNode = {
    host,
    probesBack: streamOf(world.seed, `node ${node.number} start ${node.starts} probes`),
    id,
    log,
    raft,
    machine,
    configuration: snapshot.configuration,
    snapshotIndex: snapshot.index,
    snapshotsInstalled: 0,
    isApplying: false,
    isOwing: false,
    unconfirmed: [],
    writes: new Map(),
    pendingReads: new Map(),
    reads: [],
    nextContext: node.starts * 1_000_000_000,
    ledTerm: 0,
    ticks: 0,
  }
  const idOf = (number: number) => nodeOf(world, number).raftId
  const beat = (): void => {
    tick(raft)
    if (++core.ticks % knobs.heartbeatTicks === 0) storeCommit(raft)
    probeBack(core)
    pump(core)
    host.env.schedule.after(knobs.tickMs, beat)
  }
  host.env.schedule.after(knobs.tickMs, beat)
  return {
    raft,
    onPayload(_from, _stream, payload) {
      const message = payload as Message
      if (message.to !== id) return
      step(raft, message)
      pump(core)
    },
    onOpen: () => undefined,
    onClosed(peer, stream, isDead) {
      reportUnreachable(raft, idOf(peer))
      // docs/design/consensus.md#fast-failover: the leader's process has ended.
      if (isDead && stream === 'control' && raft.leader === idOf(peer) && raft.role !== 'leader') {
        host.env.schedule.after(knobs.tickMs * between(host.random, 1, 10), () => {
          if (raft.leader !== idOf(peer)) return
          forgetLeader(raft)
          campaign(raft)
          pump(core)
        })
      }
      pump(core)
    },
    propose(token, command) {
      const entry = encodeEntry(raft.term, ENTRY_KIND.command, command)
      const first = propose(raft, 1, entry)
      if (typeof first !== 'number') host.answer(token, { kind: 'none', reason: first })
      else core.writes.set(first, { term: raft.term, token })
      pump(core)
    },
    read(token, register) {
      const context = core.nextContext++
      const least = world.oracles.committed
      const taken = readIndex(raft, context)
      if (taken !== 'taken') return host.answer(token, { kind: 'none', reason: taken })
      core.pendingReads.set(context, { token, register, least })
      pump(core)
    },
    act: (action) => act(core, action),
    voters: () => numbersOf(core, [...core.configuration.voters, ...core.configuration.outgoing]),
    halves: () => halvesOf(core.configuration).map((half) => numbersOf(core, half)),
    learners: () => numbersOf(core, core.configuration.learners),
    isJoint: () => core.configuration.outgoing.length > 0,
    digest: () => ({ lo: machine.digestLo, hi: machine.digestHi }),
    checkBounds() {
      if (log.waiting() > WAITING_MAX)
        violate('O14', `${log.waiting()} hand-overs wait for the disk of node ${node.number}`)
      for (const { window } of raft.peers) {
        if (window.count > knobs.inflightMessages) violate('O14', `${window.count} appends are in flight`)
      }
      if (raft.tail.length > TAIL_BATCHES_MAX) violate('O14', `node ${node.number} keeps ${raft.tail.length} batches`)
    },
    isDurable: log.isDurable,
    isMute,
  }
}

/** What all simulated nodes have in common. */
export function raftConfig({ random, world: { knobs } }: Host, id: number) {
  const { electionTicks, heartbeatTicks, messageBytes, inflightMessages, inflightBytes, keepBytes } = knobs
  return {
    ...{ id, electionTicks, heartbeatTicks, keepBytes, limits: { messageBytes, inflightMessages, inflightBytes } },
    random: (below: number) => random.below(below),
    stepDownOnRemoval: true,
    validateChanges: true,
  }
}

/** The voters and, while joint, the outgoing voters. */
export function halvesOf({ voters, outgoing }: Configuration): readonly (readonly number[])[] {
  return outgoing.length > 0 ? [voters, outgoing] : [voters]
}

/** Nobody has an id whose node has joined anew. */
function numbersOf({ host: { world } }: CoreNode, ids: readonly number[]): number[] {
  return world.nodes.filter(({ raftId }) => ids.includes(raftId)).map(({ number }) => number)
}

function streamOfMessage({ type }: Message): StreamKind {
  return type === 'append' || type === 'appendReply' ? 'append' : type === 'snapshot' ? 'bulk' : 'control'
}

function sendAll(core: CoreNode, messages: readonly Message[]): void {
  for (const message of messages) {
    const [to] = numbersOf(core, [message.to])
    if (to === undefined || to === core.host.node.number) continue
    let bytes = 100
    if (message.type === 'append') {
      let count = 0
      for (const batch of message.entries) {
        bytes += batch.bytes.length
        count += batch.count
      }
      if (bytes - 100 > core.raft.limits.messageBytes && count > 1) violate('O14', `an append has ${bytes} bytes`)
    }
    if (message.type === 'snapshot') bytes += message.manifest.length
    core.host.send(to, streamOfMessage(message), message, bytes)
  }
}

/**
 * A leader may probe the common prefix with a peer from an earlier index than necessary: Raft allows it, and leaders of
 * another release may do it. This implementation goes back to the exact index, so it never sends a message that matches
 * and ends before the logs diverge, which docs/design/consensus.md#replication must handle.
 */
function probeBack({ raft, host: { world }, probesBack: random }: CoreNode): void {
  const { probeBackP } = world.knobs
  if (probeBackP === 0 || world.isCalm || raft.role !== 'leader') return
  for (const peer of raft.peers) {
    if (peer.state !== 'probe' || peer.reading !== 0 || !chance(random, probeBackP)) continue
    const least = Math.max(peer.match + 1, raft.firstIndex)
    peer.next = Math.max(Math.min(peer.next, least), peer.next - between(random, 1, 16))
    peer.sentCommit = Math.min(peer.sentCommit, peer.next - 1)
    peer.isPaused = false
    raft.mustBroadcast = true
  }
}

/**
 * A voter loses its disk. It returns under its id without a vote and counts for nothing
 * (docs/design/consensus.md#formation). At most one does: more are not covered (docs/design/consensus.md#promises).
 */
function wipe(world: World, node: SimulatedNode, { lengthUs, detail }: Fault): boolean {
  const { nodes, knobs, counts } = world
  const isOther = nodes.some(({ wipedAt, isDamaged }) => wipedAt > 0 || isDamaged)
  if (isOther || knobs.voters < 3 || node.number > knobs.voters || counts.membershipChanges > 0) return false
  // At the worst time: nodes that know its promises are down as well.
  for (const other of nodes) {
    if (other === node || other.process?.running?.raft.role !== 'leader' || detail % 2 === 0) continue
    endProcess(world, other, 'killed', false)
    restartLater(world, other, lengthUs)
  }
  endProcess(world, node, 'wiped', false)
  node.storage = coreProgram.createStorage(world, node)
  node.wipedAt = world.scheduler.nowUs
  node.wasVoter = false
  for (const { process } of nodes) if (process?.running) distrustWiped(world, process.running.raft as Raft)
  restartLater(world, node, lengthUs)
  return true
}

/** A wiped member is recognized by the new incarnation of its folder. */
function distrustWiped({ nodes }: World, raft: Raft): void {
  for (const { number, wipedAt } of nodes) {
    if (wipedAt > 0 && raft.configuration.members.some(({ id }) => id === number)) setCounts(raft, number, false)
  }
}

/** A new leader is cut off, often before the entry of its term arrives anywhere. */
function isolate({ world, node, random }: Host): void {
  const { knobs, scheduler, nodes } = world
  if (!knobs.classes.includes('partition') || !chance(random, knobs.isolatedP)) return
  const links = nodes.flatMap(({ number }) => (number === node.number ? [] : [[node.number, number] as const]))
  const lengthUs = random.below(4 * knobs.tickMs * knobs.electionTicks * 1_000)
  scheduleIn(scheduler, random.below(4 * knobs.latencyUsMax), () => {
    if (!world.isCalm) cutLinks(world, links, lengthUs)
  })
}

/** docs/design/consensus.md#invariants: what a leader commits is on a quorum, and all later leaders have it. */
function observe(core: CoreNode): void {
  const { raft, host } = core
  const { oracles } = host.world
  if (raft.role !== 'leader') return
  const { committedTerms, checks } = oracles
  if (core.ledTerm !== raft.term) {
    core.ledTerm = raft.term
    isolate(host)
    checks.O1++
    if (!isVoter(raft.configuration, raft.id)) violate('O1', `node ${raft.id} leads term ${raft.term} without a vote`)
    for (const [index, term] of [...committedTerms].slice(-LOOKED_BACK)) {
      if (index >= raft.firstIndex && term < raft.term && termAt(raft, index) !== term)
        violate('O1', `node ${raft.id} leads term ${raft.term} without the committed index ${index} of term ${term}`)
    }
  }
  if (raft.commit < raft.firstIndex) return
  const term = termAt(raft, raft.commit)
  const known = committedTerms.get(raft.commit)
  if (known === term) return
  if (known !== undefined) violate('O2', `index ${raft.commit} is committed with terms ${known} and ${term}`)
  committedTerms.set(raft.commit, term)
  checks.O9++
  for (const half of halvesOf(raft.configuration)) {
    // What a node that has joined anew had on its disk before is not known.
    const holders = half.filter((id) => {
      const node = host.world.nodes.find(({ raftId }) => raftId === id)
      return node?.wipedAt !== 0 ? !node : (node.process?.running?.isDurable(raft.commit, term) ?? true)
    })
    if (holders.length * 2 <= half.length)
      violate('O9', `index ${raft.commit} is committed, but durable only on nodes ${holders} of ${half}`)
  }
}

/** docs/design/consensus.md#hand-over, pipelined: hand-overs are written in order while the next ones arrive. */
function pump(core: CoreNode): void {
  const { raft, host } = core
  while (hasReady(raft) && !(raft.config.isLockStep && core.unconfirmed.length > 0)) {
    const ready = takeReady(raft)
    sendAll(core, ready.sendNow)
    for (const { context, index } of ready.readStates) onReadState(core, context, index)
    for (const { context, reason } of ready.droppedReads) {
      const read = core.pendingReads.get(context)
      core.pendingReads.delete(context)
      if (read) host.answer(read.token, { kind: 'none', reason })
    }
    for (const { peer } of ready.offers) offer(core, peer)
    for (const { peer, firstIndex, lastIndex, bytesMax } of ready.logReads) {
      const found = core.log.read(firstIndex, lastIndex, bytesMax)
      host.later(host.random.below(2_000), 'sync', () => {
        provideEntries(raft, peer, found)
        pump(core)
      })
    }
    core.unconfirmed.push(ready)
    if (ready.mustStore || ready.snapshot) core.log.submit(ready)
    else confirmIdle(core)
  }
  sendCommitSoon(core)
  observe(core)
  applyAll(core)
}

/** A commit index waits for entries that take it along, as in the driver (engine/src/cluster/hand-over.ts). */
function sendCommitSoon(core: CoreNode): void {
  if (core.isOwing || !owesCommit(core.raft)) return
  core.isOwing = true
  core.host.env.schedule.after(1, () => {
    core.isOwing = false
    sendCommit(core.raft)
    pump(core)
  })
}

/** The oldest hand-over is durable, and its promises may be sent (docs/design/consensus.md#invariants). */
function confirm(core: CoreNode): void {
  const ready = core.unconfirmed.shift()
  assert(ready !== undefined, 'only hand-overs are confirmed')
  persisted(core.raft, ready.token)
  sendAll(core, ready.sendAfterPersist)
}

/** An empty hand-over is durable as soon as all earlier ones are. */
function confirmIdle(core: CoreNode): void {
  for (let next = core.unconfirmed[0]; next && !next.mustStore && !next.snapshot; next = core.unconfirmed[0])
    confirm(core)
}

function install(core: CoreNode, { index, term, configuration, state }: CoreSnapshot): void {
  const { host, machine, raft } = core
  host.world.counts.snapshotsInstalled++
  note(host.world.trace, host.world.scheduler.nowUs, host.node.number, 'snapshot', index, () => `installed ${index}`)
  restoreToy(machine, state)
  onState(host.world.oracles, host.node.number, index, machine.digestLo, machine.digestHi)
  core.configuration = configuration
  core.snapshotIndex = index
  core.snapshotsInstalled++
  core.isApplying = false
  installed(raft, index, term, configuration)
  distrustWiped(host.world, raft)
  // This node will not learn their outcome.
  for (const [at, { token }] of core.writes) {
    if (at > index) continue
    core.writes.delete(at)
    host.answer(token, { kind: 'unknown', reason: 'its entry was skipped by a snapshot' })
  }
  releaseReads(core)
}

function applyAll(core: CoreNode): void {
  const { host, raft } = core
  if (core.isApplying) return
  const { slowApplyUs } = host.node
  const batch = nextCommitted(raft, slowApplyUs > 0 ? 16 : undefined)
  if (!batch) return
  const { snapshotsInstalled } = core
  const finish = (): void => {
    // An installed snapshot has replaced entries that were handed out before.
    if (snapshotsInstalled !== core.snapshotsInstalled) return
    core.isApplying = false
    applyBatch(core, batch)
    releaseReads(core)
    pump(core)
  }
  if (slowApplyUs === 0) return finish()
  core.isApplying = true
  host.later(slowApplyUs, 'apply', finish)
}

function applyBatch(core: CoreNode, batch: EntryBatch): void {
  const { host, raft, machine } = core
  const { world, node } = host
  const { bytes } = batch
  const view = viewOf(bytes)
  let at = 0
  for (let i = 0; i < batch.count; i++) {
    const index = batch.firstIndex + i
    const term = entryTerm(view, at)
    const start = at + ENTRY_HEADER_BYTES
    const end = start + entryLength(view, at)
    const kind = entryKind(view, at)
    const waiting = core.writes.get(index)
    if (waiting) core.writes.delete(index)
    if (!core.log.isDurable(index, term)) {
      violate('O9', `node ${node.number} applies index ${index} of term ${term}, which is not on its disk (H5)`)
    }
    world.counts.entries++
    if (kind === ENTRY_KIND.command) {
      const { code, value, index: resultIndex } = applyToy(machine, index, bytes, start)
      onApplied(world.oracles, world.scheduler.nowUs, {
        node: node.number,
        index,
        term,
        bytes,
        start,
        end,
        code,
        value,
        resultIndex,
      })
      if (waiting?.term === term) host.answer(waiting.token, { kind: 'result', code, value, index: resultIndex })
    } else if (kind === ENTRY_KIND.configuration) {
      core.configuration = decodeConfiguration(bytes.subarray(start, end)) as Configuration
      applyConfiguration(raft, index, core.configuration)
      distrustWiped(world, raft)
      admit(core)
      note(world.trace, world.scheduler.nowUs, node.number, 'change', index, () => JSON.stringify(core.configuration))
    }
    // Another term has this index: the proposal is certainly in no log
    // (docs/design/consensus.md#outcome-of-a-proposal).
    if (waiting && waiting.term !== term) host.answer(waiting.token, { kind: 'none', reason: 'overwritten' })
    at = end
  }
  applied(raft, batch.firstIndex + batch.count - 1, batch.count, bytes.length)
  if (raft.applied - core.snapshotIndex >= world.knobs.snapshotEvery) takeSnapshot(core)
}

function takeSnapshot(core: CoreNode): void {
  const { raft, host, machine, log } = core
  const { knobs, counts } = host.world
  const { applied: index, appliedTerm: term } = raft
  if (index <= core.snapshotIndex) return
  log.keep({ index, term, configuration: core.configuration, state: encodeToy(machine) }, index - knobs.keptEntries + 1)
  if (log.snapshot().index === index) {
    core.snapshotIndex = index
    counts.snapshotsTaken++
  }
}

function offer(core: CoreNode, peer: number): void {
  const { host, raft, log } = core
  takeSnapshot(core)
  const { index, term, configuration, state } = log.snapshot()
  if (!offerSnapshot(raft, peer, { index, snapshotTerm: term, configuration, manifest: state })) return
  // The transfer reports its outcome, correct or not.
  const ok = chance(host.random, 0.7)
  host.env.schedule.after(between(host.random, 1, 20) * host.world.knobs.tickMs, () => {
    reportSnapshot(raft, peer, ok)
    pump(core)
  })
}

function onReadState(core: CoreNode, context: number, index: number): void {
  const read = core.pendingReads.get(context)
  core.pendingReads.delete(context)
  if (!read) return
  if (index < read.least) violate('O6', `a read at index ${index} misses index ${read.least}, committed before it`)
  core.reads.push({ index, ...read })
  releaseReads(core)
}

function releaseReads(core: CoreNode): void {
  const { host, machine, raft } = core
  if (core.reads.length === 0) return
  const ready = core.reads.filter(({ index }) => index <= raft.applied)
  if (ready.length === 0) return
  core.reads = core.reads.filter(({ index }) => index > raft.applied)
  for (const { token, register } of ready) {
    host.world.counts.reads++
    host.answer(token, { kind: 'result', code: 0, value: machine.values[register], index: raft.applied })
  }
}

function act(core: CoreNode, action: Action): string {
  const { raft, host } = core
  const { counts } = host.world
  if (action.kind === 'snapshot') {
    takeSnapshot(core)
    return ''
  }
  // Bare cores have no clock.
  if (action.kind === 'set-time') return 'no time'
  if (action.kind === 'maintenance' || action.kind === 'load') return 'cores have no store'
  if (action.kind === 'transfer') {
    const taken = transferLeader(raft, nodeOf(host.world, action.target).raftId)
    if (taken === 'taken') counts.transfers++
    pump(core)
    return taken === 'taken' ? '' : taken
  }
  if (host.world.nodes.some(({ isDamaged }) => isDamaged)) return 'a disk is damaged'
  if (host.world.nodes.some(({ wipedAt }) => wipedAt > 0)) return 'a voter is mute'
  const taken = proposeChange(raft, drawChange(core, action.kind, nodeOf(host.world, action.target)))
  if (typeof taken === 'number') counts.membershipChanges++
  pump(core)
  return typeof taken === 'number' ? '' : String(taken)
}

/** One change, or several at once. Nodes that are no members are added. */
function drawChange(core: CoreNode, kind: 'promote' | 'demote', target: SimulatedNode): Change {
  const { random } = core.host
  const { voters, members } = core.configuration
  const { number, name: node, raftId: id } = target
  const joining = { node, incarnation: incarnationOf(number) }
  const ids = members.map((member) => member.id)
  const steps: Step[] = []
  if (!ids.includes(id)) steps.push({ type: kind === 'promote' ? 'addVoter' : 'addLearner', ...joining })
  else steps.push({ type: isRemoval(core, kind, id) ? 'remove' : kind, id })
  const more = chance(random, 0.5) ? 0 : 1 + random.below(2)
  for (const other of shuffle(random, ids).slice(0, more)) {
    if (other === id) continue
    steps.push({ type: chance(random, 0.2) ? 'remove' : voters.includes(other) ? 'demote' : 'promote', id: other })
  }
  return { steps, ...(chance(random, 0.3) && { phase: 'joint' as const }) }
}

/** Learners are not demoted but removed, and so are some voters. */
function isRemoval({ host: { random }, configuration }: CoreNode, kind: 'promote' | 'demote', id: number): boolean {
  return kind === 'demote' && (configuration.learners.includes(id) || chance(random, 0.2))
}

/** A node that was removed and added again starts anew under the id of the new member, without its old disk. */
function admit({ host: { world }, configuration }: CoreNode): void {
  for (const { id, node: name } of configuration.members) {
    // Ids grow with the entries that add members.
    const node = world.nodes.find((each) => each.name === name && each.raftId < id)
    if (!node) continue
    node.raftId = id
    scheduleIn(world.scheduler, 0, () => {
      endProcess(world, node, 'joined anew', false)
      node.storage = coreProgram.createStorage(world, node)
      restartLater(world, node, 1_000)
    })
  }
}
