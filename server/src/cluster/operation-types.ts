/**
 * Operation types: each implements planning and running. The runner (operations.ts) stores the request, the principal
 * and the progress; a type knows what to send and when the operation is over.
 */
import type { Caller } from '@vacancy/shared/api/route'
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

/** The input of a plan. */
export type PlanContext = {
  readonly now: number
  readonly shard: ShardView
  /** The reports of the nodes. */
  readonly observations: readonly NodeObservation[]
  /** The operation that runs on the shard. */
  readonly running: Operation | undefined
  /** Whether the requester may change the cluster. */
  readonly isAdmin: boolean
  /** For the audit log, where a plan begins something. */
  readonly caller?: Caller
  /** Whether this control plane has an admin token of the nodes. */
  readonly hasAdminToken: boolean
  /** Of observed transfers of all shards, for shards without one. */
  readonly clusterPause: ShardView['writePause']
  /** Bridges of the shard, from the registry. */
  readonly bridges: readonly string[]
  /** The address of this control plane for copied commands. */
  readonly baseUrl: string
}

/** A plan without the fields that the runner adds: id, times, basis, confirmation. */
export type PlanDraft = Pick<
  Plan,
  'node' | 'title' | 'action' | 'before' | 'after' | 'effects' | 'checks' | 'writePause' | 'commands' | 'alternatives'
> & {
  readonly changes?: Plan['changes']
  /** It removes or replaces data: confirmation level 3. */
  readonly removesData?: boolean
  /** It removes so much that the text is typed in every environment. */
  readonly removesMuch?: boolean
  /** The text to type at level 3; by default the shard. */
  readonly confirmText?: string
  /** Further inputs of the plan; when they change, the plan is out of date. */
  readonly basis?: string
  /** What checks found that take time; when it changes, the plan is out of date, too. */
  readonly found?: string
  /** It starts as `armed`; its run decides when to request it. */
  readonly isArmed?: boolean
}

/** The interface of a run to the runner. Every change is stored before its promise resolves. */
export type Run = {
  operation(): Operation
  readonly plan: Plan
  /** The process was restarted: the request may have been sent. Only observe. */
  readonly isResumed: boolean
  /** Aborted on cancellation or shutdown; the run then returns without ending the operation. */
  readonly signal: AbortSignal
  now(): number
  /** Sets fields; end states are set with `end`. */
  set(change: Partial<Operation>): Promise<void>
  /** Adds or changes a step. A step that becomes `done` or `failed` gets its time. */
  step(id: string, change: Partial<Omit<OperationStep, 'id'>>): Promise<void>
  end(state: EndState, message: string): Promise<void>
}

export type EndState = Exclude<OperationState, 'armed' | 'requested' | 'accepted' | 'verifying'>

export type OperationType = {
  plan(request: PlanRequest, context: PlanContext): PlanDraft | Promise<PlanDraft>
  /** Runs the operation until it has ended it. */
  run(run: Run): Promise<void>
}

export type OperationTypes = Map<OperationKind, OperationType>
