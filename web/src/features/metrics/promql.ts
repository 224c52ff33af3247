/** Series as queries of Prometheus. Loaded when one is copied. Pure. */
import { SERIES, type SeriesName, type SeriesSource } from '@vacancy/shared/series'
import { COMMANDS } from '@vacancy/shared/wire'
import { hasPromql } from './series.ts'

type Of = { readonly shard?: string; readonly node?: string }

/** Nodes do not put their ids on each metric; this one has them. */
const BUILD_INFO = 'vacancy_build_info'

/** The query of each series, one per line. */
export function promqlOf(names: readonly SeriesName[], of: Of): string {
  return names
    .filter(hasPromql)
    .map((name) => queryOf(name, of))
    .join('\n')
}

function queryOf(name: SeriesName, of: Of): string {
  const series: { readonly unit: string; readonly source?: SeriesSource; readonly promql?: string } = SERIES[name]
  if (!series.source) return series.promql ?? ''
  const expression = exprOf(series.source)
  const matchers = Object.entries(of).map(([label, text]) => `${label}=${JSON.stringify(text)}`)
  return `${expression} * on (instance) group_left (shard, node) ${BUILD_INFO}${braces(matchers)}`
}

function exprOf({ metric, access, label, as }: SeriesSource): string {
  const matchers = [
    ...(access === undefined ? [] : [`command=~"${commandsOf(access)}"`]),
    ...(label === undefined ? [] : [`${label[0]}=${JSON.stringify(label[1])}`]),
  ]
  const samples = `${metric}${braces(matchers)}`
  if (as === 'value') return `sum by (instance) (${samples})`
  if (as === 'rate') return `sum by (instance) (rate(${samples}[1m]))`
  return `1000 * histogram_quantile(${as}, sum by (instance, le) (rate(${samples}[1m])))`
}

const braces = (matchers: readonly string[]) => (matchers.length === 0 ? '' : `{${matchers.join(',')}}`)

function commandsOf(access: 'read' | 'write'): string {
  return Object.entries(COMMANDS)
    .flatMap(([name, command]) => (command.access === access ? [name] : []))
    .join('|')
}
