import { expect, test } from 'vitest'
import { ratesBetween, readCounters, readHops } from './replies.ts'

const page = (reads: number, writes: number, failed: number) => `# HELP x
bridge_requests_total{kind="read",result="ok"} ${reads}
bridge_requests_total{kind="read",result="404"} 7
bridge_requests_total{kind="write",result="503"} ${failed}
bridge_frames_received_total ${reads + writes}
bridge_hop_requests_total{hop="n\\"1",kind="read"} ${reads}
bridge_hop_requests_total{hop="n\\"1",kind="write"} ${writes}
bridge_request_duration_seconds_bucket{kind="read",le="0.002"} ${reads - 1}
bridge_request_duration_seconds_bucket{kind="read",le="0.5"} ${reads}
bridge_request_duration_seconds_bucket{kind="read",le="+Inf"} ${reads}
bridge_inflight 3
garbage {{{
`

test('rates are the difference of two readings', () => {
  const first = readCounters(page(100, 10, 1), 0)
  const second = readCounters(page(300, 20, 3), 2_000)

  const rates = second && ratesBetween(first, second)

  expect(rates).toMatchObject({ reads: 100, errors: 1, received: 105, p99: 2 })
  expect(rates?.sent).toEqual(new Map([['n"1', { reads: 100, writes: 5 }]]))
  expect(second?.inFlight).toBe(3)
})

test('a counter that began again has no rate', () => {
  const first = readCounters(page(300, 20, 0), 0)
  const second = readCounters(page(5, 0, 0), 1_000)

  expect(second && ratesBetween(first, second)).toMatchObject({ reads: null, received: null, p99: null })
  expect(readCounters('up 1\n', 0)).toBeUndefined()
})

test('a hop of an older component has no requests in flight, is not left out, and has no fault', () => {
  const hop = { id: 'b1', connections: 2 }

  expect(readHops(JSON.stringify({ hops: [hop] }))).toEqual([{ ...hop, in_flight: 0, ejected_for_ms: 0, fault: '' }])
  expect(readHops(JSON.stringify({ hops: [{ id: 'b1' }] }))).toBeUndefined()
})
