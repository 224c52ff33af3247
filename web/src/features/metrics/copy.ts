/** Texts of metric charts. */

export const cluster = {
  title: 'Whole cluster, last 15 min',
  queries: 'Queries',
  p99: 'Slowest read p99',
  writes: 'Writes',
  lag: 'Largest lag',
  leaderChanges: 'Leader changes',
  all: 'all',
}

export const page = {
  title: 'Metrics',
  range: 'Time range',
  ranges: { 'now-15m': '15 min', 'now-1h': '1 h', 'now-6h': '6 h', 'now-24h': '24 h' },
  noData: 'No data in this time range.',
  more: (lines: number) => `and ${lines} more with lower values`,
}
