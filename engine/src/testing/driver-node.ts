/**
 * A whole node as a simulated program: folder, formation, log, core, driver, membership, reads and snapshot transfer of
 * the product, around the toy machine. Frames are bytes and pass the product's framing.
 *
 *   start ──► folder ──► formed? ── no ──► gathering ──► log ──► a member? ── no ──► joining ──► replica and member
 *                          └── yes ────────────────────► log
 */

import { assert, createCodecList, VacancyError } from '@vacancy/shared'
import {
  beginWriting,
  type Cluster,
  type DataDirectory,
  logIdentity,
  noteVoter,
  openDataDirectory,
  walFolder,
  writeCluster,
} from '../cluster/data-directory.ts'
import {
  createFormation,
  type Formation,
  type FormedState,
  genesisConfiguration,
  hold,
  raftIdOf,
} from '../cluster/formation.ts'
import { createFraming, frameParts, takeChunk } from '../cluster/framing.ts'
import { startGathering, startJoining } from '../cluster/gathering.ts'
import { askAdmin, createMember, handOverAtEnd, isReady, type Member, onSwitched } from '../cluster/member.ts'
import { bytesOfHex, createPeers, eventsOf, type Peers } from '../cluster/peers.ts'
import { askReads } from '../cluster/reads.ts'
import {
  addSink,
  applyCommitted,
  createReplica,
  onLogMessage,
  proposeBatch,
  pump,
  type Replica,
  type ReplicaParts,
  snapshotFailed,
  snapshotWritten,
  startSnapshot,
  tick,
} from '../cluster/replica.ts'
import { pinnedBy, TRANSFER_LIMITS } from '../cluster/transfer.ts'
import type { Env } from '../env.ts'
import {
  ENTRY_HEADER_BYTES,
  ENTRY_KIND,
  type EntryBatch,
  entryKind,
  entryLength,
  entryTerm,
  skipEntries,
  viewOf,
} from '../raft/entry.ts'
import { decodeConfiguration } from '../raft/membership.ts'
import type { Configuration } from '../raft/messages.ts'
import { createRaft, type RestoredState } from '../raft/raft.ts'
import { askRead, createAskedReads, takeAskedReads } from '../threads/reads.ts'
import {
  ANSWER_BYTES,
  beginProposal,
  createProposals,
  endProposal,
  REFUSED,
  refusedText,
  takeProposals,
} from '../threads/writes.ts'
import { assertConnects, createWal, openWal, type Recovered, recoveredTerm } from '../wal/open.ts'
import { type LogCursors, readEntries } from '../wal/read.ts'
import { checksumSeed } from '../wal/record.ts'
import { listLogFiles, replayEntries, scanLog, termAt } from '../wal/scan.ts'
import { installWal, prepareNext, type Wal } from '../wal/wal.ts'
import { type FromWal, handleWalMessages, type ToWal, type WalThread } from '../wal/wal-thread.ts'
import { halvesOf } from './core-node.ts'
import { crash, createSimulatedDisk, restart, type SimulatedDisk, stopBefore } from './disk.ts'
import { leaderOf } from './faults.ts'
import type { Fault } from './knobs.ts'
import { createToyNode, createToyReference, MARKS_EVERY, type Machine, type MachineParts } from './machine.ts'
import type { Payload } from './network.ts'
import { onApplied, onState, violate } from './oracles.ts'
import { betweenDecades, type Random } from './random.ts'
import { scheduleIn } from './scheduler.ts'
import { createStoreNode, createStoreReference } from './store-machine.ts'
import { sha256 } from './toy-exchange.ts'
import { note } from './trace.ts'
import { rot } from './wal-log.ts'
import {
  type Action,
  endProcess,
  type Host,
  type Program,
  type Running,
  restartLater,
  runIn,
  type SimulatedNode,
  syncUs,
  type World,
} from './world.ts'

const DATA = '/data'
const SHARD = 'simulated'
const CODECS = createCodecList(['refundable', 'breakfast'])
const CAPACITY = 2 ** 40
const TICK_MS = 100
const FRAME_MAX = 1 << 22
const NOBODY: Configuration = { members: [], voters: [], outgoing: [], learners: [], staged: [], autoLeave: false }

type DriverStorage = {
  readonly disk: SimulatedDisk
  /** Of the last life; a disk that was wiped has none. */
  wipes: number
}

type DriverNode = {
  readonly host: Host
  readonly env: Env
  readonly disk: SimulatedDisk
  readonly machine: Machine
  readonly peers: Peers
  formation: Formation | undefined
  replica: Replica | undefined
  member: Member | undefined
  wal: Wal | undefined
  cluster: Cluster | undefined
  directory: DataDirectory | undefined
  sink: number
  /** Of the snapshot that it started from. */
  snapshotIndex: number
  readonly reads: Map<number, { readonly token: number; readonly register: number }>
  nextRead: number
}

function storageOf(node: SimulatedNode): DriverStorage {
  return node.storage as DriverStorage
}

function freshDisk(): SimulatedDisk {
  const disk = createSimulatedDisk()
  disk.makeDirectory(DATA)
  disk.syncDirectory('/')
  return disk
}

export const driverProgram: Program = {
  name: 'driver',
  // Formation reports once a second, transfers back off up to half a minute: in wall time, whatever the ticks.
  slackUs: 60_000_000,
  durableEvery: 16,
  createStorage: (): DriverStorage => ({ disk: freshDisk(), wipes: 0 }),
  createReference: ({ usesStore }) => (usesStore ? createStoreReference() : createToyReference()),
  afterCrash(world, node, isPowerLoss) {
    const storage = storageOf(node)
    const oneIn = betweenDecades(world.diskRandom, 1, 16)
    const left = isPowerLoss ? crash(storage.disk, () => world.diskRandom.below(oneIn) === 0) : restart(storage.disk)
    left.capacityBytes = storage.disk.capacityBytes
    return { ...storage, disk: left }
  },
  start: (host) => startDriver(host),
  damage,
  meet,
  heal(_world, node) {
    const { disk } = storageOf(node)
    disk.capacityBytes = CAPACITY
    disk.fault = () => undefined
  },
}

/** A flipped bit or a cut in the bytes of a stream. The product's framing must notice; what it does not is delivered. */
function damage(payload: Payload, random: Random): Payload | undefined {
  const wire = Buffer.concat(frameParts(payload as Uint8Array))
  if (random.below(4) === 0) return undefined
  const at = random.below(wire.length)
  wire[at] = (wire[at] as number) ^ (1 << random.below(8))
  let body: Uint8Array | undefined
  const framing = createFraming(FRAME_MAX)
  const fault = takeChunk(framing, wire, (whole) => {
    body = whole
    return true
  })
  // With a changed length the rest of the stream is waited for, until it ends.
  return fault === '' ? body : undefined
}

function meet(world: World, node: SimulatedNode, fault: Fault): boolean {
  const { kind, lengthUs, detail } = fault
  const storage = storageOf(node)
  const { disk } = storage
  switch (kind) {
    case 'fulldisk':
      node.mayFail = true
      disk.capacityBytes = CAPACITY - disk.space('/').freeBytes + (detail % 40_000)
      scheduleIn(world.scheduler, lengthUs * 4, () => {
        storageOf(node).disk.capacityBytes = CAPACITY
      })
      return true
    case 'cut':
      if (!node.process) return false
      stopBefore(disk, detail >>> 1, () => {
        node.stopped = detail % 2 === 0 ? 'killed' : 'power was lost'
      })
      return true
    case 'diskerror': {
      if (!node.process) return false
      node.mayFail = true
      const from = disk.operations.length + (detail % 8)
      disk.fault = ({ number, call }) => {
        if (number < from || (call !== 'write' && call !== 'syncData' && call !== 'syncDirectory')) return undefined
        disk.fault = () => undefined
        return { kind: 'fail', code: 'EIO' }
      }
      return true
    }
    case 'corrupt':
      return rot(world, node.number, disk, `${DATA}/wal`, detail)
    case 'wipe':
      return wipe(world, node, lengthUs)
    case 'shutdown':
      return shutDown(world, node, lengthUs)
    default:
      return false
  }
}

/**
 * The node comes back under its name with an empty disk. One at a time, and only when the one before is a voter again
 * or was none: more at once is the loss of a majority of disks.
 */
function wipe(world: World, node: SimulatedNode, lengthUs: number): boolean {
  if (!node.process || world.nodes.some(({ isDamaged }) => isDamaged)) return false
  const leader = leaderOf(world)?.process?.running
  const voters = leader?.voterIds?.() ?? []
  // One that came back as another member votes under another raft id.
  const isWhole = world.nodes.every(
    ({ process, wipedAt }) => wipedAt === 0 || voters.includes(process?.running?.raftId?.() ?? 0),
  )
  if (!leader || leader.isJoint() || !isWhole || voters.length < 3 || voters.length !== world.knobs.voters) return false
  endProcess(world, node, 'wiped', false)
  node.storage = { disk: freshDisk(), wipes: storageOf(node).wipes + 1 }
  node.wipedAt = world.scheduler.nowUs
  node.wasVoter = false
  restartLater(world, node, lengthUs)
  return true
}

/** An orderly stop: leadership goes to another node first (§18). */
function shutDown(world: World, node: SimulatedNode, lengthUs: number): boolean {
  const running = node.process?.running
  if (!running?.prepareStop) return false
  if (node.process) runIn(world, node.process, 'fault', 0, () => running.prepareStop?.())
  scheduleIn(world.scheduler, lengthUs, () => {
    if (node.process?.running !== running) return
    endProcess(world, node, 'stopped', false)
    restartLater(world, node, lengthUs)
  })
  return true
}

function createMachine(host: Host, env: Env): Machine {
  const { node, world, random } = host
  const parts: MachineParts = {
    env,
    dataDir: DATA,
    shardId: SHARD,
    codecs: CODECS,
    node: node.number,
    chunkBytes: Math.max(64, Math.min(4_096, world.knobs.messageBytes)),
    later: (work, run) =>
      work === 'exchange'
        ? host.later(random.below(3_000), 'sync', run)
        : host.later(syncUs(world, node) * 5, 'snapshot', run),
    onDigestMismatch: (index) =>
      violate('O8', `node ${node.number} has another digest at index ${index} than its leader`),
  }
  return world.knobs.usesStore ? createStoreNode(parts) : createToyNode(parts)
}

function startDriver(host: Host): Running {
  const { node, world } = host
  const { disk } = storageOf(node)
  const env: Env = { ...host.env, disk }
  const driver: DriverNode = {
    host,
    env,
    disk,
    machine: createMachine(host, env),
    peers: createPeers(node.name, CODECS.orderedHash),
    formation: undefined,
    replica: undefined,
    member: undefined,
    wal: undefined,
    cluster: undefined,
    directory: undefined,
    sink: 0,
    snapshotIndex: 0,
    reads: new Map(),
    nextRead: 1,
  }
  const events = eventsOf(driver.peers)
  const numberOf = (name: string) => world.nodes.findIndex((each) => each.name === name) + 1
  driver.peers.transport = {
    send: (peer, stream, frame) => {
      const to = numberOf(peer)
      return to > 0 && host.send(to, stream, frame, frame.length)
    },
    queuedBytes: (peer) => host.queuedBytes(numberOf(peer)),
    setPeers: () => undefined,
    close: () => Promise.resolve(),
  }
  const directory = openDataDirectory(env, DATA, { nodeId: node.name })
  driver.directory = directory
  if (directory.cluster) takeUp(driver, directory, directory.cluster)
  else gather(driver, directory)
  const nameOf = (number: number) => world.nodes[number - 1]?.name ?? ''
  const idle = { role: 'follower', term: 0, lastIndex: 0, commit: 0, applied: 0 }
  const configuration = () => driver.replica?.raft.configuration ?? NOBODY
  const numbersOf = (ids: readonly number[]) =>
    [...new Set(ids)]
      .map((id) => numberOf(configuration().members.find((member) => member.id === id)?.node ?? ''))
      .filter((number) => number > 0)
  return {
    get raft() {
      return driver.replica?.raft ?? idle
    },
    onPayload: (from, stream, payload) => events.onFrame(nameOf(from), stream, payload as Uint8Array),
    onOpen: (peer, stream) => events.onOpen(nameOf(peer), stream),
    onClosed: (peer, stream, isDead) => events.onClosed(nameOf(peer), stream, isDead),
    propose: (token, command) => writeTo(driver, token, command),
    read: (token, register) => readFrom(driver, token, register),
    act: (action) => act(driver, action, nameOf),
    voters: () => numbersOf([...configuration().voters, ...configuration().outgoing]),
    halves: () => halvesOf(configuration()).map(numbersOf),
    learners: () => numbersOf(configuration().learners),
    isJoint: () => configuration().outgoing.length > 0,
    freshMs: () => driver.member?.reads.freshMs ?? Number.NEGATIVE_INFINITY,
    raftId: () => driver.replica?.raft.id ?? 0,
    voterIds: () => configuration().voters,
    // State that is being replayed belongs to no index yet: until there is a replica, `raft` says 0.
    digest: () => (driver.replica ? driver.machine.digest() : { lo: 0, hi: 0 }),
    checkBounds: () => checkBounds(driver),
    isDurable: (index, term) => isDurable(driver, index, term),
    prepareStop() {
      const { replica, member } = driver
      if (!replica || !member) return
      replica.isStopping = true
      handOverAtEnd(member)
    },
  }
}

// Before it is a member

function gather(driver: DriverNode, directory: DataDirectory): void {
  const { host, env, peers } = driver
  const { world, node } = host
  const formation = createFormation({
    self: node.name,
    incarnation: directory.identity.incarnation,
    shardId: SHARD,
    voters: initialVoters(world),
    codecs: CODECS,
    formatVersion: 1,
    formsWithMajority: false,
    held: { state: 'empty' },
    sha256,
    defects: env.defects,
  })
  driver.formation = formation
  startGathering(env, peers, formation, initialVoters(world), (decision) => {
    if (decision.kind === 'fail') throw decision.error
    if (decision.kind === 'set-aside') return violate('O10', `an empty node sets something aside: ${decision.reason}`)
    assert(decision.kind !== 'look-again', 'nobody puts a snapshot into a folder here')
    if (decision.kind !== 'form' && decision.kind !== 'join')
      return violate('O10', 'nobody puts a snapshot into the folder of an empty node')
    const cluster = decision.kind === 'form' ? decision.cluster : { ...decision.cluster, isFounder: false }
    beginWriting(directory)
    createWal(env, walFolder(directory), logIdentity(directory, cluster), { index: 0, term: 0 }, walOptions(world))
    writeCluster(directory, cluster)
    takeUp(driver, directory, cluster)
  })
}

function initialVoters(world: World): string[] {
  return world.nodes.slice(0, world.knobs.voters).map(({ name }) => name)
}

function walOptions({ knobs }: World) {
  return { fileBytes: knobs.logFileBytes, reserveBytes: 1_024, prepareSyncBytes: 8_192 }
}

/** Opens the log of a formed node and finds its place among the members. */
function takeUp(driver: DriverNode, directory: DataDirectory, cluster: Cluster): void {
  const { env, host, machine, peers } = driver
  const { world, node } = host
  driver.cluster = cluster
  const snapshot = machine.load()
  const base = { index: snapshot?.index ?? 0, term: snapshot?.term ?? 0 }
  driver.snapshotIndex = base.index
  const { lo, hi } = machine.digest()
  onState(world.oracles, node.number, base.index, lo, hi)
  const identity = logIdentity(directory, cluster)
  const opened = openWal(env, walFolder(directory), identity, {
    ...walOptions(world),
    isClean: directory.isClean,
    onVerified: () => beginWriting(directory),
  })
  driver.wal = opened.wal
  const begin = snapshot?.configuration ?? (cluster.isFounder === false ? NOBODY : genesisConfiguration(cluster.voters))
  const raft = restore(driver, opened.wal, opened.recovered, base, begin)
  peers.common.clusterId = bytesOfHex(cluster.clusterId)
  peers.common.genesis = machine.genesis()
  const { isFounder = true, snapshotDigest: digest = '', baseIndex, baseTerm, voters } = cluster
  const held: FormedState = {
    state: 'formed',
    clusterId: cluster.clusterId,
    digest,
    index: baseIndex,
    term: baseTerm,
    voters,
    isFounder,
    isUntouched: raft.term === baseTerm && raft.vote === 0 && raft.lastIndex === baseIndex,
    leader: '',
  }
  if (driver.formation) hold(driver.formation, held)
  driver.formation ??= createFormation({
    self: node.name,
    incarnation: directory.identity.incarnation,
    shardId: SHARD,
    voters: initialVoters(world),
    codecs: CODECS,
    formatVersion: 1,
    formsWithMajority: false,
    held,
    sha256,
    defects: env.defects,
  })
  const configuration = raft.configuration ?? NOBODY
  const self = { node: node.name, incarnation: directory.identity.incarnation, isFounder }
  const known = raftIdOf(configuration, self)
  if (known > 0) return become(driver, known, raft)
  startJoining(env, peers, driver.formation, initialVoters(world), ({ member, configuration: told }) => {
    // What is applied here may be nothing yet; until the log brings the rest the leader's word names the members.
    become(driver, member, { ...raft, configuration: configuration.members.length > 0 ? configuration : told })
  })
}

/** As recovery.ts does it: what is known to be committed is applied, the rest waits for the shard. */
function restore(
  driver: DriverNode,
  wal: Wal,
  opened: Recovered,
  base: { readonly index: number; readonly term: number },
  begin: Configuration,
): RestoredState {
  const { disk } = driver
  let { lastIndex, hardState } = opened
  const isIn = recoveredTerm(opened, base.index) === base.term
  if (base.index > lastIndex || (base.index > hardState.commit && !isIn)) {
    if (!installWal(wal, base)) throw new VacancyError('no_room', { directory: DATA })
    hardState = wal.hardState
    lastIndex = base.index
  } else if (base.index > 0) assertConnects(opened, base)
  let applied = base.index
  let configuration = begin
  const entries: EntryBatch[] = []
  const isAlone = () =>
    configuration.voters.length === 1 && configuration.outgoing.length === 0 && configuration.learners.length === 0
  if (lastIndex > base.index) {
    replayEntries(disk, opened.scan, base.index + 1, (firstIndex, count, window, start) => {
      const view = viewOf(window)
      for (let i = 0, at = start; i < count; i++) {
        const index = firstIndex + i
        const body = at + ENTRY_HEADER_BYTES
        const end = body + entryLength(view, at)
        if (index <= hardState.commit || isAlone()) {
          const kind = entryKind(view, at)
          if (kind === ENTRY_KIND.command) apply(driver, index, window, body, end)
          if (kind === ENTRY_KIND.configuration) configuration = decodeConfiguration(window.subarray(body, end))
          applied = index
        } else entries.push({ firstIndex: index, count: 1, bytes: window.slice(at, end) })
        at = skipEntries(view, at, 1)
      }
    })
  }
  const termOf = (index: number) => recoveredTerm(opened, index) || base.term
  return {
    ...hardState,
    commit: Math.max(applied, hardState.commit),
    firstIndex: applied + 1,
    lastIndex,
    lastTerm: lastIndex === base.index ? base.term : termOf(lastIndex),
    applied,
    appliedTerm: applied === base.index ? base.term : termOf(applied),
    configuration,
    entries,
    isMute: false,
  }
}

// A member

function become(driver: DriverNode, id: number, restored: RestoredState): void {
  const { env, disk, host, machine, peers, wal, cluster, directory, formation } = driver
  const { world, node } = host
  const { knobs } = world
  assert(wal && cluster && directory && formation, 'the folder is open')
  const log = startLog(driver, wal)
  const cursors: LogCursors = new Map()
  const raft = createRaft(
    {
      id,
      electionTicks: knobs.electionTicks,
      heartbeatTicks: knobs.heartbeatTicks,
      random: (below) => host.random.below(below),
      preVote: true,
      checkQuorum: true,
      stepDownOnRemoval: true,
      validateChanges: true,
      limits: {
        messageBytes: knobs.messageBytes,
        inflightMessages: knobs.inflightMessages,
        inflightBytes: knobs.inflightBytes,
      },
      keepBytes: knobs.keepBytes,
      defects: world.defects,
    },
    restored,
  )
  const replicaParts: ReplicaParts = {
    env,
    raft,
    machine: { ...machine, apply: (index, bytes, start, end) => apply(driver, index, bytes, start, end) },
    snapshots: {
      start: (index, term) =>
        machine.takeSnapshot(index, term, raft.configuration, (reason) => {
          if (reason !== '') return snapshotFailed(replica, reason)
          world.counts.snapshotsTaken++
          snapshotWritten(replica, index, term, 1)
          pump(replica)
        }),
      retain: () => machine.retain(driver.member ? pinnedBy(driver.member.sender) : []),
    },
    log: (message) => log.tell(message),
    readLog(ask, done) {
      host.later(host.random.below(3_000), 'sync', () => {
        done(readEntries(disk, walFolder(directory), checksumSeed(logIdentity(directory, cluster)), cursors, ask))
        pump(replica)
      })
    },
    switchState(offer, done) {
      machine.switchState(offer, () => {
        world.counts.snapshotsInstalled++
        note(world.trace, world.scheduler.nowUs, node.number, 'snapshot', offer.index, () => `installed ${offer.index}`)
        const { lo, hi } = machine.digest()
        onState(world.oracles, node.number, offer.index, lo, hi)
        done()
        if (driver.member) onSwitched(driver.member)
      })
    },
    onFatal: (failure) => violate('O11', `the log of node ${node.number} failed: ${failure.message}`),
    onMaintained: () => undefined,
    onReserve: () => undefined,
    space: () => disk.space('/'),
    snapshotIntervalMs: 2_000 + (knobs.snapshotEvery % 30_000),
    snapshotTriggerCount: knobs.snapshotEvery,
    keptEntries: knobs.keptEntries,
    snapshotIndex: driver.snapshotIndex,
    tornTailBytes: 0,
    acceptDay: 0,
    lastTimeMs: machine.latestTimeMs(),
  }
  const replica = createReplica(replicaParts)
  log.replica = replica
  driver.replica = replica
  driver.sink = addSink(replica, (answers) => onAnswers(driver, answers))
  driver.member = createMember(
    {
      env,
      replica,
      peers,
      formation,
      exchange: machine.exchange,
      hasMemoryFor: () => true,
      prepareSwitch: machine.prepareSwitch,
      onFatal: (reason) => violate('O11', `node ${node.number} cannot install a snapshot: ${reason}`),
      cells: undefined,
      genesis: machine.genesis,
      transportCounts: () => NO_COUNTS,
      hostOf: () => '',
      onRole: () => undefined,
      onVoter: () => noteVoter(directory),
    },
    {
      node: node.name,
      incarnation: directory.identity.incarnation,
      zoneId: '',
      cluster,
      initialVoters: initialVoters(world),
      seeds: initialVoters(world),
      tickMs: knobs.tickMs,
      electionTicks: knobs.electionTicks,
      heartbeatTicks: knobs.heartbeatTicks,
      sessionBytesMax: knobs.sessionBytes,
    },
  )
  const beat = (): void => {
    tick(replica)
    env.schedule.after(TICK_MS, beat)
  }
  env.schedule.after(TICK_MS, beat)
  pump(replica)
  applyCommitted(replica)
}

const NO_COUNTS = {
  opened: 0,
  accepted: 0,
  rejected: {},
  errors: 0,
  dropped: 0,
  messagesSent: 0,
  messagesReceived: 0,
  bytesSent: 0,
  bytesReceived: 0,
  sendErrors: 0,
  receiveErrors: 0,
}

type SimulatedLog = { replica: Replica | undefined; tell(message: ToWal): void }

/** The log thread: what gathers while the disk is busy is handled in one turn. */
function startLog({ host, env }: DriverNode, wal: Wal): SimulatedLog {
  const { world, node } = host
  const queue: ToWal[] = []
  const answers: FromWal[] = []
  let isBusy = false
  const thread: WalThread = {
    wal,
    flushThreshold: world.knobs.flushThreshold,
    send: (message) => answers.push(message),
    monotonicMs: env.clock.monotonicMs,
    isRefusing: false,
    refusals: 0,
    refusedEntries: 0,
  }
  const handle = (): void => {
    if (isBusy || queue.length === 0) return
    isBusy = true
    host.later(syncUs(world, node), 'sync', () => {
      isBusy = false
      handleWalMessages(thread, queue.splice(0))
      prepareNext(wal, 4_096)
      for (const answer of answers.splice(0)) if (log.replica) onLogMessage(log.replica, answer)
      handle()
    })
  }
  const log: SimulatedLog = {
    replica: undefined,
    tell(message) {
      queue.push(message)
      if (queue.length > 20_000) violate('O14', `${queue.length} messages wait for the log of node ${node.number}`)
      handle()
    },
  }
  return log
}

function apply(driver: DriverNode, index: number, bytes: Uint8Array, start: number, end: number) {
  const { host, machine } = driver
  const { world, node } = host
  const result = machine.apply(index, bytes, start, end)
  world.counts.entries++
  const { code, value, index: resultIndex } = result
  onApplied(world.oracles, world.scheduler.nowUs, {
    node: node.number,
    index,
    term: entryTerm(viewOf(bytes), start - ENTRY_HEADER_BYTES),
    bytes,
    start,
    end,
    code,
    value,
    resultIndex,
    timeMs: machine.latestTimeMs(),
  })
  if (index % MARKS_EVERY === 0) machine.mark(index)
  return result
}

// Clients

const proposals = createProposals()

function writeTo(driver: DriverNode, token: number, command: Uint8Array): void {
  const { replica, host } = driver
  if (!replica) return host.answer(token, { kind: 'none', reason: 'not a member' })
  const writer = beginProposal(proposals)
  for (const byte of command) {
    writer.bytes[writer.at++] = byte
  }
  endProposal(proposals, token)
  proposeBatch(replica, driver.sink, takeProposals(proposals))
}

/** Tokens of reads, far from those of writes. */
const READ_TOKENS = 2 ** 31

function readFrom(driver: DriverNode, token: number, register: number): void {
  const { member, host } = driver
  if (!member) return host.answer(token, { kind: 'none', reason: 'not a member' })
  const own = READ_TOKENS + driver.nextRead++
  driver.reads.set(own, { token, register })
  const asked = createAskedReads()
  askRead(asked, own, true, 0)
  askReads(member.reads, driver.sink, takeAskedReads(asked))
  if (driver.replica) {
    pump(driver.replica)
    applyCommitted(driver.replica)
  }
}

function onAnswers(driver: DriverNode, answers: ArrayBuffer): void {
  const { host, machine, reads } = driver
  const view = new DataView(answers)
  for (let at = 0; at < answers.byteLength; at += ANSWER_BYTES) {
    const token = view.getUint32(at, true)
    const code = view.getUint8(at + 4)
    const index = view.getFloat64(at + 8, true)
    const read = reads.get(token)
    if (read) {
      reads.delete(token)
      host.world.counts.reads++
      if (code !== 0) host.answer(read.token, { kind: 'none', reason: refusedText(code) ?? '' })
      else host.answer(read.token, { kind: 'result', code: 0, value: machine.value(read.register), index })
      continue
    }
    if (code === REFUSED.outcomeUnknown) host.answer(token, { kind: 'unknown', reason: 'outcome unknown' })
    else if (code >= REFUSED.overloaded) host.answer(token, { kind: 'none', reason: refusedText(code) ?? '' })
    else host.answer(token, { kind: 'result', code, value: view.getUint8(at + 5), index })
  }
}

// Operators and oracles

function act(driver: DriverNode, action: Action, nameOf: (number: number) => string): string {
  const { replica, member, host } = driver
  const { counts } = host.world
  if (!replica || !member) return 'not a member'
  if (action.kind === 'snapshot') return startSnapshot(replica, 'requested') ? '' : 'not now'
  if (host.world.nodes.some(({ isDamaged }) => isDamaged)) return 'a disk is damaged'
  let answer = ''
  const kind = action.kind === 'remove' ? 'demote' : action.kind
  askAdmin(member, { kind, node: nameOf(action.target) }, ({ status, text }) => {
    answer = status === 202 ? '' : text
    if (status !== 202) return
    if (action.kind === 'transfer') counts.transfers++
    else counts.membershipChanges++
  })
  return answer
}

function checkBounds(driver: DriverNode): void {
  const { replica, host, member } = driver
  if (!replica || !member) return
  const { node } = host
  if (replica.handOvers.length > 20_000) violate('O14', `${replica.handOvers.length} hand-overs of node ${node.number}`)
  if (member.reads.waiting.size > 10_000)
    violate('O14', `${member.reads.waiting.size} reads wait at node ${node.number}`)
  const waiting = replica.waitingSinks.length - replica.waitingHead
  if (waiting > 60_000) violate('O14', `${waiting} writes wait at node ${node.number}`)
  // §16.3, 5: who receives a snapshot finds the log behind it. At index 0 it is not known yet which one that is.
  const { outgoing, port } = member.sender
  const logBegins = driver.wal?.files[0]?.firstIndex ?? 1
  for (const { index, startedMs, node: peer } of outgoing.values()) {
    const isOld = port.nowMs() - startedMs >= TRANSFER_LIMITS.keepLogMs
    if (index > 0 && index + 1 < logBegins && !isOld)
      violate('O13', `the log of node ${node.number} begins at ${logBegins}; ${peer} is to go on behind ${index}`)
  }
  if (isReady(member) && member.membership === undefined) violate('O14', 'a leader has no membership')
}

function isDurable({ disk, wal, replica, directory, cluster }: DriverNode, index: number, term: number): boolean {
  if (!wal || !replica || !directory || !cluster) return false
  if (index <= replica.snapshotIndexLast) return true
  const left = crash(disk, () => false)
  const found = scanLog(left, listLogFiles(left, `${DATA}/wal`), { identity: logIdentity(directory, cluster) })
  return index <= found.lastIndex && (term === 0 || termAt(found.terms, index) === term)
}
