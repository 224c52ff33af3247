/** What a component of the fabric reports: the meaning of its replies, and rates from two readings. Pure. */

import { z } from 'zod'
import { significant } from '../history/figures.ts'

type Sample = { readonly labels: ReadonlyMap<string, string>; readonly value: number }

const LINE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? ([^ ]+)(?: \d+)?$/
const LABEL = /([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"/g

/** The samples of the wanted metrics, by name. Other and unreadable lines are skipped. */
function samplesOf(text: string, isWanted: (name: string) => boolean): ReadonlyMap<string, readonly Sample[]> {
  const found = new Map<string, Sample[]>()
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue
    const [, name = '', labels = '', number = ''] = LINE.exec(line) ?? []
    if (name === '' || !isWanted(name)) continue
    const value = Number(number)
    if (Number.isNaN(value)) continue
    const list = found.get(name) ?? []
    found.set(name, list)
    list.push({
      labels: new Map([...labels.matchAll(LABEL)].map(([, key = '', of = '']) => [key, unescaped(of)])),
      value,
    })
  }
  return found
}

function unescaped(text: string): string {
  return text.replaceAll(/\\(.)/g, (_, character: string) => (character === 'n' ? '\n' : character))
}

function sumOf(
  samples: readonly Sample[] | undefined,
  labels: { readonly [name: string]: string } = {},
): number | undefined {
  const matching = samples?.filter((sample) =>
    Object.entries(labels).every(([name, value]) => sample.labels.get(name) === value),
  )
  return matching && matching.length > 0 ? matching.reduce((sum, { value }) => sum + value, 0) : undefined
}

const text = z.string()
const number = z.number().nonnegative()

/** `GET /ready` of every service of the fabric; routers and bridges add what they are. */
const readyBody = z.object({
  ready: z.boolean(),
  reasons: z.array(z.object({ name: text, message: text, since: text })).default([]),
  component: text.optional(),
  mode: text.optional(),
  id: text.nullish(),
  zone: text.nullish(),
  shard: text.nullish(),
  version: text.optional(),
  routes: number.optional(),
  registry_up: z.boolean().optional(),
  leader: text.nullish(),
  upstream: text.optional(),
  tcp_port: number.optional(),
  connections: number.optional(),
  in_flight: number.optional(),
})
export type Ready = z.infer<typeof readyBody>

/** A next hop, from `/hops` of a router or `/topology` of a bridge. */
const hopBody = z.object({
  id: text,
  connections: number,
  in_flight: number.default(0),
  ejected_for_ms: number.default(0),
  fault: text.default(''),
  role: text.optional(),
  health: text.optional(),
  lag: number.nullish(),
})
export type HopReport = z.infer<typeof hopBody>

const hopsBody = z.object({ hops: z.array(hopBody) })
const nodesBody = z.object({ leader: text.nullish(), nodes: z.array(hopBody) })
const statusBody = z.object({ version: text.optional() })

/** One reading of the counters. */
export type Counters = {
  readonly at: number
  readonly reads: number | undefined
  readonly writes: number | undefined
  readonly errors: number | undefined
  readonly received: number | undefined
  /** By hop. */
  readonly sent: ReadonlyMap<string, { readonly reads: number; readonly writes: number }>
  /** Cumulative counts by upper bound in seconds. */
  readonly durations: ReadonlyMap<number, number>
  readonly inFlight: number | undefined
  readonly connections: number | undefined
}

export type Rates = {
  readonly reads: number | null
  readonly writes: number | null
  readonly errors: number | null
  readonly received: number | null
  readonly p99: number | null
  readonly sent: ReadonlyMap<string, { readonly reads: number; readonly writes: number }>
}

export type Reported = {
  readonly at: number
  /** Undefined for components that serve only `/health`. */
  readonly ready: Ready | undefined
  readonly version: string | undefined
  /** Undefined when it does not report any. */
  readonly hops: readonly HopReport[] | undefined
  readonly counters: Counters | undefined
  readonly rates: Rates | undefined
}

export function parsed<S extends z.ZodType>(schema: S, body: string): z.infer<S> | undefined {
  try {
    return schema.safeParse(JSON.parse(body)).data
  } catch {
    // Not JSON: an existing component may serve another page under this path.
    return undefined
  }
}

export function readReady(body: string): Ready | undefined {
  return parsed(readyBody, body)
}

export function readHops(body: string): readonly HopReport[] | undefined {
  return parsed(hopsBody, body)?.hops ?? parsed(nodesBody, body)?.nodes
}

export function readVersion(body: string): string | undefined {
  return parsed(statusBody, body)?.version
}

const WANTED =
  /^(?:(?:router|bridge)_(?:requests_total|frames_received_total|hop_requests_total|request_duration_seconds_bucket|inflight|connections)|api_(?:requests_total|request_duration_seconds_bucket|inflight|connections)|registry_requests_total)$/

/** Undefined when the page has none of the known counters. */
export function readCounters(page: string, at: number): Counters | undefined {
  const samples = samplesOf(page, (name) => WANTED.test(name))
  if (samples.size === 0) return undefined
  // A component without requests so far has no sample of `requests_total`.
  const prefix =
    ['router', 'bridge'].find((each) => samples.has(`${each}_frames_received_total`)) ??
    ['api', 'registry'].find((each) => samples.has(`${each}_requests_total`)) ??
    ''
  const of = (name: string) => samples.get(`${prefix}_${name}`)
  // The proxy counts its own pages, such as this one, as command `none`.
  const requests = of('requests_total')?.filter(({ labels }) => labels.get('command') !== 'none')
  const isForwarder = prefix === 'router' || prefix === 'bridge'
  const total = requests && (sumOf(requests) ?? 0)
  return {
    at,
    reads: isForwarder ? (sumOf(requests, { kind: 'read' }) ?? 0) : total,
    writes: isForwarder ? (sumOf(requests, { kind: 'write' }) ?? 0) : undefined,
    errors: prefix === 'registry' ? undefined : errorsOf(requests ?? []),
    received: isForwarder ? sumOf(of('frames_received_total')) : total,
    sent: sentOf(of('hop_requests_total') ?? []),
    durations: durationsOf(of('request_duration_seconds_bucket') ?? []),
    inFlight: sumOf(of('inflight')),
    connections: sumOf(of('connections')),
  }
}

/** Results are `ok`, `dropped` or a code; 404 is an answer about the segment. */
function errorsOf(requests: readonly Sample[]): number {
  return requests
    .filter(({ labels }) => {
      const result = labels.get('result') ?? labels.get('status') ?? 'ok'
      return result !== 'ok' && result !== '404' && !/^2\d\d$/.test(result)
    })
    .reduce((sum, { value }) => sum + value, 0)
}

function sentOf(samples: readonly Sample[]): Counters['sent'] {
  const sent = new Map<string, { reads: number; writes: number }>()
  for (const { labels, value } of samples) {
    const hop = labels.get('hop') ?? ''
    const both = sent.get(hop) ?? { reads: 0, writes: 0 }
    both[labels.get('kind') === 'write' ? 'writes' : 'reads'] += value
    sent.set(hop, both)
  }
  return sent
}

function durationsOf(samples: readonly Sample[]): ReadonlyMap<number, number> {
  const counts = new Map<number, number>()
  for (const { labels, value } of samples) {
    const bound = Number(labels.get('le')?.replace('+Inf', 'Infinity'))
    counts.set(bound, (counts.get(bound) ?? 0) + value)
  }
  return counts
}

/** Rates per second between two readings; null where a counter is missing or began again. */
export function ratesBetween(before: Counters | undefined, now: Counters): Rates {
  const seconds = before ? (now.at - before.at) / 1000 : 0
  const rate = (from: number | undefined, to: number | undefined): number | null =>
    from === undefined || to === undefined || to < from || seconds <= 0 ? null : significant((to - from) / seconds)
  const sent = new Map<string, { reads: number; writes: number }>()
  for (const [hop, to] of now.sent) {
    const from = before?.sent.get(hop)
    const reads = rate(from?.reads, to.reads)
    const writes = rate(from?.writes, to.writes)
    if (reads !== null && writes !== null) sent.set(hop, { reads, writes })
  }
  return {
    reads: rate(before?.reads, now.reads),
    writes: rate(before?.writes, now.writes),
    errors: rate(before?.errors, now.errors),
    received: rate(before?.received, now.received),
    p99: before ? quantileMs(before.durations, now.durations, 0.99) : null,
    sent,
  }
}

/** The upper bound of the bucket that holds the quantile of what was added, in milliseconds; null without requests. */
function quantileMs(
  before: ReadonlyMap<number, number>,
  now: ReadonlyMap<number, number>,
  share: number,
): number | null {
  const bounds = [...now.keys()].sort((a, b) => a - b)
  const added = (bound: number) => (now.get(bound) ?? 0) - (before.get(bound) ?? 0)
  const total = added(Number.POSITIVE_INFINITY)
  if (total <= 0) return null
  const bound = bounds.find((each) => added(each) >= total * share)
  return bound === undefined || bound === Number.POSITIVE_INFINITY ? null : significant(bound * 1000)
}
