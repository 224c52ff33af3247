/**
 * A whole node as a simulated program: production recovery, formation, log, core, driver, membership, reads, store,
 * snapshots, transfer and bulk loads. Frames are bytes and pass the production framing.
 *
 *   start ──► recovery ──► a member? ── no ──► joining ──► replica and member
 *                └── a new folder: bootstrap
 */

import { createHash } from 'node:crypto'
import { assert, VacancyError } from '@vacancy/shared'
import { betweenDecades, type Random } from '@vacancy/testkit/random'
import { scheduleIn } from '@vacancy/testkit/scheduler'
import { startBootstrap, startJoining } from '../../engine/src/bootstrap/bootstrap.ts'
import { createFormation, type Formation, hold, raftIdOf } from '../../engine/src/bootstrap/formation.ts'
import { requestAdmin } from '../../engine/src/cluster/admin.ts'
import { applyCommitted } from '../../engine/src/cluster/applying.ts'
import { maintain } from '../../engine/src/cluster/daily-maintenance.ts'
import { pump } from '../../engine/src/cluster/hand-over.ts'
import { onLogMessage } from '../../engine/src/cluster/log-answers.ts'
import { snapshotFailed, snapshotWritten, startSnapshot } from '../../engine/src/cluster/maintenance.ts'
import { beat, createMember, handOverAtEnd, onSwitched, takeReads } from '../../engine/src/cluster/member.ts'
import { isReady, type Member } from '../../engine/src/cluster/member-state.ts'
import { proposeBatch } from '../../engine/src/cluster/proposals.ts'
import { tick } from '../../engine/src/cluster/replica.ts'
import {
  addSink,
  createReplica,
  isBetweenStates,
  type Replica,
  type ReplicaParts,
} from '../../engine/src/cluster/replica-state.ts'
import { pinnedBy, TRANSFER_LIMITS } from '../../engine/src/cluster/transfer.ts'
import {
  type Cluster,
  type DataDirectory,
  logIdentity,
  noteVoter,
  releaseReserve,
  walFolder,
} from '../../engine/src/data/data-directory.ts'
import { type FormedState, type Founded, genesisOf, type Held, shownGenesis } from '../../engine/src/data/genesis.ts'
import { recoverySteps } from '../../engine/src/data/recovery.ts'
import type { Holding, RecoveredNode } from '../../engine/src/data/recovery-parts.ts'
import type { ReplicaOptions } from '../../engine/src/data/replica-options.ts'
import { type Env, errnoOf, isDiskFull, writeFully } from '../../engine/src/env.ts'
import {
  ENTRY_HEADER_BYTES,
  ENTRY_KIND,
  type EntryBatch,
  entryKind,
  entryLength,
  entryTerm,
  viewOf,
} from '../../engine/src/raft/entry.ts'
import type { Configuration } from '../../engine/src/raft/messages.ts'
import { createRaft, type RestoredState } from '../../engine/src/raft/raft.ts'
import { FORMAT_VERSION } from '../../engine/src/snapshot/format.ts'
import { SEED_FILE } from '../../engine/src/snapshot/snapshot.ts'
import { follow, type Wait, waited } from '../../engine/src/steps.ts'
import { applyCommand } from '../../engine/src/store/apply.ts'
import type { Applied } from '../../engine/src/store/apply-context.ts'
import { STAY_FLAGS } from '../../engine/src/store/apply-stays.ts'
import { memoryBudgetOf } from '../../engine/src/store/charge.ts'
import { COMMAND_HEADER_BYTES, KIND, kindOfCommand, writeBytes } from '../../engine/src/store/command.ts'
import { encodeSetting, levelOfSetting } from '../../engine/src/store/stay-settings.ts'
import { recordOf } from '../../engine/src/store/stays.ts'
import {
  AS_OF_LEVEL,
  BOOKED_AT_LEVEL,
  isMemoryFull,
  latestTime,
  type Memory,
  STAYS_LEVEL,
  stateDigest,
} from '../../engine/src/store/store.ts'
import { crash, createSimulatedDisk, restart, type SimulatedDisk } from '../../engine/src/testing/disk.ts'
import { addRead, createReadBatch, takeReadBatch } from '../../engine/src/threads/reads.ts'
import {
  ANSWER_BYTES,
  beginProposal,
  createProposals,
  endProposal,
  REFUSED,
  refusedText,
  takeProposals,
} from '../../engine/src/threads/writes.ts'
import { createFraming, frameParts, takeChunk } from '../../engine/src/transport/framing.ts'
import { bytesOfHex, createPeers, eventsOf, type Peers } from '../../engine/src/transport/peers.ts'
import { type LogCursors, readEntries } from '../../engine/src/wal/read.ts'
import { checksumSeed } from '../../engine/src/wal/record.ts'
import { listLogFiles, scanLog, termAt } from '../../engine/src/wal/scan.ts'
import { prepareNext, type Wal } from '../../engine/src/wal/wal.ts'
import { type FromWal, handleWalMessages, type ToWal, type WalThread } from '../../engine/src/wal/wal-thread.ts'
import { halvesOf, raftConfig } from './core-node.ts'
import { leaderOf, meetDisk } from './faults.ts'
import { call, complete } from './history.ts'
import type { Fault } from './knobs.ts'
import { MARKS_EVERY, type Machine } from './machine.ts'
import type { Payload } from './network.ts'
import { committedTerm, onApplied, onState, onStayReply, violate } from './oracles.ts'
import { replyText } from './stays-reference.ts'
import { CODECS, SHARD, type StoreImage, storeImages } from './store-images.ts'
import { createStoreMachine, createStoreReference, storeTools } from './store-machine.ts'
import { encodeOnStore, IMAGE_REGISTERS, imageValue, LOG_INDEXES } from './store-workload.ts'
import { note } from './trace.ts'
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
const CAPACITY = 2 ** 40
const TICK_MS = 100
const FRAME_MAX = 1 << 22
const NO_MEMBERS: Configuration = { members: [], voters: [], outgoing: [], learners: [], staged: [], autoLeave: false }

type DriverStorage = {
  readonly disk: SimulatedDisk
  /** From the previous process; a wiped disk has none. */
  wipes: number
}

type DriverNode = {
  readonly host: Host
  readonly env: Env
  readonly disk: SimulatedDisk
  /** Set once recovery has filled the store. */
  machine: Machine | undefined
  readonly peers: Peers
  formation: Formation | undefined
  replica: Replica | undefined
  member: Member | undefined
  wal: Wal | undefined
  cluster: Cluster | undefined
  directory: DataDirectory | undefined
  sink: number
  /** Of the snapshot it started from. */
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
  // Formation reports once a second and transfers back off up to 30 s, in wall time, independent of ticks.
  slackUs: 60_000_000,
  durableEvery: 16,
  createStorage: (): DriverStorage => ({ disk: freshDisk(), wipes: 0 }),
  usesStore: true,
  createReference: createStoreReference,
  encode: encodeOnStore,
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
  restore(_world, node, file) {
    const disk = freshDisk()
    node.storage = { disk, wipes: storageOf(node).wipes + 1 }
    if (file) putFile(disk, `${DATA}/${SEED_FILE}`, file)
  },
  heal(_world, node) {
    const { disk } = storageOf(node)
    node.process?.running?.exhaust?.(false)
    node.isExhausted = false
    disk.capacityBytes = CAPACITY
    disk.copiesOnWrite = false
    disk.fault = () => undefined
  },
}

function putFile(disk: SimulatedDisk, path: string, bytes: Uint8Array): void {
  const handle = disk.open(path, 'create')
  writeFully(disk, handle, bytes, 0, bytes.length, 0)
  disk.syncData(handle)
  disk.close(handle)
  disk.syncDirectory(DATA)
}

/** A flipped bit or a truncation in a stream. The framing must detect it; undetected damage is delivered. */
function damage(payload: Payload, random: Random): Payload | undefined {
  const wire = Buffer.concat(frameParts(payload as Uint8Array))
  if (random.below(4) === 0) return undefined
  const at = random.below(wire.length)
  wire[at] = wire[at] ^ (1 << random.below(8))
  let body: Uint8Array | undefined
  const framing = createFraming(FRAME_MAX)
  const fault = takeChunk(framing, wire, (whole) => {
    body = whole
    return true
  })
  // With a changed length, the receiver waits for the rest of the stream until it ends.
  return fault === '' ? body : undefined
}

function meet(world: World, node: SimulatedNode, fault: Fault): boolean {
  const { kind, lengthUs, detail } = fault
  const storage = storageOf(node)
  const { disk } = storage
  switch (kind) {
    case 'fulldisk':
      node.mayFail = true
      // On some file systems, overwriting a file needs space as well. There a group may fit in part.
      disk.copiesOnWrite = detail % 2 === 0
      disk.capacityBytes =
        CAPACITY - disk.space('/').freeBytes + (disk.copiesOnWrite ? (detail >>> 1) % 1_500 : detail % 40_000)
      scheduleIn(world.scheduler, lengthUs * 4, () => {
        storageOf(node).disk.capacityBytes = CAPACITY
      })
      return true
    case 'wipe':
      return wipe(world, node, lengthUs)
    case 'shutdown':
      return shutDown(world, node, lengthUs)
    case 'exhaust':
      node.isExhausted = node.process?.running?.exhaust?.(true) ?? false
      return node.isExhausted
    default:
      return meetDisk(world, node, disk, fault, `${DATA}/wal`)
  }
}

/**
 * The node restarts under its name with an empty disk. One at a time, and only when the previous one is a voter again
 * or never was one: more at once would lose a majority of disks.
 */
function wipe(world: World, node: SimulatedNode, lengthUs: number): boolean {
  if (!node.process || world.nodes.some(({ isDamaged }) => isDamaged)) return false
  const leader = leaderOf(world)?.process?.running
  const voters = leader?.voterIds?.() ?? []
  // A node that rejoined as a new member votes under another raft id.
  const isWhole = world.nodes.every(
    ({ process, wipedAt }) => wipedAt === 0 || voters.includes(process?.running?.raftId?.() ?? 0),
  )
  if (!leader || leader.isJoint() || !isWhole || voters.length < 3 || voters.length !== world.knobs.voters) return false
  node.hadDurable = node.process.running?.isDurable
  endProcess(world, node, 'wiped', false)
  node.storage = { disk: freshDisk(), wipes: storageOf(node).wipes + 1 }
  node.wipedAt = world.scheduler.nowUs
  node.wasVoter = false
  restartLater(world, node, lengthUs)
  return true
}

/** Graceful shutdown: leadership is transferred first. */
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

function startDriver(host: Host): Running {
  const { node, world } = host
  const { disk } = storageOf(node)
  const env: Env = { ...host.env, disk }
  const driver: DriverNode = {
    host,
    env,
    disk,
    machine: undefined,
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
  const apply: typeof applyCommand = (context, ...entry) =>
    noteApplied(driver, applyCommand(context, ...entry), context.store.memory, ...entry)
  const tools = storeTools(env, node.number, world.knobs, walOptions(world), apply)
  follow(
    recoverySteps(
      env,
      recoveryOptions(host),
      () => undefined,
      tools,
      (holding) => waited(gather(driver, holding)),
    ),
    (recovered) => takeUp(driver, recovered),
    (error) => {
      throw error
    },
  )
  const nameOf = (number: number) => world.nodes[number - 1]?.name ?? ''
  const idle = { role: 'follower', term: 0, lastIndex: 0, commit: 0, applied: 0 }
  const configuration = () => driver.replica?.raft.configuration ?? NO_MEMBERS
  const numbersOf = (ids: readonly number[]) =>
    [...new Set(ids)]
      .map((id) => numberOf(configuration().members.find((member) => member.id === id)?.node ?? ''))
      .filter((number) => number > 0)
  return {
    get raft() {
      return driver.replica?.raft ?? idle
    },
    knowsLife: () => driver.peers.common.genesis.some((byte) => byte !== 0),
    onPayload: (from, stream, payload) => events.onFrame(nameOf(from), stream, payload as Uint8Array),
    onOpen: (peer, stream) => events.onOpen(nameOf(peer), stream),
    onClosed: (peer, stream, isDead) => events.onClosed(nameOf(peer), stream, isDead),
    propose: (token, bytes) => writeTo(driver, [{ token, bytes }]),
    proposeAll: (commands) => writeTo(driver, commands),
    read: (token, register, minIndex) => readFrom(driver, token, register, minIndex),
    act: (action) => act(driver, action, nameOf),
    voters: () => numbersOf([...configuration().voters, ...configuration().outgoing]),
    halves: () => halvesOf(configuration()).map(numbersOf),
    learners: () => numbersOf(configuration().learners),
    isJoint: () => configuration().outgoing.length > 0,
    freshMs: () => driver.member?.reads.freshMs ?? Number.NEGATIVE_INFINITY,
    raftId: () => driver.replica?.raft.id ?? 0,
    voterIds: () => configuration().voters,
    // While state is being replayed or replaced, it belongs to no index.
    digest: () => (driver.replica && !isBetweenStates(driver.replica) ? driver.machine?.digest() : undefined),
    memory: () => driver.machine?.memory,
    backUp: (least) => backUp(driver, least),
    exhaust: (takes) => exhaust(driver, takes),
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

function backUp({ replica, machine }: DriverNode, least: number): ReturnType<NonNullable<Running['backUp']>> {
  if (!replica || !machine || isBetweenStates(replica) || replica.raft.applied < least) return undefined
  const { applied, appliedTerm } = replica.raft
  const file = machine.backUp(applied, appliedTerm)
  return file && { file, index: applied, value: machine.value }
}

// Before membership

function recoveryOptions({ node, world: { knobs } }: Host): ReplicaOptions {
  return {
    dataDir: DATA,
    shardId: SHARD,
    nodeId: node.name,
    codecs: CODECS.names,
    memoryBytes: knobs.memoryBytes,
    readers: 1,
    scratchBytes: 0,
    sessionBytesMax: knobs.sessionBytes,
    roomsHint: 4,
    snapshotIntervalMs: 0,
    snapshotTriggerCount: knobs.snapshotEvery,
    walFlushThreshold: knobs.flushThreshold,
    walFileBytes: knobs.logFileBytes,
    loadThreads: 1,
    acceptLoss: false,
    rejoin: false,
    acceptDay: 0,
    cluster: undefined,
  }
}

/** Waits until this node knows its shard. */
function gather(driver: DriverNode, { directory, held }: Holding): Wait<Founded> {
  const { env, peers, host } = driver
  const formation = formationOf(driver, directory.identity.incarnation, held)
  return (done) => {
    startBootstrap(env, peers, formation, initialVoters(host.world), (decision) => {
      if (decision.kind === 'fail') done(decision.error)
      else done(undefined, decision)
    })
  }
}

function formationOf(driver: DriverNode, incarnation: string, held: Held): Formation {
  const { host } = driver
  if (driver.formation) {
    hold(driver.formation, held)
    return driver.formation
  }
  driver.formation = createFormation({
    self: host.node.name,
    incarnation,
    shardId: SHARD,
    voters: initialVoters(host.world),
    codecs: CODECS,
    formatVersion: FORMAT_VERSION,
    formsWithMajority: false,
    held,
    sha256,
  })
  return driver.formation
}

const sha256 = (bytes: Uint8Array): Uint8Array => new Uint8Array(createHash('sha256').update(bytes).digest())

function initialVoters(world: World): string[] {
  return world.nodes.slice(0, world.knobs.voters).map(({ name }) => name)
}

function walOptions({ knobs }: World) {
  return { fileBytes: knobs.logFileBytes, reserveBytes: 1_024, prepareSyncBytes: 8_192 }
}

/** Determines the membership of a node after recovery has filled its store. */
function takeUp(driver: DriverNode, recovered: RecoveredNode): void {
  const { env, host, peers } = driver
  const { world, node } = host
  const { directory, cluster, raft, wal } = recovered
  const machine = createStoreMachine({
    env,
    dataDir: DATA,
    codecs: CODECS,
    node: recovered,
    later: (work, run) =>
      work === 'exchange'
        ? host.later(host.random.below(3_000), 'sync', run)
        : host.later(syncUs(world, node) * 5, 'snapshot', run),
    snapshotBytesPerSecond: world.knobs.snapshotBytesPerSecond,
    onFatal: (reason) => violate('O11', `node ${node.number} cannot load what it has checked: ${reason}`),
  })
  Object.assign(driver, { machine, directory, cluster, wal, snapshotIndex: recovered.snapshot?.manifest.index ?? 0 })
  const { lo, hi } = machine.digest()
  onState(world.oracles, node.number, raft.applied, lo, hi)
  // It has started: no damage was taken for a torn tail.
  if (raft.lastIndex < node.appliedWhenDamaged)
    violate('O10', `node ${node.number} starts at ${raft.lastIndex}, and had applied ${node.appliedWhenDamaged}`)
  peers.common.clusterId = bytesOfHex(cluster.clusterId)
  peers.common.genesis = shownGenesis(recovered, raft.applied)
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
  const formation = formationOf(driver, directory.identity.incarnation, held)
  const configuration = raft.configuration ?? NO_MEMBERS
  const self = { node: node.name, incarnation: directory.identity.incarnation, isFounder }
  const known = raftIdOf(configuration, self)
  if (known > 0) return become(driver, recovered, machine, known, raft)
  startJoining(env, peers, formation, initialVoters(world), ({ member, configuration: reported }) => {
    // Nothing may be applied here yet; until the log is replicated, the leader's report lists the members.
    const inForce = configuration.members.length > 0 ? configuration : reported
    become(driver, recovered, machine, member, { ...raft, configuration: inForce })
  })
}

// Members

function become(
  driver: DriverNode,
  { wal, cluster, directory, store }: RecoveredNode,
  machine: Machine,
  id: number,
  restored: RestoredState,
): void {
  const { env, disk, host, peers, formation } = driver
  const { world, node } = host
  const { knobs } = world
  assert(formation !== undefined, 'the shard is known')
  const log = startLog(driver, wal)
  const cursors: LogCursors = new Map()
  const raft = createRaft({ ...raftConfig(host, id), preVote: true, checkQuorum: true }, restored)
  const replicaParts: ReplicaParts = {
    env,
    raft,
    machine: {
      ...machine,
      apply: (...entry) => noteApplied(driver, machine.apply(...entry), machine.memory, ...entry),
      stays: {
        ...machine.stays,
        replyTo(applied) {
          if (applied.stay !== 0) noteStayReply(driver, machine.memory, applied)
          return machine.stays.replyTo(applied)
        },
      },
    },
    snapshots: {
      start(index, term) {
        const startedMs = env.clock.monotonicMs()
        machine.takeSnapshot(index, term, raft.configuration, (reason, ranOutOfPages) => {
          if (reason !== '') return snapshotFailed(replica, reason, ranOutOfPages)
          world.counts.snapshotsTaken++
          snapshotWritten(replica, index, term, env.clock.monotonicMs() - startedMs)
          pump(replica)
        })
      },
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
    onMaintained: () => void world.counts.maintenances++,
    onReserve: () => void releaseReserve(directory),
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
      hasMemoryFor: (packages) => packages * BYTES_A_PACKAGE < knobs.memoryBytes,
      prepareSwitch(path) {
        const reason = machine.prepareSwitch(path)
        return reason === '' ? undefined : new VacancyError('disk_failed', { operation: 'install', file: path, reason })
      },
      bulkData: machine.bulkData,
      onFatal: ({ message }) => violate('O11', `node ${node.number} cannot install a snapshot: ${message}`),
      cells: undefined,
      genesis: () => genesisOf({ store, cluster }, driver.replica?.raft.applied ?? 0),
      shownGenesis: () => shownGenesis({ store, cluster }, driver.replica?.raft.applied ?? 0),
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
      // Budgets of nodes differ: data that does not fit the smallest one is refused by all.
      memoryBudget: knobs.memoryBudget > 0 ? knobs.memoryBudget + (node.number % 3) * 50_000 : memoryBudgetOf(store),
    },
  )
  const { member } = driver
  const onTick = (): void => {
    tick(replica)
    beat(member)
    env.schedule.after(TICK_MS, onTick)
  }
  env.schedule.after(TICK_MS, onTick)
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

/** The log thread: messages that arrive while the disk is busy are handled in one turn. */
function startLog(driver: DriverNode, wal: Wal): SimulatedLog {
  const { host, env } = driver
  const { world, node } = host
  const queue: ToWal[] = []
  const answers: FromWal[] = []
  let isBusy = false
  const thread: WalThread = {
    wal,
    flushThreshold: world.knobs.flushThreshold,
    send: (message) => answers.push(message),
    monotonicMs: env.clock.monotonicMs,
    lends: false,
    isRefusing: false,
    refusals: 0,
  }
  const handle = (): void => {
    if (isBusy || queue.length === 0) return
    isBusy = true
    host.later(syncUs(world, node), 'sync', () => {
      isBusy = false
      const { commit } = wal.hardState
      handleWalMessages(thread, queue.splice(0))
      if (thread.isRefusing && wal.hardState.commit > commit) checkCommitted(driver, wal.hardState.commit)
      prepareNext(wal, 4_096)
      for (const answer of answers.splice(0)) if (log.replica) onLogMessage(log.replica, answer)
      handle()
    })
  }
  const log: SimulatedLog = {
    replica: undefined,
    tell(message) {
      if (message.type === 'append' && world.asksForLoads)
        for (const batch of message.entries) notePrepared(world, batch)
      queue.push(message)
      if (queue.length > 20_000) violate('O14', `${queue.length} messages wait for the log of node ${node.number}`)
      handle()
    },
  }
  return log
}

/** Reports applied entries to the oracles, at the start of a node and later. */
function noteApplied(
  driver: DriverNode,
  applied: Applied,
  memory: Memory,
  index: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): Applied {
  const { world, node } = driver.host
  const { oracles } = world
  const view = viewOf(bytes)
  const term = entryTerm(view, start - ENTRY_HEADER_BYTES)
  const isFirst = index >= oracles.terms.length
  const kind = kindOfCommand(view, start)
  // An internal entry may replace a client's entry that the leader withdrew, in the same term.
  const isOfClient = kind < KIND.dropBefore || levelOf(kind) > 0
  world.counts.entries++
  onApplied(oracles, world.scheduler.nowUs, {
    node: node.number,
    index,
    term,
    bytes,
    start,
    end,
    code: applied.code,
    value: applied.value,
    resultIndex: applied.index,
    timeMs: latestTime(memory),
    attempt: isOfClient ? (world.proposed.get(`${index} ${term}`) ?? 0) : 0,
    digest: stateDigest(memory),
  })
  if (isFirst && kind === KIND.bulkLoad) noteLoad(world, index, term)
  if (index % MARKS_EVERY === 0) driver.machine?.mark(index)
  return applied
}

/** The reply shows the stay as it is right after its entry. */
function noteStayReply({ host }: DriverNode, memory: Memory, { stay, index }: Applied): void {
  const { state: reached, deadlineMs, total, index: since } = recordOf(memory, stay)
  onStayReply(host.world.oracles, host.node.number, index, replyText(reached, deadlineMs, total, since))
}

/** Entries are first written to the log of their leader. */
function notePrepared(world: World, { firstIndex, bytes }: EntryBatch): void {
  const view = viewOf(bytes)
  for (let at = 0, index = firstIndex; at < bytes.length; index++) {
    const start = at + ENTRY_HEADER_BYTES
    const isCommand = entryKind(view, at) === ENTRY_KIND.command
    const place = `${index} ${entryTerm(view, at)}`
    if (isCommand && kindOfCommand(view, start) === KIND.bulkLoad && !world.loadMoments.has(place))
      world.loadMoments.set(place, world.history.moment++)
    at = start + entryLength(view, at)
  }
}

/**
 * A bulk load is applied: every register of clients has the value of the image, at some time after the load was logged.
 */
function noteLoad({ history, loadMoments, loaded, counts }: World, index: number, term: number): void {
  counts.loads++
  for (let register = 0; register < IMAGE_REGISTERS; register++) {
    const process = LOADERS + history.operations.length
    const operation = call(history, process, register, 'set', imageValue(register))
    Object.assign(operation, { calledAt: (loadMoments.get(`${index} ${term}`) ?? 0) + register / 100 })
    complete(history, operation, 'done', imageValue(register))
    loaded.set(operation, index)
  }
}

/** Process numbers in the history, distinct from those of clients. */
const LOADERS = 1_000_000
/** Least memory of a package, as cluster/shard-side.ts has it. */
const BYTES_A_PACKAGE = 8

// Clients

const proposals = createProposals()

function writeTo({ replica, host, machine, sink }: DriverNode, commands: readonly Command[]): void {
  if (!replica || !machine) {
    for (const { token } of commands) host.answer(token, { kind: 'none', reason: 'not a member' })
    return
  }
  const isFull = isMemoryFull(machine.memory)
  const taken: number[] = []
  for (const { token, bytes } of commands) {
    // Like a serving thread.
    if (isFull && GROWING.includes(kindOfCommand(viewOf(bytes), 0))) {
      host.world.counts.memoryRefusals++
      host.answer(token, { kind: 'none', reason: 'the memory is full' })
      continue
    }
    if (machine.featureLevel() < levelOfCommand(bytes)) {
      host.answer(token, { kind: 'none', reason: 'unknown command' })
      continue
    }
    nameIndex(machine, bytes)
    const writer = beginProposal(proposals)
    writeBytes(writer, bytes, 0, bytes.length)
    endProposal(proposals, token)
    taken.push(token)
  }
  if (taken.length === 0) return
  const { raft } = replica
  const { lastIndex, term } = raft
  proposeBatch(replica, sink, takeProposals(proposals))
  if (raft.lastIndex === lastIndex) return
  assert(raft.lastIndex === lastIndex + taken.length, 'a batch is accepted as a whole')
  for (const [n, token] of taken.entries()) host.world.proposed.set(`${lastIndex + 1 + n} ${term}`, token)
}

/** Sources name indexes as clients see them, which they drew from those of the log; some are left as of a former life. */
function nameIndex(machine: Machine, bytes: Uint8Array): void {
  const view = viewOf(bytes)
  if (kindOfCommand(view, 0) !== KIND.setAvailabilityAsOf) return
  const index = view.getFloat64(COMMAND_HEADER_BYTES, true)
  if (index < LOG_INDEXES && index % 8 !== 0) view.setFloat64(COMMAND_HEADER_BYTES, index + machine.indexBase(), true)
}

type Command = { readonly token: number; readonly bytes: Uint8Array }
const GROWING: readonly number[] = [KIND.setProperty, KIND.setPackage]
/** The feature level from which on a kind is known. */
function levelOf(kind: number): number {
  return kind >= KIND.setPackageAsOf ? AS_OF_LEVEL : OF_STAYS.includes(kind) ? STAYS_LEVEL : 0
}

function levelOfCommand(bytes: Uint8Array): number {
  const kind = kindOfCommand(viewOf(bytes), 0)
  const setsDay = kind === KIND.setting && bytes[COMMAND_HEADER_BYTES] === encodeSetting('day_begins_minutes', 0)[0]
  if (setsDay) return levelOfSetting('day_begins_minutes')
  const isNamed = kind === KIND.releaseStay && (bytes[COMMAND_HEADER_BYTES + 16] & STAY_FLAGS.bookedAt) !== 0
  return isNamed ? BOOKED_AT_LEVEL : levelOf(kind)
}

const OF_STAYS: readonly number[] = [
  ...[KIND.bookStay, KIND.holdStay, KIND.confirmStay, KIND.releaseStay],
  KIND.setting,
]

/** Tokens of reads, distinct from those of writes. */
const READ_TOKENS = 2 ** 31

function readFrom(driver: DriverNode, token: number, register: number, minIndex = 0): void {
  const { member, host } = driver
  if (!member) return host.answer(token, { kind: 'none', reason: 'not a member' })
  const own = READ_TOKENS + driver.nextRead++
  driver.reads.set(own, { token, register })
  const batch = createReadBatch()
  addRead(batch, own, minIndex === 0, minIndex)
  takeReads(member, driver.sink, takeReadBatch(batch))
  if (driver.replica) {
    pump(driver.replica)
    applyCommitted(driver.replica)
  }
}

/** Logs of runs are shorter, times in microseconds are longer. */
const FORMER = 2 ** 32

function onAnswers(driver: DriverNode, answers: ArrayBuffer): void {
  const { host, machine, reads } = driver
  assert(machine !== undefined, 'a responding node has a state')
  const view = new DataView(answers)
  for (let at = 0, next = 0; at < answers.byteLength; at = next) {
    const token = view.getUint32(at, true)
    const isAttached = view.getUint16(at + 6, true) !== 0
    next = at + ANSWER_BYTES + (isAttached ? 4 + view.getUint32(at + ANSWER_BYTES, true) : 0)
    const code = view.getUint8(at + 4)
    // Oracles have indexes of the log; a result from before the base was set has one, and one of a former life has none.
    const clientIndex = view.getFloat64(at + 8, true)
    const base = machine.indexBase()
    const index = clientIndex > base ? clientIndex - base : clientIndex < FORMER ? clientIndex : 0
    const read = reads.get(token)
    if (read) {
      reads.delete(token)
      host.world.counts.reads++
      if (code !== 0) host.answer(read.token, { kind: 'none', reason: refusedText(code) ?? '' })
      else host.answer(read.token, { kind: 'result', code: 0, value: machine.value(read.register), index, clientIndex })
      continue
    }
    if (code === REFUSED.outcomeUnknown) host.answer(token, { kind: 'unknown', reason: 'outcome unknown' })
    else if (code >= REFUSED.overloaded) host.answer(token, { kind: 'none', reason: refusedText(code) ?? '' })
    else host.answer(token, { kind: 'result', code, value: view.getUint8(at + 5), index, clientIndex })
  }
}

// Operators and oracles

function act(driver: DriverNode, action: Action, nameOf: (number: number) => string): string {
  const { replica, member, host } = driver
  const { counts } = host.world
  if (!replica || !member) return 'not a member'
  if (action.kind === 'snapshot') return startSnapshot(replica, 'requested') ? '' : 'not now'
  if (action.kind === 'set-time') {
    requestAdmin(member, { kind: 'set-time', confirm: true }, () => undefined)
    return ''
  }
  if (action.kind === 'maintenance') return maintain(replica, action.isForced) ? '' : 'not now'
  if (action.kind === 'load') return load(driver, member, action.image)
  if (host.world.nodes.some(({ isDamaged }) => isDamaged)) return 'a disk is damaged'
  let answer = ''
  requestAdmin(member, { kind: action.kind, node: nameOf(action.target) }, ({ status, text }) => {
    answer = status === 202 ? '' : text
    if (status !== 202) return
    if (action.kind === 'transfer') counts.transfers++
    else counts.membershipChanges++
  })
  return answer
}

const LOAD_FILE = `${DATA}/image.snapshot`

/** An operator copies an image to this node and loads it into the shard. */
function load({ disk, host }: DriverNode, member: Member, number: number): string {
  const { world } = host
  const { file } = storeImages()[number] as StoreImage
  try {
    if (disk.stat(LOAD_FILE)) disk.unlink(LOAD_FILE)
    const handle = disk.open(LOAD_FILE, 'create')
    writeFully(disk, handle, file, 0, file.length, 0)
    disk.close(handle)
  } catch (error) {
    if (isDiskFull(error) || errnoOf(error) === 'EIO') return 'the file cannot be copied'
    throw error
  }
  world.asksForLoads = true
  requestAdmin(member, { kind: 'load', file: LOAD_FILE }, () => undefined)
  return ''
}

/** Below feature level 1, refusals depend on the memory of each node, so memory is not withheld there. */
function exhaust({ machine, replica }: DriverNode, takes: boolean): boolean {
  if (!machine || !replica || isBetweenStates(replica) || machine.featureLevel() < 1) return false
  machine.exhaust(takes)
  return takes
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
  // The receiver of a snapshot needs the log after it. At index 0 the snapshot is not known yet.
  const { outgoing, port } = member.sender
  const logBegins = driver.wal?.files[0]?.firstIndex ?? 1
  for (const { index, startedMs, node: peer } of outgoing.values()) {
    const isOld = port.nowMs() - startedMs >= TRANSFER_LIMITS.keepLogMs
    if (index > 0 && index + 1 < logBegins && !isOld)
      violate('O13', `the log of node ${node.number} begins at ${logBegins}; ${peer} needs entries after ${index}`)
  }
  if (isReady(member) && member.membership === undefined) violate('O14', 'a leader has no membership')
}

/**
 * docs/design/consensus.md#when-a-configuration-takes-effect: the commit index of the log is correct. Checked when
 * entries were refused, since the entries they were to replace still exist.
 */
function checkCommitted(driver: DriverNode, commit: number): void {
  const { world, node } = driver.host
  const term = termInLog(driver, driver.disk, commit)
  const known = committedTerm(world.oracles, commit)
  world.oracles.checks.O2++
  if (!term || known === 0 || term === known) return
  const text = `the log of node ${node.number} has index ${commit} of term ${term} as committed`
  violate('O2', `${text}, but the committed term is ${known}`)
}

function isDurable(driver: DriverNode, index: number, term: number): boolean {
  const { disk, wal, replica } = driver
  if (!wal || !replica) return false
  if (index <= replica.snapshotIndexLast) return true
  const found = termInLog(
    driver,
    crash(disk, () => false),
    index,
  )
  return found !== undefined && (term === 0 || found === term)
}

/** @returns the term of an entry in the log on a disk; 0 when the log does not know it, undefined behind its end */
function termInLog({ directory, cluster }: DriverNode, disk: SimulatedDisk, index: number): number | undefined {
  if (!directory || !cluster) return undefined
  const files = listLogFiles(disk, `${DATA}/wal`)
  const { lastIndex, terms } = scanLog(disk, files, { identity: logIdentity(directory, cluster) })
  return index <= lastIndex ? termAt(terms, index) : undefined
}
