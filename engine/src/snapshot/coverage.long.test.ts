import { closeSync, openSync, readSync, truncateSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { dateIn, runVacancy, temporaryFolder } from '@vacancy/testkit/node'
import { expect, test } from 'vitest'
import { coverageOf } from './coverage.ts'

/**
 * Two segments; hotel n has n + 1 room types, and a package on each of them every (n + 1)th night: all with breakfast,
 * those of the second room type with late as well.
 */
async function snapshotOf(
  hotels: number,
  nights: number,
): Promise<{ path: string; expected: Map<string, number[]>; late: number }> {
  let late = 0
  const folder = temporaryFolder()
  const expected = new Map<string, number[]>()
  const properties: string[] = []
  const packages: string[] = []
  for (let n = 0; n < hotels; n++) {
    const segment = n % 2 === 0 ? 'alpine' : 'coast'
    properties.push(`hotel_${n},${segment},valley,hotel,standard,3,47,11,wifi\n`)
    const days = expected.get(segment) ?? new Array<number>(nights).fill(0)
    expected.set(segment, days)
    for (let room = 0; room <= n % 3; room++) {
      for (let night = 0; night < nights; night += (n % 3) + 1) {
        const features = room === 1 ? 'late|breakfast' : 'breakfast'
        packages.push(`hotel_${n},room_${room},${dateIn(night + 1)},2,120,${features}\n`)
        if (room === 1) late++
        days[night] = days[night] + 1
      }
    }
  }
  writeFileSync(join(folder, 'codecs.yml'), 'rate_features:\n  - breakfast\n  - never\n  - late\n')
  writeFileSync(join(folder, 'properties.csv'), properties.join(''))
  writeFileSync(join(folder, 'packages.csv'), packages.join(''))
  const { code, output } = await runVacancy(['build-snapshot', '--shard-id', 's1', '--input-path', folder])
  if (code !== 0) throw new Error(output)
  return { path: join(folder, 'seed.snapshot'), expected, late }
}

test('packages of a snapshot file are counted by segment and day, also where a table has several parts', async () => {
  const { path, expected, late } = await snapshotOf(3_000, 200)

  const found = coverageOf(path)

  const total = [...expected.values()].flat().reduce((sum, count) => sum + count, 0)
  expect(found).toMatchObject({
    shard: 's1',
    properties: 3_000,
    packages: total,
    codecs: ['breakfast', 'never', 'late'],
  })
  expect(found.packagesPerFeature).toEqual([total, 0, late])
  expect(found.window).toEqual({ from: dateIn(1), to: dateIn(200) })
  expect(found.segments.map(({ name, packages }) => [name, packages])).toEqual([...expected].sort())
  expect(found.segments.map(({ properties }) => properties)).toEqual([1_500, 1_500])
  expect(found.segments.reduce((sum, { rooms }) => sum + rooms, 0)).toBe(2 * total)
  expect(found.roomsPerProperty.slice(0, 5)).toEqual([0, 1_000, 1_000, 1_000, 0])
})

test('inspect prints a snapshot file as text and as one line of JSON, and the position of damage', async () => {
  const { path } = await snapshotOf(4, 3)

  const text = await runVacancy(['inspect', path])
  const json = await runVacancy(['inspect', path, '--json'])
  const file = openSync(path, 'r+')
  const byte = Buffer.alloc(1)
  readSync(file, byte, 0, 1, 2_000)
  writeSync(file, Buffer.from([byte[0] ^ 1]), 0, 1, 2_000)
  closeSync(file)
  const damaged = await runVacancy(['inspect', path])
  truncateSync(path, 100)
  const cut = await runVacancy(['inspect', path, '--json'])

  expect([text.code, text.output]).toEqual([
    0,
    expect.stringMatching(/of shard s1: \d+ packages of 4 properties.*whole/),
  ])
  expect([json.code, JSON.parse(json.output)]).toEqual([0, expect.objectContaining({ properties: 4 })])
  expect([damaged.code, damaged.output]).toEqual([71, expect.stringMatching(/damaged: .*at byte/)])
  expect([cut.code, JSON.parse(cut.output)]).toEqual([71, { path, damage: expect.stringContaining('bytes') }])
})
