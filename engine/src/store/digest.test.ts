import { expect, test } from 'vitest'
import { type Lane, nameHash, type PropertyHashInput, packageHash, propertyHash, roomHash, rowKey } from './digest.ts'

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
