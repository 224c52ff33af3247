import { afterEach, describe, expect, test, vi } from 'vitest'
import { watchEventLoop } from './event-loop.ts'
import { type MetricsTable, metricsTable, registerMetrics, setTotal } from './metrics.ts'

const TABLE = {
  tcp_connections: { type: 'gauge', help: 'Connections open now.' },
  tcp_commands_total: { type: 'counter', help: 'Commands answered.' },
  vacancy_commands_total: { type: 'counter', help: 'Commands by name.', labels: ['command'] },
  vacancy_wal_fsync_seconds: { type: 'histogram', help: 'Time of a sync.', buckets: [0.001, 0.01] },
  vacancy_result_rows: { type: 'histogram', help: 'Rows of a reply.', labels: ['command'], buckets: [1, 10] },
  cluster_message_sent_total: { type: 'counter', help: 'Messages sent.', appliesTo: 'clustered' },
} as const satisfies MetricsTable

async function lines(metrics: { text(): Promise<string> }): Promise<string[]> {
  return (await metrics.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
}

test('the page has every row of the table with its count', async () => {
  const metrics = registerMetrics(TABLE)

  metrics.of.tcp_connections.set(3)
  metrics.of.tcp_commands_total.inc()
  metrics.of.vacancy_commands_total.inc({ command: 'PING' }, 2)
  metrics.of.vacancy_wal_fsync_seconds.observe(0.005)

  expect(await lines(metrics)).toEqual([
    'tcp_connections 3',
    'tcp_commands_total 1',
    'vacancy_commands_total{command="PING"} 2',
    'vacancy_wal_fsync_seconds_bucket{le="0.001"} 0',
    'vacancy_wal_fsync_seconds_bucket{le="0.01"} 1',
    'vacancy_wal_fsync_seconds_bucket{le="+Inf"} 1',
    'vacancy_wal_fsync_seconds_sum 0.005',
    'vacancy_wal_fsync_seconds_count 1',
  ])
  expect(await metrics.text()).toContain('# HELP tcp_connections Connections open now.\n# TYPE tcp_connections gauge\n')
})

test('rows of another mode are left out', async () => {
  expect(await registerMetrics(TABLE).text()).not.toContain('cluster_')
  expect(await registerMetrics(TABLE, { appliesTo: 'clustered' }).text()).toContain('cluster_message_sent_total 0')
})

test('a histogram counted elsewhere appears with cumulative buckets', async () => {
  const metrics = registerMetrics(TABLE)

  metrics.readHistogram('vacancy_result_rows', () => [
    { labels: { command: 'SEARCHAVAIL' }, counts: Uint32Array.of(5, 2, 1), sum: 42 },
  ])

  expect((await lines(metrics)).filter((line) => line.startsWith('vacancy_result_rows'))).toEqual([
    'vacancy_result_rows_bucket{command="SEARCHAVAIL",le="1"} 5',
    'vacancy_result_rows_bucket{command="SEARCHAVAIL",le="10"} 7',
    'vacancy_result_rows_bucket{command="SEARCHAVAIL",le="+Inf"} 8',
    'vacancy_result_rows_sum{command="SEARCHAVAIL"} 42',
    'vacancy_result_rows_count{command="SEARCHAVAIL"} 8',
  ])
  expect(await metrics.text()).toContain('# TYPE vacancy_result_rows histogram')
})

test('a total kept elsewhere is read per page, and restarts when it decreased', async () => {
  const metrics = registerMetrics(TABLE)
  let total = 7
  metrics.onCollect(() => setTotal(metrics.of.vacancy_commands_total, total, { command: 'PING' }))

  expect(await lines(metrics)).toContain('vacancy_commands_total{command="PING"} 7')
  total = 9
  expect(await lines(metrics)).toContain('vacancy_commands_total{command="PING"} 9')
  expect(await lines(metrics)).toContain('vacancy_commands_total{command="PING"} 9')
  total = 1
  expect(await lines(metrics)).toContain('vacancy_commands_total{command="PING"} 10')
})

test('two programs in one process do not share metrics', async () => {
  const [one, two] = [registerMetrics(TABLE), registerMetrics(TABLE)]

  one.of.tcp_commands_total.inc(5)

  expect(await lines(two)).toContain('tcp_commands_total 0')
})

test('process metrics are included on request', async () => {
  const text = await registerMetrics(TABLE, { process: true }).text()

  expect(text).toMatch(/^process_resident_memory_bytes \d+$/m)
  expect(text).toMatch(/^nodejs_eventloop_lag_seconds /m)
})

test('the reference table has one row per metric', () => {
  expect(metricsTable(TABLE).split('\n').slice(4, 8)).toEqual([
    '| `vacancy_commands_total` | counter | `command` | Commands by name. |',
    '| `vacancy_wal_fsync_seconds` | histogram |  | Time of a sync. |',
    '| `vacancy_result_rows` | histogram | `command` | Rows of a reply. |',
    '| `cluster_message_sent_total` | counter |  | Messages sent. (clustered) |',
  ])
})

describe('the event loop', () => {
  afterEach(() => vi.useRealTimers())

  /** A turn of the event loop that takes so long: the timer runs late, and once. */
  function turnOf(ms: number): void {
    const now = performance.now()
    vi.spyOn(performance, 'now').mockReturnValueOnce(now + ms)
    vi.advanceTimersToNextTimer()
  }

  test('the longest delay since the last call is that of a turn which took long', () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
    const watch = watchEventLoop()
    vi.advanceTimersByTime(200)
    expect(watch.takeSeconds()).toBe(0)

    turnOf(1_000)

    expect(watch.takeSeconds()).toBeCloseTo(0.9)
    expect(watch.takeSeconds()).toBe(0)
    watch.close()
    expect(vi.getTimerCount()).toBe(0)
  })
})
