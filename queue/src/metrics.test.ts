import { expect, test } from 'vitest'
import { createQueueMetrics, registerQueueMetrics } from './metrics.ts'
import { addTopic, startEngine } from './testing/engine.ts'

test('the page of many topics has series of the busiest, sums the others, and lets other work run meanwhile', async () => {
  const { queue, now } = startEngine()
  for (let n = 0; n < 1_000; n++) addTopic({ queue, now }, `topic-${n}`, {}).totals.accepted = n
  const page = registerQueueMetrics({
    metrics: createQueueMetrics('memory'),
    isAlone: false,
    spans: () => ({ exported: 0, dropped: 0 }),
    connections: () => 0,
    partitions: () => [{ number: 0, queue }],
    journalSizes: () => ({ bytes: 0, freeBytes: 0 }),
    now: () => now,
  })
  let turns = 0
  const turn = () => {
    turns++
    next = setImmediate(turn)
  }
  let next = setImmediate(turn)
  const text = await page.text()
  clearImmediate(next)

  const accepted = [...text.matchAll(/^vacancy_queue_jobs_accepted_total\{topic="(.*)"\} (\d+)$/gm)]
  expect(accepted.length).toBe(101)
  const counts = new Map(accepted.map(([, topic, count]) => [topic, Number(count)]))
  expect([counts.get('topic-999'), counts.get('topic-900'), counts.get('topic-899')]).toEqual([999, 900, undefined])
  // The sum of 0 to 899.
  expect(counts.get('_other')).toBe((899 * 900) / 2)
  expect(text).toContain('vacancy_queue_topics 1001')
  expect(text.length).toBeLessThan(600_000)
  expect(turns).toBeGreaterThan(1)
})
