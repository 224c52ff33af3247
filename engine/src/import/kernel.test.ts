import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createCodecList, packPropertyId, unpackPropertyId } from '@vacancy/shared'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  CODECS,
  type Contents,
  DAYS,
  FIRST_DAY,
  PROPERTIES,
  randomPackages,
  readObviously,
} from '../testing/csv-files.ts'
import { createRandom, type Random } from '../testing/random.ts'
import { createPackageParser, LINE_BYTES_MAX } from './csv.ts'
import type { Fault } from './faults.ts'
import { compileImportKernel, createImportKernel } from './kernel.ts'
import type { ImportKernel } from './layout.ts'
import {
  BLOCK_BYTES,
  CHUNK_BYTES,
  CODEC_BYTES,
  CONTEXT,
  FEATURE_ENTRIES,
  FEATURE_TEXT_AT,
  FEATURE_TEXT_BYTES,
  HEADER,
  hashId,
  RESULT_BYTES,
  ROOM,
  ROOM_TEXT_AT,
  ROW,
  STOP,
} from './layout.ts'
import { explainPackages, type PackageThread, readSharedRanges } from './packages.ts'
import { createBlocks } from './split.ts'
import { beginPass, createMemory, createStaging, FAILED, forEachRecord, type Staging } from './staging.ts'
import { wordAt } from './twin.ts'

const MEMORY_BYTES = 16 * 1024 * 1024
const SEED = Number(process.env['VACANCY_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
const codecs = createCodecList(CODECS)
const module = compileImportKernel()

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'vacancy-import-kernel-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

function indexOf(ids: readonly string[]) {
  const bytes = new Uint8Array(ids.length * 16)
  const slots = new Uint32Array(256)
  for (const [ordinal, id] of ids.entries()) {
    const packed = packPropertyId(id) as Uint8Array
    bytes.set(packed, ordinal * 16)
    const [w0, w1, w2, w3] = new Uint32Array(packed.slice().buffer) as unknown as [number, number, number, number]
    let slot = hashId(w0, w1, w2, w3) >>> 24
    while (slots[slot] !== 0) slot = (slot + 1) & 255
    slots[slot] = ordinal + 1
  }
  return { ids: bytes, slots, shift: 24 }
}

type Machine = {
  staging: Staging
  kernel: ImportKernel
  thread: (path: string, file: number, bytes: number) => PackageThread
}

function createMachine(kind: 'wasm' | 'typescript', blockBytes: number): Machine {
  const staging = createStaging({
    memory: createMemory(MEMORY_BYTES, 0),
    index: indexOf(PROPERTIES),
    codecs,
    firstDay: FIRST_DAY,
    days: DAYS,
    threads: 1,
    blockBytes,
  })
  const { memory } = staging
  const parser = createPackageParser(codecs)
  const loaded = createImportKernel(memory, kind === 'wasm' ? module : undefined, parser)
  expect(loaded.implementation, 'the kernel is built (npm test builds it)').toBe(kind)
  const [context, buffer] = [staging.contexts[0] as number, staging.buffers[0] as number]
  return {
    staging,
    kernel: loaded.kernel,
    thread: (path, file, bytes) => ({
      memory,
      kernel: loaded.kernel,
      parser,
      context,
      buffer,
      blocks: createBlocks(file, path, bytes, new Uint8Array(memory.buffer, buffer, staging.bufferBytes)),
      u8: new Uint8Array(memory.buffer),
      u32: new Uint32Array(memory.buffer),
      f64: new Float64Array(memory.buffer),
    }),
  }
}

type Read = { failed: boolean; contents: Contents; faults: { line: number; fault: Fault }[]; words: string[] }

/** Both passes over the same bytes: the fast one, then the one that tells every fault. */
function readWith(
  kind: 'wasm' | 'typescript',
  bytes: Uint8Array,
  cut: { block: number; range: number; strict: boolean },
): Read {
  const path = join(folder, 'packages.csv')
  writeFileSync(path, bytes)
  const machine = createMachine(kind, cut.block)
  const { staging } = machine
  const file = openSync(path, 'r')
  try {
    const thread = machine.thread(path, file, bytes.length)
    const data = { start: 0, end: bytes.length, firstLine: 1 }
    beginPass(staging, { explain: false, strictWindow: cut.strict, threads: 1 })
    readSharedRanges(thread, data, cut.range)
    const failed = thread.u32[HEADER.failed] !== FAILED.no
    const words = failed ? [] : wordsOf(staging)
    const skipped = thread.f64[(thread.context + CONTEXT.skipped) >>> 3] as number
    if (!failed) expect(thread.f64[(thread.context + CONTEXT.accepted) >>> 3]).toBe(words.length)

    beginPass(staging, { explain: true, strictWindow: cut.strict, threads: 1 })
    const faults: { line: number; fault: Fault }[] = []
    explainPackages(thread, data, (line, fault) => faults.push({ line, fault }))
    expect(failed).toBe(faults.length > 0)
    return {
      failed,
      words,
      faults,
      contents: { packages: words, skipped, faultyLines: faults.map(({ line }) => line) },
    }
  } finally {
    closeSync(file)
  }
}

/** Every package in the memory, as readObviously writes it. */
function wordsOf({ memory }: Staging): string[] {
  const u8 = new Uint8Array(memory.buffer)
  const u32 = new Uint32Array(memory.buffer)
  const decoder = new TextDecoder()
  const packages: string[] = []
  forEachRecord(memory, HEADER.rowSlots, (row) => {
    const id = unpackPropertyId(u8, row)
    const room = u32[(row >>> 2) + ROW.room] as number
    const length = u32[(room >>> 2) + ROOM.length] as number
    const name = decoder.decode(u8.slice(room + ROOM_TEXT_AT, room + ROOM_TEXT_AT + length))
    for (let night = 0; night < DAYS; night++) {
      const word = wordAt(u32, row, night) >>> 2
      const [lo, hi] = [u32[word] as number, u32[word + 1] as number]
      if (word === 0 || (lo | hi) === 0) continue
      packages.push(`${id}|${name}|${FIRST_DAY + night}|${lo & 255}|${~hi >>> 0}|${lo >>> 8}`)
    }
  })
  return packages.sort()
}

function randomCut(random: Random, bytes: number) {
  return {
    block: 2 * LINE_BYTES_MAX + random.below(5000),
    range: 1 + random.below(bytes + 1),
    strict: random.below(5) === 0,
  }
}

function check(round: number, order: 'grouped' | 'shuffled', spoilOneIn: number, varyOneIn: number): void {
  const random = createRandom(SEED + round)
  const bytes = randomPackages(random, { lines: 1 + random.below(600), spoilOneIn, varyOneIn, order })
  const cut = randomCut(random, bytes.length)
  const says = `VACANCY_TEST_SEED=${SEED}, round ${round}`

  const compiled = readWith('wasm', bytes, cut)
  const twin = readWith('typescript', bytes, { ...randomCut(random, bytes.length), strict: cut.strict })

  expect(compiled.failed, says).toBe(twin.failed)
  expect(compiled.words, says).toEqual(twin.words)
  expect(compiled.faults, says).toEqual(twin.faults)
  const obvious = readObviously(bytes, cut.strict)
  expect(compiled.contents.faultyLines, says).toEqual(obvious.faultyLines)
  if (compiled.failed) return
  expect(compiled.contents.packages, says).toEqual(obvious.packages)
  expect(compiled.contents.skipped, says).toBe(obvious.skipped)
}

for (const order of ['grouped', 'shuffled'] as const) {
  test(`kernel, twin and an obvious reading agree on right files, ${order}`, () => {
    for (let round = 0; round < 25; round++) check(round, order, 0, 0)
  })

  test(`they agree where cells are quoted, padded or written otherwise, ${order}`, () => {
    for (let round = 100; round < 125; round++) check(round, order, 0, 4)
  })

  test(`they agree on spoiled files, fault by fault, ${order}`, () => {
    for (let round = 200; round < 260; round++) check(round, order, 1 + (round % 30), 10)
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
