/**
 * Applies a bulk load on a member (docs/design/consensus.md#log-commands): finds the snapshot or requests it from the
 * other members, keeps the previous state as a snapshot of its own, replaces the data of the store, and lets apply
 * continue. Meanwhile the core continues to vote, store and acknowledge.
 *
 *   looking ──► keeping ──► replacing ──► placed
 *      └► awaited ┘
 *
 * Runs on every beat until it is done, so that any failure on the way, above all a full disk, is retried. A node that
 * is stopped in between reaches the same entry at its next start and finds what it has already done.
 */

import { assert } from '@vacancy/shared'
import type { Env } from '../env.ts'
import type { Exchange } from '../snapshot/exchange.ts'
import { dataPlaced } from './applying.ts'
import { startSnapshot } from './maintenance.ts'
import type { Loading, Replica } from './replica-state.ts'

export const LOADING_LIMITS = {
  /** How often a missing snapshot is requested from the other members. */
  requestMs: 2_000,
  /** How long to wait before retrying a step that failed. */
  retryMs: 5_000,
} as const

export type LoadingPort = {
  readonly env: Pick<Env, 'clock' | 'log'>
  readonly replica: Replica
  readonly exchange: Exchange
  /** Requests a snapshot from the other members. */
  request(digest: string): void
  /** Why the data of the held snapshot in this folder cannot be loaded here; '' if they can. */
  check(path: string): string
  /** Replaces the data of the store with them. */
  replace(path: string, digest: string, done: () => void): void
  /** The phase changed, and with it whether the node can serve. */
  onPhase(): void
}

export type Loader = {
  readonly port: LoadingPort
  /** A request to the disk is pending. */
  isBusy: boolean
  /** Earliest time of the next attempt. */
  nextMs: number
  path: string
  /** Content digest of the state before the load, which is kept. */
  before: string
  /** Failed snapshots of this node when the last one was started here. */
  failures: number
}

export function createLoader(port: LoadingPort): Loader {
  return { port, isBusy: false, nextMs: 0, path: '', before: '', failures: 0 }
}

/** Apply reached a load. */
export function beginLoading(loader: Loader): void {
  loader.nextMs = 0
  loader.path = ''
  loader.before = ''
  loader.failures = loader.port.replica.snapshotFailures
  proceed(loader)
}

/** Called on every beat of the member, and when a snapshot has arrived. */
export function proceed(loader: Loader): void {
  const { port, isBusy } = loader
  const { loading, installing } = port.replica
  // A snapshot of the leader that is being installed has a state past the load.
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

/** Retries at once: a missing snapshot may have arrived. */
export function retryLookup(loader: Loader): void {
  if (loader.port.replica.loading?.phase === 'awaited') loader.nextMs = 0
  proceed(loader)
}

function look(loader: Loader, loading: Loading): void {
  const { port } = loader
  request(loader, loading, { kind: 'find', contentDigest: loading.digest }, (answer) => {
    const found = answer.state === 'found' ? answer.found : undefined
    if (!found) {
      port.request(loading.digest)
      return wait(loader, loading, 'awaited', LOADING_LIMITS.requestMs)
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

/** Keeps the state of all entries before the load as a snapshot that is not retired. */
function keep(loader: Loader, loading: Loading): void {
  const { replica } = loader.port
  if (replica.snapshotRunning) return
  const { applied: index, appliedTerm: term } = replica.raft
  assert(index === loading.index - 1, 'no entry is applied while a load waits')
  request(loader, loading, { kind: 'keep', index, term, loaded: loading.digest }, (answer) => {
    if (answer.state === 'kept') {
      loader.before = answer.path.slice(-DIGEST_DIGITS)
      return proceed(loader)
    }
    // No snapshot of this index exists yet, or there was no room to keep it.
    if (replica.snapshotFailures === loader.failures && startSnapshot(replica, 'requested')) return
    loader.failures = replica.snapshotFailures
    wait(loader, loading, 'keeping', LOADING_LIMITS.retryMs)
  })
}

/** Folder names end in a digest of this length. */
const DIGEST_DIGITS = 64

function replace(loader: Loader, loading: Loading): void {
  const { port, path } = loader
  // A snapshot that is being written reads the memory that replacing clears.
  if (port.replica.snapshotRunning) return
  enter(loader, loading, 'replacing')
  port.replace(path, loading.digest, () => {
    assert(port.replica.loading === loading, 'only the load changes the state meanwhile')
    dataPlaced(port.replica)
    port.onPhase()
  })
}

type DiskRequest = Parameters<Exchange>[0]
type Done = Parameters<Exchange>[1]

/** Sends a request to the disk. The reply counts only while apply is still at this load. */
function request(loader: Loader, loading: Loading, what: DiskRequest, done: Done): void {
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
