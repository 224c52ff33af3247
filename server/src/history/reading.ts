/** Parses the metrics of a node (Prometheus text format) and derives the values of SERIES from one or two readings. */
import { SERIES, type SeriesName, type SeriesSource } from '@vacancy/shared/contract'
import { COMMANDS } from '@vacancy/shared/wire'

/** Cumulative counts of a histogram by upper bound in seconds, as reported. */
type Histogram = Map<number, number>

export type Reading = {
  readonly at: number
  /** By key of the source (`inputOf`). Absent for metrics that the node does not report. */
  readonly numbers: ReadonlyMap<string, number>
  readonly histograms: ReadonlyMap<string, Histogram>
  readonly connectionsLimit: number | undefined
}

/** Values of series; null for a quantile of no requests. */
export type Figures = { [name in SeriesName]?: number | null }

type Input = { readonly key: string; readonly source: SeriesSource }

const SOURCES = Object.entries(SERIES).flatMap(([name, series]) =>
  'source' in series ? [{ name: name as SeriesName, ...inputOf(series.source) }] : [],
)
const LIMIT = inputOf({ metric: 'vacancy_tcp_connections_limit', as: 'value' })
/** What to read from the samples of each metric. */
const INPUTS: ReadonlyMap<string, readonly Input[]> = Map.groupBy(
  new Map([...SOURCES, LIMIT].map((input) => [input.key, input])).values(),
  ({ source }) => source.metric,
)

/** Series that differ only in what is derived share their samples. */
function inputOf(source: SeriesSource): Input {
  return { key: [source.metric, source.access ?? [], source.label ?? []].flat().join(' '), source }
}

type Draft = { readonly numbers: Map<string, number>; readonly histograms: Map<string, Histogram> }

/** Undefined when the text contains no metric of a node. Unknown lines are skipped. */
export function readMetrics(text: string, at: number): Reading | undefined {
  const draft: Draft = { numbers: new Map(), histograms: new Map() }
  let known = 0
  for (let start = 0; start < text.length; ) {
    const newline = text.indexOf('\n', start)
    const end = newline < 0 ? text.length : newline
    if (readLine(draft, text, start, end)) known++
    start = end + 1
  }
  return known === 0 ? undefined : { at, ...draft, connectionsLimit: draft.numbers.get(LIMIT.key) }
}

/** `name{label="value"} 12`. Pages are long and frequent, so unneeded lines are skipped without allocating substrings. */
function readLine(draft: Draft, text: string, start: number, end: number): boolean {
  if (!FIRSTS.has(text.charCodeAt(start))) return false
  let at = start
  while (at < end && text.charCodeAt(at) !== SPACE && text.charCodeAt(at) !== BRACE) at++
  const inputs = INPUTS.get(text.slice(start, at))
  if (!inputs) return false
  const close = text.charCodeAt(at) === BRACE ? text.lastIndexOf('}', end) : at - 1
  // A line that was cut off has no brace; the last one is of an earlier line.
  if (close < at - 1) return false
  const labels = close > at ? text.slice(at, close) : ''
  const [written = ''] = text
    .slice(close + 1, end)
    .trim()
    .split(' ')
  const value = Number(written)
  if (written === '' || !Number.isFinite(value)) return false
  for (const input of inputs) if (isOf(input.source, labels)) addSample(draft, input, labels, value)
  return true
}

/** First characters of their names. */
const FIRSTS = new Set([...INPUTS.keys()].map((name) => name.charCodeAt(0)))
const [SPACE, BRACE] = [' ', '{'].map((character) => character.charCodeAt(0)) as [number, number]

const ACCESS = new Map(Object.entries(COMMANDS).map(([name, { access }]) => [name, access as string]))

function isOf({ access, label }: SeriesSource, labels: string): boolean {
  if (label && labelOf(labels, label[0]) !== label[1]) return false
  return access === undefined || ACCESS.get(labelOf(labels, 'command')) === access
}

function addSample({ numbers, histograms }: Draft, { key, source }: Input, labels: string, value: number): void {
  if (typeof source.as !== 'number') {
    numbers.set(key, (numbers.get(key) ?? 0) + value)
    return
  }
  const written = labelOf(labels, 'le')
  const bound = written === '+Inf' ? Number.POSITIVE_INFINITY : Number(written)
  if (Number.isNaN(bound)) return
  const histogram = histograms.get(key) ?? new Map<number, number>()
  histograms.set(key, histogram.set(bound, (histogram.get(bound) ?? 0) + value))
}

function labelOf(labels: string, name: string): string {
  const start = labels.indexOf(`${name}="`)
  if (start < 0) return ''
  const from = start + name.length + 2
  return labels.slice(from, labels.indexOf('"', from))
}

/** The series that are reported as they are. */
export function reportedFigures({ numbers }: Reading): Figures {
  const figures: Figures = {}
  for (const { name, key, source } of SOURCES) {
    const value = numbers.get(key)
    if (source.as === 'value' && value !== undefined) figures[name] = value
  }
  return figures
}

/**
 * Rates and quantiles between two readings; undefined when the process was restarted between them. A metric that is not
 * reported counts 0: counters with labels appear with their first event.
 */
export function changeBetween(before: Reading, after: Reading): Figures | undefined {
  const seconds = (after.at - before.at) / 1000
  if (seconds <= 0) return undefined
  const figures: Figures = {}
  for (const { name, key, source } of SOURCES) {
    if (source.as === 'value') continue
    if (source.as === 'rate') {
      const increase = (after.numbers.get(key) ?? 0) - (before.numbers.get(key) ?? 0)
      if (increase < 0) return undefined
      figures[name] = increase / seconds
      continue
    }
    const value = quantile(before.histograms.get(key) ?? EMPTY, after.histograms.get(key) ?? EMPTY, source.as)
    figures[name] = value === null ? null : value * 1000
  }
  return figures
}

const EMPTY: Histogram = new Map()

/**
 * Quantile of a histogram's increase between two readings, in seconds, interpolated linearly between two bounds. Above
 * the last bound it is that bound. Null without an increase.
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
