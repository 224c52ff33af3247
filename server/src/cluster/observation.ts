/** What the control plane has been told by a node, with the time of each answer: the input of derive.ts. */
import type { ClusterInfo, NodeCodecs, NodeInfo, NodeStatus, NodeView, ViewRole } from '@vacancy/shared/contract'
import type { NodeAddress } from './cluster.ts'

/** Paths that are asked again and again. */
export const SOURCES = [
  '/healthz',
  '/node-info',
  '/leader',
  '/peers',
  '/cluster/info',
  '/status',
  '/metrics',
  '/codecs',
  '/config',
] as const
export type SourcePath = (typeof SOURCES)[number]

type SourceError = { readonly code: string; readonly message: string; readonly since: number }

/** The last try of one path, good or bad. Times are wall milliseconds. */
export type Source = {
  readonly status: number | undefined
  readonly at: number | undefined
  readonly milliseconds: number | undefined
  readonly error: SourceError | undefined
  readonly body: string
}

export type Observed<T> = { readonly value: T; readonly at: number }

/** Of the configuration of a node, what changes how it is judged. Undefined where it cannot be read. */
export type NodeLimits = {
  readonly electionTimeoutMs: number
  readonly snapshotIntervalSeconds: number
  readonly snapshotTriggerCount: number
  readonly maintenanceHour: number
}

export type DigestMark = { readonly index: number; readonly value: string }

/** Nodes are polled at different moments and report their newest mark only: a few marks of each meet at some index. */
const DIGESTS_MAX = 64

/** The marks of a node with the one in this status. */
export function withDigest(marks: readonly DigestMark[], { digest }: NodeStatus): readonly DigestMark[] {
  const last = marks.at(-1)
  if (digest?.checked_value === undefined || digest.checked_index === 0) return marks
  const mark = { index: digest.checked_index, value: digest.checked_value }
  if (last?.index === mark.index && last.value === mark.value) return marks
  // A log that begins again is another history: its indexes mean other states.
  const earlier = last && mark.index <= last.index ? [] : marks
  return [...earlier, mark].slice(-DIGESTS_MAX)
}

/** Everything told by one node. Only the collector writes it, by replacing it. */
export type NodeObservation = {
  readonly address: NodeAddress
  readonly sources: { readonly [path in SourcePath]?: Source }
  readonly health: Observed<string> | undefined
  readonly nodeInfo: Observed<NodeInfo> | undefined
  /** By `/leader`. */
  readonly namesLeader: Observed<string> | undefined
  readonly info: Observed<ClusterInfo> | undefined
  readonly status: Observed<NodeStatus> | undefined
  readonly codecs: Observed<NodeCodecs> | undefined
  readonly rates: Observed<NodeView['rates']> | undefined
  /** Cores in use. */
  readonly cpu: number | undefined
  readonly connectionsLimit: number | undefined
  readonly limits: NodeLimits | undefined
  /** Answers 404 where only clustered nodes answer. */
  readonly isStandalone: boolean
  /** Rounds in a row without any answer. */
  readonly missed: number
  readonly answeredAt: number | undefined
  /** When it last answered a control plane before this one, and what it was then. */
  readonly before: { readonly at: number; readonly role: ViewRole | undefined } | undefined
  /** Why the last round had no answer. */
  readonly error: SourceError | undefined
  /** State digests that it noted to be compared, by index; oldest first. */
  readonly digests: readonly DigestMark[]
  /** Entries that it lacks, by its leader, over the last half minute; oldest first. */
  readonly lags: readonly { readonly at: number; readonly entries: number }[]
}

export function emptyObservation(address: NodeAddress): NodeObservation {
  return {
    address,
    sources: {},
    health: undefined,
    nodeInfo: undefined,
    namesLeader: undefined,
    info: undefined,
    status: undefined,
    codecs: undefined,
    rates: undefined,
    cpu: undefined,
    connectionsLimit: undefined,
    limits: undefined,
    isStandalone: false,
    missed: 0,
    answeredAt: undefined,
    before: undefined,
    error: undefined,
    digests: [],
    lags: [],
  }
}
