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
import type { Exchange, Newest } from '../snapshot/exchange.ts'
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
}

export function createLoads(port: LoadsPort): Loads {
  return { port, running: undefined, holding: undefined, finished: [] }
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
  port.exchange({ kind: 'import', file: what.file }, (answer) => {
    if (answer.state === 'held') return find(answer.path.slice(-64))
    const reason = answer.state === 'refused' ? String(answer.error['reason'] ?? answer.error.code) : answer.state
    next(refuse(409, `${what.file} cannot be loaded: ${reason}`))
  })
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
    if (answer.state === 'found' && answer.found) return tell(loads, asker, contentDigest, true, '')
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

/** What was pulled for a load is held now, or why not (no room, no memory, no progress). */
export function onHeld(loads: Loads, reason: string): void {
  const { holding } = loads
  if (!holding) return
  loads.holding = undefined
  tell(loads, holding.asker, holding.reference.contentDigest, reason === '', reason)
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

/** The entry of a load was applied here. */
export function onLoaded(loads: Loads, digest: string): void {
  if (loads.running?.reference.contentDigest === digest) finish(loads, loads.running, '')
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
  const { port } = loads
  const node = load.reference.contentDigest
  const result = reason === '' ? 'done' : 'failed'
  loads.finished = [{ kind: 'load', node, result, reason, atMs: port.wallMs() } as const, ...loads.finished].slice(
    0,
    OPERATIONS_KEPT,
  )
  if (result === 'done') port.log.info({ digest: node }, 'a bulk load is applied')
  else port.log.warn({ digest: node, reason }, 'a bulk load failed')
}

/** An operator gives up the way back. Here now, and on all members that can be reached. */
export function dropLoad({ port }: Loads, digest: string, isFirst: boolean, onAnswer: (answer: Answer) => void): void {
  if (isFirst) {
    for (const node of port.others()) {
      port.send(node, { type: 'admin', id: 0, kind: 'drop-load', node: '', digest, detail: '' })
    }
  }
  port.exchange({ kind: 'drop', contentDigest: digest }, (answer) => {
    const isDone = answer.state === 'dropped' && answer.isDone
    onAnswer(isDone ? { status: 202, text: 'drop in progress' } : refuse(404, 'no load with this digest is kept here'))
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
