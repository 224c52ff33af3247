/**
 * The environment of a member's replica on its thread: the transport, the resolver, and the steps from a folder to a
 * member of the shard (docs/design/consensus.md#identities, docs/design/consensus.md#formation). Production only: it
 * opens sockets and waits for them.
 */

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { assert, createCodecList, VacancyError } from '@vacancy/shared'
import { type Log, openTls, parseResolverUrl, type TlsMaterial, type TlsStore } from '@vacancy/shared/node'
import { type Joined, startBootstrap, startJoining } from '../bootstrap/bootstrap.ts'
import { addressOf, closeDiscovery, createDiscovery, type Discovery, nodeAddress } from '../bootstrap/discovery.ts'
import { bootstrapOf, createFormation, type Formation, hold, raftIdOf } from '../bootstrap/formation.ts'
import { noteVoter } from '../data/data-directory.ts'
import { type FormedState, genesisOf, type Held, shownGenesis } from '../data/genesis.ts'
import { type Found, onTakenOver, type RecoveredNode } from '../data/recovery-parts.ts'
import type { ClusterOptions, ReplicaOptions } from '../data/replica-options.ts'
import type { Env } from '../env.ts'
import { failureOf } from '../failure.ts'
import type { Configuration } from '../raft/messages.ts'
import type { RaftConfig, RestoredState } from '../raft/raft.ts'
import type { ToBulk } from '../snapshot/bulk-worker.ts'
import type { Exchange, ExchangeAnswer } from '../snapshot/exchange.ts'
import { FORMAT_VERSION } from '../snapshot/format.ts'
import { openSnapshot, readSeedFile, readSnapshotDir, type SnapshotReader } from '../snapshot/load.ts'
import { memoryTooSmall, openDecoder, replaceData, replaceStore } from '../snapshot/replace.ts'
import { foreignness, SEED_FILE } from '../snapshot/snapshot.ts'
import { chunksFolder } from '../snapshot/write.ts'
import type { ResolverStatus, TransportCounts } from '../status.ts'
import { memoryBudgetOf } from '../store/charge.ts'
import { commonClockOffsetMs } from '../threads/clock.ts'
import { bytesOfHex, createPeers, eventsOf, type Peers } from '../transport/peers.ts'
import { openTlsTransport, type TlsTransport } from '../transport/tls-transport.ts'
import type { StreamCounters, TransportCounters } from '../transport/transport-state.ts'
import { type AdminRequest, requestAdmin } from './admin.ts'
import { beat, createMember, handOverAtEnd, onSwitched, stopMember, takeReads } from './member.ts'
import { type AdminAnswer, type Member, type MemberParts, publishFacts } from './member-state.ts'
import { clusterStatus } from './member-status.ts'
import type { FromReplica } from './messages.ts'
import type { Replica } from './replica-state.ts'
import { attachCells } from './shared-status.ts'
import { type ExchangeOverPort, exchangeOverPort, pinnedBy } from './transfer.ts'

/**
 * The shard as the replica thread of a member uses it. This module loads all cluster code; the thread of a standalone
 * node never loads it.
 */
export type ShardPart = {
  readonly found: Found
  takePart(node: RecoveredNode): Promise<[RaftConfig, RestoredState]>
  /** The replica becomes a member: it sends frames from now on, and the functions below may be called. */
  join(node: RecoveredNode, replica: Replica, toBulk: (message: ToBulk) => void): void
  /** Loads a new certificate. If it is unusable, the old one stays in force. */
  reload(): void
  /** Called with each tick of the replica. */
  beat(): void
  sendStatus(): void
  request(what: AdminRequest, onAnswer: (answer: AdminAnswer) => void): void
  dial(nodes: Member['dialled']): void
  /** Reads of a serving thread that the shard must confirm. */
  requestReads(sink: number, batch: Float64Array): void
  onExchanged(id: number, answer: ExchangeAnswer): void
  /** Indexes of snapshots that are being sent to other nodes. */
  pinned(): number[]
  /** The state of this node is unusable: it stops serving and replying to peers. */
  freeze(): void
  /** A leader starts a handover. */
  handOver(): void
  /** A leader hands over and waits for that, at most one election timeout. */
  leave(): Promise<void>
  close(): Promise<void>
}

/** Opens the listener for peers. @throws VacancyError port_taken, invalid_tls, usage_error */
export async function openShardPart(
  env: Env,
  options: ReplicaOptions,
  cluster: ClusterOptions,
  send: Send,
): Promise<ShardPart> {
  const side = await openShardSide(env, options, cluster, send)
  let joined: { readonly member: Member; readonly exchange: ExchangeOverPort } | undefined
  const present = () => {
    assert(joined !== undefined, 'the replica is a member')
    return joined
  }
  return {
    found: (holding) => found(side, holding, send),
    takePart: (node) => takePart(side, node, send),
    join(node, replica, toBulk) {
      const exchange = exchangeOverPort((id, request) => toBulk({ type: 'exchange', id, ask: request }))
      const member = joinShard(side, node, replica, exchange.exchange, () => toBulk({ type: 'forget' }), send)
      joined = { member, exchange }
      publishFacts(member)
    },
    reload() {
      try {
        side.tls?.reload()
      } catch (error) {
        if (!(error instanceof VacancyError)) throw error
        env.log.error({ err: error }, 'cluster certificate not replaced, the old one stays in force')
      }
    },
    beat: () => beat(present().member),
    sendStatus: () =>
      send({ type: 'cluster', status: clusterStatus(present().member), resolver: resolverStatus(side) }),
    request: (what, onAnswer) => requestAdmin(present().member, what, onAnswer),
    dial(nodes) {
      present().member.dialled = nodes
    },
    requestReads: (sink, batch) => takeReads(present().member, sink, batch),
    onExchanged: (id, answer) => present().exchange.onExchanged(id, answer),
    pinned: () => (joined ? pinnedBy(joined.member.sender) : []),
    freeze() {
      if (joined) stopMember(joined.member)
    },
    handOver: () => void handOverAtEnd(present().member),
    async leave() {
      const { member } = present()
      if (!handOverAtEnd(member)) return
      const { raft } = member.replica
      const untilMs = performance.now() + cluster.electionTicks * cluster.tickMs
      while (raft.role === 'leader' && raft.transferTarget !== 0 && performance.now() < untilMs) {
        await new Promise((resolve) => setTimeout(resolve, LEAVE_LOOK_MS))
      }
    },
    async close() {
      if (joined) stopMember(joined.member)
      await closeShardSide(side)
    },
  }
}

const LEAVE_LOOK_MS = 5

type ShardSide = {
  readonly env: Env
  readonly options: ReplicaOptions
  readonly cluster: ClusterOptions
  readonly peers: Peers
  readonly transport: TlsTransport
  readonly tls: TlsStore | undefined
  readonly discovery: Discovery
  /** Set once it is known what this node holds. */
  formation: Formation | undefined
}

type Send = (message: FromReplica) => void

async function openShardSide(
  env: Env,
  options: ReplicaOptions,
  cluster: ClusterOptions,
  send: Send,
): Promise<ShardSide> {
  const sendEnds = ({ notAfterMs, authorityNotAfterMs }: TlsMaterial) =>
    send({ type: 'certificate', notAfterMs, authorityNotAfterMs })
  const peers = createPeers(options.nodeId, createCodecList(options.codecs).orderedHash, env)
  const tls =
    cluster.tls &&
    openTls({
      files: { cert: cluster.tls.cert, key: cluster.tls.key, clientCa: cluster.tls.ca },
      log: env.log as Log,
      onReload: (material) => {
        side.transport.reload(material)
        sendEnds(material)
      },
    })
  if (tls) sendEnds(tls.material())
  const discovery = createDiscovery({
    env,
    url: parseResolverUrl(cluster.resolver.url),
    shardId: options.shardId ?? '',
    ports: { quic: cluster.port, api: cluster.apiPort },
    token: tokenOf(cluster.resolver.tokenFile),
  })
  const open = openTlsTransport({
    env,
    node: options.nodeId,
    host: cluster.host,
    port: cluster.port,
    tls: tls?.material(),
    requireNodeId: cluster.requireNodeId,
    addressOf: (node, wasUnreachable) => addressOf(discovery, node, wasUnreachable),
    onDuplicate: (peer) => {
      const reason = `${peer} is connected to another process that runs as ${options.nodeId}: give each node an id of its own.`
      send({ type: 'failed', ...failureOf(new VacancyError('data_conflict', { reason })) })
    },
  })
  const transport = await open(eventsOf(peers))
  peers.transport = transport
  const side: ShardSide = {
    env,
    options,
    cluster,
    peers,
    transport,
    tls,
    discovery,
    formation: undefined,
  }
  return side
}

/** The first line of a file, read for each request because tokens change. */
function tokenOf(file: string | undefined): (() => string | undefined) | undefined {
  return file === undefined ? undefined : () => readFileSync(file, 'utf8').split('\n')[0]?.trim()
}

function formationOf(side: ShardSide, shardId: string, incarnation: string, held: Held): Formation {
  const { options, cluster } = side
  if (side.formation) {
    hold(side.formation, held)
    return side.formation
  }
  side.formation = createFormation({
    self: options.nodeId,
    incarnation,
    shardId,
    voters: cluster.initialVoters,
    codecs: createCodecList(options.codecs),
    formatVersion: FORMAT_VERSION,
    formsWithMajority: cluster.formWithMajority,
    held,
    sha256,
  })
  return side.formation
}

const sha256 = (bytes: Uint8Array): Uint8Array => createHash('sha256').update(bytes).digest()

/**
 * Waits until this node knows its shard: founded with other nodes, or already running
 * (docs/design/consensus.md#formation).
 */
function found(side: ShardSide, { directory, shardId, held }: Parameters<Found>[0], send: Send): ReturnType<Found> {
  const { env, peers, cluster } = side
  const formation = formationOf(side, shardId, directory.identity.incarnation, held)
  return new Promise((resolve, reject) => {
    const timer = setInterval(() => {
      const bootstrap = bootstrapOf(formation, env.clock.monotonicMs())
      send({ type: 'phase', phase: 'forming', detail: bootstrap.why })
      send({ type: 'bootstrap', status: bootstrap })
    }, REPORT_MS)
    const onDecision: Parameters<typeof startBootstrap>[4] = (decision) => {
      clearInterval(timer)
      if (decision.kind === 'fail') reject(decision.error)
      else resolve(decision)
    }
    startBootstrap(env, peers, formation, cluster.seeds, onDecision, () => hasFittingSeed(side, shardId))
  })
}

/**
 * Whether a complete snapshot file of this shard has arrived in the folder since the start. An incomplete or foreign
 * file is skipped: a start with it would end the process.
 */
function hasFittingSeed({ env, options }: ShardSide, shardId: string): boolean {
  const path = `${options.dataDir}/${SEED_FILE}`
  if (!env.disk.stat(path)) return false
  const { orderedHash, text } = createCodecList(options.codecs)
  try {
    const head = readSeedFile(env.disk, path)
    return foreignness(head, { shardId, codecsOrderedHash: orderedHash, codecsText: text }) === undefined
  } catch (error) {
    if (error instanceof VacancyError && error.code !== 'disk_failed') return false
    throw error
  }
}

const REPORT_MS = 500

/** Finds the member that this node is. A node that is not a member sends join requests and waits. */
async function takePart(side: ShardSide, node: RecoveredNode, send: Send): Promise<[RaftConfig, RestoredState]> {
  const { env, options, peers, cluster } = side
  const { directory, raft } = node
  const { incarnation } = directory.identity
  const { clusterId, snapshotDigest = '', baseIndex, baseTerm, voters, isFounder = true } = node.cluster
  const held: FormedState = {
    state: 'formed',
    clusterId,
    digest: snapshotDigest,
    index: baseIndex,
    term: baseTerm,
    voters,
    isFounder,
    isUntouched: raft.term === baseTerm && raft.vote === 0 && raft.lastIndex === baseIndex,
    leader: '',
  }
  const formation = formationOf(side, node.shardId, incarnation, held)
  peers.common.clusterId = bytesOfHex(clusterId)
  peers.common.genesis = shownGenesis(node, raft.applied)
  const configuration = raft.configuration as Configuration
  const known = raftIdOf(configuration, { node: options.nodeId, incarnation, isFounder })
  if (known > 0) return [configOf(side, known), raft]
  const joined = await new Promise<Joined>((resolve) => {
    const timer = setInterval(() => {
      send({ type: 'phase', phase: 'joining', detail: 'waiting for the leader to admit this node' })
      send({ type: 'bootstrap', status: bootstrapOf(formation, env.clock.monotonicMs()) })
    }, REPORT_MS)
    startJoining(env, peers, formation, cluster.seeds, (answer) => {
      clearInterval(timer)
      resolve(answer)
    })
  })
  env.log.info({ member: joined.member }, 'admitted by the shard')
  // The applied state may still be empty. Until the log brings the members, the leader's reply names them.
  const inForce = configuration.members.length > 0 ? configuration : joined.configuration
  return [configOf(side, joined.member), { ...raft, configuration: inForce }]
}

function configOf({ cluster, env }: ShardSide, id: number): RaftConfig {
  return {
    id,
    electionTicks: cluster.electionTicks,
    heartbeatTicks: cluster.heartbeatTicks,
    // 32 random bits: many times the number of ticks to choose from.
    random: (below) => new DataView(env.random.bytes(4).slice().buffer).getUint32(0) % below,
    preVote: true,
    checkQuorum: true,
    stepDownOnRemoval: true,
    validateChanges: true,
  }
}

function joinShard(
  side: ShardSide,
  node: RecoveredNode,
  replica: Replica,
  exchange: Exchange,
  forgetWritten: () => void,
  send: Send,
): Member {
  const { env, options, cluster, peers, formation, transport, discovery } = side
  assert(formation !== undefined, 'the shard is known')
  const decoderFor = ({ manifest }: SnapshotReader) =>
    openDecoder(env.disk, Math.min(options.loadThreads, options.readers), manifest.packages)
  let prepared: SnapshotReader | undefined
  replica.switchState = (_offer, done) => {
    const reader = prepared
    assert(reader !== undefined, 'the snapshot to switch to was prepared')
    prepared = undefined
    const decoder = decoderFor(reader)
    replaceStore(env, node.store, reader, decoder, (error) => {
      void decoder.close()
      if (error) return send({ type: 'failed', ...failureOf(error) })
      onTakenOver(node, reader.manifest)
      forgetWritten()
      done()
      onSwitched(member)
    })
  }
  /**
   * Performs every step with the snapshot in a folder that can fail, before the memory is cleared for it; or returns
   * the error.
   *
   * @param kept bytes of memory that must stay free; the reserve for writes when absent
   */
  const readFolder = (path: string, kept?: number): SnapshotReader | VacancyError => {
    try {
      const reader = openSnapshot(env.disk, readSnapshotDir(env.disk, path, chunksFolder(options.dataDir)))
      return memoryTooSmall(node.store, reader, options.loadThreads, options.memoryBytes, kept) ?? reader
    } catch (error) {
      if (!(error instanceof VacancyError)) throw error
      return error
    }
  }
  const bulkData: MemberParts['bulkData'] = {
    check(path) {
      const reader = readFolder(path)
      return reader instanceof VacancyError ? reader.message : ''
    },
    replace(path, digest, done) {
      const reader = readFolder(path)
      if (reader instanceof VacancyError) return onFatal(reader)
      const decoder = decoderFor(reader)
      replaceData(env, node.store, reader, decoder, (error) => {
        void decoder.close()
        if (error) return send({ type: 'failed', ...failureOf(error) })
        node.context.loaded = digest
        forgetWritten()
        done()
      })
    },
  }
  const onFatal = (error: VacancyError) => send({ type: 'failed', ...failureOf(error) })
  const member = createMember(
    {
      env,
      replica,
      bulkData,
      peers,
      formation,
      exchange,
      cells: attachCells(cluster.cells, commonClockOffsetMs()),
      genesis: () => genesisOf(node, replica.raft.applied),
      shownGenesis: () => shownGenesis(node, replica.raft.applied),
      hasMemoryFor: (packages) => packages * BYTES_A_PACKAGE < options.memoryBytes,
      prepareSwitch(path) {
        // What the leader has in its memory: an almost full shard uses its reserve.
        const reader = readFolder(path, 0)
        if (reader instanceof VacancyError) return reader
        prepared = reader
        return undefined
      },
      transportCounts: () => countsOf(transport.counters(), peers),
      hostOf: (name) => (name === options.nodeId ? cluster.apiHost : (nodeAddress(discovery, name)?.host ?? '')),
      onRole: () => send({ type: 'cluster', status: clusterStatus(member), resolver: resolverStatus(side) }),
      onVoter: () => noteVoter(node.directory),
      onFatal,
      onOldData: (lastIndex, acknowledged) => {
        const reason =
          `${options.dataDir} ends at entry ${lastIndex}, and node ${options.nodeId} has acknowledged entries up to ${acknowledged}:` +
          ' it is an old copy, or something was lost. Start the node with --rejoin: it returns as a new member.'
        send({ type: 'failed', ...failureOf(new VacancyError('data_conflict', { reason })) })
      },
    },
    {
      node: options.nodeId,
      incarnation: node.directory.identity.incarnation,
      zoneId: cluster.zoneId,
      cluster: node.cluster,
      initialVoters: cluster.initialVoters,
      seeds: cluster.seeds,
      tickMs: cluster.tickMs,
      electionTicks: cluster.electionTicks,
      heartbeatTicks: cluster.heartbeatTicks,
      sessionBytesMax: options.sessionBytesMax,
      memoryBudget: memoryBudgetOf(node.store),
    },
  )
  return member
}

/** Least memory of a package, used to refuse snapshots that are certainly too large before they are decoded. */
const BYTES_A_PACKAGE = 8

function countsOf(counters: TransportCounters, peers: Peers): TransportCounts {
  const { refused, failed, lost, streams } = counters
  const sum = (tally: { readonly [name: string]: number }) =>
    Object.values(tally).reduce((total, count) => total + count, 0)
  const over = (pick: (stream: StreamCounters) => number) =>
    Object.values(streams).reduce((total, stream) => total + pick(stream), 0)
  return {
    opened: counters.opened,
    accepted: counters.accepted,
    rejected: { ...Object.fromEntries(Object.entries(refused).filter(([, count]) => count > 0)), ...peers.refused },
    errors: sum(failed),
    dropped: sum(lost),
    messagesSent: over(({ framesOut }) => framesOut),
    messagesReceived: over(({ framesIn }) => framesIn),
    bytesSent: over(({ bytesOut }) => bytesOut),
    bytesReceived: over(({ bytesIn }) => bytesIn),
    sendErrors: over(({ dropped }) => dropped),
    receiveErrors: refused.checksum + refused.length + lost.checksum + lost.length,
  }
}

function resolverStatus({ discovery }: ShardSide): ResolverStatus {
  const { cache, url } = discovery
  return { address: url, durations: {}, errors: { node: cache.counters.failed }, error: '' }
}

async function closeShardSide({ transport, tls, discovery }: ShardSide): Promise<void> {
  closeDiscovery(discovery)
  tls?.close()
  await transport.close()
}
