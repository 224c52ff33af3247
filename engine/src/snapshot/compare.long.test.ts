import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SNAPSHOT_DIFFERENCES_MAX } from '@vacancy/shared/contract'
import { dateIn, runVacancy, temporaryFolder } from '@vacancy/testkit/node'
import { expect, test } from 'vitest'
import { createEnv } from '../env.ts'
import { differencesOf } from './compare.ts'

const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
const { disk } = createEnv(silent)

type Lines = { readonly properties: readonly string[]; readonly packages: readonly string[] }

async function snapshotOf({ properties, packages }: Lines, codecs = ['breakfast', 'late']): Promise<string> {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'codecs.yml'), `rate_features:\n${codecs.map((name) => `  - ${name}\n`).join('')}`)
  writeFileSync(join(folder, 'properties.csv'), `${properties.join('\n')}\n`)
  writeFileSync(join(folder, 'packages.csv'), `${packages.join('\n')}\n`)
  const { code, output } = await runVacancy(['build-snapshot', '--shard-id', 's1', '--input-path', folder])
  if (code !== 0) throw new Error(output)
  return join(folder, 'seed.snapshot')
}

const property = (id: string, segment: string, over = 'valley,hotel,standard,3,47,11,wifi') =>
  `${id},${segment},${over}`
const night = (id: string, room: string, day: number, rest = '2,120,late') => `${id},${room},${dateIn(day)},${rest}`

const NAMES = ['same', 'gone', 'stars', 'room', 'price', 'feature', 'night', 'moved']
const BEFORE: Lines = {
  properties: NAMES.map((name) => property(name, 'alpine')),
  packages: NAMES.flatMap((name) => [night(name, 'double', 1), night(name, 'double', 2)]),
}
/** Other rows come first, so that every number of a segment, a room type and a row differs. */
const AFTER: Lines = {
  properties: [
    property('new', 'abbey'),
    property('moved', 'coast'),
    property('stars', 'alpine', 'valley,hotel,standard,4,47,11,wifi'),
    ...['night', 'feature', 'price', 'room', 'same'].map((name) => property(name, 'alpine')),
  ],
  packages: [
    night('new', 'attic', 3),
    ...['moved', 'stars', 'same', 'room'].flatMap((name) => [night(name, 'double', 2), night(name, 'double', 1)]),
    night('room', 'suite', 1),
    ...[night('price', 'double', 1, '2,121,late'), night('price', 'double', 2)],
    ...[night('feature', 'double', 1, '2,120,breakfast'), night('feature', 'double', 2)],
    ...[night('night', 'double', 1), night('night', 'double', 3)],
  ],
}
const CHANGED = {
  moved: ['coast', 'attributes'],
  stars: ['alpine', 'attributes'],
  room: ['alpine', 'rooms', 'packages'],
  price: ['alpine', 'packages'],
  feature: ['alpine', 'packages'],
  night: ['alpine', 'packages'],
}

function shown({ onlyA, onlyB, changed }: ReturnType<typeof differencesOf>) {
  return {
    onlyA: onlyA.first,
    onlyB: onlyB.first,
    changed: Object.fromEntries(changed.first.map(({ id, segment, what }) => [id, [segment, ...what]])),
    counts: [onlyA.count, onlyB.count, changed.count],
  }
}

test('properties that were removed, added or changed are named with what changed', async () => {
  const [before, after] = [await snapshotOf(BEFORE), await snapshotOf(AFTER)]
  const expected = {
    onlyA: [{ id: 'gone', segment: 'alpine' }],
    onlyB: [{ id: 'new', segment: 'abbey' }],
    changed: CHANGED,
    counts: [1, 1, 6],
  }

  expect(shown(differencesOf(before, after, disk))).toEqual(expected)
  expect(shown(differencesOf(before, before, disk)).counts).toEqual([0, 0, 0])
  // Rate features are compared by name, whatever their places in the codec lists.
  const otherList = await snapshotOf(AFTER, ['new entry', 'late', 'breakfast'])
  expect(shown(differencesOf(before, otherList, disk))).toEqual(expected)
  expect(shown(differencesOf(after, otherList, disk)).counts).toEqual([0, 0, 0])

  const json = await runVacancy(['inspect', before, '--against', after, '--json'])
  expect([json.code, shown(JSON.parse(json.output))]).toEqual([0, expected])
  const folder = await runVacancy(['inspect', before, '--against', temporaryFolder()])
  expect([folder.code, folder.output]).toEqual([64, expect.stringContaining('compares two snapshot files')])
})

test('the first properties of each kind are listed, all are counted', async () => {
  const many = SNAPSHOT_DIFFERENCES_MAX + 20
  const names = Array.from({ length: many }, (_, n) => `hotel_${n}`)
  const whole = { properties: names.map((name) => property(name, 'alpine')), packages: [night('hotel_0', 'double', 1)] }
  const [all, one] = [await snapshotOf(whole), await snapshotOf({ ...whole, properties: whole.properties.slice(0, 1) })]

  const { onlyA } = differencesOf(all, one, disk)
  expect([onlyA.count, onlyA.first.length]).toEqual([many - 1, SNAPSHOT_DIFFERENCES_MAX])
  const text = await runVacancy(['inspect', all, '--against', one])
  expect(text.output).toMatch(/: 119 removed, 0 added, 0 changed\n/)
  expect(text.output).toContain('  and 19 more\n')
})
