/**
 * What a member does when apply has come to a bulk load (consensus.md §11): it finds the snapshot, or has others tell it
 * how to get it; keeps the state before as a snapshot of its own; puts the data in place of the store's; lets apply go
 * on. The core goes on meanwhile: it votes, stores and acknowledges what comes behind.
 *
 *   looking ──► keeping ──► replacing ──► placed
 *      └► awaited ┘
 *
 * Called again on every beat until it is done: whatever fails on the way, a full disk above all, is tried again. A node
 * that is stopped in between comes to the same entry at its next start, and finds what it has done.
 */

import { assert } from '@vacancy/shared'
import type { Env } from '../env.ts'
import type { Exchange } from '../snapshot/exchange.ts'
import { dataPlaced, type Loading, type Replica, startSnapshot } from './replica.ts'

export const LOADING_LIMITS = {
  /** Others are asked for what is not here this often. */
  askMs: 2_000,
  /** What could not be kept or cannot be used is tried again after this. */
  retryMs: 5_000,
} as const

export type LoadingPort = {
  readonly env: Pick<Env, 'clock' | 'log'>
  readonly replica: Replica
  readonly exchange: Exchange
  /** Asks the other members for a snapshot. */
  ask(digest: string): void
  /** Why the data of the held snapshot in this folder cannot be loaded here; '' when they can. */
  check(path: string): string
  /** Puts them in place of the store's. */
  replace(path: string, digest: string, done: () => void): void
  /** The phase has changed, and with it whether the node may be asked. */
  onPhase(): void
}

export type Loader = {
  readonly port: LoadingPort
  /** Waits for an answer of the disk. */
  isBusy: boolean
  /** Not before: what was tried is tried again then. */
  nextMs: number
  path: string
  /** Content digest of the state before the load; it is kept. */
  before: string
  /** Snapshots of this node that had failed when the last one was begun here. */
  failures: number
}

export function createLoader(port: LoadingPort): Loader {
  return { port, isBusy: false, nextMs: 0, path: '', before: '', failures: 0 }
}

/** Apply has come to a load. */
export function beginLoading(loader: Loader): void {
  loader.nextMs = 0
  loader.path = ''
  loader.before = ''
  loader.failures = loader.port.replica.snapshotFailures
  proceed(loader)
}

/** Called on every beat of the member, and when a snapshot was brought in. */
export function proceed(loader: Loader): void {
  const { port, isBusy } = loader
  const { loading, installing } = port.replica
  // A snapshot of the leader's that is being installed is of a state behind the load.
  if (!loading || installing || isBusy || port.env.clock.monotonicMs() < loader.nextMs) return
  switch (loading.phase) {
    case 'looking':
    case 'awaited':
      return look(loader, loading)
    case 'keeping':
      return loader.before === '' ? keep(loader, loading) : replace(loader, loading)
    default:
      return
  }
}

/** What was being waited for may be here. */
export function lookAgain(loader: Loader): void {
  if (loader.port.replica.loading?.phase === 'awaited') loader.nextMs = 0
  proceed(loader)
}

function look(loader: Loader, loading: Loading): void {
  const { port } = loader
  ask(loader, loading, { kind: 'find', contentDigest: loading.digest }, (answer) => {
    const found = answer.state === 'found' ? answer.found : undefined
    if (!found) {
      port.ask(loading.digest)
      return wait(loader, loading, 'awaited', LOADING_LIMITS.askMs)
    }
    const fault = port.check(found.path)
    if (fault !== '') {
      port.env.log.error({ digest: loading.digest, reason: fault }, 'the data of a bulk load cannot be loaded here')
      return wait(loader, loading, 'awaited', LOADING_LIMITS.retryMs)
    }
    loader.path = found.path
    enter(loader, loading, 'keeping')
    proceed(loader)
  })
}

/** The state that everything before the load has led to becomes a snapshot that stays. */
function keep(loader: Loader, loading: Loading): void {
  const { replica } = loader.port
  if (replica.snapshotRunning) return
  const { applied: index, appliedTerm: term } = replica.raft
  assert(index === loading.index - 1, 'nothing is applied while a load is waited for')
  ask(loader, loading, { kind: 'keep', index, term, loaded: loading.digest }, (answer) => {
    if (answer.state === 'kept') {
      loader.before = answer.path.slice(-DIGEST_DIGITS)
      return proceed(loader)
    }
    // There is none of this index yet, or there was no room for it.
    if (replica.snapshotFailures === loader.failures && startSnapshot(replica, 'requested')) return
    loader.failures = replica.snapshotFailures
    wait(loader, loading, 'keeping', LOADING_LIMITS.retryMs)
  })
}

/** The names of folders end in one. */
const DIGEST_DIGITS = 64

function replace(loader: Loader, loading: Loading): void {
  const { port, path } = loader
  // A snapshot that is being written reads the memory that is to be cleared.
  if (port.replica.snapshotRunning) return
  enter(loader, loading, 'replacing')
  port.replace(path, loading.digest, () => {
    assert(port.replica.loading === loading, 'nothing else changes the state meanwhile')
    dataPlaced(port.replica)
    port.onPhase()
  })
}

type Ask = Parameters<Exchange>[0]
type Done = Parameters<Exchange>[1]

/** Asks the disk; the answer counts while apply still stands before this load. */
function ask(loader: Loader, loading: Loading, what: Ask, done: Done): void {
  const { port } = loader
  loader.isBusy = true
  port.exchange(what, (answer) => {
    loader.isBusy = false
    if (port.replica.loading === loading && !port.replica.installing) done(answer)
  })
}

function wait(loader: Loader, loading: Loading, phase: Loading['phase'], delayMs: number): void {
  loader.nextMs = loader.port.env.clock.monotonicMs() + delayMs
  enter(loader, loading, phase)
}

function enter({ port }: Loader, loading: Loading, phase: Loading['phase']): void {
  if (loading.phase === phase) return
  loading.phase = phase
  port.onPhase()
}
