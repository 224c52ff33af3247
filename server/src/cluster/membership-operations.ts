/**
 * The operation types transfer, promote, demote, and transfer followed by demote. Each request is sent once, to the
 * leader, and is done when a majority shows the change.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { CATCH_UP } from '@vacancy/shared'
import { CLUSTER_TEXTS, type OperationStep } from '@vacancy/shared/contract'
import { NodeHttpError } from '../http/node-http.ts'
import type { NodeAddress } from './cluster.ts'
import { lagText } from './derive.ts'
import {
  type MemberTrack,
  memberEvidence,
  memberOutcome,
  OUTCOME_LIMITS,
  type Outcome,
  observeTransfer,
  type ShardObservation,
  type TransferTrack,
  transferOutcome,
} from './operation-outcome.ts'
import type { EndState, OperationType, OperationTypes, Run } from './operation-types.ts'
import { planDemote, planPromote, planTransfer, planTransferThenDemote } from './plans.ts'

/** How long an unconfirmed operation is still watched. */
export const LATE_MS = 10 * 60_000
const NO_ANSWER_MS = 3_000
const SEND_MS = 10_000
const POLL_MS = 200
const RESUMED_MS = 10_000

export type MembershipDeps = {
  /** The current observation of a shard; undefined while the shard is unknown. */
  readonly observe: (shard: string) => ShardObservation | undefined
  readonly onShard: (listener: (id: string) => void) => () => void
  readonly watchClosely: (shard: string) => () => void
  readonly address: (shard: string, node: string) => NodeAddress | undefined
  /** @throws NodeHttpError */
  readonly send: (node: NodeAddress, path: string, body: object | undefined, timeoutMs: number) => Promise<Answer>
  readonly keepPause: (operation: string, shard: string, milliseconds: number) => Promise<void>
}

type Answer = { readonly status: number; readonly body: string }

/** The request to send, and the path of engines that lack the first one. */
type Request = { readonly path: string; readonly body: object; readonly engine: string; readonly expects: string }

export function membershipTypes(deps: MembershipDeps): OperationTypes {
  const kinds: [Parameters<OperationTypes['set']>[0], OperationType][] = [
    ['transfer', { plan: planTransfer, run: (run) => runTransfer(deps, run) }],
    ['promote', { plan: planPromote, run: (run) => runMember(deps, run, 'promote') }],
    ['demote', { plan: planDemote, run: (run) => runMember(deps, run, 'demote') }],
    ['transfer-then-demote', { plan: planTransferThenDemote, run: (run) => runBoth(deps, run) }],
  ]
  return new Map(kinds)
}

async function runTransfer(deps: MembershipDeps, run: Run): Promise<void> {
  const { shard, node, state } = run.operation()
  if (state === 'armed' && !(await waitForLag(deps, run, shard, node as string))) return
  const { leader } = run.plan.basis
  const undo = leader === null ? null : ({ kind: 'transfer', shard, node: leader } as const)
  const half = transferHalf(deps, run, node as string, '')
  await finish(deps, run, half, await follow(deps, run, half), async () => {
    await run.set({ undo })
    const { pauseMs } = run.operation()
    if (pauseMs !== null) await deps.keepPause(run.operation().id, shard, pauseMs)
  })
}

async function runMember(deps: MembershipDeps, run: Run, kind: 'promote' | 'demote'): Promise<void> {
  const { shard, node } = run.operation()
  const half = memberHalf(deps, run, kind, node as string, { prefix: '', requested: 'Requested', isBound: true })
  await finish(deps, run, half, await follow(deps, run, half), () =>
    run.set({ undo: { kind: kind === 'promote' ? 'demote' : 'promote', shard, node: node as string } }),
  )
}

async function runBoth(deps: MembershipDeps, run: Run): Promise<void> {
  const { shard, node } = run.operation()
  const target = run.plan.after.leader as string
  const isSecond = run.operation().steps.some(({ id, state }) => id === 'demote-requested' && state !== 'waiting')
  if (!isSecond) {
    const first = transferHalf(deps, run, target, '')
    const outcome = await follow(deps, run, first)
    if (outcome === undefined) return
    if (outcome.end !== 'done') return await finish(deps, run, first, outcome, async () => {})
    const { pauseMs, id } = run.operation()
    if (pauseMs !== null) await deps.keepPause(id, shard, pauseMs)
  }
  const second = memberHalf(deps, run, 'demote', node as string, {
    ...{ prefix: 'demote-', requested: 'Demotion requested', isBound: false },
  })
  await finish(deps, run, second, await follow(deps, run, second, !isSecond), async () => {})
}

/** Ends the operation. An unconfirmed one is still watched. */
async function finish(
  deps: MembershipDeps,
  run: Run,
  half: Half,
  outcome: End | undefined,
  onDone: () => Promise<void>,
): Promise<void> {
  if (outcome === undefined) return
  if (outcome.end === 'done') await onDone()
  if (run.operation().state !== 'unconfirmed') await run.end(outcome.end, outcome.message)
  if (outcome.end !== 'unconfirmed') return
  const late = await watchLate(deps, run, half)
  if (late === undefined) return
  if (late.end === 'done') await onDone()
  await run.end(late.end, `${late.message}, later than usual`)
}

// Armed

/** True once the target is close enough; otherwise the operation has been ended. */
async function waitForLag(deps: MembershipDeps, run: Run, shard: string, node: string): Promise<boolean> {
  const until = Date.parse(run.operation().createdAt) + CATCH_UP.waitMs
  await run.set({ cancellable: true })
  for (;;) {
    if (run.signal.aborted) return false
    const observation = deps.observe(shard)
    const target = observation?.shard.nodes.find(({ id }) => id === node)
    const lag = target?.lagEntries ?? null
    if (observation?.shard.leader !== run.plan.basis.leader) {
      const leads = observation?.shard.leader === null ? 'there is none' : `it is ${observation?.shard.leader}`
      await run.end('cancelled', `Not started: the leader changed, now ${leads}. Make a new plan.`)
      return false
    }
    if (target?.health === 'active_follower' && lag !== null && lag <= CATCH_UP.entriesMax) break
    if (run.now() > until) {
      await run.end('cancelled', `Not started: ${node} did not catch up within ${CATCH_UP.waitText}.`)
      return false
    }
    const message = `Waiting until ${node} is ${CATCH_UP.entriesText}: ${lag === null ? 'lag not known' : lagText(lag, null)}`
    if (run.operation().message !== message) await run.set({ message })
    await pause(POLL_MS, run.signal)
  }
  return !run.signal.aborted
}

// Halves

export type End = { readonly end: EndState; readonly message: string }

/** One request and the observations that prove its effect. */
export type Half = {
  readonly prefix: string
  /** The text of its first step. */
  readonly requested: string
  /** Sent only to the leader of the plan, with its term: nothing of this operation moves it. */
  readonly isBound: boolean
  readonly request: Request
  readonly sendTo: () => string | null
  /** Evaluates a new observation; completed steps are stored. */
  readonly observe: (observation: ShardObservation) => Promise<void>
  readonly outcome: (observation: ShardObservation, sinceRequestMs: number) => Outcome
  readonly evidence: (observation: ShardObservation) => string
}

function transferHalf(deps: MembershipDeps, run: Run, target: string, prefix: string): Half {
  const { shard } = run.operation()
  const { leader, term } = run.plan.basis
  let track: TransferTrack = {
    target,
    oldLeader: leader,
    term,
    lastChange: deps.observe(shard)?.shard.lastChange ?? null,
    oldLeaderAt: undefined,
    steppedDown: undefined,
    leads: undefined,
    confirmed: undefined,
  }
  const stepOf = async (
    id: string,
    text: string,
    before: unknown,
    sighting: { at: number; evidence: string } | undefined,
  ) => {
    // A step measured before a restart keeps its time.
    const isMeasured = run.operation().steps.some((step) => step.id === prefix + id && step.state === 'done')
    if (before !== undefined || sighting === undefined || isMeasured) return
    await run.step(prefix + id, { text, state: 'done', evidence: sighting.evidence })
  }
  return {
    ...{ prefix, requested: 'Requested', isBound: prefix === '' },
    request: {
      path: '/cluster/transfer-leader',
      body: { target_node_id: target, ...expectedTerm(run, prefix === '') },
      engine: `/admin/transfer-leader/${encodeURIComponent(target)}`,
      expects: CLUSTER_TEXTS.transfer,
    },
    sendTo: () => deps.observe(shard)?.shard.leader ?? leader,
    async observe(observation) {
      const previous = track
      track = observeTransfer(track, observation)
      await stepOf('stepped-down', `${leader} stepped down`, previous.steppedDown, track.steppedDown)
      await stepOf('leads', `${target} leads`, previous.leads, track.leads)
      const confirms =
        track.confirmed?.evidence === 'no writes to confirm' ? 'No writes to confirm' : 'Writes confirmed'
      await stepOf('writes', confirms, previous.confirmed, track.confirmed)
      const { requestedAt, pauseMs } = run.operation()
      if (!previous.leads && track.leads && track.oldLeaderAt !== undefined && pauseMs === null) {
        // The old leader was last observed before the request; it accepted writes at least until then.
        const from = Math.max(track.oldLeaderAt, requestedAt === null ? 0 : Date.parse(requestedAt))
        await run.set({ pauseMs: Math.max(0, track.leads.at - from) })
      }
    },
    outcome: (observation, since) => transferOutcome(track, observation, since),
    evidence: ({ shard: view }) =>
      view.nodes
        .map((node) => `${node.id} names ${node.namesLeader === '' ? 'no leader' : (node.namesLeader ?? '?')}`)
        .join(', '),
  }
}

export function memberHalf(
  deps: MembershipDeps,
  run: Run,
  kind: 'promote' | 'demote',
  node: string,
  { prefix, requested, isBound }: Pick<Half, 'prefix' | 'requested' | 'isBound'>,
): Half {
  const { shard } = run.operation()
  const track: MemberTrack = { kind, node, lastChange: deps.observe(shard)?.shard.lastChange ?? null }
  let isShown = false
  return {
    ...{ prefix, requested, isBound },
    request: {
      path: kind === 'promote' ? '/cluster/promote-learner' : '/cluster/demote-voter',
      body: { node_id: node, ...expectedTerm(run, isBound) },
      engine: `/admin/${kind === 'promote' ? 'add' : 'remove'}-member/${encodeURIComponent(node)}`,
      expects: CLUSTER_TEXTS[kind],
    },
    sendTo: () => deps.observe(shard)?.shard.leader ?? run.plan.basis.leader,
    async observe(observation) {
      const { isDone, evidence } = memberEvidence(track, observation)
      if (isShown || !isDone) return
      isShown = true
      const text = kind === 'promote' ? `${node} is a voter` : `${node} is not a voter`
      await run.step(`${prefix}listed`, { text, state: 'done', evidence })
    },
    outcome: (observation, since) => memberOutcome(track, observation, since),
    evidence: (observation) => {
      const { change } = observation.shard
      return change ? `the shard reports: ${change.step || change.kind}` : memberEvidence(track, observation).evidence
    },
  }
}

/**
 * Sends the request of a half, unless it was sent before, and observes the shard until it is over.
 *
 * @returns undefined when the control plane stops: it continues after the next start
 */
export async function follow(
  deps: MembershipDeps,
  run: Run,
  half: Half,
  isFresh = !run.isResumed,
): Promise<End | undefined> {
  const { shard, state, message } = run.operation()
  // It ended before the restart and is only watched.
  if (state === 'unconfirmed') return { end: state, message }
  const stopWatching = deps.watchClosely(shard)
  const wake = createWake(deps, shard)
  try {
    const stepRequested: OperationStep | undefined = run
      .operation()
      .steps.find(({ id }) => id === `${half.prefix}requested`)
    const sending: { sent: Sent } = { sent: { state: 'gone' } }
    if (isFresh) {
      const leader = half.sendTo()
      if (leader === null) return { end: 'refused', message: 'Nothing was sent: the shard has no leader.' }
      const planned = run.plan.basis.leader
      if (half.isBound && planned !== null && leader !== planned) {
        const message = `Nothing was sent: ${leader} leads now, the plan was made for ${planned}. Make a new plan.`
        return { end: 'refused', message }
      }
      const since = run.now()
      // Stored before it is sent, so that it is never sent a second time.
      await run.set({
        state: half.prefix === '' ? 'requested' : run.operation().state,
        cancellable: false,
        message: `Request sent to ${leader}`,
        ...(half.prefix === '' && { requestedAt: new Date(since).toISOString() }),
      })
      await run.step(`${half.prefix}requested`, {
        text: half.requested,
        state: 'done',
      })
      sending.sent = { state: 'waiting', leader }
      void sendOnce(deps, shard, leader, half.request).then((answer) => {
        sending.sent = answer
        wake.now()
      })
    } else if (run.operation().state !== 'verifying') {
      await run.set({
        state: 'verifying',
        message: 'The control plane was restarted: checking the outcome of the request',
      })
    }
    const requestedAt = Date.parse(stepRequested?.at ?? run.operation().requestedAt ?? run.operation().createdAt)
    // After a restart the nodes must be polled first, however long ago the request was sent.
    const since = isFresh ? run.now() : Math.max(requestedAt, run.now() - OUTCOME_LIMITS.endMs + RESUMED_MS)
    for (;;) {
      if (run.signal.aborted) return undefined
      const { sent } = sending
      const ended = await readAnswer(run, half, sent)
      if (ended) return ended
      if (sent.state === 'answered' || sent.state === 'lost') sending.sent = { state: 'gone' }
      const observation = deps.observe(shard)
      if (observation) {
        await half.observe(observation)
        const outcome = half.outcome(observation, run.now() - since)
        if (outcome.end !== undefined) return outcome
        await reportProgress(run, half, observation, sent, run.now() - since)
      }
      await wake.wait(run.signal)
    }
  } finally {
    stopWatching()
    wake.close()
  }
}

export async function watchLate(deps: MembershipDeps, run: Run, half: Half): Promise<End | undefined> {
  const { shard, endedAt } = run.operation()
  const until = Date.parse(endedAt as string) + LATE_MS
  const wake = createWake(deps, shard)
  try {
    while (!run.signal.aborted && run.now() < until) {
      const observation = deps.observe(shard)
      if (observation) {
        await half.observe(observation)
        const outcome = half.outcome(observation, OUTCOME_LIMITS.elsewhereMs)
        if (outcome.end === 'done' || outcome.end === 'elsewhere') return outcome
      }
      await wake.wait(run.signal)
    }
    return undefined
  } finally {
    wake.close()
  }
}

// The request

/** The term of the plan. After a change of the leader that the operation made itself there is none to expect. */
function expectedTerm({ plan }: Run, isBound: boolean): { readonly expected_term?: number } {
  return isBound && plan.basis.term !== null ? { expected_term: plan.basis.term } : {}
}

type Sent =
  | { readonly state: 'gone' }
  | { readonly state: 'waiting'; readonly leader: string }
  | { readonly state: 'answered'; readonly leader: string; readonly answer: Answer }
  /** It was sent; its outcome is unknown. */
  | { readonly state: 'lost'; readonly leader: string; readonly why: string }
  | { readonly state: 'unsent'; readonly leader: string; readonly why: string }

const NEVER_LEFT = new Set(['refused', 'name-not-found', 'unreachable', 'address'])

async function sendOnce(deps: MembershipDeps, shard: string, leader: string, request: Request): Promise<Sent> {
  const node = deps.address(shard, leader)
  if (!node || node.apiUrl === '') return { state: 'unsent', leader, why: 'its address is unknown' }
  try {
    let answer = await deps.send(node, request.path, request.body, SEND_MS)
    // An engine without these paths did not accept it; an unknown node is a refusal.
    const isPathUnknown =
      (answer.status === 404 || answer.status === 405) && !/unknown node|standalone/.test(answer.body)
    if (isPathUnknown) answer = await deps.send(node, request.engine, undefined, SEND_MS)
    // A node of an earlier version, which refuses what it does not know and did nothing.
    else if (answer.status === 400 && answer.body.includes('expected_term')) {
      const { expected_term: _, ...body } = request.body as { readonly expected_term?: number }
      answer = await deps.send(node, request.path, body, SEND_MS)
    }
    return { state: 'answered', leader, answer }
  } catch (error) {
    if (!(error instanceof NodeHttpError)) throw error
    return { state: NEVER_LEFT.has(error.code) ? 'unsent' : 'lost', leader, why: error.message }
  }
}

async function readAnswer(run: Run, half: Half, sent: Sent): Promise<End | undefined> {
  if (sent.state === 'unsent') {
    await run.step(`${half.prefix}accepted`, { text: 'Not sent', state: 'failed', evidence: sent.why })
    return { end: 'refused', message: `${sent.leader} is unreachable: ${sent.why}. Nothing was sent.` }
  }
  if (sent.state === 'lost') {
    await run.set({
      state: 'verifying',
      answer: `no response: ${sent.why}`,
      message: `No response from ${sent.leader}; checking the outcome`,
    })
    await run.step(`${half.prefix}accepted`, {
      text: 'No response',
      state: 'skipped',
      evidence: `${sent.leader}: ${sent.why}`,
    })
    return undefined
  }
  if (sent.state !== 'answered') return undefined
  const { status, body } = sent.answer
  const text = textOf(body)
  if (status < 200 || status >= 300) {
    await run.set({ answer: `${status} ${text}` })
    await run.step(`${half.prefix}accepted`, {
      text: 'Refused',
      state: 'failed',
      evidence: `${sent.leader} answered ${status}: ${text}`,
    })
    return { end: 'refused', message: `${sent.leader} answered ${status}: ${text}` }
  }
  const notUsual = text === half.request.expects ? '' : ` (usually "${half.request.expects}")`
  await run.set({ state: 'accepted', answer: `${status} ${text}`, message: `${sent.leader} accepted the request` })
  await run.step(`${half.prefix}accepted`, {
    text: 'Accepted',
    state: 'done',
    evidence: `${sent.leader} answered "${text}"${notUsual}`,
  })
  await run.set({ state: 'verifying', message: 'Waiting for confirmation by the nodes' })
  return undefined
}

/** The body of a response as text of bounded length. */
function textOf(body: string): string {
  const text = body.trim().slice(0, 500)
  try {
    const { error } = JSON.parse(text) as { error?: unknown }
    return typeof error === 'string' ? error : text
  } catch {
    // Not JSON: shown as text.
    return text
  }
}

async function reportProgress(
  run: Run,
  half: Half,
  observation: ShardObservation,
  sent: Sent,
  sinceMs: number,
): Promise<void> {
  const { notice, uncertaintyMs } = run.operation()
  let next = ''
  if (sent.state === 'waiting' && sinceMs > NO_ANSWER_MS) next = `No response from ${sent.leader} yet`
  if (sinceMs > OUTCOME_LIMITS.slowMs) next = `Longer than usual: ${half.evidence(observation)}`
  const uncertainty = sinceMs <= NO_ANSWER_MS ? 50 : POLL_MS
  if (next !== notice || uncertainty !== uncertaintyMs) await run.set({ notice: next, uncertaintyMs: uncertainty })
}

// Waiting

/** Wakes with each new view of the shard, and at an interval, because limits depend on the time. */
function createWake(deps: MembershipDeps, shard: string) {
  let resolve: () => void = () => {}
  let isDue = false
  const now = () => {
    isDue = true
    resolve()
  }
  const stop = deps.onShard((id) => {
    if (id === shard) now()
  })
  return {
    now,
    close: stop,
    async wait(signal: AbortSignal) {
      if (!isDue) {
        const woken = new Promise<void>((done) => {
          resolve = done
        })
        await Promise.race([woken, pause(POLL_MS, signal)])
      }
      isDue = false
    },
  }
}

async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(milliseconds, undefined, { signal })
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
