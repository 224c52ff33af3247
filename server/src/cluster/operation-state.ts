/** State of the operation runner, shared by its parts. */
import type { Clock } from '@vacancy/shared'
import { END_STATES, type Environment, type Operation, type Plan } from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import type { WriteAudit } from '../access/audit.ts'
import type { Live } from '../live/state.ts'
import type { OperationTypes, PlanContext } from './operation-types.ts'
import type { ClusterDatabase } from './tables.ts'

export const OPERATIONS = {
  planMs: 60_000,
  /** How long an expired plan is kept, so that a late start can be answered with a new one. */
  planKeptMs: 600_000,
  plansMax: 2_000,
  answerCharsMax: 2_000,
  stepsMax: 64,
} as const

export type OperationsOptions = {
  readonly database: ClusterDatabase
  readonly live: Live
  readonly audit: WriteAudit
  readonly log: Log
  readonly clock: Clock
  readonly types: OperationTypes
  readonly environment: () => Environment
  /** Throws ProblemError 404 for an unknown shard. */
  readonly planContext: (shard: string, isAdmin: boolean) => PlanContext
  /** Resolves when the responding nodes of a shard have been read again, or do not answer in time. */
  readonly readAgain: (shard: string) => Promise<void>
  /** Called when an operation started, progressed or ended. */
  readonly onChange: (operation: Operation) => void
}

/** The operation runner: its dependencies and its state in memory. */
export type Operations = OperationsOptions & {
  /** Plans that can still be started, by id, oldest first. */
  readonly plans: Map<string, Plan>
  readonly active: Map<string, ActiveOperation>
  /** The last ended operation of each shard. */
  readonly ended: Map<string, Operation>
}

export type ActiveOperation = {
  operation: Operation
  readonly plan: Plan
  readonly abort: AbortController
  /** Serializes the writes. */
  writing: Promise<void>
  done: Promise<void>
}

export function runningOperations(operations: Operations): readonly Operation[] {
  return [...operations.active.values()].map(({ operation }) => operation).filter(isRunning)
}

export function isRunning({ state }: Operation): boolean {
  return !END_STATES.includes(state)
}

export function targetOf({ shard, node }: Pick<Operation, 'shard' | 'node'>): string {
  return node === null ? shard : `${shard}/${node}`
}

export function time(ms: number): string {
  return new Date(ms).toISOString()
}
