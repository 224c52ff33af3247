/**
 * One thread of an import over bytes in memory: both passes, with the kernel's scan and with the slow path for every line
 * (csv.ts), compared with each other and with a naive parser.
 */

import { deepStrictEqual } from 'node:assert'
import { closeSync, openSync, writeFileSync } from 'node:fs'
import { assert, createCodecList, PROPERTY_ID_BYTES, packPropertyId, unpackPropertyId } from '@vacancy/shared'
import type { Random } from '@vacancy/testkit/random'
import { createPackageParser, LINE_BYTES_MAX } from '../import/csv.ts'
import { createImportKernel } from '../import/kernel.ts'
import { CHUNK_NIGHTS, CONTEXT, HEADER, hashId, ROOM, ROOM_TEXT_AT, ROW } from '../import/layout.ts'
import { explainPackages, type PackageThread, readSharedRanges } from '../import/packages.ts'
import type { PropertyIndex } from '../import/properties.ts'
import type { Fault } from '../import/row-errors.ts'
import { createBlocks } from '../import/split.ts'
import { beginPass, createMemory, createStaging, FAILED, forEachRecord, type Staging } from '../import/staging.ts'
import { CODECS, DAYS, FIRST_DAY, type FileOptions, PROPERTIES, randomPackages, readObviously } from './csv-files.ts'

const MEMORY_BYTES = 16 * 1024 * 1024
const codecs = createCodecList(CODECS)

/** Where blocks and ranges of a file end, whether dates outside the window are errors, and the decimals of prices. */
type Cut = { readonly block: number; readonly range: number; readonly strict: boolean; readonly decimals: number }

/** Parses one random file in three ways. @throws AssertionError where they differ */
export function compareReadings(path: string, random: Random, options: FileOptions): void {
  const decimals = random.below(3)
  const bytes = randomPackages(random, { ...options, decimals })
  const strict = random.below(5) === 0
  const cut = (): Cut => ({
    block: 2 * LINE_BYTES_MAX + random.below(5000),
    range: 1 + random.below(bytes.length + 1),
    strict,
    decimals,
  })

  const compiled = readWith(false, path, bytes, cut())
  deepStrictEqual(compiled, readWith(true, path, bytes, cut()))
  const obvious = readObviously(bytes, strict, decimals)
  const faultyLines = [...new Set(compiled.faults.map(({ line }) => line))]
  deepStrictEqual(faultyLines, obvious.faultyLines)
  if (faultyLines.length > 0) return
  deepStrictEqual(compiled.packages, obvious.packages)
  deepStrictEqual(compiled.skipped, obvious.skipped)
}

type Read = { packages: string[]; skipped: number; faults: { line: number; fault: Fault }[] }

/** Both passes over the same bytes: the fast one, then the one that reports every error. */
function readWith(isSlow: boolean, path: string, bytes: Uint8Array, cut: Cut): Read {
  writeFileSync(path, bytes)
  const file = openSync(path, 'r')
  try {
    const { staging, thread } = createMachine(isSlow, path, file, bytes.length, cut)
    const data = { start: 0, end: bytes.length, firstLine: 1 }
    const counter = (offset: number) => thread.f64[(thread.context + offset) >>> 3]
    beginPass(staging, { explain: false, strictWindow: cut.strict, threads: 1 })
    readSharedRanges(thread, data, cut.range)
    const failed = thread.u32[HEADER.failed] !== FAILED.no
    const packages = failed ? [] : packagesOf(staging)
    const skipped = failed ? 0 : counter(CONTEXT.skipped)
    assert(failed || counter(CONTEXT.accepted) === packages.length, 'every accepted package is in memory')

    beginPass(staging, { explain: true, strictWindow: cut.strict, threads: 1 })
    const faults: Read['faults'] = []
    explainPackages(thread, data, (line, fault) => faults.push({ line, fault }))
    assert(failed === faults.length > 0, 'the explaining pass finds an error exactly when the fast one did')
    return { packages, skipped, faults }
  } finally {
    closeSync(file)
  }
}

function createMachine(
  isSlow: boolean,
  path: string,
  file: number,
  fileBytes: number,
  { block, decimals }: Cut,
): { staging: Staging; thread: PackageThread } {
  const memory = createMemory(MEMORY_BYTES, 0)
  const window = { firstDay: FIRST_DAY, days: DAYS, priceDecimals: decimals }
  const options = { memory, index: propertyIndex(), codecs, ...window, threads: 1, blockBytes: block }
  const staging = createStaging(options)
  // The kernel scans no lines of a file whose header names the order of its columns.
  const parser = createPackageParser(codecs, isSlow ? [0, 1, 2, 3, 4, 5] : undefined, decimals)
  const context = staging.contexts[0]
  const buffer = staging.buffers[0]
  const { buffer: bytes } = memory
  const thread = {
    memory,
    kernel: createImportKernel(memory),
    parser,
    context,
    buffer,
    blocks: createBlocks(file, path, fileBytes, new Uint8Array(bytes, buffer, staging.bufferBytes)),
    u8: new Uint8Array(bytes),
    u32: new Uint32Array(bytes),
    f64: new Float64Array(bytes),
  }
  return { staging, thread }
}

function propertyIndex(): PropertyIndex {
  const ids = new Uint8Array(PROPERTIES.length * PROPERTY_ID_BYTES)
  const slots = new Uint32Array(256)
  for (const [ordinal, id] of PROPERTIES.entries()) {
    const packed = packPropertyId(id) as Uint8Array
    ids.set(packed, ordinal * PROPERTY_ID_BYTES)
    const [w0, w1, w2, w3] = new Uint32Array(packed.slice().buffer) as unknown as [number, number, number, number]
    let slot = hashId(w0, w1, w2, w3) >>> 24
    while (slots[slot] !== 0) slot = (slot + 1) & 255
    slots[slot] = ordinal + 1
  }
  return { ids, slots, shift: 24 }
}

/** Every package in the memory, as readObviously writes it. */
function packagesOf({ memory }: Staging): string[] {
  const u8 = new Uint8Array(memory.buffer)
  const u32 = new Uint32Array(memory.buffer)
  const decoder = new TextDecoder()
  const packages: string[] = []
  forEachRecord(memory, HEADER.rowSlots, (row) => {
    const id = unpackPropertyId(u8, row)
    const room = u32[(row >>> 2) + ROW.room]
    const length = u32[(room >>> 2) + ROOM.length]
    const name = decoder.decode(u8.slice(room + ROOM_TEXT_AT, room + ROOM_TEXT_AT + length))
    for (let night = 0; night < DAYS; night++) {
      const word = wordAt(u32, row, night) >>> 2
      const [lo, hi] = [u32[word], u32[word + 1]]
      if (word === 0 || (lo | hi) === 0) continue
      packages.push(`${id}|${name}|${FIRST_DAY + night}|${lo & 255}|${~hi >>> 0}|${lo >>> 8}`)
    }
  })
  return packages.sort()
}

/** @returns address of the word of a night of a row, 0 if the row has no chunk for it (layout.ts) */
function wordAt(u32: Uint32Array, row: number, night: number): number {
  const span = Math.ceil(DAYS / CHUNK_NIGHTS) * CHUNK_NIGHTS
  const place = (night - u32[(row >>> 2) + ROW.base] + span) % span
  const chunk = u32[(row >>> 2) + ROW.chunks + Math.floor(place / CHUNK_NIGHTS)]
  return chunk === 0 ? 0 : chunk + (place % CHUNK_NIGHTS) * 8
}
