/**
 * Membership as the leader manages it: admits nodes, binds founders, replaces wiped voters and runs operator requests,
 * one operation at a time (docs/design/consensus.md#membership, docs/design/http.md#cluster-changes). A state machine
 * over the status of the core: time is an input, and changes go out through a port.
 *
 *   promote   ── catching up ── changing ── done
 *   demote    ── (leader: moving leadership ── passed to the new leader) ── changing ── done
 *   remove    ── changing ── done                     a learner is demoted
 *   replace   ── changing ── catching up ── changing ── done     an initial voter came back without its data
 *
 * **Binding**: only founders can be bound (formation.ts). A voter that returns with another incarnation is replaced in
 * one step: the old member leaves and a learner with a new raft id joins. It is promoted when it has caught up.
 *
 * **Change of leader**: ends the running operation. The result of a change already proposed follows from the
 * configuration once its index is applied. A replacement continues under the next leader, because a node named in
 * `--initial-voters` sends `join` until it is a voter.
 */

import { assert, CATCH_UP, groupDigits, type MemberOperation, unreachable } from '@vacancy/shared'
import { REMOVED } from '../bootstrap/formation.ts'
import type { Log } from '../env.ts'
import { type Change, JOINED_ID_BASE, MEMBER_LIMITS } from '../raft/membership.ts'
import type { Configuration, Member } from '../raft/messages.ts'
import { type FinishedOperation, OPERATIONS_KEPT, type RunningOperation } from '../status.ts'

/** A transfer target may be this far behind. */
const TRANSFER_LAG_MAX = 10_000
/** Limit of a proposed change and of a moved leadership. */
export const STEP_MS_MAX = 30_000
/** How long two processes may appear under one id: after a restart the old connection takes a while to close. */
export const DUPLICATE_MS = 10_000
/** A node whose join requests stop is dropped after this. */
const JOIN_MS_MAX = 60_000
const JOINS_MAX = 64

/** The leader's view of another member; `status()` of the core has more. */
export type PeerView = {
  readonly id: number
  readonly match: number
  readonly state: 'probe' | 'replicate' | 'snapshot'
  readonly isActive: boolean
}

export type MembershipView = {
  /** Own raft id. */
  readonly id: number
  readonly role: string
  /** Raft id; 0 for none. */
  readonly leader: number
  readonly commit: number
  readonly applied: number
  readonly peers: readonly PeerView[]
  readonly configuration: Configuration
  /** Raft id; 0 while no transfer runs. */
  readonly transferTarget: number
}

export type MembershipPort = {
  status(): MembershipView
  /**
   * This node leads and has applied an entry of its own term
   * (docs/design/consensus.md#when-a-configuration-takes-effect).
   */
  isReady(): boolean
  /** @returns index of the entry, or the reason of the refusal */
  proposeChange(change: Change): number | string
  /** @returns 'taken', or the reason of the refusal */
  transferLeader(target: number): string
  /** Sends an admin request to the present leader. The reply may never come. */
  requestLeader(kind: 'demote', node: string, onAnswer: (answer: Answer) => void): void
  nowMs(): number
  wallMs(): number
  readonly log: Log
}

export type MembershipOptions = {
  readonly self: { readonly node: string; readonly incarnation: string; readonly isFounder: boolean }
  /** Names in the genesis: these nodes are promoted without an operator. */
  readonly initialVoters: readonly string[]
}

export type Answer = { readonly status: 202 | 404 | 409 | 503; readonly text: string }

export type JoinRequest = {
  readonly node: string
  readonly incarnation: string
  readonly isInitialVoter: boolean
  /** The node runs as a member already, under an id that it was given earlier. */
  readonly isMember?: boolean
}
export type JoinAnswer =
  | { readonly kind: 'joined'; readonly member: number; readonly configuration: Configuration }
  /** Retry in a second. */
  | { readonly kind: 'wait'; readonly reason: string }
  | {
      readonly kind: 'refused'
      readonly reason: 'not-leader' | 'full' | 'duplicate' | typeof REMOVED
      readonly detail: string
    }

type Phase = 'catching-up' | 'changing' | 'moving' | 'passing'

type Operation = {
  readonly kind: Exclude<MemberOperation, 'transfer' | 'load' | 'drop-load'>
  readonly node: string
  readonly startedMs: number
  readonly startedWallMs: number
  /** Raft id of the member; 0 until the entry that adds it is applied. */
  id: number
  phase: Phase
  /** Index of the last proposed entry; 0 for none. */
  changeIndex: number
  /** When this phase times out. */
  deadlineMs: number
}

type Transfer = {
  readonly node: string
  readonly target: number
  readonly startedMs: number
  readonly startedWallMs: number
}

type Join = JoinRequest & { readonly firstMs: number; readonly lastMs: number }

export type Membership = MembershipOptions & ReturnType<typeof createMembership>

export function createMembership(port: MembershipPort, options: MembershipOptions) {
  return {
    ...options,
    port,
    operation: undefined as Operation | undefined,
    transfer: undefined as Transfer | undefined,
    /** Newest first. */
    finished: [] as readonly FinishedOperation[],
    /** By result, since this node started. */
    ended: { done: 0, failed: 0 },
    /** The newest change proposed here; 0 for none. */
    changeIndex: 0,
    joins: new Map<string, Join>(),
    /** Incarnations of founders that sent a report, by node. */
    founders: new Map<string, string>(),
  }
}

/** Texts of refusals for operators (docs/design/http.md#cluster-changes). */
const TEXTS = {
  promote: 'add in progress',
  demote: 'remove in progress',
  transfer: 'transfer in progress',
  unknown: 'unknown node',
  noLeader: 'no leader',
  notReady: 'leader not ready',
  busy: 'another membership operation is running',
  lastVoter: 'it is the last voter',
  noMajority: 'the remaining voters would be no healthy majority',
  votersMax: `there are ${MEMBER_LIMITS.voters} voters already`,
  learner: 'the target is a learner',
  inactive: 'the target is inactive',
  behind: 'the target is more than 10,000 entries behind',
  otherTransfer: 'another transfer is running',
  unapplied: 'a membership change is not applied',
} as const

const accept = (text: string): Answer => ({ status: 202, text })
const refuse = (status: 404 | 409 | 503, text: string): Answer => ({ status, text })

// Join requests

/** A founder of this shard sent a formation report. */
export function onFounder(membership: Membership, node: string, incarnation: string): void {
  if (membership.founders.size < JOINS_MAX || membership.founders.has(node)) membership.founders.set(node, incarnation)
}

/**
 * A node requests to join (docs/design/consensus.md#identities, docs/design/consensus.md#joining). Idempotent by node
 * and incarnation.
 */
export function onJoin(membership: Membership, request: JoinRequest): JoinAnswer {
  const { port } = membership
  const view = port.status()
  const { configuration } = view
  if (view.role !== 'leader') {
    return { kind: 'refused', reason: 'not-leader', detail: nodeOf(configuration, view.leader) }
  }
  if (!port.isReady()) return wait(TEXTS.notReady)
  noteJoin(membership, request)
  const { node, incarnation } = request
  const member = memberOf(configuration, node)
  if (member?.incarnation === incarnation) return { kind: 'joined', member: member.id, configuration }
  if (!canChange(membership, view)) return wait(TEXTS.unapplied)
  if (!member) {
    // It does not know yet that it was removed. Under a new id it would receive nothing: it listens for its old one.
    if (request.isMember) return { kind: 'refused', reason: REMOVED, detail: '' }
    if (configuration.learners.length >= MEMBER_LIMITS.learners) {
      return { kind: 'refused', reason: 'full', detail: `there are ${MEMBER_LIMITS.learners} learners already` }
    }
    propose(membership, { steps: [{ type: 'addLearner', node, incarnation }] })
    return wait('it is being added')
  }
  return replace(membership, view, member, request)
}

const wait = (reason: string): JoinAnswer => ({ kind: 'wait', reason })

/** Same node, another folder: the old member is removed, because the node lost the state behind its votes. */
function replace(membership: Membership, view: MembershipView, member: Member, request: JoinRequest): JoinAnswer {
  const { port, joins } = membership
  const { node, incarnation } = request
  const { configuration } = view
  const nowMs = port.nowMs()
  if (member.id === view.id || isReachable(view, member.id)) {
    const isLong = nowMs - (joins.get(node)?.firstMs ?? nowMs) >= DUPLICATE_MS
    const detail = `a process that runs as ${node} already answers: give each node an id of its own`
    return isLong ? { kind: 'refused', reason: 'duplicate', detail } : wait('its earlier process still answers')
  }
  const change: Change = {
    steps: [
      { type: 'remove', id: member.id },
      { type: 'addLearner', node, incarnation },
    ],
  }
  if (!configuration.voters.includes(member.id)) {
    propose(membership, change)
    return wait('it is being added')
  }
  if (membership.operation) return wait(TEXTS.busy)
  if (!isHealthyWithout(view, member.id)) return wait(TEXTS.noMajority)
  const index = propose(membership, change)
  if (index > 0) begin(membership, { kind: 'replace', node, id: 0, phase: 'changing', changeIndex: index })
  return wait('it is being replaced')
}

function noteJoin({ joins, port }: Membership, request: JoinRequest): void {
  const nowMs = port.nowMs()
  const before = joins.get(request.node)
  const isSame = before?.incarnation === request.incarnation
  if (!before && joins.size >= JOINS_MAX) return
  joins.set(request.node, { ...request, firstMs: isSame ? before.firstMs : nowMs, lastMs: nowMs })
}

// Operator requests

/** A learner becomes a voter once it has caught up. */
export function startPromote(membership: Membership, node: string): Answer {
  const view = membership.port.status()
  const refusal = notLeading(membership, view)
  if (refusal) return refusal
  const { configuration } = view
  const member = memberOf(configuration, node)
  if (!member) return refuse(404, TEXTS.unknown)
  if (configuration.voters.includes(member.id)) return accept(TEXTS.promote)
  const { operation } = membership
  if (operation) {
    // An initial voter that is being replaced will be promoted in any case.
    const isSame = operation.node === node && (operation.kind === 'promote' || operation.kind === 'replace')
    return isSame ? accept(TEXTS.promote) : refuse(409, TEXTS.busy)
  }
  if (configuration.voters.length >= MEMBER_LIMITS.voters) return refuse(409, TEXTS.votersMax)
  begin(membership, { kind: 'promote', node, id: member.id, phase: 'catching-up' })
  tickMembership(membership)
  return accept(TEXTS.promote)
}

/** A voter becomes a learner, a learner leaves. */
export function startDemote(membership: Membership, node: string): Answer {
  const { port } = membership
  const view = port.status()
  const refusal = notLeading(membership, view)
  if (refusal) return refusal
  const { configuration } = view
  const member = memberOf(configuration, node)
  if (!member) return refuse(404, TEXTS.unknown)
  const { operation } = membership
  if (operation) {
    const isSame = operation.node === node && (operation.kind === 'demote' || operation.kind === 'remove')
    return isSame ? accept(TEXTS.demote) : refuse(409, TEXTS.busy)
  }
  const { id } = member
  if (!configuration.voters.includes(id)) {
    begin(membership, { kind: 'remove', node, id, phase: 'changing' })
    tickMembership(membership)
    return accept(TEXTS.demote)
  }
  if (configuration.voters.length === 1) return refuse(409, TEXTS.lastVoter)
  if (!isHealthyWithout(view, id)) return refuse(409, TEXTS.noMajority)
  if (id !== view.id) {
    begin(membership, { kind: 'demote', node, id, phase: 'changing' })
    tickMembership(membership)
    return accept(TEXTS.demote)
  }
  // A leader that is no longer a voter would step down in the middle of its own change.
  if (!canChange(membership, view)) return refuse(409, TEXTS.unapplied)
  const target = mostAdvanced(view)
  if (target === undefined || view.transferTarget !== 0) {
    return refuse(409, target === undefined ? TEXTS.noMajority : TEXTS.otherTransfer)
  }
  const taken = port.transferLeader(target.id)
  if (taken !== 'taken') return refuse(409, `leadership cannot be moved first: ${taken}`)
  begin(membership, { kind: 'demote', node, id, phase: 'moving' })
  return accept(TEXTS.demote)
}

/** Leadership goes to another voter (docs/design/consensus.md#leadership-transfer). */
export function startTransfer(membership: Membership, node: string): Answer {
  const { port } = membership
  const view = port.status()
  const refusal = notLeading(membership, view)
  if (refusal) return refusal
  const { configuration, transferTarget } = view
  const member = memberOf(configuration, node)
  if (!member) return refuse(404, TEXTS.unknown)
  if (member.id === view.id || member.id === transferTarget) return accept(TEXTS.transfer)
  if (!configuration.voters.includes(member.id)) return refuse(409, TEXTS.learner)
  const peer = peerOf(view, member.id)
  if (!peer?.isActive) return refuse(409, TEXTS.inactive)
  if (lagOf(view, peer) > TRANSFER_LAG_MAX) return refuse(409, TEXTS.behind)
  if (transferTarget !== 0) return refuse(409, TEXTS.otherTransfer)
  if (!canChange(membership, view)) return refuse(409, TEXTS.unapplied)
  const taken = port.transferLeader(member.id)
  if (taken !== 'taken') return refuse(409, `the transfer was refused: ${taken}`)
  const [startedMs, startedWallMs] = [port.nowMs(), port.wallMs()]
  membership.transfer = { node, target: member.id, startedMs, startedWallMs }
  return accept(TEXTS.transfer)
}

function notLeading({ port }: Membership, view: MembershipView): Answer | undefined {
  if (view.role !== 'leader') return refuse(503, TEXTS.noLeader)
  return port.isReady() ? undefined : refuse(503, TEXTS.notReady)
}

type Begun = Pick<Operation, 'kind' | 'node' | 'id' | 'phase'> & { readonly changeIndex?: number }

function begin(membership: Membership, { kind, node, id, phase, changeIndex = 0 }: Begun): void {
  const { port } = membership
  assert(!membership.operation, 'one membership operation runs at a time')
  const [startedMs, startedWallMs] = [port.nowMs(), port.wallMs()]
  const deadlineMs = startedMs + (phase === 'catching-up' ? CATCH_UP.waitMs : STEP_MS_MAX)
  membership.operation = { kind, node, id, phase, changeIndex, startedMs, startedWallMs, deadlineMs }
  port.log.info({ kind, node }, 'membership operation started')
}

// Time

/** Advances the running operation. Called on every tick of the driver and after a configuration is applied. */
export function tickMembership(membership: Membership): void {
  const view = membership.port.status()
  if (membership.operation) stepOperation(membership, membership.operation, view)
  if (membership.transfer) stepTransfer(membership, membership.transfer, view)
  if (view.role !== 'leader') {
    membership.joins.clear()
    membership.changeIndex = 0
    return
  }
  forgetJoins(membership)
  if (!canChange(membership, view)) return
  if (!bindOne(membership, view)) resumeReplacement(membership, view)
}

function stepOperation(membership: Membership, operation: Operation, view: MembershipView): void {
  if (view.role !== 'leader') return stepWithoutLead(membership, operation, view)
  const { port } = membership
  const isLate = port.nowMs() >= operation.deadlineMs
  switch (operation.phase) {
    case 'catching-up':
      if (isCaughtUp(view, operation.id)) return stepChange(membership, operation, view)
      return isLate ? finish(membership, operation, `it did not catch up within ${CATCH_UP.waitText}`) : undefined
    case 'changing':
      return stepChange(membership, operation, view)
    case 'moving':
    case 'passing':
      // The core abandons a transfer itself after an election timeout.
      if (view.transferTarget !== 0 && !isLate) return
      return finish(membership, operation, 'leadership did not move to another voter')
    default:
      return unreachable(operation.phase)
  }
}

/** Proposes the change of an operation and waits until it is applied. */
function stepChange(membership: Membership, operation: Operation, view: MembershipView): void {
  const { port } = membership
  const { node } = operation
  const { configuration } = view
  if (operation.changeIndex > 0) {
    if (view.applied < operation.changeIndex) return
    operation.changeIndex = 0
    if (isReached(operation, configuration)) return finish(membership, operation, '')
    const member = memberOf(configuration, node)
    if (operation.kind === 'replace' && operation.id === 0 && member && member.id > JOINED_ID_BASE) {
      // The second half. A node outside the list stays a learner.
      if (!membership.initialVoters.includes(node)) return finish(membership, operation, '')
      operation.id = member.id
      operation.phase = 'catching-up'
      operation.deadlineMs = port.nowMs() + CATCH_UP.waitMs
      return
    }
    return finish(membership, operation, 'the change was not accepted')
  }
  if (isReached(operation, configuration)) return finish(membership, operation, '')
  if (!configuration.members.some(({ id }) => id === operation.id)) {
    return finish(membership, operation, 'the node is no longer a member')
  }
  const isLate = port.nowMs() >= operation.deadlineMs
  if (!canChange(membership, view)) return isLate ? finish(membership, operation, TEXTS.unapplied) : undefined
  // Checked again: health may have changed since the operation was accepted.
  if (operation.kind === 'demote' && !isHealthyWithout(view, operation.id)) {
    return finish(membership, operation, TEXTS.noMajority)
  }
  const { id } = operation
  const type = operation.kind === 'demote' ? 'demote' : operation.kind === 'remove' ? 'remove' : 'promote'
  const index = propose(membership, { steps: [{ type, id }] })
  if (index > 0) {
    operation.changeIndex = index
    operation.phase = 'changing'
  } else if (isLate) finish(membership, operation, 'the change was refused')
}

function isReached({ kind, id }: Operation, { members, voters, outgoing, learners }: Configuration): boolean {
  if (kind === 'remove') return !members.some((member) => member.id === id)
  if (kind === 'demote') return learners.includes(id)
  return outgoing.length === 0 && voters.includes(id)
}

/** Leadership is lost. A demoted leader forwards its own demotion. A proposed change is judged when it is applied. */
function stepWithoutLead(membership: Membership, operation: Operation, view: MembershipView): void {
  const { port } = membership
  const isLate = port.nowMs() >= operation.deadlineMs
  const leader = nodeOf(view.configuration, view.leader)
  const lost = leader === '' ? 'leadership was lost' : `leadership moved to ${leader}`
  if (operation.phase === 'moving') {
    if (isLate) return finish(membership, operation, 'no new leader continued the demotion')
    if (view.leader === 0 || view.leader === view.id) return
    operation.phase = 'passing'
    const retry = () => {
      if (membership.operation === operation && operation.phase === 'passing') operation.phase = 'moving'
    }
    port.requestLeader('demote', operation.node, ({ status, text }) => {
      if (membership.operation !== operation) return
      // A new leader has yet to hear from the other voters.
      if (status === 503 || text === TEXTS.noMajority) return retry()
      finish(membership, operation, status === 202 ? '' : `the new leader refused: ${text}`)
    })
    return
  }
  if (operation.phase === 'passing') {
    return isLate ? finish(membership, operation, 'the new leader did not answer') : undefined
  }
  if (operation.changeIndex > 0 && operation.id > 0) {
    if (isReached(operation, view.configuration)) return finish(membership, operation, '')
    if (view.applied < operation.changeIndex && !isLate) return
  }
  finish(membership, operation, `${lost} before it was done`)
}

function stepTransfer(membership: Membership, transfer: Transfer, view: MembershipView): void {
  const isLate = membership.port.nowMs() - transfer.startedMs >= STEP_MS_MAX
  const end = (reason: string) => {
    membership.transfer = undefined
    note(membership, { kind: 'transfer', node: transfer.node }, reason)
  }
  if (view.leader === transfer.target) return end('')
  if (view.role === 'leader') {
    if (view.transferTarget !== transfer.target) end(`${transfer.node} did not take over within one election time-out`)
    return
  }
  if (view.leader !== 0 && view.leader !== view.id)
    end(`${nodeOf(view.configuration, view.leader)} was elected instead`)
  else if (isLate) end('no leader was elected')
}

function finish(membership: Membership, operation: Operation, reason: string): void {
  assert(membership.operation === operation, 'only the running operation ends')
  membership.operation = undefined
  // A node that still wants to join sends another request. Its earlier one must not undo a newer operator request.
  membership.joins.delete(operation.node)
  note(membership, operation, reason)
}

function note(membership: Membership, { kind, node }: { kind: MemberOperation; node: string }, reason: string): void {
  const { port } = membership
  const result = reason === '' ? 'done' : 'failed'
  membership.ended[result]++
  const ended: FinishedOperation = { kind, node, result, reason, atMs: port.wallMs() }
  membership.finished = [ended, ...membership.finished].slice(0, OPERATIONS_KEPT)
  if (result === 'done') port.log.info({ kind, node }, 'membership operation done')
  else port.log.warn({ kind, node, reason }, 'membership operation failed')
}

/**
 * Binds one founder that sent a report (docs/design/consensus.md#identities). @returns whether a change was proposed
 */
function bindOne(membership: Membership, { configuration }: MembershipView): boolean {
  const { self, founders } = membership
  for (const { id, node, incarnation: bound } of configuration.members) {
    const own = node === self.node && self.isFounder ? self.incarnation : undefined
    const incarnation = own ?? founders.get(node)
    if (bound !== '' || incarnation === undefined) continue
    return propose(membership, { steps: [{ type: 'bind', id, incarnation }] }) > 0
  }
  return false
}

/** Promotes an initial voter that has joined and still sends join requests, whichever leader began it. */
function resumeReplacement(membership: Membership, { configuration }: MembershipView): void {
  if (membership.operation || configuration.voters.length >= MEMBER_LIMITS.voters) return
  for (const { node, incarnation, isInitialVoter } of membership.joins.values()) {
    const member = memberOf(configuration, node)
    if (!isInitialVoter || !membership.initialVoters.includes(node) || member?.incarnation !== incarnation) continue
    if (!configuration.learners.includes(member.id)) continue
    return begin(membership, { kind: 'replace', node, id: member.id, phase: 'catching-up' })
  }
}

function forgetJoins({ joins, port }: Membership): void {
  const nowMs = port.nowMs()
  for (const [node, { lastMs }] of joins) if (nowMs - lastMs > JOIN_MS_MAX) joins.delete(node)
}

// Interface to the core

/**
 * One change at a time, and none before an entry of the own term is applied
 * (docs/design/consensus.md#when-a-configuration-takes-effect).
 */
function canChange(membership: Membership, view: MembershipView): boolean {
  return membership.port.isReady() && view.applied >= membership.changeIndex && view.configuration.outgoing.length === 0
}

/** @returns index of the entry; 0 when it was refused */
function propose(membership: Membership, change: Change): number {
  const { port } = membership
  const index = port.proposeChange(change)
  if (typeof index !== 'number') {
    port.log.warn({ change, reason: index }, 'membership change refused')
    return 0
  }
  membership.changeIndex = index
  return index
}

const memberOf = ({ members }: Configuration, node: string): Member | undefined =>
  members.find((member) => member.node === node)

/** '' for id 0 and for nodes that are no longer members. */
function nodeOf({ members }: Configuration, id: number): string {
  return members.find((member) => member.id === id)?.node ?? ''
}

const peerOf = ({ peers }: MembershipView, id: number): PeerView | undefined => peers.find((peer) => peer.id === id)

function lagOf({ commit }: MembershipView, { match }: PeerView): number {
  return Math.max(0, commit - match)
}

/**
 * A peer starts as active (docs/design/consensus.md#when-a-configuration-takes-effect). One that has acknowledged an
 * entry is reachable.
 */
function isReachable(view: MembershipView, id: number): boolean {
  const peer = peerOf(view, id)
  return peer?.isActive === true && peer.match > 0
}

export function isCaughtUp(view: MembershipView, id: number): boolean {
  if (id === view.id) return true
  const peer = peerOf(view, id)
  return (
    peer !== undefined &&
    isReachable(view, id) &&
    peer.state === 'replicate' &&
    lagOf(view, peer) <= CATCH_UP.entriesMax
  )
}

/** Whether a majority of the other voters is active and caught up. */
function isHealthyWithout(view: MembershipView, id: number): boolean {
  const rest = view.configuration.voters.filter((voter) => voter !== id)
  const healthy = rest.filter((voter) => isCaughtUp(view, voter)).length
  return rest.length > 0 && healthy > rest.length / 2
}

function mostAdvanced(view: MembershipView): PeerView | undefined {
  return view.peers
    .filter(({ id }) => view.configuration.voters.includes(id) && isCaughtUp(view, id))
    .sort((a, b) => b.match - a.match || a.id - b.id)[0]
}

// Reports

/** For `/cluster/info` and `/cluster/operations`. */
export function operationsOf(membership: Membership): {
  operation: RunningOperation | undefined
  lastOperations: readonly FinishedOperation[]
} {
  const { operation, transfer, finished } = membership
  return { operation: runningOf(membership, operation, transfer), lastOperations: finished }
}

function runningOf(
  { port }: Membership,
  operation: Operation | undefined,
  transfer: Transfer | undefined,
): RunningOperation | undefined {
  if (operation) {
    const { kind, node, startedWallMs } = operation
    return { kind, node, startedMs: startedWallMs, step: stepText(operation, port.status()) }
  }
  if (!transfer) return undefined
  const { node, startedWallMs } = transfer
  return { kind: 'transfer', node, startedMs: startedWallMs, step: `waits until ${node} leads` }
}

function stepText({ phase, node, id }: Operation, view: MembershipView): string {
  switch (phase) {
    case 'catching-up': {
      const peer = peerOf(view, id)
      const lag = peer ? groupDigits(lagOf(view, peer)) : 'not heard from yet'
      return `waits until ${node} is ${CATCH_UP.entriesText}: ${lag}`
    }
    case 'changing':
      return 'waits until the change is applied'
    case 'moving':
      return 'waits until another voter leads'
    case 'passing':
      return 'waits until the new leader continues it'
    default:
      return unreachable(phase)
  }
}
