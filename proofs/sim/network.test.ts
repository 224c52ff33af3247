import { createRandom } from '@vacancy/testkit/random'
import { createScheduler, runNext } from '@vacancy/testkit/scheduler'
import { expect, test } from 'vitest'
import { attach, createNetwork, linkOf, sendPayload, slowDown, speedUp } from './network.ts'

const KNOBS = {
  ...{ latencyUsMin: 100, latencyUsMax: 100, dropP: 0, duplicateP: 0, lateP: 0, lateUsMax: 0, damageP: 0 },
  ...{ queueBytesMax: 1 << 20, isOrdered: true },
}

test('a link that is fast again delivers what it held back first, and each frame once', () => {
  const scheduler = createScheduler()
  const network = createNetwork(2, KNOBS, scheduler, createRandom(1), (payload) => payload)
  const arrivals: [atUs: number, byte: number | undefined][] = []
  for (const node of [1, 2]) {
    const onPayload = (_from: number, _stream: string, payload: Uint8Array | object) =>
      arrivals.push([scheduler.nowUs, (payload as Uint8Array)[0]])
    attach(network, node, { onPayload, onOpen: () => undefined, onClosed: () => undefined })
  }
  const runUntil = (endUs: number) => {
    while (runNext(scheduler, endUs));
    scheduler.nowUs = endUs
  }
  const send = (byte: number) => sendPayload(network, 1, 2, 'append', Uint8Array.of(byte), 1_000)
  runUntil(10_000)

  const link = linkOf(network, 1, 2)
  slowDown(network, link, 1_000_000, 5_000)
  send(1)
  runUntil(20_000)
  expect(arrivals).toEqual([[16_100, 1]])

  slowDown(network, link, 1_000, 5_000)
  send(2)
  send(3)
  runUntil(30_000)
  speedUp(network, link)
  send(4)
  runUntil(60_000_000)
  expect(arrivals.slice(1)).toEqual([
    [30_100, 2],
    [30_100, 3],
    [30_100, 4],
  ])
})
