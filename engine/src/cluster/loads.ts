/**
 * Bulk loads: another snapshot takes the place of the data of a running shard (consensus.md §11). The node that is asked
 * brings the snapshot in; the leader has every member pull it and proposes the load once a majority of voters holds all
 * of it, verified and with memory for it; each replica replaces its data when it comes to that entry. A member that
 * lacks it there asks for it again and again, and applies nothing until it has it.
 *
 *   asked node ── admin load ──► leader ── admin load, id 0: "hold this" ──► members ── bulkHolds ──► leader ── entry
 *
 * A state machine: frames, answers of the disk and time come in, frames and asks go out.
 */

import { assert } from '@vacancy/shared'
import type { Log } from '../env.ts'
import { errorOf } from '../failure.ts'
import type { Exchange, ExchangeAnswer, Newest } from '../snapshot/exchange.ts'
import type { Wanted } from '../snapshot/snapshot.ts'
import { type FinishedOperation, OPERATIONS_KEPT, type RunningOperation } from '../status.ts'
import type { AdminFrame, BulkHoldsFrame, DriverFrame } from './frames.ts'
import type { Answer } from './membership.ts'
import { manifestReference, type Offer } from './transfer.ts'

export const LOAD_LIMITS = {
  /** Members that do not hold the snapshot yet are asked to this often. */
  askMs: 2_000,
  /** Until a majority of voters holds it. */
  gatherMs: 600_000,
} as const

/** What must be known of a snapshot to pull it; the detail of admin frames, as JSON. */
export type LoadReference = {
  readonly contentDigest: string
  readonly manifestDigest: string
  readonly manifestBytes: number
  readonly index: number
  readonly term: number
  /** Node that surely has it. */
  readonly source: string
}

export type LoadsPort = {
  readonly self: string
  send(node: string, frame: DriverFrame): boolean
  readonly exchange: Exchange
  isLeader(): boolean
  /** It leads and has applied an entry of its own term. */
  isReady(): boolean
  /** Nodes that vote, this one with them if it does. */
  voters(): readonly string[]
  /** All members but this node. */
  others(): readonly string[]
  /** Begins to pull (`onOffer` of the receiver); nothing happens when it is under way. */
  receive(offer: Offer): void
  /** What a file must be to be loaded into this shard. */
  readonly wanted: Wanted
  /** Why the data of the held snapshot in this folder cannot be loaded here, memory above all; '' when they can. */
  check(path: string): string
  /** Members of which it is not known that they have applied this index. */
  notPast(index: number): readonly string[]
  /** Proposes the entry. @returns whether it was taken */
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
  askedMs: number
}

export type Loads = {
  readonly port: LoadsPort
  running: Load | undefined
  /** What this node pulls for a load, and whom it tells. */
  holding: { readonly reference: LoadReference; readonly asker: string } | undefined
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
 * An operator asks this node for a load, of a file here or of a snapshot that the shard holds. The snapshot is brought
 * in first; then `next` gets what the leader must be told: its own `startLoad`, or an admin frame to it.
 */
export function bringIn(
  { port }: Loads,
  what: { readonly file: string } | { readonly digest: string },
  next: (result: { readonly digest: string; readonly detail: string } | Answer) => void,
): void {
  const find = (digest: string) =>
    port.exchange({ kind: 'find', contentDigest: digest }, (answer) => {
      const found = answer.state === 'found' ? answer.found : undefined
      // The leader may have what this node does not.
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

/** The names of folders end in one. */
const DIGEST_DIGITS = 64

function wordsOf(answer: ExchangeAnswer): string {
  if (answer.state !== 'refused') return answer.state
  const { code, ...fields } = answer.error
  return errorOf({ code, fields, message: '' }).message
}

/** The leader takes a load on. `onAnswer` is called once. */
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
    if (!found) return onAnswer(refuse(404, 'no member that was asked holds this snapshot'))
    if (loads.running || !port.isReady()) return onAnswer(refuse(409, 'another load is running'))
    begin(loads, referenceOf(digest, port.self, found))
    onAnswer(accept)
  })
}

function begin(loads: Loads, reference: LoadReference): void {
  const { port } = loads
  const [startedMs, startedWallMs] = [port.nowMs(), port.wallMs()]
  const started = { startedMs, startedWallMs, isProposed: false, askedMs: startedMs }
  loads.running = { reference, holders: new Set(), refusals: new Map(), ...started }
  port.log.info({ digest: reference.contentDigest }, 'a bulk load began')
  askHolders(loads, loads.running)
}

/** Comes from another process: nothing of it is believed unchecked. */
function parseReference(detail: string, digest: string): LoadReference | undefined {
  if (detail === '') return undefined
  let value: { [key: string]: unknown }
  try {
    value = JSON.parse(detail) as { [key: string]: unknown }
  } catch {
    // Whoever sent it speaks another version; it is as if nothing had been said.
    return undefined
  }
  const { contentDigest, manifestDigest, manifestBytes, index, term, source } = value
  const isHex = (text: unknown): text is string => typeof text === 'string' && /^[0-9a-f]{64}$/.test(text)
  const isCount = (count: unknown): count is number => Number.isSafeInteger(count) && (count as number) >= 0
  if (!isHex(contentDigest) || !isHex(manifestDigest) || contentDigest !== digest) return undefined
  if (!isCount(manifestBytes) || !isCount(index) || !isCount(term) || typeof source !== 'string') return undefined
  return { contentDigest, manifestDigest, manifestBytes, index, term, source }
}

function askHolders(loads: Loads, load: Load): void {
  const { port } = loads
  load.askedMs = port.nowMs()
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

function holdHere(loads: Loads, reference: LoadReference, asker: string): void {
  const { port } = loads
  const { contentDigest, index, term, source, manifestDigest, manifestBytes } = reference
  port.exchange({ kind: 'find', contentDigest }, (answer) => {
    if (answer.state === 'found' && answer.found) {
      const fault = port.check(answer.found.path)
      return tell(loads, asker, contentDigest, fault === '', fault)
    }
    loads.holding = { reference, asker }
    const manifest = manifestReference(manifestDigest, manifestBytes)
    port.receive({ node: source === port.self ? asker : source, index, term, manifest, purpose: 'load' })
  })
}

function tell(loads: Loads, asker: string, digest: string, isComplete: boolean, reason: string): void {
  const { port } = loads
  const frame: BulkHoldsFrame = { type: 'bulkHolds', digest, isComplete, reason }
  if (asker === port.self) onHolds(loads, port.self, frame)
  else port.send(asker, frame)
}

/** What was pulled for a load is held now, in this folder. */
export function onHeld(loads: Loads, path: string): void {
  endHolding(loads, loads.port.check(path))
}

/** It could not be pulled: no room, no memory, no progress. */
export function onNotHeld(loads: Loads, reason: string): void {
  endHolding(loads, reason)
}

function endHolding(loads: Loads, fault: string): void {
  const { holding } = loads
  if (!holding) return
  loads.holding = undefined
  tell(loads, holding.asker, holding.reference.contentDigest, fault === '', fault)
}

/**
 * A member says whether it holds a snapshot. One that does not, and is not being asked to, has come to the entry of its
 * load: whoever has the snapshot tells it how to get it.
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

/** The driver came to the entry of a load that this node lacks, and asks for it (every LOAD_LIMITS.askMs). */
export function askForLoad({ port }: Loads, digest: string): void {
  for (const node of port.others()) {
    port.send(node, { type: 'bulkHolds', digest, isComplete: false, reason: 'awaited' })
  }
}

/** The entry of a load was applied here. Every member notes it: whoever is asked can tell the way back. */
export function onLoaded(loads: Loads, digest: string, before: string): void {
  if (loads.running?.reference.contentDigest === digest) loads.running = undefined
  note(loads, 'load', digest, 'done', `the data before it are snapshot ${before}`)
  loads.port.log.info({ digest, before }, 'a bulk load is applied')
}

/** Called on every tick of the driver. */
export function tickLoads(loads: Loads): void {
  const { port, running } = loads
  if (!running) return
  if (!port.isLeader()) return finish(loads, running, 'leadership was lost before it was applied')
  const nowMs = port.nowMs()
  if (!running.isProposed && nowMs - running.startedMs >= LOAD_LIMITS.gatherMs) {
    const said = [...running.refusals].map(([node, reason]) => `${node}: ${reason}`)
    return finish(loads, running, ['no majority of voters holds the snapshot', ...said].join('; '))
  }
  proposeWhenHeld(loads, running)
  if (nowMs - running.askedMs >= LOAD_LIMITS.askMs) askHolders(loads, running)
}

function finish(loads: Loads, load: Load, reason: string): void {
  assert(loads.running === load, 'a load ends once')
  loads.running = undefined
  const { contentDigest } = load.reference
  note(loads, 'load', contentDigest, 'failed', reason)
  loads.port.log.warn({ digest: contentDigest, reason }, 'a bulk load failed')
}

function note(loads: Loads, kind: 'load' | 'drop-load', node: string, result: 'done' | 'failed', reason: string): void {
  loads.ended[result]++
  const ended: FinishedOperation = { kind, node, result, reason, atMs: loads.port.wallMs() }
  loads.finished = [ended, ...loads.finished].slice(0, OPERATIONS_KEPT)
}

/**
 * An operator gives up the way back: the leader drops the state before a load, once no member can come to its entry
 * again, and has the others do the same. `onAnswer` is called once.
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
      if (!isDone) return onAnswer(refuse(404, 'the leader keeps no load with this digest'))
      for (const node of port.others()) {
        port.send(node, { type: 'admin', id: 0, kind: 'drop-load', node: '', digest, detail: '' })
      }
      note(loads, 'drop-load', digest, 'done', '')
      onAnswer({ status: 202, text: 'drop in progress' })
    })
  })
}

const STILL_NEEDED =
  'a start of the leader may still come to this load: drop it when two snapshots were taken since (/save-snapshot)'

/** The leader has dropped it (an admin frame with id 0). */
export function onDrop({ port }: Loads, { digest }: AdminFrame): void {
  port.exchange({ kind: 'drop', contentDigest: digest }, (answer) => {
    if (answer.state !== 'needed') return
    port.log.warn({ digest }, 'the data before a load are kept: a start of this node may still come to it')
  })
}

/** For `/cluster/info`. */
export function loadOperationOf({ running, port }: Loads): RunningOperation | undefined {
  if (!running) return undefined
  const voters = port.voters()
  const held = voters.filter((node) => running.holders.has(node)).length
  const step = running.isProposed
    ? 'waits until the entry is applied'
    : `waits until a majority of voters holds it: ${held} of ${voters.length}`
  return { kind: 'load', node: running.reference.contentDigest, startedMs: running.startedWallMs, step }
}
