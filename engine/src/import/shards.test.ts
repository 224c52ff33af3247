import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createCodecList, parseDay } from '@vacancy/shared'
import { afterAll, expect, test } from 'vitest'
import { createEnv } from '../env.ts'
import { buildShards, PARTS_FOLDER, type ShardsOptions } from './shards.ts'

const root = mkdtempSync(join(tmpdir(), 'vacancy-shards-'))
afterAll(() => rmSync(root, { recursive: true }))

const FIRST_DAY = parseDay('2026-09-01') as number
const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
const env = createEnv(silent)

type Input = { properties: string; packages: string; packagesMax: number; overwrite?: boolean; folder?: string }

function optionsOf({ properties, packages, packagesMax, overwrite = false, folder }: Input): ShardsOptions {
  const inputPath = folder ?? mkdtempSync(join(root, 'in-'))
  mkdirSync(inputPath, { recursive: true })
  writeFileSync(join(inputPath, 'properties.csv'), properties)
  writeFileSync(join(inputPath, 'packages.csv'), packages)
  return {
    ...{ shardId: 's', inputPath, outputPath: join(inputPath, 'out'), codecs: createCodecList(['breakfast']) },
    ...{ firstDay: FIRST_DAY, lastDay: FIRST_DAY + 30, outOfWindow: 'skip', errorsMax: 20, overwrite, threads: 1 },
    packagesMax,
  }
}

const property = (id: string, segment: string) => `${id},${segment},A,hotel,luxury,4,1,2,wifi\n`
const packagesOf = (id: string, count: number) =>
  Array.from({ length: count }, (_, i) => `${id},double,2026-09-${String(i + 1).padStart(2, '0')},3,120,\n`).join('')

const THREE = {
  properties: property('p1', 'alps') + property('p2', 'coast') + property('p3', 'city') + property('p4', 'alps'),
  packages: packagesOf('p3', 4) + packagesOf('p1', 3) + packagesOf('p2', 5) + packagesOf('p4', 2),
}
const manifestOf = ({ outputPath }: ShardsOptions) => JSON.parse(readFileSync(join(outputPath, 'shards.json'), 'utf8'))
const shapeOf = (options: ShardsOptions) =>
  manifestOf(options).shards.map(({ shardId, snapshot, packages, segments }: Record<string, unknown>) => ({
    ...{ shardId, snapshot, packages, segments },
  }))

test('more packages than fit one shard used to fail: they are split by whole segments', async () => {
  const options = optionsOf({ ...THREE, packagesMax: 9 })

  const built = await buildShards(env, options)

  expect(built.ok).toBe(true)
  expect(shapeOf(options)).toEqual([
    { shardId: 's1', snapshot: 's1/seed.snapshot', packages: 9, segments: ['alps', 'city'] },
    { shardId: 's2', snapshot: 's2/seed.snapshot', packages: 5, segments: ['coast'] },
  ])
  for (const { snapshot } of manifestOf(options).shards)
    expect(existsSync(join(options.outputPath, snapshot))).toBe(true)
  expect(readdirSync(options.outputPath).sort()).toEqual(['s1', 's2', 'shards.json'])
})

test('data that fits one shard gives the same snapshot as without splitting', async () => {
  const { buildSnapshot } = await import('./import.ts')
  const options = optionsOf({ ...THREE, packagesMax: 100 })
  const whole = await buildSnapshot(env, { ...options, shardId: 's1', outputPath: join(options.inputPath, 'whole') })

  await buildShards(env, options)

  expect(manifestOf(options).shards).toHaveLength(1)
  expect(manifestOf(options).shards[0].snapshotId).toBe(whole.ok ? whole.summary.snapshotId : '')
})

test('headers, byte order marks, quoted cells and an unterminated last line are preserved', async () => {
  const options = optionsOf({
    properties: `\ufeffPropertyID,Segment,Area,PropertyType,Category,Stars,Latitude,Longitude,Amenities\r\n"p1","al""ps","A, B",hotel,luxury,4,1,2,wifi\n\n${property('p2', 'coast').trimEnd()}`,
    packages: `PropertyID,RoomType,Date,Availability,FinalPrice,RateFeature\n"p1","dou, ble",2026-09-01,3,120,\n${packagesOf('p2', 1).trimEnd()}`,
    packagesMax: 1,
  })

  const built = await buildShards(env, options)

  expect(built.ok).toBe(true)
  expect(shapeOf(options)).toEqual([
    { shardId: 's1', snapshot: 's1/seed.snapshot', packages: 1, segments: ['al"ps'] },
    { shardId: 's2', snapshot: 's2/seed.snapshot', packages: 1, segments: ['coast'] },
  ])
})

test('a file of several reads is split without losing or repeating a line', async () => {
  const ids = Array.from({ length: 1_700 }, (_, i) => `p${String(i).padStart(5, '0')}`)
  const features = Array.from({ length: 60 }, () => 'breakfast').join('|')
  const options = optionsOf({
    properties: ids.map((id, i) => property(id, i % 2 === 0 ? 'alps' : 'coast')).join(''),
    packages: ids.map((id) => packagesOf(id, 9).replaceAll(',\n', `,${features}\n`)).join(''),
    packagesMax: 9_000,
  })

  const built = await buildShards(env, options)

  expect(built.ok).toBe(true)
  expect(statSync(join(options.inputPath, 'packages.csv')).size).toBeGreaterThan(8 << 20)
  expect(shapeOf(options)).toEqual([
    { shardId: 's1', snapshot: 's1/seed.snapshot', packages: 7_650, segments: ['alps'] },
    { shardId: 's2', snapshot: 's2/seed.snapshot', packages: 7_650, segments: ['coast'] },
  ])
})

test('a segment larger than a shard may be is refused with both numbers', async () => {
  const options = optionsOf({ ...THREE, packagesMax: 4 })

  await expect(buildShards(env, options)).rejects.toMatchObject({
    code: 'usage_error',
    message: expect.stringContaining('segment "alps" has 5 packages, --max-shard-packages is 4'),
  })
  expect(existsSync(options.outputPath)).toBe(false)
})

test('an error in any part leaves no shard, and packages without a property are found', async () => {
  const options = optionsOf({
    ...THREE,
    packages: `${THREE.packages}unknown,double,2026-09-01,3,120,\n`,
    packagesMax: 9,
  })
  const late = optionsOf({ ...THREE, packages: `${THREE.packages}p2,double,never,3,120,\n`, packagesMax: 9 })

  const [first, second] = [await buildShards(env, options), await buildShards(env, late)]

  expect(first).toMatchObject({ ok: false, shardId: 's1', outcome: { errors: { count: 1 } } })
  expect(second).toMatchObject({
    ok: false,
    shardId: 's2',
    outcome: { errors: { count: 1, countByKind: { date: 1 } } },
  })
  expect(existsSync(join(late.outputPath, 's1/seed.snapshot'))).toBe(false)
  for (const { outputPath } of [options, late]) {
    expect(existsSync(join(outputPath, PARTS_FOLDER))).toBe(false)
    expect(existsSync(join(outputPath, 'shards.json'))).toBe(false)
  }
})

test('existing snapshots stay unless they are to be replaced', async () => {
  const options = optionsOf({ ...THREE, packagesMax: 9 })
  await buildShards(env, options)

  await expect(buildShards(env, options)).rejects.toMatchObject({ code: 'usage_error' })
  expect((await buildShards(env, { ...options, overwrite: true })).ok).toBe(true)
})
