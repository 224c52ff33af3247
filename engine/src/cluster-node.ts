/**
 * The main-thread part of a shard member: the registry, and operator requests over HTTP (docs/design/http.md#registry,
 * docs/design/http.md#cluster-changes). The member itself runs on the replica thread (cluster/member.ts).
 */

import { randomBytes } from 'node:crypto'
import { type CodecList, createCodecList, VacancyError } from '@vacancy/shared'
import { type Log, openHttpCaller, parseRegistryAddresses, VERSION } from '@vacancy/shared/node'
import type { FromReplica, ToReplica } from './cluster/messages.ts'
import type { EngineSettings } from './config.ts'
import { readCluster } from './data/data-directory.ts'
import { createEnv } from './env.ts'
import type { ClusterAnswer, ClusterHandle } from './http/handle.ts'
import { createPuller } from './http/snapshot-download.ts'
import { createRegistryLink, type NodeReport, type RegistryLink } from './registry/link.ts'
import type { ClusterStatus, ResolverStatus } from './status.ts'

/** Additional options of a shard member. */
export type ClusterNodeOptions = {
  readonly zoneId: string
  /** The nodes that found the shard; this one need not be among them. */
  readonly initialVoters: readonly string[]
  /** Nodes to dial first. */
  readonly seeds: readonly string[]
  readonly formWithMajority: boolean
  /** Address of the listener for other nodes. */
  readonly host: string
  /** Undefined: no TLS. */
  readonly tls: { readonly cert: string; readonly key: string; readonly ca: string } | undefined
  readonly registry: {
    readonly url: string
    readonly tokenFile: string | undefined
    readonly caFile: string | undefined
  }
  readonly resolver: { readonly url: string; readonly tokenFile: string | undefined }
}

/** How often the list of segments is compared with that of the registry. */
const SEGMENTS_CHECK_MS = 2_000

type Self = { readonly nodeId: string; readonly shardId: string; readonly zoneId: string }

/** A connection to the registry; `close` ends it silently. */
function openRegistry(
  options: ClusterNodeOptions,
  self: Self,
  log: Log,
  more: { readonly heartbeatMs: number; readonly apiUrl?: string; readonly report: () => NodeReport },
): { readonly link: RegistryLink; readonly close: () => void } {
  const { clock, schedule, random } = createEnv(log)
  const http = openHttpCaller({
    tokenFile: options.registry.tokenFile,
    caFile: options.registry.caFile,
    name: 'registry',
    log,
  })
  const link = createRegistryLink(
    { clock, schedule, random, log, request: http.request },
    {
      addresses: parseRegistryAddresses(options.registry.url.split(',')),
      node: self.nodeId,
      shard: self.shardId,
      zone: self.zoneId,
      instance: randomBytes(16).toString('hex'),
      version: VERSION,
      startedAt: new Date().toISOString(),
      ...more,
    },
  )
  return { link, close: http.close }
}

const NOT_STARTED: NodeReport = {
  health: 'unavailable',
  role: undefined,
  term: 0,
  leader: undefined,
  mayPublish: false,
  segments: () => [],
}

/**
 * Requests the codec list from the registry. While no registry responds, a node with data continues with its stored
 * list; a new one waits and logs that (docs/design/http.md#codec-list).
 */
export function codecsOfRegistry(
  options: ClusterNodeOptions,
  self: Self,
  dataDir: string,
  log: Log,
): Promise<CodecList> {
  return new Promise((resolve) => {
    const { link, close } = openRegistry(options, self, log, { heartbeatMs: 10_000, report: () => NOT_STARTED })
    link.takeCodecs(storedCodecs(dataDir, log), (codecs) => {
      close()
      resolve(codecs)
    })
  })
}

function storedCodecs(dataDir: string, log: Log): CodecList | undefined {
  try {
    const cluster = readCluster(createEnv(log).disk, dataDir)
    return cluster && createCodecList(cluster.codecs)
  } catch (error) {
    // Recovery will report the problem of the folder.
    if (error instanceof VacancyError) return undefined
    throw error
  }
}

export type ShardParts = {
  readonly options: ClusterNodeOptions
  readonly self: Self
  readonly codecs: CodecList
  readonly heartbeatMs: number
  readonly apiUrl: string
  readonly log: Log
  readonly send: (message: ToReplica) => void
  /** The response of `/healthz`. */
  readonly health: () => string
  readonly segments: () => readonly { readonly name: string; readonly properties: number }[]
  /** Whether the store is loaded, so that the list of segments is complete. */
  readonly isLoaded: () => boolean
  /** `http` or `https`, and port, of the HTTP API: assumed equal on all nodes of the shard. */
  readonly apiScheme: string
  readonly apiPort: () => number
  readonly dataDir: string
  readonly loadUrls: EngineSettings['loadUrls']
}

export type Shard = {
  readonly handle: ClusterHandle
  /** Handles messages of the replica thread about the shard. */
  onReplica(message: Extract<FromReplica, { type: 'cluster' | 'admin-reply' | 'bootstrap' }>): void
  /** Called once HTTP serves, before it is active: registers, and keeps doing so. */
  start(): void
  /** Deregisters. */
  stop(): Promise<void>
}

export function openShard(parts: ShardParts): Shard {
  const { options, self, log } = parts
  let info = notYet(self, options)
  let resolver: ResolverStatus | undefined
  let nextId = 1
  let lookedMs = 0
  const waiting = new Map<number, (answer: ClusterAnswer) => void>()
  const { link, close } = openRegistry(options, self, log, {
    heartbeatMs: parts.heartbeatMs,
    apiUrl: parts.apiUrl,
    report: () => ({
      health: parts.health(),
      // A candidate, or a node that waits for its shard, has none of these roles.
      role: info.role === 'candidate' || info.members.length === 0 ? undefined : info.role,
      term: info.term,
      leader: info.leader === '' ? undefined : info.leader,
      // The node registers before its data are loaded. Publishing then would report an empty list.
      mayPublish: info.isLeading && parts.isLoaded(),
      segments: parts.segments,
    }),
  })
  link.watchCodecs(parts.codecs)
  const request: ClusterHandle['request'] = (change) =>
    new Promise((resolve) => {
      const id = nextId++
      waiting.set(id, resolve)
      parts.send({ type: 'admin-request', id, what: change })
    })
  const puller = createPuller({
    dataDir: parts.dataDir,
    shardId: self.shardId,
    codecs: parts.codecs,
    urls: parts.loadUrls,
    log,
    wallMs: () => Date.now(),
    waiting: () => info.bootstrap,
    isMember: () => info.members.length > 0,
    request,
  })
  const handle: ClusterHandle = {
    info: () => info,
    leaderUrl() {
      const host = info.members.find(({ id }) => id === info.leader)?.host ?? ''
      if (host === '') return ''
      return `${parts.apiScheme}://${host.includes(':') ? `[${host}]` : host}:${parts.apiPort()}`
    },
    request,
    pull: puller.start,
    pulled: puller.status,
    setPeers: (nodes) => parts.send({ type: 'dial', nodes }),
    registry: () => link.status(),
    resolver: () => resolver,
  }
  return {
    handle,
    onReplica(message) {
      if (message.type === 'admin-reply') {
        const answer = waiting.get(message.id)
        waiting.delete(message.id)
        answer?.(message.answer)
        return
      }
      if (message.type === 'bootstrap') {
        info = { ...info, bootstrap: message.status }
        return
      }
      const before = info
      info = message.status
      resolver = message.resolver
      if (before.role !== info.role || before.term !== info.term || before.isLeading !== info.isLeading) {
        link.roleChanged()
      }
      const now = performance.now()
      if (!info.isLeading || now - lookedMs < SEGMENTS_CHECK_MS) return
      lookedMs = now
      link.segmentsChanged()
    },
    start: () => link.start(),
    async stop() {
      await puller.stop()
      await new Promise<void>((resolve) => link.stop(resolve))
      close()
    },
  }
}

/** The status before the first message of the replica thread. */
function notYet({ nodeId }: Self, { zoneId, initialVoters, seeds }: ClusterNodeOptions): ClusterStatus {
  return {
    nodeId,
    zoneId,
    clusterId: '',
    role: 'follower',
    term: 0,
    leader: '',
    isLeading: false,
    members: [],
    isJoint: false,
    isRemoved: false,
    peers: [...new Set([...initialVoters, ...seeds])].filter((node) => node !== nodeId).sort(),
    stalenessMs: undefined,
    bootstrap: undefined,
    installing: undefined,
    awaitedLoad: undefined,
    operation: undefined,
    lastOperations: [],
    operationsEnded: {},
    isClockSuspect: false,
    transport: NO_TRANSPORT,
    elections: {},
    leaderChanges: 0,
    proposals: {},
    tickStalls: 0,
    transfers: {
      sending: 0,
      receiving: 0,
      sent: 0,
      received: 0,
      failed: 0,
      durationMs: undefined,
      loadMs: undefined,
      writePauseMs: undefined,
    },
  }
}

const NO_TRANSPORT = {
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
