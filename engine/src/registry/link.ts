/**
 * The registry client of a node: fetches the codec list before the start, registers with every heartbeat, and, while
 * the node leads, publishes the segments of its shard (docs/design/http.md#heartbeats-and-versions,
 * docs/design/http.md#codec-list, docs/design/consensus.md#formation).
 *
 * Once the codec list is there, serving never waits for the registry: every failure is logged and retried with growing
 * pauses. The client waits only through the injected schedule and sends only through the injected request, so that a
 * simulator can run it.
 *
 *   segments, on the leader:   idle ─ check due ─► reading ─ same ─► idle
 *                                                     └ other, or unknown shard ─► pushing ─ accepted ─► idle
 *   A failure of either step is retried after a pause. A refusal waits for the next check, because the same push
 *   would be refused again. Losing the lead ends both at once.
 */

import { type Clock, type CodecList, createCodecList, type Schedule, VacancyError } from '@vacancy/shared'
import {
  errorBody,
  pushedBody,
  REGISTRY_LIMITS,
  registerBody,
  registryCodecsBody,
  segmentsChecksum,
  shardSegmentsBody,
  sortedSegments,
  staleTermBody,
} from '@vacancy/shared/contract'
import type { HttpRequest, HttpResult, SendRequest } from '@vacancy/shared/node'
import type { Log } from '../env.ts'
import type { RegistryStatus } from '../status.ts'

/** Pauses after failures: doubling, ± a fifth (docs/design/http.md#callers-of-the-registry). */
const BACKOFF_MS = { first: 100, max: 5_000, jitter: 0.2 } as const
/** Changes of segments within this time are published together. */
export const DEBOUNCE_MS = 200
/** How often the registry's codec list is compared with that of the node. */
export const CODECS_CHECK_MS = 60_000
/** Least time between two warnings about the same lasting state. */
const WARNING_REPEAT_MS = 3_600_000
/** How often a start that waits for the codec list logs that. */
const WAITING_LOG_MS = 30_000
/** Failed rounds over all addresses before a start continues with the stored codec list. */
const ROUNDS_BEFORE_STORED = 3
const REQUEST_MS = { small: 2_000, list: 30_000, farewell: 1_000 } as const
/** What a node reports about itself, read whenever it is needed. */
export type NodeReport = {
  /** The response of `/healthz`. */
  readonly health: string
  readonly role: 'leader' | 'follower' | 'learner' | undefined
  readonly term: number
  readonly leader: string | undefined
  /**
   * The node leads, serves, and has applied its log to the commit index: only then is its list of segments complete.
   */
  readonly mayPublish: boolean
  readonly segments: () => readonly { readonly name: string; readonly properties: number }[]
}

export type RegistryOptions = {
  /** As returned by parseRegistryAddresses. */
  readonly addresses: readonly string[]
  readonly node: string
  readonly shard: string
  readonly zone: string
  /** Random, different for each start of the process. */
  readonly instance: string
  readonly version: string
  readonly startedAt: string
  readonly apiUrl?: string
  readonly heartbeatMs: number
  readonly report: () => NodeReport
}

export type RegistryParts = {
  readonly clock: Clock
  readonly schedule: Schedule
  readonly random: { bytes(count: number): Uint8Array }
  readonly log: Log
  readonly request: SendRequest
}

export type RegistryLink = {
  /**
   * Requests the codec list until it arrives. Calls back once.
   *
   * @param stored the list stored with the node's data: used when the registry is unreachable for a while
   */
  takeCodecs(stored: CodecList | undefined, done: (codecs: CodecList, from: 'registry' | 'stored') => void): void
  /** Begins to compare the registry's codec list with this one. */
  watchCodecs(codecs: CodecList): void
  /** Registers, and keeps doing so. Called when the node's HTTP API serves. */
  start(): void
  /** Called when role or term changed. */
  roleChanged(): void
  /** Called when the set of segments may have changed. */
  segmentsChanged(): void
  status(): RegistryStatus
  /** Stops the client and deregisters with one try. Calls back once. */
  stop(done: () => void): void
}

type Timer = 'heartbeat' | 'codecs' | 'segments' | 'start'

type Link = ReturnType<typeof createLink>

function createLink(parts: RegistryParts, options: RegistryOptions) {
  return {
    options,
    parts,
    timers: new Map<Timer, () => void>(),
    requests: new Map<Timer, () => void>(),
    failures: new Map<Timer, number>(),
    /** By result; `conflict`: accepted except for segments that other shards own. */
    pushes: { accepted: 0, conflict: 0, refused: 0, failed: 0 },
    address: 0,
    /** Consecutive failed requests of any purpose. */
    failed: 0,
    failedSinceMs: 0,
    fault: '',
    heartbeatMs: undefined as number | undefined,
    epoch: undefined as string | undefined,
    refusedHeartbeat: '',
    warnedTimeout: 0,
    codecs: undefined as CodecList | undefined,
    mismatch: '',
    mismatchWarnedMs: 0,
    isStarted: false,
    isStopped: false,
    /** Another check is wanted after the present one. */
    checksAgain: false,
    last: undefined as
      | { readonly checksum: string; readonly etag: string; readonly segments: number; readonly conflicts: number }
      | undefined,
    refusal: '',
  }
}

export function createRegistryLink(parts: RegistryParts, options: RegistryOptions): RegistryLink {
  const link = createLink(parts, options)
  return {
    takeCodecs: (stored, done) => takeCodecs(link, stored, done),
    watchCodecs(codecs) {
      link.codecs = codecs
      wait(link, 'codecs', CODECS_CHECK_MS, () => checkCodecs(link))
    },
    start() {
      link.isStarted = true
      beat(link)
    },
    roleChanged: () => roleChanged(link),
    segmentsChanged: () => scheduleCheck(link, DEBOUNCE_MS),
    status: () => statusOf(link),
    stop: (done) => stop(link, done),
  }
}

// Requests

/** Sends a request for a purpose. A purpose has one request or one pause at a time. */
function send(link: Link, purpose: Timer, request: HttpRequest, done: (result: HttpResult) => void): void {
  const { parts } = link
  const base = addressOf(link)
  cancel(link, purpose)
  link.requests.set(
    purpose,
    parts.request(base, request, (result) => {
      link.requests.delete(purpose)
      if (link.isStopped) return
      const failed = result.kind === 'failed' || result.status >= 500
      if (failed) noteFailure(link, base, result)
      else noteAnswer(link, base)
      done(failed && result.kind === 'answer' ? { kind: 'failed', reason: `it returned ${result.status}` } : result)
    }),
  )
}

/**
 * The next request goes to the next registry. The client stays with the one that responds
 * (docs/design/http.md#callers-of-the-registry).
 */
function noteFailure(link: Link, base: string, result: HttpResult): void {
  const { addresses } = link.options
  const reason = result.kind === 'failed' ? result.reason : `it returned ${result.status}`
  if (link.failed === 0) link.failedSinceMs = link.parts.clock.monotonicMs()
  link.failed += 1
  link.fault = `${base}: ${reason}`
  // Requests for other purposes may have failed at the same registry and moved on already.
  if (addressOf(link) === base) link.address = (link.address + 1) % addresses.length
  if (link.failed === addresses.length) {
    link.parts.log.warn({ registry: base, reason }, 'registry unreachable, continuing without it')
  } else if (link.failed < addresses.length) {
    link.parts.log.info({ registry: base, reason, next: addresses[link.address] }, 'trying the next registry')
  }
}

function noteAnswer(link: Link, base: string): void {
  const seconds = Math.round((link.parts.clock.monotonicMs() - link.failedSinceMs) / 1000)
  if (link.failed >= link.options.addresses.length) {
    link.parts.log.info({ registry: base, seconds }, 'registry reachable again')
    // A registry reads its codec list when it starts: it may return with another one.
    if (link.codecs) wait(link, 'codecs', 0, () => checkCodecs(link))
  }
  link.failed = 0
  link.fault = ''
}

function wait(link: Link, purpose: Timer, delayMs: number, run: () => void): void {
  link.timers.get(purpose)?.()
  if (link.isStopped) return
  link.timers.set(
    purpose,
    link.parts.schedule.after(delayMs, () => {
      link.timers.delete(purpose)
      run()
    }),
  )
}

function cancel(link: Link, purpose: Timer): void {
  link.timers.get(purpose)?.()
  link.timers.delete(purpose)
  link.requests.get(purpose)?.()
  link.requests.delete(purpose)
}

/** The pause before a purpose is retried. */
function pauseMs(link: Link, purpose: Timer): number {
  const count = link.failures.get(purpose) ?? 0
  link.failures.set(purpose, count + 1)
  const baseMs = Math.min(BACKOFF_MS.max, BACKOFF_MS.first * 2 ** Math.min(count, 16))
  const byte = link.parts.random.bytes(1)[0]
  return Math.round(baseMs * (1 - BACKOFF_MS.jitter + (2 * BACKOFF_MS.jitter * byte) / 255))
}

// The codec list

function takeCodecs(
  link: Link,
  stored: CodecList | undefined,
  done: (codecs: CodecList, from: 'registry' | 'stored') => void,
): void {
  const { clock, log } = link.parts
  const startMs = clock.monotonicMs()
  let loggedMs = startMs
  const finish = (codecs: CodecList, from: 'registry' | 'stored'): void => {
    link.failures.delete('start')
    done(codecs, from)
  }
  const again = (reason: string): void => {
    const tries = (link.failures.get('start') ?? 0) + 1
    if (stored && tries >= ROUNDS_BEFORE_STORED * link.options.addresses.length) {
      log.warn({ reason }, 'no codec list from the registry, starting with the stored one')
      finish(stored, 'stored')
      return
    }
    const nowMs = clock.monotonicMs()
    if (tries === 1 || nowMs - loggedMs >= WAITING_LOG_MS) {
      loggedMs = nowMs
      const seconds = Math.round((nowMs - startMs) / 1000)
      log.warn({ reason, seconds }, 'waiting for the registry: the node cannot start without its codec list')
    }
    wait(link, 'start', pauseMs(link, 'start'), attempt)
  }
  const attempt = (): void => {
    send(link, 'start', { method: 'GET', path: '/codecs', timeoutMs: REQUEST_MS.small }, (result) => {
      const codecs = readCodecs(result)
      if (typeof codecs === 'string') again(codecs)
      else finish(codecs, 'registry')
    })
  }
  attempt()
}

/** The codec list of a response, or its defect. Its hash ignores the order, so only the names count. */
function readCodecs(result: HttpResult): CodecList | string {
  if (result.kind === 'failed') return result.reason
  if (result.status !== 200) return refusalOf(result)
  const body = registryCodecsBody.safeParse(parse(result.body))
  if (!body.success) return 'the response to /codecs is not a codec list'
  try {
    return createCodecList(body.data.rate_features)
  } catch (error) {
    if (error instanceof VacancyError) return error.message
    throw error
  }
}

/** A list that changes while the node runs takes effect at its next start (docs/design/consensus.md#formation). */
function checkCodecs(link: Link): void {
  const { clock, log } = link.parts
  send(link, 'codecs', { method: 'GET', path: '/codecs', timeoutMs: REQUEST_MS.small }, (result) => {
    wait(link, 'codecs', CODECS_CHECK_MS, () => checkCodecs(link))
    const theirs = readCodecs(result)
    const ours = link.codecs as CodecList
    // Without a response the list is unknown.
    if (typeof theirs === 'string') return
    if (theirs.orderedHash === ours.orderedHash) {
      if (link.mismatch !== '') log.info({}, 'codec list of the registry matches again')
      link.mismatch = ''
      return
    }
    const isNew = link.mismatch === ''
    link.mismatch = `the registry has ${quoted(theirs)}, the node ${quoted(ours)}`
    const nowMs = clock.monotonicMs()
    if (!isNew && nowMs - link.mismatchWarnedMs < WARNING_REPEAT_MS) return
    link.mismatchWarnedMs = nowMs
    log.warn(
      { registry: theirs.names, node: ours.names },
      'the registry has another codec list: the node keeps its own until its next start, which sets its data aside',
    )
  })
}

function quoted({ names }: CodecList): string {
  return `[${names.join(', ')}]`
}

// Heartbeats

function beat(link: Link): void {
  const { options, parts } = link
  const { health, role, term, leader, mayPublish, segments } = options.report()
  const counts = mayPublish ? segments() : []
  const body = {
    kind: 'node',
    id: options.node,
    zone: options.zone,
    shard: options.shard,
    instance: options.instance,
    version: options.version,
    started_at: options.startedAt,
    health,
    term,
    ...(options.apiUrl !== undefined && { api_url: options.apiUrl }),
    ...(role !== undefined && { role }),
    ...(leader !== undefined && { leader_id: leader }),
    ...(counts.length > 0 &&
      counts.length <= REGISTRY_LIMITS.segmentCountsMax && {
        segment_counts: Object.fromEntries(counts.map(({ name, properties }) => [name, properties])),
      }),
  }
  const request = { method: 'POST', path: '/register', body: fitting(body), timeoutMs: REQUEST_MS.small } as const
  send(link, 'heartbeat', request, (result) => {
    if (result.kind === 'failed') {
      wait(link, 'heartbeat', Math.min(options.heartbeatMs, pauseMs(link, 'heartbeat')), () => beat(link))
      return
    }
    link.failures.delete('heartbeat')
    wait(link, 'heartbeat', options.heartbeatMs, () => beat(link))
    const refusal = result.status === 200 ? '' : refusalOf(result)
    if (refusal !== '' && refusal !== link.refusedHeartbeat)
      parts.log.error({ reason: refusal }, 'the registry refuses to register this node, routers cannot find it')
    if (refusal === '' && link.refusedHeartbeat !== '') parts.log.info({}, 'registered again')
    link.refusedHeartbeat = refusal
    if (refusal !== '') return
    if (link.heartbeatMs === undefined) parts.log.info({ registry: addressOf(link) }, 'registered')
    link.heartbeatMs = parts.clock.monotonicMs()
    readHeartbeat(link, result.body)
    scheduleCheck(link, 0)
  })
}

/** Counts are only displayed. They are left out when long names make them too large. */
function fitting(body: { readonly segment_counts?: object }): string {
  const whole = JSON.stringify(body)
  if (whole.length * 3 <= REGISTRY_LIMITS.bodyBytesMax) return whole
  return JSON.stringify({ ...body, segment_counts: undefined })
}

function readHeartbeat(link: Link, body: string): void {
  const { options, parts } = link
  // Existing registries return no body. Their losses show when the segments are compared.
  const answer = registerBody.safeParse(parse(body))
  if (!answer.success) return
  const { epoch, heartbeat_timeout_secs: timeoutSeconds, ordered_hash: orderedHash } = answer.data
  const isOther = orderedHash !== undefined && orderedHash !== link.codecs?.orderedHash
  // A registry restarted between two heartbeats was never unreachable for this node.
  if (orderedHash !== undefined && link.codecs && isOther !== (link.mismatch !== '')) {
    wait(link, 'codecs', 0, () => checkCodecs(link))
  }
  if (link.epoch !== undefined && link.epoch !== epoch) {
    parts.log.warn(
      { before: link.epoch, now: epoch },
      'the registry was restarted or replaced, publishing everything again',
    )
    link.last = undefined
  }
  link.epoch = epoch
  if (options.heartbeatMs * 3 > timeoutSeconds * 1000 && link.warnedTimeout !== timeoutSeconds) {
    link.warnedTimeout = timeoutSeconds
    parts.log.warn(
      { heartbeatMs: options.heartbeatMs, timeoutSeconds },
      'registry_heartbeat_secs is more than a third of the heartbeat timeout of the registry: it may remove the node',
    )
  }
}

// Segments

function roleChanged(link: Link): void {
  if (link.isStopped || !link.isStarted) return
  if (link.options.report().role === 'leader') {
    scheduleCheck(link, 0)
    return
  }
  cancel(link, 'segments')
  link.checksAgain = false
  link.last = undefined
  link.refusal = ''
}

/** Compares and publishes after a delay. A running check finishes first. */
function scheduleCheck(link: Link, delayMs: number): void {
  if (link.isStopped || !link.isStarted || !link.options.report().mayPublish) return
  if (link.requests.has('segments')) {
    link.checksAgain = true
    return
  }
  // A pause after a failure is not shortened, and further changes do not prolong a debounce.
  if (link.timers.has('segments')) return
  wait(link, 'segments', delayMs, () => checkSegments(link))
}

type Ours = { readonly names: readonly string[]; readonly checksum: string; readonly term: number }

function checkSegments(link: Link): void {
  const { options } = link
  const report = options.report()
  if (!report.mayPublish) return
  const names = sortedSegments(report.segments().map(({ name }) => name))
  const ours = { names, checksum: segmentsChecksum(names), term: report.term }
  // Unchanged here since the last push, so it may be unchanged at the registry too.
  const etag = link.last?.checksum === ours.checksum ? link.last.etag : ''
  const request: HttpRequest = {
    method: 'GET',
    path: segmentsPath(link),
    ...(etag !== '' && { headers: { 'If-None-Match': etag } }),
    timeoutMs: REQUEST_MS.list,
  }
  send(link, 'segments', request, (result) => {
    if (result.kind === 'failed') return lookAfterPause(link)
    if (result.status === 304) return checkDone(link)
    if (result.status === 404) return push(link, ours)
    if (result.status !== 200) return refused(link, refusalOf(result))
    const theirs = shardSegmentsBody.safeParse(parse(result.body))
    if (!theirs.success) return refused(link, 'its response is not a list of segments')
    const { zone, segments } = theirs.data
    const isSame =
      zone === options.zone &&
      segments.length === names.length &&
      sortedSegments(segments).every((name, i) => name === names[i])
    if (!isSame) return push(link, ours)
    link.last = { checksum: ours.checksum, etag: result.etag, segments: names.length, conflicts: 0 }
    checkDone(link)
  })
}

function segmentsPath({ options }: Link): string {
  return `/shards/${encodeURIComponent(options.shard)}/segments`
}

function push(link: Link, ours: Ours): void {
  const { options, parts } = link
  const report = options.report()
  // The node may have lost the lead, or regained it in another term, during the read: the list is then outdated.
  if (!report.mayPublish || report.term !== ours.term) return checkDone(link)
  const body = JSON.stringify({
    zone: options.zone,
    segments: ours.names,
    node_id: options.node,
    term: ours.term,
    checksum: ours.checksum,
  })
  const request = { method: 'POST', path: segmentsPath(link), body, timeoutMs: REQUEST_MS.list } as const
  send(link, 'segments', request, (result) => {
    if (result.kind === 'failed') {
      link.pushes.failed += 1
      return lookAfterPause(link)
    }
    if (result.status !== 200) {
      link.pushes.refused += 1
      return refused(link, refusalOf(result))
    }
    const answer = pushedBody.safeParse(parse(result.body))
    const conflicts = answer.success ? answer.data.conflicts : []
    link.pushes[conflicts.length > 0 ? 'conflict' : 'accepted'] += 1
    const isNews = link.last?.checksum !== ours.checksum || link.last.conflicts !== conflicts.length
    link.last = {
      checksum: ours.checksum,
      etag: result.etag,
      segments: ours.names.length,
      conflicts: conflicts.length,
    }
    if (isNews) parts.log.info({ segments: ours.names.length, term: ours.term }, 'segments published')
    if (isNews && conflicts.length > 0) {
      const some = conflicts.slice(0, 10).map(({ segment, owner_shard: owner }) => `${segment} of ${owner}`)
      parts.log.warn(
        { conflicts: some },
        'other shards own segments that this shard holds, routers do not send them here',
      )
    }
    checkDone(link)
  })
}

function checkDone(link: Link): void {
  link.failures.delete('segments')
  if (link.refusal !== '') link.parts.log.info({}, 'segments accepted again')
  link.refusal = ''
  lookAgain(link)
}

/** The same push would be refused again: it waits for the next heartbeat or a change. */
function refused(link: Link, reason: string): void {
  link.failures.delete('segments')
  link.last = undefined
  if (link.refusal !== reason)
    link.parts.log.error({ reason }, 'the registry refused the segments of the shard, routers keep the old list')
  link.refusal = reason
  lookAgain(link)
}

function lookAgain(link: Link): void {
  if (!link.checksAgain) return
  link.checksAgain = false
  scheduleCheck(link, DEBOUNCE_MS)
}

function lookAfterPause(link: Link): void {
  link.checksAgain = false
  wait(link, 'segments', pauseMs(link, 'segments'), () => checkSegments(link))
}

/** The reason of a refusal, for operators. */
function refusalOf({ status, body }: { readonly status: number; readonly body: string }): string {
  const value = parse(body)
  const stale = staleTermBody.safeParse(value)
  if (stale.success)
    return `it has seen term ${stale.data.term} of this shard: another node leads, or the shard was restored from a backup and the registry must forget it (DELETE /shards/…)`
  const conflicts = pushedBody.safeParse(value)
  if (conflicts.success) {
    const some = conflicts.data.conflicts
      .slice(0, 10)
      .map(({ segment, owner_shard: owner }) => `${segment} of ${owner}`)
    return `other shards own ${some.join(', ')}`
  }
  const error = errorBody.safeParse(value)
  const reason = error.success ? error.data.error : 'it gave no reason'
  if (status === 401) return `${reason}: set --registry-token-file to a file with a token of role component`
  return `${reason} (${status})`
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    // An unreadable body matches no schema, which the caller reports.
    return undefined
  }
}

// State and shutdown

function addressOf({ options, address }: Link): string {
  return options.addresses[address]
}

function statusOf(link: Link): RegistryStatus {
  const { clock } = link.parts
  return {
    address: addressOf(link),
    isReachable: link.failed < link.options.addresses.length,
    fault: link.fault,
    heartbeatAgeMs: link.heartbeatMs === undefined ? undefined : clock.monotonicMs() - link.heartbeatMs,
    codecMismatch: link.mismatch,
    published: link.last && { segments: link.last.segments, conflicts: link.last.conflicts },
    refusal: link.refusal,
    pushes: { ...link.pushes },
  }
}

function stop(link: Link, done: () => void): void {
  if (link.isStopped) return done()
  link.isStopped = true
  for (const purpose of ['heartbeat', 'codecs', 'segments', 'start'] as const) cancel(link, purpose)
  if (link.heartbeatMs === undefined) return done()
  const path = `/register/node/${encodeURIComponent(link.options.node)}`
  // Existing registries do not know this path. They remove the node when it is silent.
  link.parts.request(addressOf(link), { method: 'DELETE', path, timeoutMs: REQUEST_MS.farewell }, () => done())
}
