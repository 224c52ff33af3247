/** Reads the metrics of a node (text of Prometheus) and tells rates and quantiles from two readings of it. */
import type { NodeView } from '@vacancy/shared/contract'
import { COMMANDS } from '@vacancy/shared/wire'

/** Counts of a histogram, added up as they are told, by upper bound. */
type Histogram = Map<number, number>

export type Reading = {
  readonly at: number
  readonly queries: number
  readonly writes: number
  readonly errors: number
  readonly reads: Histogram
  readonly commits: Histogram
  readonly syncs: Histogram
  readonly memoryBytes: number | undefined
  readonly walBytes: number | undefined
  readonly connections: number | undefined
  readonly connectionsLimit: number | undefined
  readonly cpuSeconds: number | undefined
}

const READS = new Set(Object.entries(COMMANDS).flatMap(([name, { access }]) => (access === 'read' ? [name] : [])))
const WRITES = new Set(Object.entries(COMMANDS).flatMap(([name, { access }]) => (access === 'write' ? [name] : [])))

type Draft = { -readonly [key in keyof Reading]: Reading[key] }
type Row = (draft: Draft, labels: string, value: number) => void

const ROWS: { readonly [name: string]: Row } = {
  vacancy_commands_total(draft, labels, value) {
    const command = label(labels, 'command')
    if (READS.has(command)) draft.queries += value
    else if (WRITES.has(command)) draft.writes += value
  },
  vacancy_command_errors_total(draft, _labels, value) {
    draft.errors += value
  },
  vacancy_command_duration_seconds_bucket(draft, labels, value) {
    if (label(labels, 'phase') === 'run' && READS.has(label(labels, 'command'))) addBucket(draft.reads, labels, value)
  },
  vacancy_raft_commit_seconds_bucket: (draft, labels, value) => addBucket(draft.commits, labels, value),
  vacancy_wal_fsync_seconds_bucket: (draft, labels, value) => addBucket(draft.syncs, labels, value),
  vacancy_memory_bytes(draft, labels, value) {
    if (label(labels, 'kind') === 'rss') draft.memoryBytes = value
  },
  vacancy_wal_bytes(draft, _labels, value) {
    draft.walBytes = value
  },
  vacancy_tcp_connections(draft, _labels, value) {
    draft.connections = value
  },
  vacancy_tcp_connections_limit(draft, _labels, value) {
    draft.connectionsLimit = value
  },
  process_cpu_seconds_total(draft, _labels, value) {
    draft.cpuSeconds = value
  },
}

/** Undefined when the text is no page of metrics: nothing of a node is in it. Lines that are not understood are passed over. */
export function readMetrics(text: string, at: number): Reading | undefined {
  const draft: Draft = {
    at,
    queries: 0,
    writes: 0,
    errors: 0,
    reads: new Map(),
    commits: new Map(),
    syncs: new Map(),
    memoryBytes: undefined,
    walBytes: undefined,
    connections: undefined,
    connectionsLimit: undefined,
    cpuSeconds: undefined,
  }
  let known = 0
  for (let start = 0; start < text.length; ) {
    const newline = text.indexOf('\n', start)
    const end = newline < 0 ? text.length : newline
    if (readLine(draft, text, start, end)) known++
    start = end + 1
  }
  return known === 0 ? undefined : draft
}

/** `name{label="value"} 12`; pages are long and come often, so nothing is cut out of lines that are not wanted. */
function readLine(draft: Draft, text: string, start: number, end: number): boolean {
  const first = text.charCodeAt(start)
  if (first !== V && first !== P) return false
  let at = start
  while (at < end && text.charCodeAt(at) !== SPACE && text.charCodeAt(at) !== BRACE) at++
  const row = ROWS[text.slice(start, at)]
  if (!row) return false
  const close = text.charCodeAt(at) === BRACE ? text.lastIndexOf('}', end) : at - 1
  const labels = close > at ? text.slice(at, close) : ''
  const [written = ''] = text
    .slice(close + 1, end)
    .trim()
    .split(' ')
  const value = Number(written)
  if (written === '' || !Number.isFinite(value)) return false
  row(draft, labels, value)
  return true
}

const [V, P, SPACE, BRACE] = ['v', 'p', ' ', '{'].map((character) => character.charCodeAt(0)) as [
  number,
  number,
  number,
  number,
]

function label(labels: string, name: string): string {
  const start = labels.indexOf(`${name}="`)
  if (start < 0) return ''
  const from = start + name.length + 2
  return labels.slice(from, labels.indexOf('"', from))
}

function addBucket(histogram: Histogram, labels: string, value: number): void {
  const written = label(labels, 'le')
  const bound = written === '+Inf' ? Number.POSITIVE_INFINITY : Number(written)
  if (!Number.isNaN(bound)) histogram.set(bound, (histogram.get(bound) ?? 0) + value)
}

/** What happened between two readings. A total that went down belongs to a process that was started anew. */
export type Change = NodeView['rates'] & {
  readonly commitP99: number | null
  readonly fsyncP99: number | null
  readonly cpu: number | null
}

export function changeBetween(before: Reading, after: Reading): Change | undefined {
  const seconds = (after.at - before.at) / 1000
  if (seconds <= 0) return undefined
  const isRestarted = after.queries < before.queries || after.writes < before.writes || cpuOf(after) < cpuOf(before)
  if (isRestarted) return undefined
  const perSecond = (total: (reading: Reading) => number) => (total(after) - total(before)) / seconds
  const milliseconds = (of: (reading: Reading) => Histogram, share: number) => {
    const value = quantile(of(before), of(after), share)
    return value === null ? null : value * 1000
  }
  return {
    queries: perSecond(({ queries }) => queries),
    writes: perSecond(({ writes }) => writes),
    errors: Math.max(
      0,
      perSecond(({ errors }) => errors),
    ),
    p50: milliseconds(({ reads }) => reads, 0.5),
    p99: milliseconds(({ reads }) => reads, 0.99),
    commitP99: milliseconds(({ commits }) => commits, 0.99),
    fsyncP99: milliseconds(({ syncs }) => syncs, 0.99),
    cpu: after.cpuSeconds === undefined || before.cpuSeconds === undefined ? null : perSecond(cpuOf),
  }
}

const cpuOf = (reading: Reading) => reading.cpuSeconds ?? 0

/**
 * Quantile of what came to a histogram between two readings, in seconds; between two bounds as if evenly spread. Above
 * the last bound it is that bound: more is not known. Null when nothing came.
 */
export function quantile(before: Histogram, after: Histogram, share: number): number | null {
  const bounds = [...after.keys()].sort((a, b) => a - b)
  const counts = bounds.map((bound) => (after.get(bound) as number) - (before.get(bound) ?? 0))
  const total = counts.at(-1) ?? 0
  if (total <= 0) return null
  const wanted = total * share
  const at = counts.findIndex((count) => count >= wanted)
  const [upper, lower] = [bounds[at] as number, bounds[at - 1] ?? 0]
  if (!Number.isFinite(upper)) return lower
  const [below, upto] = [counts[at - 1] ?? 0, counts[at] as number]
  return lower + ((upper - lower) * (wanted - below)) / Math.max(1e-9, upto - below)
}
