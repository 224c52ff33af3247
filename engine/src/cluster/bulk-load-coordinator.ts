/**
 * Bulk loads: another snapshot replaces the data of a running shard (docs/design/consensus.md#log-commands). The node
 * that receives the request obtains the snapshot. The leader has every member pull it and proposes the load once a
 * majority of voters holds all of it, verified and with enough memory. Each replica replaces its data when it applies
 * that entry. A member that lacks the snapshot at that point requests it repeatedly and applies nothing until it has
 * it.
 *
 *   requested node ── admin load ──► leader ── admin load, id 0: "hold this" ──► members ── bulkHolds ──► leader ──
 *   entry
 *
 * A state machine: frames, replies of the disk and time come in, frames and disk requests go out.
 */

import { assert } from '@vacancy/shared'
import type { Log } from '../env.ts'
import { errorOf } from '../failure.ts'
import type { Exchange, ExchangeAnswer, Newest } from '../snapshot/exchange.ts'
import type { Wanted } from '../snapshot/snapshot.ts'
import { type FinishedOperation, OPERATIONS_KEPT, type RunningOperation } from '../status.ts'
import type { AdminFrame, BulkHoldsFrame, DriverFrame } from '../transport/frames.ts'
import type { Answer } from './membership.ts'
import { manifestReference, type Offer } from './transfer.ts'

export const LOAD_LIMITS = {
  /** How often members that do not hold the snapshot yet get the request again. */
  requestMs: 2_000,
  /** Limit until a majority of voters holds it. */
  holdMs: 600_000,
} as const

/** A snapshot and where to pull it from; the detail of admin frames, as JSON. */
type LoadReference = {
  readonly contentDigest: string
  readonly manifestDigest: string
  readonly manifestBytes: number
  readonly index: number
  readonly term: number
  /** A node that has it. */
  readonly source: string
}

export type LoadsPort = {
  readonly self: string
  send(node: string, frame: DriverFrame): boolean
  readonly exchange: Exchange
  isLeader(): boolean
  /** This node leads and has applied an entry of its own term. */
  isReady(): boolean
  /** Nodes that vote, including this one if it does. */
  voters(): readonly string[]
  /** All members but this node. */
  others(): readonly string[]
  /** Begins to pull (`onOffer` of the receiver). No effect while that pull is running. */
  receive(offer: Offer): void
  /** Properties that a file must have to be loaded into this shard. */
  readonly wanted: Wanted
  /**
   * Why the data of the held snapshot in this folder cannot be loaded here, most often for lack of memory; '' if they
   * can.
   */
  check(path: string): string
  /** Members not known to have applied this index. */
  notPast(index: number): readonly string[]
  /** Proposes the entry. @returns whether it was accepted */
  propose(contentDigest: string): boolean
  nowMs(): number
  wallMs(): number
  readonly log: Log
}

type Load = {
  readonly reference: LoadReference
  readonly startedMs: number
  readonly startedWallMs: number
  readonly holders: Set<string>
  readonly refusals: Map<string, string>
  isProposed: boolean
  requestedMs: number
}

export type Loads = {
  readonly port: LoadsPort
  running: Load | undefined
  /** The load that this node pulls, and the node to report to. */
  holding: { readonly reference: LoadReference; readonly requester: string } | undefined
  finished: readonly FinishedOperation[]
  readonly ended: { done: number; failed: number }
}

export function createLoads(port: LoadsPort): Loads {
  return { port, running: undefined, holding: undefined, finished: [], ended: { done: 0, failed: 0 } }
}

const accept: Answer = { status: 202, text: 'load in progress' }
const refuse = (status: 404 | 409 | 503, text: string): Answer => ({ status, text })

function referenceOf(contentDigest: string, source: string, found: Newest): LoadReference {
  const { manifestDigest, manifest, index, term } = found
  return { contentDigest, manifestDigest, manifestBytes: manifest.length, index, term, source }
}

/**
 * Obtains a snapshot that an operator wants to load: a file of this node or a snapshot that the shard holds. Then
 * `next` receives the arguments for the leader: for its own `startLoad`, or for an admin frame to it.
 */
export function obtainSnapshot(
  { port }: Loads,
  what: { readonly file: string } | { readonly digest: string },
  next: (result: { readonly digest: string; readonly detail: string } | Answer) => void,
): void {
  const find = (digest: string) =>
    port.exchange({ kind: 'find', contentDigest: digest }, (answer) => {
      const found = answer.state === 'found' ? answer.found : undefined
      // The leader may have a snapshot that this node lacks.
      next({ digest, detail: found ? JSON.stringify(referenceOf(digest, port.self, found)) : '' })
    })
  if ('digest' in what) return find(what.digest)
  port.exchange({ kind: 'import', file: what.file, wanted: port.wanted }, (answer) => {
    if (answer.state === 'held') return find(answer.path.slice(-DIGEST_DIGITS))
    next(
      refuse(409, `${what.file} cannot be loaded: ${answer.state === 'full' ? 'the disk is full' : wordsOf(answer)}`),
    )
  })
}

/** Folder names end in a digest of this length. */
const DIGEST_DIGITS = 64

function wordsOf(answer: ExchangeAnswer): string {
  if (answer.state !== 'refused') return answer.state
  const { code, ...fields } = answer.error
  return errorOf({ code, fields, message: '' }).message
}

/** Starts a load on the leader. `onAnswer` is called once. */
export function startLoad(loads: Loads, digest: string, detail: string, onAnswer: (answer: Answer) => void): void {
  const { port } = loads
  if (!port.isLeader()) return onAnswer(refuse(503, 'no leader'))
  if (!port.isReady()) return onAnswer(refuse(503, 'leader not ready'))
  if (loads.running) {
    const isSame = loads.running.reference.contentDigest === digest
    return onAnswer(isSame ? accept : refuse(409, 'another load is running'))
  }
  const reference = parseReference(detail, digest)
  if (reference) {
    begin(loads, reference)
    return onAnswer(accept)
  }
  port.exchange({ kind: 'find', contentDigest: digest }, (answer) => {
    const found = answer.state === 'found' ? answer.found : undefined
    if (!found) return onAnswer(refuse(404, 'no reachable member holds this snapshot'))
    if (loads.running || !port.isReady()) return onAnswer(refuse(409, 'another load is running'))
    begin(loads, referenceOf(digest, port.self, found))
    onAnswer(accept)
  })
}

function begin(loads: Loads, reference: LoadReference): void {
  const { port } = loads
  const [startedMs, startedWallMs] = [port.nowMs(), port.wallMs()]
  const started = { startedMs, startedWallMs, isProposed: false, requestedMs: startedMs }
  loads.running = { reference, holders: new Set(), refusals: new Map(), ...started }
  port.log.info({ digest: reference.contentDigest }, 'bulk load started')
  requestHolders(loads, loads.running)
}

/** Checks a reference that another process sent. */
function parseReference(detail: string, digest: string): LoadReference | undefined {
  if (detail === '') return undefined
  let value: { [key: string]: unknown }
  try {
    value = JSON.parse(detail) as { [key: string]: unknown }
  } catch {
    // The sender runs another version. The detail is ignored.
    return undefined
  }
  const { contentDigest, manifestDigest, manifestBytes, index, term, source } = value
  const isHex = (text: unknown): text is string => typeof text === 'string' && /^[0-9a-f]{64}$/.test(text)
  const isCount = (count: unknown): count is number => Number.isSafeInteger(count) && (count as number) >= 0
  if (!isHex(contentDigest) || !isHex(manifestDigest) || contentDigest !== digest) return undefined
  if (!isCount(manifestBytes) || !isCount(index) || !isCount(term) || typeof source !== 'string') return undefined
  return { contentDigest, manifestDigest, manifestBytes, index, term, source }
}

function requestHolders(loads: Loads, load: Load): void {
  const { port } = loads
  load.requestedMs = port.nowMs()
  const { reference, holders } = load
  const detail = JSON.stringify(reference)
  for (const node of port.others()) {
    if (holders.has(node)) continue
    port.send(node, { type: 'admin', id: 0, kind: 'load', node: '', digest: reference.contentDigest, detail })
  }
  if (!holders.has(port.self)) holdHere(loads, reference, port.self)
}

/** The leader, or a member that has it, asks this node to hold a snapshot (an admin frame with id 0). */
export function onHold(loads: Loads, peer: string, { digest, detail }: AdminFrame): void {
  const reference = parseReference(detail, digest)
  if (reference) holdHere(loads, reference, peer)
}

function holdHere(loads: Loads, reference: LoadReference, requester: string): void {
  const { port } = loads
  const { contentDigest, index, term, source, manifestDigest, manifestBytes } = reference
  port.exchange({ kind: 'find', contentDigest }, (answer) => {
    if (answer.state === 'found' && answer.found) {
      const fault = port.check(answer.found.path)
      return report(loads, requester, contentDigest, fault === '', fault)
    }
    loads.holding = { reference, requester }
    const manifest = manifestReference(manifestDigest, manifestBytes)
    port.receive({ node: source === port.self ? requester : source, index, term, manifest, purpose: 'load' })
  })
}

function report(loads: Loads, requester: string, digest: string, isComplete: boolean, reason: string): void {
  const { port } = loads
  const frame: BulkHoldsFrame = { type: 'bulkHolds', digest, isComplete, reason }
  if (requester === port.self) onHolds(loads, port.self, frame)
  else port.send(requester, frame)
}

/** This node now holds the pulled snapshot of a load, in this folder. */
export function onHeld(loads: Loads, path: string): void {
  endHolding(loads, loads.port.check(path))
}

/** The pull failed: no room, no memory or no progress. */
export function onNotHeld(loads: Loads, reason: string): void {
  endHolding(loads, reason)
}

function endHolding(loads: Loads, fault: string): void {
  const { holding } = loads
  if (!holding) return
  loads.holding = undefined
  report(loads, holding.requester, holding.reference.contentDigest, fault === '', fault)
}

/**
 * A member reports whether it holds a snapshot. One that does not, and has no request pending, has reached the entry of
 * its load. Every node that has the snapshot then replies with its source.
 */
export function onHolds(loads: Loads, node: string, { digest, isComplete, reason }: BulkHoldsFrame): void {
  const { port, running } = loads
  if (running?.reference.contentDigest === digest) {
    if (!isComplete) {
      running.refusals.set(node, reason)
      return
    }
    running.holders.add(node)
    running.refusals.delete(node)
    return proposeWhenHeld(loads, running)
  }
  if (isComplete || node === port.self) return
  port.exchange({ kind: 'find', contentDigest: digest }, (answer) => {
    const found = answer.state === 'found' ? answer.found : undefined
    if (!found) return
    const detail = JSON.stringify(referenceOf(digest, port.self, found))
    port.send(node, { type: 'admin', id: 0, kind: 'load', node: '', digest, detail })
  })
}

function proposeWhenHeld({ port }: Loads, load: Load): void {
  const voters = port.voters()
  const held = voters.filter((node) => load.holders.has(node)).length
  if (load.isProposed || held <= voters.length / 2 || !port.isReady()) return
  load.isProposed = port.propose(load.reference.contentDigest)
}

/** Apply reached the entry of a load whose snapshot is missing here. Requests it (every LOADING_LIMITS.requestMs). */
export function requestLoad({ port }: Loads, digest: string): void {
  for (const node of port.others()) {
    port.send(node, { type: 'bulkHolds', digest, isComplete: false, reason: 'awaited' })
  }
}

/** A load was applied here. Every member records it, so that each can report the snapshot to return to. */
export function onLoaded(loads: Loads, digest: string, before: string): void {
  if (loads.running?.reference.contentDigest === digest) loads.running = undefined
  note(loads, 'load', digest, 'done', `the previous data is snapshot ${before}`)
  loads.port.log.info({ digest, before }, 'bulk load applied')
}

/** Called on every tick of the driver. */
export function tickLoads(loads: Loads): void {
  const { port, running } = loads
  if (!running) return
  if (!port.isLeader()) return finish(loads, running, 'leadership was lost before it was applied')
  const nowMs = port.nowMs()
  if (!running.isProposed && nowMs - running.startedMs >= LOAD_LIMITS.holdMs) {
    const reasons = [...running.refusals].map(([node, reason]) => `${node}: ${reason}`)
    return finish(loads, running, ['no majority of voters holds the snapshot', ...reasons].join('; '))
  }
  proposeWhenHeld(loads, running)
  if (nowMs - running.requestedMs >= LOAD_LIMITS.requestMs) requestHolders(loads, running)
}

function finish(loads: Loads, load: Load, reason: string): void {
  assert(loads.running === load, 'only the running load ends')
  loads.running = undefined
  const { contentDigest } = load.reference
  note(loads, 'load', contentDigest, 'failed', reason)
  loads.port.log.warn({ digest: contentDigest, reason }, 'bulk load failed')
}

function note(loads: Loads, kind: 'load' | 'drop-load', node: string, result: 'done' | 'failed', reason: string): void {
  loads.ended[result]++
  const ended: FinishedOperation = { kind, node, result, reason, atMs: loads.port.wallMs() }
  loads.finished = [ended, ...loads.finished].slice(0, OPERATIONS_KEPT)
}

/**
 * An operator gives up the snapshot to return to. The leader drops the state before a load once no member can reach its
 * entry again, and has the others do the same. `onAnswer` is called once.
 */
export function startDrop(loads: Loads, digest: string, onAnswer: (answer: Answer) => void): void {
  const { port } = loads
  if (!port.isLeader()) return onAnswer(refuse(503, 'no leader'))
  if (!port.isReady()) return onAnswer(refuse(503, 'leader not ready'))
  if (loads.running?.reference.contentDigest === digest) return onAnswer(refuse(409, 'this load is running'))
  port.exchange({ kind: 'before', contentDigest: digest }, (found) => {
    const before = found.state === 'before' ? found.before : undefined
    const behind = before ? port.notPast(before.index + 1) : []
    if (behind.length > 0) return onAnswer(refuse(409, `${behind.join(', ')} may not have applied the load yet`))
    port.exchange({ kind: 'drop', contentDigest: digest }, (answer) => {
      if (answer.state === 'needed') return onAnswer(refuse(409, STILL_NEEDED))
      const isDone = answer.state === 'dropped' && answer.isDone
      if (!isDone) return onAnswer(refuse(404, 'the leader has no load with this digest'))
      for (const node of port.others()) {
        port.send(node, { type: 'admin', id: 0, kind: 'drop-load', node: '', digest, detail: '' })
      }
      note(loads, 'drop-load', digest, 'done', '')
      onAnswer({ status: 202, text: 'drop in progress' })
    })
  })
}

const STILL_NEEDED =
  'a restart of the leader may still apply this load: drop it after two more snapshots (/save-snapshot)'

/** The leader dropped it (an admin frame with id 0). */
export function onDrop({ port }: Loads, { digest }: AdminFrame): void {
  port.exchange({ kind: 'drop', contentDigest: digest }, (answer) => {
    if (answer.state !== 'needed') return
    port.log.warn({ digest }, 'snapshot before a load kept, a restart may still need it')
  })
}

/** For `/cluster/info`. */
export function loadOperationOf({ running, port }: Loads): RunningOperation | undefined {
  if (!running) return undefined
  const voters = port.voters()
  const held = voters.filter((node) => running.holders.has(node)).length
  const step = running.isProposed
    ? 'waiting for the entry to be applied'
    : `waiting for a majority of voters to store it: ${held} of ${voters.length}`
  return { kind: 'load', node: running.reference.contentDigest, startedMs: running.startedWallMs, step }
}
