/**
 * Hashes of records. Snapshots and logs contain their sums, and the kernels compute them with the same steps, so the
 * values never change.
 */
import { createRandom } from '@vacancy/testkit/random'
import { describe, expect, test } from 'vitest'
import { type Lane, nameHash, type PropertyHashInput, packageHash, propertyHash, roomHash, rowKey } from './digest.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const ID = Uint8Array.from({ length: 20 }, (_, n) => (n * 53 + 7) & 0xff)
const PROPERTY: PropertyHashInput = {
  ...{ id: ID, idStart: 2, segmentHash: 11, areaHash: 12, typeHash: 13, categoryHash: 14, stars: 4 },
  ...{ latitude: 47.25, longitude: -8.5, amenityHashes: [101, 102, 103] },
}
const both = (hash: (lane: Lane) => number) => [hash(0), hash(1)]
const text = new TextEncoder().encode('xhotely')

test('the hashes of a release stay what they are', () => {
  expect({
    name: both((lane) => nameHash(lane, text, 1, 6)),
    emptyName: both((lane) => nameHash(lane, text, 3, 3)),
    key: both((lane) => rowKey(lane, ID, 2, 0x8000_0001)),
    package: both((lane) => packageHash(lane, 0xdead_beef, 20_000, 0x0102, 0xffff_ff00)),
    room: both((lane) => roomHash(lane, 0xdead_beef)),
    property: both((lane) => propertyHash(lane, PROPERTY)),
  }).toEqual({
    name: [0xc952_d049, 0x7ab9_85c1],
    emptyName: [0x11fd_02eb, 0x8c03_471f],
    key: [0x8307_9c68, 0xd082_f312],
    package: [0x7eb4_47a8, 0x981c_8a8b],
    room: [0x3425_a423, 0xbda0_e7aa],
    property: [0x965a_d1a7, 0x6c46_899d],
  })
})

describe('every part of a record changes its hash in both lanes', () => {
  test('of a package', () => {
    const hashes = (['none', 'key', 'day', 'lo', 'hi'] as const).map((part) => {
      const plus = (name: string) => Number(part === name)
      return both((lane) => packageHash(lane, 5 + plus('key'), 6 + plus('day'), 7 + plus('lo'), 8 + plus('hi')))
    })
    for (const lane of [0, 1]) expect(new Set(hashes.map((pair) => pair[lane])).size).toBe(5)
  })

  test('of a row key: each byte of the id, and the room type', () => {
    const hashes = new Set<number>([rowKey(0, ID, 2, 1), rowKey(0, ID, 2, 2)])
    for (let at = 2; at < 18; at++) {
      const id = Uint8Array.from(ID)
      id[at] = (id[at] as number) ^ 1
      hashes.add(rowKey(0, id, 2, 1))
    }
    expect(hashes.size).toBe(18)
    const behind = Uint8Array.from(ID)
    behind[1] = 0
    behind[18] = 0
    expect(rowKey(0, behind, 2, 1)).toBe(rowKey(0, ID, 2, 1))
  })

  test('of a property', () => {
    const changes: Partial<PropertyHashInput>[] = [
      ...[{}, { idStart: 3 }, { segmentHash: 1 }, { areaHash: 1 }, { typeHash: 1 }, { categoryHash: 1 }, { stars: 5 }],
      ...[{ latitude: 47.5 }, { longitude: 8.5 }, { latitude: -8.5, longitude: 47.25 }],
      ...[{ amenityHashes: [101, 102] }, { amenityHashes: [] }, { amenityHashes: [101, 102, 104] }],
    ]
    for (const lane of [0, 1] as const) {
      expect(new Set(changes.map((change) => propertyHash(lane, { ...PROPERTY, ...change }))).size).toBe(changes.length)
    }
  })
})

test('the empty word is no record', () => {
  expect(both((lane) => packageHash(lane, 5, 6, 0, 0))).toEqual([0, 0])
  expect(packageHash(0, 5, 6, 0, 1)).not.toBe(0)
  expect(packageHash(0, 5, 6, 1, 0)).not.toBe(0)
})

test('the order of amenities and the sign of zero do not matter', () => {
  const base = { ...PROPERTY, latitude: 0, longitude: 0 }
  expect(both((lane) => propertyHash(lane, { ...base, latitude: -0, longitude: -0 }))).toEqual(
    both((lane) => propertyHash(lane, base)),
  )
  expect(both((lane) => propertyHash(lane, { ...PROPERTY, amenityHashes: [103, 101, 102] }))).toEqual(
    both((lane) => propertyHash(lane, PROPERTY)),
  )
})

test('hashes are unsigned 32-bit numbers', () => {
  const random = createRandom(SEED)
  for (let run = 0; run < 200; run++) {
    const [key, lo, hi] = [random.below(2 ** 32), random.below(2 ** 32), random.below(2 ** 32)]
    for (const lane of [0, 1] as const) {
      for (const hash of [packageHash(lane, key, 1, lo, hi), roomHash(lane, key), rowKey(lane, ID, 0, key)]) {
        expect(Number.isInteger(hash) && hash >= 0 && hash < 2 ** 32, `VACANCY_SEED=${SEED}, run ${run}`).toBe(true)
      }
    }
  }
})
