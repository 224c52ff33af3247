/** The reports of a node with the time of each response: the input of derive.ts. */
import type { ClusterInfo, NodeCodecs, NodeInfo, NodeStatus, NodeView, ViewRole } from '@vacancy/shared/contract'
import type { NodeAddress } from './cluster.ts'

/** Paths that are polled. */
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

/** The last request of one path, successful or not. Times are wall milliseconds. */
export type Source = {
  readonly status: number | undefined
  readonly at: number | undefined
  readonly milliseconds: number | undefined
  readonly error: SourceError | undefined
  readonly body: string
}

type Observed<T> = { readonly value: T; readonly at: number }

/** Configured limits that affect a node's state. Undefined when its configuration cannot be read. */
export type NodeLimits = {
  readonly electionTimeoutMs: number
  readonly snapshotIntervalSeconds: number
  readonly snapshotTriggerCount: number
  readonly maintenanceHour: number
}

export type DigestMark = { readonly index: number; readonly value: string }

/** Nodes are polled at different times and report only their newest digest mark. A few of each node suffice for a common index. */
const DIGESTS_MAX = 64

/** The marks of a node, with the one of this status added. */
export function withDigest(marks: readonly DigestMark[], { digest }: NodeStatus): readonly DigestMark[] {
  const last = marks.at(-1)
  if (digest?.checked_value === undefined || digest.checked_index === 0) return marks
  const mark = { index: digest.checked_index, value: digest.checked_value }
  if (last?.index === mark.index && last.value === mark.value) return marks
  // A log that restarts is a different history: its indexes belong to different states.
  const earlier = last && mark.index <= last.index ? [] : marks
  return [...earlier, mark].slice(-DIGESTS_MAX)
}

/** All reports of one node. Only the collector writes it, by replacing it. */
export type NodeObservation = ReturnType<typeof emptyObservation>

export function emptyObservation(address: NodeAddress) {
  return {
    address,
    sources: {} as { readonly [path in SourcePath]?: Source },
    health: undefined as Observed<string> | undefined,
    nodeInfo: undefined as Observed<NodeInfo> | undefined,
    /** From `/leader`. */
    namesLeader: undefined as Observed<string> | undefined,
    info: undefined as Observed<ClusterInfo> | undefined,
    status: undefined as Observed<NodeStatus> | undefined,
    codecs: undefined as Observed<NodeCodecs> | undefined,
    rates: undefined as Observed<NodeView['rates']> | undefined,
    /** Cores in use. */
    cpu: undefined as number | undefined,
    connectionsLimit: undefined as number | undefined,
    limits: undefined as NodeLimits | undefined,
    /** Responds with 404 to the paths of clustered nodes. */
    isStandalone: false,
    /** Consecutive rounds without any response. */
    missed: 0,
    answeredAt: undefined as number | undefined,
    /** When it last responded to a previous control plane process, and its role then. */
    before: undefined as { readonly at: number; readonly role: ViewRole | undefined } | undefined,
    /** Why the last round had no response. */
    error: undefined as SourceError | undefined,
    /** Its state digests for comparison, by index, oldest first. */
    digests: [] as readonly DigestMark[],
    /** Missing entries as reported by its leader over the last 30 s, oldest first. */
    lags: [] as readonly { readonly at: number; readonly entries: number }[],
  }
}
