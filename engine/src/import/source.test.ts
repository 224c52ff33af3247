/** Rows as threads leave them become tables, days and planes of words, compared with lists of packages. */

import { closeSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createCodecList, packPropertyId, unpackPropertyId } from '@vacancy/shared'
import { createRandom, type Random } from '@vacancy/testkit/random'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { nameHash, roomHash, rowKey } from '../store/digest.ts'
import { createPackageParser, LINE_BYTES_MAX } from './csv.ts'
import { createFallback } from './kernel-fallback.ts'
import { CONTEXT, HEADER, type ImportKernel, PADDING_BYTES, STOP, TASK_ROWS } from './layout.ts'
import { type PropertyTable, readProperties } from './properties.ts'
import { arrange, type Counted, countTables, gatherWords, runCensus, tableShapes } from './source.ts'
import { createBlocks, openCsv } from './split.ts'
import { beginPass, createMemory, createStaging, type Staging, takeMemory } from './staging.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const FIRST_DAY = 20_454
const codecs = createCodecList(['a'])
const encoder = new TextEncoder()

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'vacancy-source-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

type Package = {
  readonly id: string
  readonly room: string
  readonly night: number
  readonly lo: number
  readonly hi: number
}
type Machine = { readonly properties: PropertyTable; readonly staging: Staging; readonly kernel: ImportKernel }

/** @param segments by property id */
function createMachine(segments: ReadonlyMap<string, string>, days: number): Machine {
  const path = join(folder, 'properties.csv')
  writeFileSync(path, [...segments].map(([id, segment]) => `${id},${segment},a,t,c,1,0,0,\n`).join(''))
  const file = openCsv(path, 'properties')
  const blocks = createBlocks(file.file, path, file.bytes, new Uint8Array(2 * LINE_BYTES_MAX + PADDING_BYTES))
  const properties = readProperties(file, blocks, { onFault: () => expect.unreachable(), onBlock: () => {} })
  closeSync(file.file)
  const memory = createMemory(16 * 2 ** 20, 0)
  const { index } = properties
  const staging = createStaging({ memory, index, codecs, firstDay: FIRST_DAY, days, threads: 1, blockBytes: 64 })
  beginPass(staging, { explain: false, strictWindow: false, threads: 1 })
  return { properties, staging, kernel: createFallback(memory, createPackageParser(codecs)) }
}

function add({ staging, kernel }: Machine, { id, room, night, lo, hi }: Package): void {
  const u8 = new Uint8Array(staging.memory.buffer)
  const context = staging.contexts[0] as number
  u8.set(packPropertyId(id) as Uint8Array, context + CONTEXT.id)
  u8.set(encoder.encode(room), context + CONTEXT.room)
  new Uint32Array(u8.buffer)[(context + CONTEXT.roomLength) >>> 2] = encoder.encode(room).length
  const stop = kernel.add(context, night, lo, hi, 0)
  if (stop !== STOP.done) expect.unreachable(`add returned ${stop}`)
}

function count({ properties, staging, kernel }: Machine): Counted {
  const arrangement = arrange(staging.memory, properties)
  runCensus(staging.memory, kernel, arrangement.census, arrangement.tables.rowList)
  return countTables(staging.memory, arrangement)
}

const byBytes = (a: string, b: string) => Buffer.compare(encoder.encode(a), encoder.encode(b))

/** `segment|room type`: ids of its rows and its days. */
function tablesOf({ properties }: Machine, counted: Counted): [string, string[], number[]][] {
  return tableShapes(counted.tables).map(({ segment, roomType, rows, days }) => [
    `${properties.names.segments[segment]}|${counted.roomTypes[roomType]}`,
    [...rows].map((row) => unpackPropertyId(properties.columns.ids, row * 16)),
    [...days],
  ])
}

function expectedTables({ properties }: Machine, segments: ReadonlyMap<string, string>, packages: readonly Package[]) {
  const order = Array.from({ length: properties.columns.count }, (_, i) =>
    unpackPropertyId(properties.columns.ids, i * 16),
  )
  const keys = [...new Set(packages.map(({ id, room }) => `${segments.get(id)}|${room}`))]
  const split = (key: string) => key.split('|') as [string, string]
  keys.sort((a, b) => byBytes(split(a)[0], split(b)[0]) || byBytes(split(a)[1], split(b)[1]))
  return keys.map((key) => {
    const own = packages.filter(({ id, room }) => `${segments.get(id)}|${room}` === key)
    const ids = order.filter((id) => own.some((each) => each.id === id))
    const days = [...new Set(own.map(({ night }) => FIRST_DAY + night))].sort((a, b) => a - b)
    return [key, ids, days]
  })
}

function wordsOf(machine: Machine, counted: Counted, rowsAtOnce: number): Map<string, [number, number]> {
  const { staging, kernel, properties } = machine
  const { memory } = staging
  const found = new Map<string, [number, number]>()
  const target = takeMemory(memory, 64 * 400 * 8)
  for (const [table, { roomType, rows, days }] of tableShapes(counted.tables).entries()) {
    for (let rowStart = 0; rowStart < rows.length; rowStart += rowsAtOnce) {
      const some = Math.min(rowsAtOnce, rows.length - rowStart)
      const addresses = new Uint32Array(days.length)
      const range = { context: staging.contexts[0] as number, table, rowStart, rows: some, target }
      gatherWords(memory, kernel, counted.tables, range, addresses)
      const u32 = new Uint32Array(memory.buffer)
      expect(new Set(addresses).size).toBe(days.length)
      for (const [i, address] of addresses.entries()) {
        expect(address + some * 8).toBeLessThanOrEqual(target + days.length * some * 8)
        for (let row = 0; row < some; row++) {
          const [lo, hi] = u32.slice(address / 4 + row * 2, address / 4 + row * 2 + 2) as unknown as [number, number]
          if ((lo | hi) === 0) continue
          const id = unpackPropertyId(properties.columns.ids, (rows[rowStart + row] as number) * 16)
          found.set(`${id}|${counted.roomTypes[roomType]}|${(days[i] as number) - FIRST_DAY}`, [lo, hi])
        }
      }
    }
  }
  return found
}

function drawPackages(random: Random, segments: ReadonlyMap<string, string>, days: number): Package[] {
  const rooms = ['b', 'a', 'ä', 'Z', 'a longer name of a room type']
  const ids = [...segments.keys()]
  const packages = new Map<string, Package>()
  for (let n = 0; n < 250; n++) {
    const [id, room] = [ids[random.below(ids.length)] as string, rooms[random.below(rooms.length)] as string]
    const night = random.below(days)
    packages.set(`${id}|${room}|${night}`, { id, room, night, lo: 1 + random.below(99), hi: random.next() })
  }
  return [...packages.values()]
}

test.each([1, 15, 16, 17, 75, 366])(
  'tables, days and words of drawn packages over %i nights are those of the lists',
  (days) => {
    const random = createRandom(SEED * 1000 + days)
    const segments = new Map(Array.from({ length: 24 }, (_, i) => [`p${(i * 7) % 24}`, `s${i % 3}`]))
    segments.set('without-room', 's1')
    const drawn = new Map([...segments].filter(([id]) => id !== 'without-room'))
    const machine = createMachine(segments, days)
    const packages = drawPackages(random, drawn, days)
    for (const each of packages) add(machine, each)

    const counted = count(machine)

    const where = `VACANCY_SEED=${SEED}`
    expect(counted.packages, where).toBe(packages.length)
    expect(counted.roomTypes, where).toEqual([...new Set(packages.map(({ room }) => room))].sort(byBytes))
    expect(tablesOf(machine, counted), where).toEqual(expectedTables(machine, segments, packages))
    const words = new Map(packages.map(({ id, room, night, lo, hi }) => [`${id}|${room}|${night}`, [lo, hi]]))
    expect(wordsOf(machine, counted, 64), where).toEqual(words)
    expect(wordsOf(machine, counted, 3), where).toEqual(words)
  },
)

test('each property has its room types in the order of their names, and the digest is the sum of these facts', () => {
  const segments = new Map([
    ['p', 's'],
    ['q', 's'],
    ['r', 's'],
  ])
  const machine = createMachine(segments, 32)
  const held: [string, string][] = [
    ['r', 'b'],
    ['p', 'c'],
    ['p', 'a'],
    ['r', 'a'],
    ['p', 'b'],
  ]
  for (const [id, room] of held) {
    for (const night of [3, 4]) add(machine, { id, room, night, lo: 1, hi: 0 })
  }

  const { rooms, roomTypes, digest, packages } = count(machine)

  expect(packages).toBe(10)
  expect(roomTypes).toEqual(['a', 'b', 'c'])
  expect([...rooms.roomStart]).toEqual([0, 3, 3, 5])
  expect([...rooms.rooms]).toEqual([0, 1, 2, 0, 1])
  const sum = (lane: 0 | 1) =>
    held.reduce((all, [id, room]) => {
      const key = rowKey(
        lane,
        packPropertyId(id) as Uint8Array,
        0,
        nameHash(lane, encoder.encode(room), 0, room.length),
      )
      return (all + roomHash(lane, key)) >>> 0
    }, 0)
  expect(digest).toEqual({ lo: sum(0), hi: sum(1) })
})

test('an import without packages has no tables', () => {
  const machine = createMachine(new Map([['p', 's']]), 32)

  const counted = count(machine)

  expect(counted).toMatchObject({ packages: 0, roomTypes: [], digest: { lo: 0, hi: 0 } })
  expect(tableShapes(counted.tables)).toEqual([])
  expect([...counted.rooms.roomStart]).toEqual([0, 0])
})

test.each([
  [TASK_ROWS, 1],
  [TASK_ROWS + 1, 2],
])('a table of %i rows is counted in %i census tasks, and adds up', (rowCount, tasks) => {
  const segments = new Map(Array.from({ length: rowCount }, (_, i) => [`p${i}`, 's']))
  const machine = createMachine(segments, 16)
  for (const id of [...segments.keys()]) add(machine, { id, room: 'r', night: id === 'p7' ? 9 : 2, lo: 1, hi: 0 })

  const arrangement = arrange(machine.staging.memory, machine.properties)
  expect(arrangement.census.count).toBe(tasks)
  expect([...arrangement.census.tableOf]).toEqual(new Array(tasks).fill(0))
  runCensus(machine.staging.memory, machine.kernel, arrangement.census, arrangement.tables.rowList)
  const counted = countTables(machine.staging.memory, arrangement)

  expect(counted.packages).toBe(rowCount)
  expect(tableShapes(counted.tables).map(({ rows, days }) => [rows.length, [...days]])).toEqual([
    [rowCount, [FIRST_DAY + 2, FIRST_DAY + 9]],
  ])
  // All tasks are taken: another thread finds none.
  expect(new Uint32Array(machine.staging.memory.buffer)[HEADER.nextTask]).toBe(tasks + 1)
})
