import { mkdtempSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  closePackFiles,
  dropPack,
  findSparseFiles,
  keepPack,
  openPackFiles as open,
  type PackFiles,
  type PackPlace,
  readPacked,
  writePacks,
} from './pack-files.ts'

const MIB = 1 << 20

let folder: string
const prefix = () => join(folder, 'queue.db-packs')
const names = () => readdirSync(folder).toSorted()

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'vacancy-pack-files-'))
})
afterEach(() => {
  for (const files of opened.splice(0)) closePackFiles(files)
  rmSync(folder, { recursive: true })
})

const opened: PackFiles[] = []
function openPackFiles(...from: Parameters<typeof open>): PackFiles {
  const files = open(...from)
  opened.push(files)
  return files
}

/** Writes and keeps a group of packs of these sizes. The bytes of the nth pack are n + 1. */
function write(files: PackFiles, ...sizes: readonly number[]): PackPlace[] {
  const start = 8
  const memory = new SharedArrayBuffer(start + sizes.reduce((sum, size) => sum + size, 0))
  let to = start
  const packs = sizes.map((size, n) => {
    const from = to
    to += size
    new Uint8Array(memory, from, size).fill(n + 1)
    return { from, to }
  })
  const places = writePacks(files, memory, packs, false)
  for (const place of places) keepPack(files, place)
  return places
}

test('packs are read back, also after their files were opened again', () => {
  const files = openPackFiles(prefix(), [])
  const first = write(files, 3, 5)
  const second = write(files, 4)

  const places = [...first, ...second]
  const again = openPackFiles(prefix(), places)
  expect(places.map(({ file, at, bytes }) => [file, at, bytes])).toEqual([
    [1, 0, 3],
    [1, 3, 5],
    [1, 8, 4],
  ])
  for (const each of [files, again])
    expect(places.map((place) => [...readPacked(each, place)])).toEqual([
      [1, 1, 1],
      [2, 2, 2, 2, 2],
      [1, 1, 1, 1],
    ])
  // What follows does not overwrite them.
  expect(write(again, 2)[0]).toMatchObject({ file: 1, at: 12 })
})

test('other bytes than those that were written are noticed, and so is a file that is missing or too short', () => {
  const files = openPackFiles(prefix(), [])
  const [place] = write(files, 4) as [PackPlace]
  const path = `${prefix()}-1`

  writeFileSync(path, Buffer.from([1, 1, 9, 1]))
  expect(() => readPacked(files, place)).toThrow('damaged: queue.db-packs-1 has other bytes at 0 than were written')
  truncateSync(path, 3)
  expect(() => readPacked(files, place)).toThrow('damaged: queue.db-packs-1 has other bytes at 0')
  rmSync(path)
  expect(() => openPackFiles(prefix(), [place])).toThrow('damaged: its file queue.db-packs-1 is missing')
})

test('files without packs are deleted when the others are opened; other files of the folder stay', () => {
  const files = openPackFiles(prefix(), [])
  const [, second] = [write(files, 9 * MIB), write(files, 9 * MIB)]
  for (const name of ['queue.db', 'queue.db-packs', 'queue.db-packs-x', 'other-1'])
    writeFileSync(join(folder, name), '')

  openPackFiles(prefix(), second)

  expect(names()).toEqual(['other-1', 'queue.db', 'queue.db-packs', 'queue.db-packs-2', 'queue.db-packs-x'])
})

test('a file is filled up to 16 MiB, and a larger group has a file of its own', () => {
  const files = openPackFiles(prefix(), [])
  const fileOf = (...sizes: number[]) => write(files, ...sizes)[0]?.file

  expect([fileOf(15 * MIB), fileOf(MIB), fileOf(1), fileOf(8 * MIB, 9 * MIB), fileOf(1)]).toEqual([1, 1, 2, 3, 4])
})

test('a file that lost its packs is written again; of those that wait for that at most two are kept', () => {
  const files = openPackFiles(prefix(), [])
  const groups = [1, 2, 3, 4].map(() => write(files, 9 * MIB))
  for (const [place] of groups.slice(0, 3)) dropPack(files, place as PackPlace)

  expect(names()).toEqual(['queue.db-packs-1', 'queue.db-packs-2', 'queue.db-packs-4'])
  expect(write(files, 9 * MIB)[0]).toMatchObject({ file: 2, at: 0 })
  expect(write(files, 9 * MIB)[0]).toMatchObject({ file: 1, at: 0 })
  expect(write(files, 9 * MIB)[0]).toMatchObject({ file: 5, at: 0 })
})

test('the file that is being filled starts again at its beginning when it lost its packs', () => {
  const files = openPackFiles(prefix(), [])
  for (const place of write(files, 3, 4)) dropPack(files, place)

  expect(write(files, 2)[0]).toMatchObject({ file: 1, at: 0 })
})

test('a file is sparse when less than half of it has been packs for so long', () => {
  const files = openPackFiles(prefix(), [])
  const [a, b] = write(files, 3 * MIB, 3 * MIB, 6 * MIB) as [PackPlace, PackPlace]
  const current = write(files, MIB, 5 * MIB)
  const sparseAt = (nowMs: number) => [...findSparseFiles(files, nowMs, 100)]

  dropPack(files, a)
  dropPack(files, b)
  // Exactly half of the first file.
  expect([sparseAt(1_000), sparseAt(2_000)]).toEqual([[], []])
  const [c, d] = write(files, 5 * MIB, 2 * MIB) as [PackPlace, PackPlace]
  write(files, 9 * MIB)
  // 5 of 13 MiB of the second one, which is no longer being filled.
  for (const place of [current[0], c, d]) dropPack(files, place as PackPlace)

  expect([sparseAt(3_000), sparseAt(3_099), sparseAt(3_100), sparseAt(9_000)]).toEqual([[], [], [2], [2]])
})

test('closing keeps a file whose group failed behind its row, which used to be deleted', () => {
  const files = open(prefix(), [])
  const memory = new SharedArrayBuffer(4)
  new Uint8Array(memory).fill(7)
  const places = writePacks(files, memory, [{ from: 0, to: 4 }], false)

  closePackFiles(files)

  const again = openPackFiles(prefix(), places)
  expect(readPacked(again, places[0] as PackPlace)).toEqual(Uint8Array.of(7, 7, 7, 7))
})
