import { expect, test } from 'vitest'
import {
  BLOCKS_TRIED_MAX,
  DEFAULTS,
  layoutOf,
  listenersOf,
  missingDays,
  placesOf,
  SHARD,
  SHARD_NODES,
} from './layout.ts'

const state = { packages: 1_000_000, days: 120, seed: 1, lastDay: 20_119 }

test('on the day of its creation, no day is missing', () => {
  const { first, last } = missingDays(state, 20_000)

  expect(first).toBeGreaterThan(last)
})

test('three days later, the three days at the end of the window are missing', () => {
  expect(missingDays(state, 20_003)).toEqual({ first: 20_120, last: 20_122 })
})

test('after more days than the window, the whole window is missing, but no day before today', () => {
  expect(missingDays(state, 20_500)).toEqual({ first: 20_500, last: 20_619 })
})

test('a clock that was set back requires no new days', () => {
  const { first, last } = missingDays(state, 19_990)

  expect(first).toBeGreaterThan(last)
})

test('all files are in one folder, and the sample has a million packages', () => {
  const { dir, ...files } = layoutOf('/tmp/x')

  for (const file of Object.values(files).flat()) expect(file.startsWith(`${dir}/`)).toBe(true)
  expect(DEFAULTS.packages).toBeGreaterThanOrEqual(1_000_000)
})

test('each node of a shard has an address of its own and the standard ports', () => {
  const { nodes, registry } = placesOf(['a', 'b'], { block: 1, attempt: 0, isOneAddress: false })

  expect(Object.fromEntries(nodes)).toEqual({
    a: { host: '127.0.1.1', tcpPort: 7777, apiPort: 8080, quicPort: 17_777 },
    b: { host: '127.0.1.2', tcpPort: 7777, apiPort: 8080, quicPort: 17_777 },
  })
  expect(registry).toEqual({ host: '127.0.1.100', port: 8090 })
})

test.each([true, false])(
  'no two listeners of a shard are the same at any attempt (one address: %s)',
  (isOneAddress) => {
    for (let attempt = 0; attempt < BLOCKS_TRIED_MAX; attempt++) {
      const places = placesOf(SHARD_NODES, { block: 1, attempt, isOneAddress })
      const listeners = listenersOf(places).map(({ host, port }) => `${host}:${port}`)
      expect(new Set(listeners).size).toBe(SHARD_NODES.length * 3 + 2)
    }
  },
)

test('the next attempt also uses other ports, since a program may listen on all addresses', () => {
  const at = (attempt: number) => placesOf(['a'], { block: 1, attempt, isOneAddress: false }).nodes.get('a')

  expect(at(1)).toEqual({ host: '127.0.2.1', tcpPort: 7877, apiPort: 8180, quicPort: 17_877 })
})

test('a majority of the voters starts with the snapshot, and one without', () => {
  expect(SHARD.seeded.length * 2).toBeGreaterThan(SHARD.voters.length)
  expect(SHARD.seeded.length).toBeLessThan(SHARD.voters.length)
})
