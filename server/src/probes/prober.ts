/**
 * Probes each way in, again and again: one probe at a time, spread over the interval, and only so many at once. What a
 * probe sends is the business of probe.ts.
 */
import type { Clock } from '@vacancy/shared'
import type { ClientsOfShard } from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import type { ClientsSeen } from '../cluster/cluster-state.ts'
import { type Alarm, createAlarm } from '../http/alarm.ts'
import { createOwnTime, type OwnTime } from '../http/own-time.ts'
import { addResult, NO_RESULTS, type ProbeResult, summaryOfClients, viewOfShard, type WayResults } from './results.ts'
import type { Way, WaysOfShard } from './ways.ts'

const PROBER = {
  tickMs: 50,
  atOnce: 32,
  /** How many of these may be probes of ways whose last probe failed: each may take its whole deadline. */
  failingAtOnce: 16,
  /** The first failure is repeated after this time. */
  againMs: 1_000,
  /** A probe that has not ended by now never will: its requests have deadlines. It counts as failed, again and again. */
  hungMs: 15_000,
} as const

type ProberOptions = {
  /** 0: it probes nothing. */
  readonly intervalMs: number
  readonly clock: Clock
  readonly log: Log
  /** From 0 up to but not including 1. */
  readonly random: () => number
  /** Resolves within the deadlines of its requests; rejects for a defect only. */
  readonly probe: (way: Way) => Promise<ProbeResult>
  /** The address is no way in any more, or has moved. */
  readonly forget: (way: Way) => void
  readonly onResult: (result: ProbeResult) => void
}

type Probed = {
  readonly way: Way
  results: WayResults
  nextMs: number
  isBusy: boolean
  /** While it is busy: when it counts as hung. */
  hungMs: number
}

export type Prober = {
  readonly options: ProberOptions
  shards: readonly WaysOfShard[]
  readonly probed: Map<string, Probed>
  busy: number
  busyFailing: number
  readonly ownTime: OwnTime
  readonly alarm: Alarm
}

export function createProber(options: ProberOptions): Prober {
  const ownTime = createOwnTime(options.clock, PROBER.tickMs)
  const alarm = createAlarm(options.clock, PROBER.tickMs, () => {
    probeDue(prober)
    return nextLookMs(prober)
  })
  const prober: Prober = { options, shards: [], probed: new Map(), busy: 0, busyFailing: 0, ownTime, alarm }
  return prober
}

export function startProber(prober: Prober): void {
  if (prober.options.intervalMs > 0) prober.alarm.start()
}

export function stopProber(prober: Prober): void {
  prober.alarm.stop()
}

/** Takes over the ways in as they are now. Results of those that stay are kept. */
export function setWays(prober: Prober, shards: readonly WaysOfShard[]): void {
  const { intervalMs, clock, random, forget } = prober.options
  prober.shards = shards
  if (intervalMs === 0) return
  const ways = new Map(shards.flatMap((each) => each.ways.map((way) => [way.key, way] as const)))
  for (const [key, { way }] of prober.probed) {
    const now = ways.get(key)
    if (now && isSame(now, way)) continue
    prober.probed.delete(key)
    forget(way)
  }
  for (const [key, way] of ways) {
    if (prober.probed.has(key)) continue
    // At a random place of the interval: the probes of all ways stay spread over it.
    const nextMs = clock.monotonicMs() + random() * intervalMs
    prober.probed.set(key, { way, results: NO_RESULTS, nextMs, isBusy: false, hungMs: 0 })
    prober.alarm.set(nextMs)
  }
}

/** While something is probed it looks each tick: others may be due or hung by then, and own-time.ts counts the ticks. */
function nextLookMs({ probed, busy }: Prober): number {
  if (busy > 0) return 0
  return Math.min(...[...probed.values()].map(({ nextMs }) => nextMs))
}

function isSame(a: Way, b: Way): boolean {
  return a.address.host === b.address.host && a.address.port === b.address.port && a.segment === b.segment
}

/** Starts what is due, the longest due first. */
export function probeDue(prober: Prober): void {
  prober.ownTime.tick()
  const nowMs = prober.options.clock.monotonicMs()
  for (const each of prober.probed.values()) if (each.isBusy && each.hungMs <= nowMs) countHung(prober, each, nowMs)
  const due = [...prober.probed.values()].filter(({ isBusy, nextMs }) => !isBusy && nextMs <= nowMs)
  for (const each of due.sort((a, b) => a.nextMs - b.nextMs)) {
    if (prober.busy >= PROBER.atOnce) return
    const isFailing = each.results.failures > 0
    if (isFailing && prober.busyFailing >= PROBER.failingAtOnce) continue
    void probeOne(prober, each, isFailing, nowMs)
  }
}

const HUNG: ProbeResult = {
  search: { kind: 'failed', code: 'deadline_exceeded', message: `no answer for ${PROBER.hungMs / 1_000} s` },
  hold: undefined,
}

function countHung({ options }: Prober, probed: Probed, nowMs: number): void {
  probed.results = addResult(probed.results, HUNG, options.clock.wallMs())
  probed.hungMs = nowMs + PROBER.hungMs
  options.onResult(HUNG)
}

async function probeOne(prober: Prober, probed: Probed, isFailing: boolean, startedMs: number): Promise<void> {
  const { intervalMs, clock, log, probe, onResult } = prober.options
  probed.isBusy = true
  probed.hungMs = startedMs + PROBER.hungMs
  prober.busy++
  if (isFailing) prober.busyFailing++
  try {
    const wasHeldUp = prober.ownTime.watch()
    const result = await probe(probed.way)
    // Of a way that was removed meanwhile nothing is kept, and nothing of a deadline that this process was too late for.
    if (prober.probed.get(probed.way.key) !== probed || (isLate(result) && wasHeldUp())) return
    probed.results = addResult(probed.results, result, clock.wallMs())
    onResult(result)
  } catch (error) {
    log.error({ err: error, way: probed.way.key }, 'a probe failed')
  } finally {
    probed.isBusy = false
    prober.busy--
    if (isFailing) prober.busyFailing--
    const isFirstFailure = probed.results.failures === 1
    const pauseMs = isFirstFailure ? Math.min(PROBER.againMs, intervalMs) : intervalMs
    probed.nextMs = Math.max(startedMs + pauseMs, clock.monotonicMs())
    if (prober.busy === 0) prober.alarm.move(nextLookMs(prober))
  }
}

const RANK: { readonly [state in ClientsOfShard['state']]: number } = {
  ...{ fails: 0, partly: 1, waiting: 2, 'not-probed': 3, answers: 4 },
}

/** What was measured up to now, by shard, failing ones first. */
export function clientsView(prober: Prober): ClientsSeen {
  const { intervalMs, clock } = prober.options
  const now = clock.wallMs()
  const all = [...prober.probed.values()]
  const shards =
    intervalMs === 0
      ? []
      : prober.shards.map(({ shard, ways, unprobed }) => {
          const known = ways.flatMap(({ key }) => prober.probed.get(key) ?? [])
          return viewOfShard(shard, known, unprobed, now, intervalMs)
        })
  const ranked = shards.toSorted((a, b) => RANK[a.state] - RANK[b.state])
  const clients = summaryOfClients(ranked, all, now, intervalMs)
  return { clients: { ...clients, shards: prober.shards.length }, shards: ranked }
}

function isLate({ search, hold }: ProbeResult): boolean {
  return [search, hold].some((outcome) => outcome?.kind === 'failed' && outcome.code === 'deadline_exceeded')
}
