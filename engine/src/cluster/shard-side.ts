/**
 * What the replica thread of a member has around its replica: the transport, the resolver, and the way from a folder to
 * a place in the shard (consensus.md §7.1, §16.4). Production only: it opens sockets and waits for them.
 */

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { assert, createCodecList, VacancyError } from '@vacancy/shared'
import { type Log, openTls, type TlsStore } from '@vacancy/shared/node'
import type { Env } from '../env.ts'
import { failureOf } from '../failure.ts'
import type { Configuration } from '../raft/messages.ts'
import type { RaftConfig, RestoredState } from '../raft/raft.ts'
import type { ToBulk } from '../snapshot/bulk-worker.ts'
import type { Exchange, ExchangeAnswer } from '../snapshot/exchange.ts'
import { FORMAT_VERSION } from '../snapshot/format.ts'
import { openSnapshot, readSeedFile, readSnapshotDir, type SnapshotReader } from '../snapshot/load.ts'
import { lackingBytes, pooledDecoder, replaceData, replaceStore } from '../snapshot/replace.ts'
import { foreignness, SEED_FILE } from '../snapshot/snapshot.ts'
import { closeWordsPool, createWordsPool } from '../snapshot/words-pool.ts'
import { chunksFolder } from '../snapshot/write.ts'
import type { ResolverStatus, TransportCounts } from '../status.ts'
import { STATE } from '../store/layout.ts'
import { state } from '../store/store.ts'
import { commonClockOffsetMs } from '../threads/clock.ts'
import { attachCells } from './cells.ts'
import { noteVoter } from './data-directory.ts'
import {
  addressOf,
  closeDiscovery,
  createDiscovery,
  type Discovery,
  knownAddress,
  parseResolverUrl,
} from './discovery.ts'
import {
  bootstrapOf,
  createFormation,
  type Formation,
  type FormedState,
  type Held,
  hold,
  raftIdOf,
} from './formation.ts'
import { type Joined, startGathering, startJoining } from './gathering.ts'
import {
  type AdminAnswer,
  type AdminAsk,
  askAdmin,
  clocksAgree,
  clusterStatus,
  createMember,
  handOverAtEnd,
  isClockSuspect,
  type Member,
  type MemberParts,
  onSwitched,
  publishFacts,
  stopMember,
} from './member.ts'
import type { ClusterOptions, FromReplica, ReplicaOptions } from './messages.ts'
import { bytesOfHex, createPeers, eventsOf, type Peers } from './peers.ts'
import { askReads } from './reads.ts'
import type { Found, RecoveredNode } from './recovery.ts'
import type { Replica } from './replica.ts'
import { openTlsTransport, type StreamCounters, type TlsTransport, type TransportCounters } from './tls-transport.ts'
import { type ExchangeOverPort, exchangeOverPort, pinnedBy } from './transfer.ts'

/**
 * A member's part in its shard, as its replica thread sees it. All code of clusters comes in with this module: the
 * thread of a node by itself never loads it.
 */
export type ShardPart = {
  readonly found: Found
  takePart(node: RecoveredNode): Promise<[RaftConfig, RestoredState]>
  /** The replica becomes a member: from now on it speaks, and what stands below may be called. */
  join(node: RecoveredNode, replica: Replica, toBulk: (message: ToBulk) => void): void
  /** A certificate that cannot be used changes nothing: the old one stays in force. */
  reload(): void
  sendStatus(): void
  ask(what: AdminAsk, onAnswer: (answer: AdminAnswer) => void): void
  dial(nodes: Member['dialled']): void
  /** Reads of a serving thread that wait for a word of the shard. */
  askReads(sink: number, batch: Float64Array): void
  onExchanged(id: number, answer: ExchangeAnswer): void
  /** Indexes of snapshots that others are being sent. */
  pinned(): number[]
  isClockSuspect(): boolean
  clocksAgree(): boolean
  /** A leader begins to hand over. */
  handOver(): void
  /** §18: a leader hands over and waits for it, at most one election time-out. */
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
    assert(joined !== undefined, 'the replica is a member by now')
    return joined
  }
  return {
    found: (holding) => found(side, holding, send),
    takePart: (node) => takePart(side, node, send),
    join(node, replica, toBulk) {
      const exchange = exchangeOverPort((id, ask) => toBulk({ type: 'exchange', id, ask }))
      const member = joinShard(side, node, replica, exchange.exchange, () => toBulk({ type: 'forget' }), send)
      joined = { member, exchange }
      publishFacts(member)
    },
    reload() {
      try {
        side.tls?.reload()
      } catch (error) {
        if (!(error instanceof VacancyError)) throw error
        env.log.error({ err: error }, 'the certificate of the cluster stays the old one')
      }
    },
    sendStatus: () =>
      send({ type: 'cluster', status: clusterStatus(present().member), resolver: resolverStatus(side) }),
    ask: (what, onAnswer) => askAdmin(present().member, what, onAnswer),
    dial(nodes) {
      present().member.dialled = nodes
    },
    askReads: (sink, batch) => askReads(present().member.reads, sink, batch),
    onExchanged: (id, answer) => present().exchange.onExchanged(id, answer),
    pinned: () => (joined ? pinnedBy(joined.member.sender) : []),
    isClockSuspect: () => isClockSuspect(present().member),
    clocksAgree: () => clocksAgree(present().member),
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
  /** Made when it is known what this node holds. */
  formation: Formation | undefined
}

type Send = (message: FromReplica) => void

async function openShardSide(
  env: Env,
  options: ReplicaOptions,
  cluster: ClusterOptions,
  send: Send,
): Promise<ShardSide> {
  const peers = createPeers(options.nodeId, createCodecList(options.codecs).orderedHash, env)
  const tls =
    cluster.tls &&
    openTls({
      files: { cert: cluster.tls.cert, key: cluster.tls.key, clientCa: cluster.tls.ca },
      log: env.log as Log,
      onReload: (material) => {
        side.transport.reload(material)
        send({ type: 'certificate', notAfterMs: material.notAfterMs })
      },
    })
  if (tls) send({ type: 'certificate', notAfterMs: tls.material().notAfterMs })
  const discovery = createDiscovery({
    env,
    url: parseResolverUrl(cluster.resolver.url),
    shardId: options.shardId ?? '',
    ports: { quic: cluster.port, api: cluster.apiPort },
    fetch,
    token: tokenOf(cluster.resolver.tokenFile),
  })
  const open = openTlsTransport({
    env,
    node: options.nodeId,
    host: cluster.host,
    port: cluster.port,
    tls: tls?.material(),
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

/** The first line of a file, read for each request: tokens change. */
function tokenOf(file: string | undefined): (() => string | undefined) | undefined {
  return file === undefined ? undefined : () => readFileSync(file, 'utf8').split('\n')[0]?.trim()
}

function formationOf(side: ShardSide, shardId: string, incarnation: string, held: Held): Formation {
  const { options, cluster, env } = side
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
    defects: env.defects,
  })
  return side.formation
}

const sha256 = (bytes: Uint8Array): Uint8Array => createHash('sha256').update(bytes).digest()

/** Waits until this node knows which shard it is of: founded with others, or running already (G1–G5). */
function found(side: ShardSide, { directory, shardId, held }: Parameters<Found>[0], send: Send): ReturnType<Found> {
  const { env, peers, cluster } = side
  const formation = formationOf(side, shardId, directory.identity.incarnation, held)
  return new Promise((resolve, reject) => {
    const tell = setInterval(() => {
      const bootstrap = bootstrapOf(formation, env.clock.monotonicMs())
      send({ type: 'phase', phase: 'forming', detail: bootstrap.why })
      send({ type: 'bootstrap', status: bootstrap })
    }, TELL_MS)
    const onDecision: Parameters<typeof startGathering>[4] = (decision) => {
      clearInterval(tell)
      if (decision.kind === 'fail') reject(decision.error)
      else resolve(decision)
    }
    startGathering(env, peers, formation, cluster.seeds, onDecision, () => hasFittingSeed(side, shardId))
  })
}

/**
 * Whether a whole snapshot file of this shard has come into the folder since the start. One that is still being copied,
 * or that does not belong here, is passed over: a start with it would end the process, and this one has begun well.
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

const TELL_MS = 500

/** Which member of the shard this node is; one that is none yet asks to be taken in, and waits (§7.1, §7.2). */
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
  peers.common.genesis = genesisOf(node)
  const configuration = raft.configuration as Configuration
  const known = raftIdOf(configuration, { node: options.nodeId, incarnation, isFounder })
  if (known > 0) return [configOf(side, known), raft]
  const joined = await new Promise<Joined>((resolve) => {
    const tell = setInterval(() => {
      send({ type: 'phase', phase: 'joining', detail: 'it waits for the leader to take it in' })
      send({ type: 'bootstrap', status: bootstrapOf(formation, env.clock.monotonicMs()) })
    }, TELL_MS)
    startJoining(env, peers, formation, cluster.seeds, (answer) => {
      clearInterval(tell)
      resolve(answer)
    })
  })
  env.log.info({ member: joined.member }, 'taken in by the shard')
  // What is applied here may be nothing yet; until the log brings the rest the leader's word names the members.
  const inForce = configuration.members.length > 0 ? configuration : joined.configuration
  return [configOf(side, joined.member), { ...raft, configuration: inForce }]
}

function configOf({ cluster, env }: ShardSide, id: number): RaftConfig {
  return {
    id,
    electionTicks: cluster.electionTicks,
    heartbeatTicks: cluster.heartbeatTicks,
    // 32 random bits: far more than ticks to choose from.
    random: (below) => new DataView(env.random.bytes(4).slice().buffer).getUint32(0) % below,
    preVote: true,
    checkQuorum: true,
    stepDownOnRemoval: true,
    validateChanges: true,
  }
}

function genesisOf({ store }: RecoveredNode): Uint8Array {
  const genesis = new Uint8Array(16)
  const view = new DataView(genesis.buffer)
  for (let cell = 0; cell < 4; cell++) view.setUint32(cell * 4, state(store.memory, STATE.genesis + cell), true)
  return genesis
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
  assert(formation !== undefined, 'it is known which shard this is')
  let prepared: SnapshotReader | undefined
  replica.switchState = (_offer, done) => {
    const reader = prepared
    assert(reader !== undefined, 'what is switched to was prepared')
    prepared = undefined
    const pool = createWordsPool(Math.min(options.loadThreads, options.readers))
    replaceStore(env, node.store, reader, pooledDecoder(pool), (error) => {
      void closeWordsPool(pool)
      if (error) return send({ type: 'failed', ...failureOf(error) })
      node.context.marks.length = 0
      node.context.loaded = ''
      forgetWritten()
      done()
      onSwitched(member)
    })
  }
  /** Everything about the snapshot in a folder that can fail, before the memory is cleared for it; or why not. */
  const readFolder = (path: string): SnapshotReader | string => {
    try {
      const reader = openSnapshot(env.disk, readSnapshotDir(env.disk, path, chunksFolder(options.dataDir)))
      const lacking = lackingBytes(node.store, reader, options.loadThreads)
      return lacking === 0 ? reader : `${lacking} bytes of memory are missing for the snapshot in ${path}`
    } catch (error) {
      if (!(error instanceof VacancyError)) throw error
      return error.message
    }
  }
  const bulkData: MemberParts['bulkData'] = {
    check(path) {
      const reader = readFolder(path)
      return typeof reader === 'string' ? reader : ''
    },
    replace(path, digest, done) {
      const reader = readFolder(path)
      if (typeof reader === 'string') return onFatal(reader)
      const pool = createWordsPool(Math.min(options.loadThreads, options.readers))
      replaceData(env, node.store, reader, pooledDecoder(pool), (error) => {
        void closeWordsPool(pool)
        if (error) return send({ type: 'failed', ...failureOf(error) })
        node.context.loaded = digest
        forgetWritten()
        done()
      })
    },
  }
  const onFatal = (reason: string) =>
    send({
      type: 'failed',
      ...failureOf(new VacancyError('disk_failed', { operation: 'install', file: options.dataDir, reason })),
    })
  const member = createMember(
    {
      env,
      replica,
      bulkData,
      peers,
      formation,
      exchange,
      cells: attachCells(cluster.cells, commonClockOffsetMs()),
      genesis: () => genesisOf(node),
      hasMemoryFor: (packages) => packages * BYTES_A_PACKAGE < options.memoryBytes,
      prepareSwitch(path) {
        const reader = readFolder(path)
        if (typeof reader === 'string') return reader
        prepared = reader
        return ''
      },
      transportCounts: () => countsOf(transport.counters(), peers),
      hostOf: (name) => (name === options.nodeId ? cluster.apiHost : (knownAddress(discovery, name)?.host ?? '')),
      onRole: () => send({ type: 'cluster', status: clusterStatus(member), resolver: resolverStatus(side) }),
      onVoter: () => noteVoter(node.directory),
      onFatal,
      onOldData: (lastIndex, acknowledged) => {
        const reason =
          `${options.dataDir} ends at entry ${lastIndex}, and node ${options.nodeId} has acknowledged entries up to ${acknowledged}:` +
          ' it is an old copy, or something was lost. Start the node with --rejoin: it comes back as a new member.'
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
    },
  )
  return member
}

/** Least memory of a package: what is certainly too large is refused before it is taken apart (§16.3). */
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
  const { counters, url } = discovery
  return { address: url, durations: {}, errors: { node: counters.failed }, error: '' }
}

async function closeShardSide({ transport, tls, discovery }: ShardSide): Promise<void> {
  closeDiscovery(discovery)
  tls?.close()
  await transport.close()
}
