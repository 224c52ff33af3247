import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRandom } from '@vacancy/testkit/random'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { FileOptions } from '../testing/csv-files.ts'
import { compareReadings } from '../testing/import-machine.ts'
import {
  BLOCK_BYTES,
  CHUNK_BYTES,
  CODEC_BYTES,
  CONTEXT,
  FEATURE_ENTRIES,
  FEATURE_TEXT_AT,
  FEATURE_TEXT_BYTES,
  HEADER,
  RESULT_BYTES,
  ROOM_TEXT_AT,
  ROW,
  STOP,
} from './layout.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? Math.floor(Math.random() * 2 ** 31))

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'vacancy-import-kernel-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

/** @param rounds first and last; each has a file of its own */
function compareFiles(rounds: [number, number], optionsOf: (round: number) => Omit<FileOptions, 'lines'>): void {
  for (let round = rounds[0]; round <= rounds[1]; round++) {
    const random = createRandom(SEED + round)
    try {
      compareReadings(join(folder, 'packages.csv'), random, { lines: 1 + random.below(600), ...optionsOf(round) })
    } catch (cause) {
      throw new Error(`VACANCY_SEED=${SEED}, round ${round}: ${(cause as Error).message}`, { cause })
    }
  }
}

for (const order of ['grouped', 'shuffled'] as const) {
  test(`the kernel, the slow path and a naive parser agree on valid files, ${order}`, () => {
    compareFiles([0, 24], () => ({ order, spoilOneIn: 0, varyOneIn: 0 }))
  })

  test(`they agree where cells are quoted, padded or formatted differently, ${order}`, () => {
    compareFiles([100, 124], () => ({ order, spoilOneIn: 0, varyOneIn: 4 }))
  })

  test(`they agree on corrupted files, error by error, ${order}`, () => {
    compareFiles([200, 259], (round) => ({ order, spoilOneIn: 1 + (round % 30), varyOneIn: 10 }))
  })
}

test('the compiled kernel has the numbers of layout.ts', () => {
  const source = readFileSync(new URL('./kernel.as.ts', import.meta.url), 'utf8')
  const numbers = new Map<string, number>()
  for (const [, name, , expression] of source.matchAll(/^const ([A-Z0-9_]+): (\w+) = ([^\n]+)$/gm)) {
    const value = (expression as string).replace(/[A-Z][A-Z0-9_]*/g, (other) => String(numbers.get(other)))
    numbers.set(name as string, Function(`return ${value}`)() as number)
  }
  const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()
  const expected = new Map<string, number>()
  for (const [name, cell] of Object.entries(HEADER)) expected.set(snake(name), cell * 4)
  for (const [name, offset] of Object.entries(CONTEXT)) expected.set(snake(name), offset)
  for (const [name, code] of Object.entries(STOP)) expected.set(snake(name), code)
  expected.set('ROOM_NAME', CONTEXT.room)
  const sizes = {
    BLOCK_BYTES,
    CHUNK_BYTES,
    CODEC_BYTES,
    FEATURE_ENTRIES,
    FEATURE_TEXT_AT,
    FEATURE_TEXT_BYTES,
    RESULT_BYTES,
  }
  for (const [name, size] of Object.entries(sizes)) expected.set(name, size)
  expected.set('ROW_ROOM', ROW.room * 4)
  expected.set('ROW_PROPERTY', ROW.property * 4)
  expected.set('ROW_HASH', ROW.hash * 4)
  expected.set('ROW_BASE', ROW.base * 4)
  expected.set('ROW_CHUNKS', ROW.chunks * 4)
  expected.set('ROOM_TEXT_AT', ROOM_TEXT_AT)
  const inBoth = [...expected.keys()].filter((name) => numbers.has(name))
  expect(inBoth.length).toBeGreaterThan(45)
  for (const name of inBoth) expect(numbers.get(name), name).toBe(expected.get(name))
})
