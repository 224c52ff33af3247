import { expect, test } from 'vitest'
import { metric, parseMetrics } from './metrics.ts'

const TEXT = `# HELP tcp_connections Open now.
# TYPE tcp_connections gauge
tcp_connections 12
vacancy_command_errors_total{command="SEARCHAVAIL",code="429"} 3
vacancy_command_errors_total{command="SETPROP",code="a \\" quote"} 4
vacancy_delay_seconds_bucket{le="+Inf",thread="serving-0"} 1e3 1700000000
`

test('values are found by name and summed over their labels', () => {
  const samples = parseMetrics(TEXT)

  expect(metric(samples, 'tcp_connections')).toBe(12)
  expect(metric(samples, 'vacancy_command_errors_total')).toBe(7)
  expect(metric(samples, 'vacancy_command_errors_total', { command: 'SETPROP' })).toBe(4)
  expect(metric(samples, 'vacancy_delay_seconds_bucket', { le: '+Inf' })).toBe(1000)
})

test('a metric that is not served is undefined, not zero', () => {
  expect(metric(parseMetrics(TEXT), 'tcp_errors_total')).toBeUndefined()
})
