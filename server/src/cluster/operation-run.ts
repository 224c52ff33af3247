/** Running an operation: every change is stored, reported to followers, and its end is audited. */
import { assert } from '@vacancy/shared'
import { SYSTEM_CALLER } from '@vacancy/shared/api/route'
import type { Operation, OperationState, Plan } from '@vacancy/shared/contract'
import { touchTopic } from '../live/topics.ts'
import { type ActiveOperation, isRunning, OPERATIONS, type Operations, targetOf, time } from './operation-state.ts'
import type { Run } from './operation-types.ts'

export function beginRun(operations: Operations, operation: Operation, plan: Plan, isResumed: boolean): void {
  const running: ActiveOperation = {
    operation,
    plan,
    abort: new AbortController(),
    writing: Promise.resolve(),
    done: Promise.resolve(),
  }
  operations.active.set(operation.id, running)
  reportChange(operations, running)
  const kind = operations.types.get(operation.kind)
  assert(kind !== undefined, `the operation type ${operation.kind} is registered`)
  running.done = kind
    .run(runOf(operations, running, isResumed))
    .catch(async (error: unknown) => {
      operations.log.error({ err: error, operation: operation.id }, 'an operation failed')
      if (isRunning(running.operation)) {
        await endRun(
          operations,
          running,
          'unconfirmed',
          `Internal error of the control plane: ${(error as Error).message}. See its log.`,
        )
      }
    })
    .finally(() => {
      operations.active.delete(operation.id)
    })
}

function runOf(operations: Operations, running: ActiveOperation, isResumed: boolean): Run {
  const measured = new Set(
    isResumed ? running.operation.steps.flatMap(({ id, state }) => (state === 'done' ? [id] : [])) : [],
  )
  return {
    operation: () => running.operation,
    plan: running.plan,
    isResumed,
    signal: running.abort.signal,
    now: () => operations.clock.wallMs(),
    set: (change) => writeChange(operations, running, change),
    step(id, change) {
      const { steps, requestedAt } = running.operation
      const known = steps.find((step) => step.id === id)
      // Steps measured before a restart of the control plane are not measured again, with worse precision.
      if (measured.has(id)) return Promise.resolve()
      const now = operations.clock.wallMs()
      const isOver = (change.state === 'done' || change.state === 'failed') && change.state !== known?.state
      const step = {
        ...{ id, text: id, state: 'running' as const, at: null, milliseconds: null, evidence: '' },
        ...known,
        ...(isOver && { at: time(now), milliseconds: requestedAt === null ? null : now - Date.parse(requestedAt) }),
        ...change,
      }
      const next = known ? steps.map((each) => (each.id === id ? step : each)) : [...steps, step]
      return writeChange(operations, running, { steps: next.slice(0, OPERATIONS.stepsMax) })
    },
    end: (state, message) => endRun(operations, running, state, message),
  }
}

export async function endRun(
  operations: Operations,
  running: ActiveOperation,
  state: OperationState,
  message: string,
): Promise<void> {
  const endedAt = time(operations.clock.wallMs())
  await writeChange(operations, running, { state, message, notice: '', endedAt, cancellable: false })
  const { operation } = running
  operations.ended.set(operation.shard, operation)
  await operations.audit({
    ...SYSTEM_CALLER,
    action: 'operation.end',
    target: targetOf(operation),
    result: state,
    detail: message,
    operation: operation.id,
  })
}

/** Applied in memory immediately, stored when it resolves. */
function writeChange(operations: Operations, running: ActiveOperation, change: Partial<Operation>): Promise<void> {
  const answer = change.answer?.slice(0, OPERATIONS.answerCharsMax)
  running.operation = { ...running.operation, ...change, ...(answer !== undefined && { answer }) }
  const row = rowOf(running.operation)
  running.writing = running.writing.then(async () => {
    await operations.database.updateTable('operations').set(row).where('id', '=', row.id).execute()
  })
  reportChange(operations, running)
  return running.writing
}

function reportChange(operations: Operations, { operation }: ActiveOperation): void {
  touchTopic(operations.live, `op:${operation.id}`)
  touchTopic(operations.live, 'ops')
  operations.onChange(operation)
}

export function rowOf(operation: Operation) {
  return {
    id: operation.id,
    kind: operation.kind,
    shard: operation.shard,
    state: operation.state,
    ended_at: operation.endedAt === null ? null : Date.parse(operation.endedAt),
    document: JSON.stringify(operation),
  }
}
