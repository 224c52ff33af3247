/** The memory limit of a container is reached: the node refuses writes and serves, and the kernel kills nothing. */

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ask, dateIn, getText, runVacancy, succeed, type WireClient } from '@vacancy/testkit/node'
import { afterAll, expect, test, vi } from 'vitest'
import { makeMemoryGroup } from './testing/memory-group.ts'
import { nodesOfTest } from './testing/nodes-of-test.ts'

vi.setConfig({ testTimeout: 900_000 })

const LIMIT_BYTES = 300 << 20
const ROOMS = 6
/** Of the properties whose room gets a package on a day, so that each page is touched. */
const STEP = 82
const DAYS = 364
/** What a user of the defaults does not configure. */
const DEFAULTS = { memory_max_bytes: 0, serving_threads: 0 }
const SHARD = ['--shard-id', 's1']

const { connectTo, folderOfTest, start } = nodesOfTest()
const group = makeMemoryGroup(LIMIT_BYTES)
afterAll(() => group?.remove())

const idOf = (i: number) => `p${String(i).padStart(6, '0')}`

async function buildSeed(folder: string, properties: number): Promise<void> {
  const input = join(folder, 'input')
  mkdirSync(input)
  const lines = (line: (i: number) => string) => Array.from({ length: properties }, (_, i) => line(i)).join('')
  writeFileSync(join(input, 'codecs.yml'), 'rate_features:\n  - breakfast\n  - refundable\n  - sea_view\n')
  writeFileSync(
    join(input, 'properties.csv'),
    lines((i) => `${idOf(i)},alpine,A,hotel,luxury,4,1,2,wifi\n`),
  )
  const rooms = Array.from({ length: ROOMS }, (_, room) => room)
  writeFileSync(
    join(input, 'packages.csv'),
    lines((i) => rooms.map((room) => `${idOf(i)},t${room},${dateIn(1)},3,120,\n`).join('')),
  )
  const paths = ['--input-path', input, '--output-path', join(folder, 'data')]
  const { code, output } = await runVacancy(['build-snapshot', ...SHARD, ...paths])
  expect(code, output).toBe(0)
}

/** Writes nights until the end of the window. @returns the days of which something was accepted, and the codes of refusals */
async function fillYear(client: WireClient, properties: number) {
  const accepted = new Set<number>()
  const codes = new Set<string>()
  for (let day = 2; day < DAYS + 2; day++) {
    const replies = Array.from({ length: Math.ceil(properties / STEP) }, async (_, i) => {
      const night = { propertyId: idOf(i * STEP), roomType: 't0', date: dateIn(day) }
      const reply = await ask(client, 'SETROOMPKG', { ...night, availability: 1, finalPrice: 100, rateFeatures: [] })
      if (reply.ok) accepted.add(day)
      else codes.add(reply.code)
    })
    await Promise.all(replies)
  }
  return { accepted: accepted.size, codes: [...codes] }
}

test.skipIf(!group).each([
  ['little room', 60_000, 0],
  ['room for some days', 20_000, 5],
])(
  'a node with defaults in 300 MiB and %s is never killed, refuses what does not fit, and restarts',
  async (_, properties, days) => {
    const { wrapper, kills } = group as NonNullable<typeof group>
    const folder = folderOfTest()
    await buildSeed(folder, properties)
    const run = { folder, wrapper, config: DEFAULTS, flags: [...SHARD, '--node-id', 'n1'] }
    let node = await start(run)
    const { accepted, codes } = await fillYear(await connectTo(node), properties)

    expect(codes).toEqual(['503'])
    expect(accepted).toBeGreaterThanOrEqual(days)
    expect(accepted).toBeLessThan(DAYS)
    expect((await getText(node, '/ready'))[1]).toContain('memory_full')
    for (let restarts = 0; restarts < 2; restarts++) {
      await node.kill()
      node = await start(run)
      const search = { segment: 'alpine', roomType: 't0', dates: [dateIn(1)], availability: 1 }
      expect((await succeed(await connectTo(node), 'SEARCHAVAIL', search)).properties.length).toBeGreaterThan(0)
    }
    expect(kills()).toBe(0)
  },
)

test.skipIf(!group)('a configured limit above that of the container is said with both', async () => {
  const { wrapper } = group as NonNullable<typeof group>
  const node = await start({ folder: folderOfTest(), wrapper, config: { memory_max_bytes: 1 << 30 } })

  expect(node.output()).toMatch(
    /memory_max_bytes: 1073741824 for data .* exceed the memory limit of the container, 314572800: the system may end/,
  )
})
