/** The measured growth of a command against the charge before and after it, and against what the parts cost. */
import { packPropertyId } from '@vacancy/shared'
import { createRandom, type Random } from '@vacancy/testkit/random'
import { beforeEach, describe, expect, test } from 'vitest'
import { TODAY } from '../testing/model.ts'
import { createNodeInMemory, raiseFeatureLevel, restartEmpty } from '../testing/node-in-memory.ts'
import { applyCommand } from './apply.ts'
import {
  amenitiesCharge,
  nameCharge,
  nameGrowth,
  propertyCharge,
  roomListCharge,
  segmentCharge,
  tableBytes,
} from './charge.ts'
import {
  beginCommand,
  type CommandKind,
  type CommandWriter,
  createCommandReader,
  createCommandWriter,
  KIND,
  OUTCOME,
  openCommand,
  readBytes,
  readName,
  stampCommand,
  writeBytes,
  writeF64,
  writeName,
  writeU8,
  writeU32,
} from './command.ts'
import { findName, internText, NAMES } from './dictionary.ts'
import { type Growth, measurePackage, measureProperty } from './growth.ts'
import { PROPERTY as PROPERTY_CELL, ROOMS } from './layout.ts'
import { planeOf } from './planes.ts'
import { findProperty } from './property-index.ts'
import { recountCharge } from './recount.ts'
import { findRoom } from './segment.ts'
import { field } from './table-fields.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const node = createNodeInMemory(TODAY, 48 << 20)
const { store } = node
const { memory } = store
const { charge } = store.writer

beforeEach(() => {
  restartEmpty(node, TODAY)
  raiseFeatureLevel(node)
})

type Property = {
  id: string
  segment: string
  area: string
  type: string
  category: string
  amenities: readonly string[]
}
type Package = { id: string; room: string; day: number }

const PROPERTY: Property = { id: 'p', segment: 's', area: 'a', type: 't', category: 'c', amenities: [] }
const encoder = new TextEncoder()

function writeText(writer: CommandWriter, text: string): void {
  const bytes = encoder.encode(text)
  writeName(writer, bytes, 0, bytes.length)
}
const writeId = (writer: CommandWriter, id: string) => writeBytes(writer, packPropertyId(id) as Uint8Array, 0, 16)

function encode(kind: CommandKind, body: (writer: CommandWriter) => void): Uint8Array {
  const writer = createCommandWriter()
  beginCommand(writer, kind)
  body(writer)
  const bytes = writer.bytes.slice(0, writer.at)
  stampCommand(new DataView(bytes.buffer), 0, TODAY * 86_400_000, TODAY)
  return bytes
}

function run(bytes: Uint8Array): void {
  node.index++
  expect(applyCommand(node.context, node.index, bytes, 0, bytes.length).code).toBe(OUTCOME.done)
}

const opened = (bytes: Uint8Array) => {
  const reader = createCommandReader()
  openCommand(reader, bytes, 0, bytes.length)
  return reader
}

/** Measures and runs SETPROP. @returns the measurement and by how much the charge really grew */
function setProperty(fields: Partial<Property> = {}) {
  const property = { ...PROPERTY, ...fields }
  const bytes = encode(KIND.setProperty, (writer) => {
    writeId(writer, property.id)
    writeU8(writer, 3)
    writeF64(writer, 1)
    writeF64(writer, 2)
    for (const name of [property.segment, property.area, property.type, property.category]) writeText(writer, name)
    writeU8(writer, property.amenities.length)
    for (const name of property.amenities) writeText(writer, name)
  })
  const reader = opened(bytes)
  const { at } = reader
  const { growth, largest, property: address, names } = measureProperty(store, reader)
  const used = [...names.subarray(0, 4 + property.amenities.length)]
  const before = charge.bytes
  run(bytes)
  return { growth, largest, address, names: used, actual: charge.bytes - before, isRewound: reader.at === at }
}

/** The same for SETROOMPKG. */
function setPackage({ id = 'p', room = 'double', day = TODAY }: Partial<Package> = {}): Growth & { actual: number } {
  const bytes = encode(KIND.setPackage, (writer) => {
    writeId(writer, id)
    writeU32(writer, day)
    writeU8(writer, 7)
    writeU8(writer, 1)
    writeU32(writer, 5)
    writeU32(writer, 0)
    writeText(writer, room)
  })
  const reader = opened(bytes)
  const property = findProperty(memory, bytes, readBytes(reader, 16))
  readBytes(reader, 14)
  const nameStart = readName(reader)
  const roomType = findName(memory, NAMES.roomType, bytes, nameStart, reader.at)
  const roomEntry = findRoom(memory, property, roomType)
  const measured = { ...measurePackage(store, reader, property, roomType, roomEntry, day, nameStart) }
  const before = charge.bytes
  run(bytes)
  return { ...measured, actual: charge.bytes - before }
}
const largestTable = () => Math.max(...[...charge.tables.values()].map(({ bytes }) => bytes))

describe('additions are measured exactly', () => {
  test('the first property, with a segment and all of its names', () => {
    const { growth, largest, actual, address, names, isRewound } = setProperty({ amenities: ['pool', 'sauna'] })
    const firstName = nameGrowth({ names: new Uint32Array(6) } as never, NAMES.area, 1, nameCharge(1))
    expect(growth).toBe(actual)
    expect(growth).toBeGreaterThan(4 * firstName + tableBytes(1, 0) + segmentCharge(0) + propertyCharge(2, 0))
    expect([largest, address, names, isRewound]).toEqual([tableBytes(1, 0), 0, [-1, -1, -1, -1, -1, -1], true])
  })

  test('another property of the same segment and names costs itself, until its table must grow', () => {
    setProperty({ amenities: ['pool'] })
    for (let n = 2; n < 40; n++) {
      const { growth, largest, actual, names } = setProperty({ id: `p${n}`, amenities: ['pool'] })
      expect(growth, `${n} properties`).toBe(propertyCharge(1, 0) + tableBytes(n, 0) - tableBytes(n - 1, 0))
      expect([actual, largest, names], `${n} properties`).toEqual([growth, tableBytes(n, 0), [0, 0, 0, 0, 0]])
    }
  })

  test('a first room: list, name, table and night', () => {
    setProperty()
    const { growth, largest, actual } = setPackage()
    const list = roomListCharge(1) - roomListCharge(0)
    const name = nameGrowth({ names: new Uint32Array(6) } as never, NAMES.roomType, 1, nameCharge(6))
    expect(growth).toBe(list + name + segmentCharge(1) - segmentCharge(0) + tableBytes(1, 1))
    expect([actual, largest]).toEqual([growth, tableBytes(1, 1)])
  })

  test('another night of the same room costs a plane', () => {
    setProperty()
    setPackage()
    const { growth, largest, actual } = setPackage({ day: TODAY + 1 })
    expect([growth, actual, largest]).toEqual([tableBytes(1, 2) - tableBytes(1, 1), growth, tableBytes(1, 2)])
  })

  test('a room of another property costs a row, and a night only where the table has none', () => {
    for (const id of ['p', 'q', 'r']) setProperty({ id })
    setPackage()
    const sameNight = setPackage({ id: 'q' })
    expect([sameNight.growth, sameNight.actual]).toEqual([tableBytes(2, 1) - tableBytes(1, 1), sameNight.growth])
    const otherNight = setPackage({ id: 'r', day: TODAY + 1 })
    expect([otherNight.growth, otherNight.actual]).toEqual([tableBytes(3, 2) - tableBytes(2, 1), otherNight.growth])
    expect(otherNight.largest).toBe(tableBytes(3, 2))
  })

  test('the room list grows when its doubled length passes its reserve', () => {
    setProperty()
    for (let n = 1; n < 12; n++) {
      const { growth, actual } = setPackage({ room: `room ${n}` })
      expect(growth, `${n} rooms`).toBe(actual)
    }
  })

  test('a name that exists without a use counts as new', () => {
    setProperty()
    internText(store, NAMES.roomType, 'double')
    internText(store, NAMES.amenity, 'pool')
    store.writer.charge.bytes = recountCharge(memory)
    const { growth, actual } = setPackage()
    expect(growth).toBeGreaterThanOrEqual(actual)
  })
})

describe('a known property', () => {
  test('that does not change grows by nothing', () => {
    setProperty({ amenities: ['pool'] })
    setPackage()
    const { growth, largest, actual, address, names } = setProperty({ amenities: ['pool'] })
    expect([growth, largest, actual, names]).toEqual([0, 0, 0, [0, 0, 0, 0, 0]])
    expect(address).toBe(findProperty(memory, packPropertyId('p') as Uint8Array, 0))
  })

  test.each([
    [0, 2],
    [2, 0],
    [1, 5],
    [5, 1],
    [2, 3],
    [3, 3],
  ])('with %i amenities and then %i grows by the difference of the lists', (from, to) => {
    const all = ['a', 'b', 'c', 'd', 'e']
    setProperty({ id: 'other', amenities: all })
    setProperty({ amenities: all.slice(0, from) })
    const { growth, actual, largest } = setProperty({ amenities: all.slice(0, to) })
    expect([growth, actual, largest]).toEqual([amenitiesCharge(to) - amenitiesCharge(from), growth, 0])
  })

  test('with other names of the same segment grows by the names, numbered in the order of the command', () => {
    setProperty({ id: 'other', area: 'b', category: 'd', amenities: ['x', 'y'] })
    setProperty({ amenities: ['y', 'z'] })
    const fields = { area: 'b', type: 'new type', category: 'd', amenities: ['z', 'new amenity', 'x'] }
    const { growth, actual, names } = setProperty(fields)
    expect(growth).toBe(actual)
    expect(names).toEqual([0, 0, -1, 0, 2, -1, 0])
    expect(growth).toBe(nameCharge(8) + nameCharge(11) + amenitiesCharge(3) - amenitiesCharge(2))
  })

  test('that moves counts rows and nights of its rooms where it goes, and nothing of what it leaves', () => {
    for (const [id, segment] of [
      ['p', 's'],
      ['q', 'x'],
      ['r', 'y'],
    ] as const)
      setProperty({ id, segment })
    for (const day of [TODAY, TODAY + 1, TODAY + 2]) setPackage({ day })
    setPackage({ room: 'suite' })
    for (const day of [TODAY + 1, TODAY + 5]) setPackage({ id: 'q', day })

    const { growth, largest, address } = setProperty({ segment: 'x' })
    const rows = tableBytes(2, 0) - tableBytes(1, 0)
    const double = tableBytes(2, 4) - tableBytes(1, 2)
    expect(growth).toBe(rows + double + tableBytes(1, 1) + segmentCharge(2) - segmentCharge(1))
    expect(largest).toBe(tableBytes(2, 4))
    expect(address).not.toBe(0)

    const toNone = setProperty({ segment: 'y' })
    expect(toNone.growth).toBe(rows + tableBytes(1, 3) + tableBytes(1, 1) + segmentCharge(2) - segmentCharge(0))
    const toNew = setProperty({ segment: 'z' })
    const segmentName = nameCharge(1)
    const all = tableBytes(1, 0) + tableBytes(1, 3) + tableBytes(1, 1) + segmentCharge(2)
    expect(toNew.growth).toBe(all + segmentName)
    expect(toNew.largest).toBe(tableBytes(1, 3))
  })
})

/** A few names, so that most exist already, and now and then a long one. */
function drawProperty(random: Random): Partial<Property> {
  const name = (kind: string) =>
    random.below(5) === 0 ? `${kind} ${'long '.repeat(random.below(9))}${random.below(99)}` : kind + random.below(3)
  const amenities = [...new Set(Array.from({ length: random.below(4) }, () => name('amenity')))]
  const id = `p${random.below(30)}`
  return { id, segment: name('s'), area: name('a'), type: name('t'), category: name('c'), amenities }
}

test('no command grows the charge by more than measured, nor a table beyond the largest', () => {
  const random = createRandom(SEED)
  const known = new Set<string>()
  for (let step = 0; step < 260; step++) {
    const message = `VACANCY_SEED=${SEED}, step ${step}`
    const isProperty = known.size === 0 || random.below(3) === 0
    const tablesBefore = charge.tables.size === 0 ? 0 : largestTable()
    const fields = drawProperty(random)
    const id = [...known][random.below(known.size)] ?? ''
    const drawn = { id, room: `r${random.below(5)}`, day: TODAY + random.below(6) }
    if (!isProperty && hasNight(drawn)) continue
    const id16 = packPropertyId(fields.id as string) as Uint8Array
    const before = findProperty(memory, id16, 0)
    const segmentBefore = before === 0 ? -1 : field(memory, before + PROPERTY_CELL.segment)
    const { growth, largest, actual } = isProperty ? setProperty(fields) : setPackage(drawn)
    const after = findProperty(memory, id16, 0)
    const stays = before === 0 || segmentBefore === field(memory, after + PROPERTY_CELL.segment)
    if (isProperty) known.add(fields.id as string)
    expect(actual, message).toBeLessThanOrEqual(growth)
    if (!isProperty || stays) expect(actual, message).toBe(growth)
    expect(largestTable(), message).toBeLessThanOrEqual(Math.max(tablesBefore, largest))
    if (step % 20 === 0) expect(charge.bytes, message).toBe(recountCharge(memory))
  }
})

/** Whether its table has the night: then nothing is measured. */
function hasNight({ id, room, day }: Package): boolean {
  const property = findProperty(memory, packPropertyId(id) as Uint8Array, 0)
  const bytes = encoder.encode(room)
  const entry = findRoom(memory, property, findName(memory, NAMES.roomType, bytes, 0, bytes.length))
  return entry !== 0 && planeOf(memory, field(memory, entry + ROOMS.table), day) !== 0
}
