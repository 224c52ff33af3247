/**
 * Kinds of operations and what each has to give: how it is planned and how it runs. The runner (operations.ts) keeps
 * what was asked for, by whom, and how far it is; a kind knows what to send and when it is over.
 */
import type {
  Operation,
  OperationKind,
  OperationState,
  OperationStep,
  Plan,
  PlanRequest,
  ShardView,
} from '@vacancy/shared/contract'
import type { NodeObservation } from './observation.ts'

/** What is known when a plan is made. */
export type PlanContext = {
  readonly now: number
  readonly shard: ShardView
  /** What the nodes said themselves. */
  readonly seen: readonly NodeObservation[]
  /** The operation that runs on the shard. */
  readonly running: Operation | undefined
  /** Whether the caller may change the cluster. */
  readonly isAdmin: boolean
  /** Whether this control plane has a token that nodes take changes from. */
  readonly hasAdminToken: boolean
  /** Of transfers seen anywhere, for shards where none was. */
  readonly clusterPause: ShardView['writePause']
  /** Bridges of the shard, by the registry. */
  readonly bridges: readonly string[]
  /** Address of this control plane in copied commands. */
  readonly baseUrl: string
}

/** A plan without what the runner adds: id, times, basis, confirmation. */
export type PlanDraft = Pick<
  Plan,
  'node' | 'title' | 'action' | 'before' | 'after' | 'effects' | 'checks' | 'writePause' | 'commands' | 'alternatives'
> & {
  /** Data are removed or replaced: level 3. */
  readonly removesData?: boolean
  /** What level 3 asks to be typed; the shard otherwise. */
  readonly confirmText?: string
  /** What else the plan was computed from; when it changes, the plan is out of date. */
  readonly basis?: string
  /** It begins `armed`, and its run says when it is requested. */
  readonly isArmed?: boolean
}

/** What a run is given. Every change is on disk before the promise resolves. */
export type Run = {
  operation(): Operation
  readonly plan: Plan
  /** The process was started anew meanwhile: what was to be sent was, or may have been. Only look. */
  readonly isResumed: boolean
  /** Aborted when somebody cancels, or when the control plane stops; then the run ends without a word. */
  readonly signal: AbortSignal
  now(): number
  /** Sets fields; `state` of an end goes through `end`. */
  set(change: Partial<Operation>): Promise<void>
  /** Adds a step or changes one. A step that gets `done` or `failed` has its time set. */
  step(id: string, change: Partial<Omit<OperationStep, 'id'>>): Promise<void>
  end(state: EndState, message: string): Promise<void>
}

export type EndState = Exclude<OperationState, 'armed' | 'requested' | 'accepted' | 'verifying'>

export type OperationType = {
  plan(request: PlanRequest, context: PlanContext): PlanDraft | Promise<PlanDraft>
  /** Resolves when the operation is over; ends it itself. */
  run(run: Run): Promise<void>
}

export type OperationTypes = Map<OperationKind, OperationType>
