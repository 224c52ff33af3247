/**
 * A client of a chaos run: writes and reads a few hot packages and many cold ones, and records each call and return
 * (records.ts).
 *
 * Three kinds. `library`: the client library assigns request keys and retries until its deadline. `own`: keys are
 * assigned here, a write is retried until its outcome is known, and some completed writes are repeated, which must
 * return the same result. `keyless`: no retries.
 */

import { randomBytes } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { connect, type NodeAddress, type VacancyClient } from '@vacancy/client'
import { between, betweenDecades, chance, pick, type Random, streamOf } from '@vacancy/testkit/random'
import type { OperationKind } from '../sim/history.ts'
import {
  type Answer,
  attempt,
  type Board,
  noteCall,
  noteRepeat,
  noteReturn,
  type OperationCall,
  perform,
  type Recorder,
  type RequestKey,
} from './recorder.ts'
import { type Ground, isConserved, packagesOf } from './records.ts'

export type ClientPlan = {
  readonly client: number
  readonly kind: 'library' | 'own' | 'keyless'
  readonly seed: number
  readonly board: Board
  readonly nodes: readonly NodeAddress[]
  readonly ground: Ground
  /** Concurrent operations. */
  readonly lanes: number
  readonly thinkMsMax: number
}

const HOT_PACKAGES = 4
const DEADLINES_MS = [1_000, 2_000, 4_000] as const
const READS_FROM = ['followers', 'any', 'leader'] as const
/** Outcomes that are not known this long after the end stay unknown. */
const FATE_MS = 45_000
/** One in this many completed writes is repeated. */
const REPEATS = 12
/** After this many inconclusive replies in a row, the session is considered evicted. */
const FORGOTTEN_MAX = 20
/** A new session starts after this many requests; its window is 256 (docs/design/consensus.md#request-keys). */
const SESSION_WRITES = 500

export type ChaosClient = {
  readonly plan: ClientPlan
  readonly client: VacancyClient
  readonly recorder: Recorder
  readonly ground: Ground
  overMs: number
}

export async function connectClient(plan: ClientPlan): Promise<ChaosClient> {
  const random = streamOf(plan.seed, `client ${plan.client}`)
  const client = await connect({
    nodes: plan.nodes,
    reads: READS_FROM[plan.client % READS_FROM.length] as (typeof READS_FROM)[number],
    requestKeys: plan.kind !== 'keyless',
    deadlineMs: pick(random, DEADLINES_MS),
    connectDeadlineMs: 60_000,
  })
  return { plan, client, recorder: plan, ground: plan.ground, overMs: 0 }
}

/** Works until the run is over. */
export async function runClient(self: ChaosClient): Promise<void> {
  const { seed, client, lanes } = self.plan
  await Promise.all(Array.from({ length: lanes }, (_, lane) => work(self, streamOf(seed, `${client}/${lane}`))))
}

async function work(self: ChaosClient, random: Random): Promise<void> {
  const { recorder, plan } = self
  let session: Session | undefined
  while (!recorder.board.isOver) {
    const operation = nextOperation(self, random)
    if (operation.kind === 'read') await read(self, random, operation)
    else if (plan.kind === 'own') session = await writeUntilKnown(self, random, operation, session)
    else await perform(self, operation, plan.kind)
    await wait(betweenDecades(random, 1, plan.thinkMsMax))
  }
}

const CONSERVED_KINDS: readonly OperationKind[] = [
  'decrease',
  'decrease',
  'decrease',
  'increase',
  'increase',
  'read',
  'read',
]
const KINDS: readonly OperationKind[] = [...CONSERVED_KINDS, ...CONSERVED_KINDS, 'set', 'set', 'delete']

function nextOperation({ plan, recorder }: ChaosClient, random: Random): OperationCall {
  const count = packagesOf(plan.ground)
  // The same for all clients, and changing, so that each history stays short enough to be checked.
  const hot = streamOf(plan.seed, `hot ${recorder.board.epoch} ${random.below(HOT_PACKAGES)}`).below(count)
  const key = chance(random, 0.5) ? hot : random.below(count)
  const kind = pick(random, isConserved(key) ? CONSERVED_KINDS : KINDS)
  // Few distinct amounts, so that writes of unknown outcome are interchangeable.
  const amount =
    kind === 'set' ? between(random, 20, 200) : kind === 'read' || kind === 'delete' ? 0 : between(random, 1, 3)
  return { key, kind, amount }
}

async function read(self: ChaosClient, random: Random, operation: OperationCall): Promise<void> {
  const draw = random.below(10)
  if (draw < 4) await perform(self, operation, 'linearizable', { linearizable: true })
  else if (draw < 6) await perform(self, operation, 'default', {}, 10_000)
  else if (draw < 8) {
    const maxStalenessMs = betweenDecades(random, 50, 5_000)
    await perform(self, operation, 'stale', { maxStalenessMs }, maxStalenessMs)
  } else {
    const minIndex = self.recorder.board.index
    await perform(self, operation, 'index', { minIndex }, minIndex)
  }
}

/**
 * Used by one lane, one write at a time, so that no request overtakes its first number
 * (docs/design/consensus.md#request-keys).
 */
type Session = { readonly id: string; nextNumber: number }

/** @returns the session for the next write; undefined when a new one is needed */
async function writeUntilKnown(
  self: ChaosClient,
  random: Random,
  operation: OperationCall,
  before: Session | undefined,
): Promise<Session | undefined> {
  const { recorder, plan, client } = self
  const session = before ?? { id: randomBytes(16).toString('hex'), nextNumber: 1 }
  const requestKey: RequestKey = { session: session.id, requestNumber: session.nextNumber++ }
  const id = noteCall(recorder, operation, 'own')
  let answer: Answer
  let forgotten = 0
  do {
    answer = await attempt(client, plan.ground, operation, { requestKey })
    // A leader that could not determine the outcome in time replies like one that has evicted the session.
    if (answer.code === '408' && ++forgotten > FORGOTTEN_MAX) break
    if (answer.outcome === 'none') answer = { ...answer, outcome: 'unknown' }
    if (answer.outcome === 'unknown') await wait(50)
  } while (answer.outcome === 'unknown' && mayGoOn(self))
  noteReturn(recorder, id, answer)
  if (answer.outcome === 'unknown') return undefined
  if (random.below(REPEATS) === 0) {
    const { board } = recorder
    const [calledAt, restores] = [board.moment++, board.restores.length]
    const again = await attempt(client, plan.ground, operation, { requestKey })
    // Restored data may not know the key: then it is a write of its own.
    if (board.restores.length > restores) Object.assign(noteCall(recorder, operation, 'own'), { calledAt })
    else if (again.outcome !== 'unknown' && again.outcome !== 'none') noteRepeat(recorder, id, answer, again)
  }
  return session.nextNumber > SESSION_WRITES ? undefined : session
}

function mayGoOn(self: ChaosClient): boolean {
  if (!self.recorder.board.isOver) return true
  self.overMs ||= performance.now()
  return performance.now() - self.overMs < FATE_MS
}
