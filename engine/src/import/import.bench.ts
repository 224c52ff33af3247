/**
 * How fast do packages become words? (docs/design/storage.md#import, targets 10 and 11)
 *
 * Data: 98 bytes a record, 60 nights, 4 room types a property; once grouped by row, once in no order. 6 million records
 * of a generated file, `--full` 60 million; or, with `--input`, the file of that folder, as `npm run bench -- sample` writes it.
 * Measured is the phase that reads packages.csv, with one thread and with two in turns, each import in a process of its
 * own, whose memory is fresh. Baseline in the same run: counting newlines in blocks of 8 MB.
 * Best of a few rounds, because in the first the file may still come from the disk.
 *
 *   node engine/src/import/import.bench.ts [--full] [--input DIR] [--json]
 */

import { execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  fstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { addOneYear, assert, dayOf, formatDay } from '@vacancy/shared'
import { loadCodecFile } from '@vacancy/shared/node'
import { createRandom } from '@vacancy/testkit/random'
import { createEnv } from '../env.ts'
import { buildSnapshot, type ImportSummary } from './import.ts'

/** What docs/design/storage.md#import counted newlines in. */
const BLOCK_BYTES = 8 * 1024 * 1024
const NIGHTS = 60
const ROOM_TYPES = 4
const FEATURES = ['free_cancellation', 'non_refundable', 'pay_at_property', 'includes_breakfast'].concat([
  'free_wifi',
  'no_prepayment',
  'partial_refund',
  'instant_confirmation',
])

const { values } = parseArgs({
  options: {
    input: { type: 'string' },
    full: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    /** One measurement, in a process of its own. */
    threads: { type: 'string' },
  },
})
const rounds = values.full ? 5 : 3

if (values.threads !== undefined) {
  assert(values.input !== undefined && process.send, 'a measurement has its folder and its parent')
  process.send(await importOnce(values.input, Number(values.threads)))
} else if (values.input !== undefined) {
  const figures = await measure(values.input)
  if (values.json) process.stdout.write(`${JSON.stringify(figures)}\n`)
} else {
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-import-bench-'))
  try {
    for (const order of ['grouped', 'shuffled'] as const) {
      writeSample(join(folder, order), order, values.full ? 60e6 : 6e6)
      print(order)
      await measure(join(folder, order))
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Records a second by what was measured; printed with their ratios. */
async function measure(input: string): Promise<Record<string, number>> {
  const best: Record<string, number> = {}
  const take = (name: string, perSecond: number) => {
    best[name] = Math.max(best[name] ?? 0, perSecond)
  }
  const countNewlines = compileNewlineCounter()
  for (let round = 1; round <= rounds; round++) {
    take('newlines/s', newlinesPerSecond(join(input, 'packages.csv'), countNewlines))
    for (const [name, threads] of [
      ['records/s, one thread', 1],
      ['records/s, two threads', 2],
    ] as const) {
      const { packages, outOfWindow, phases, kernel } = await importInProcess(input, threads)
      const records = packages + outOfWindow
      assert(phases.packages !== undefined && phases.packages > 0, 'packages were read')
      take(name, records / phases.packages)
      const rate = (records / phases.packages / 1e6).toFixed(1)
      print(`round ${round}, ${name.slice('records/s, '.length)}: ${rate} M records/s, kernel ${kernel}`)
    }
  }
  const [newlines, one, two] = ['newlines/s', 'records/s, one thread', 'records/s, two threads'].map(
    (name) => best[name] ?? 0,
  )
  print(
    `best: one thread ${millions(one)}, two threads ${millions(two)} (${ratio(two, one)} ×); ` +
      `newlines ${millions(newlines)}, of which one thread is ${((100 * (one ?? 0)) / (newlines ?? 1)).toFixed(0)} %`,
  )
  return best
}

async function importInProcess(input: string, threads: number): Promise<ImportSummary> {
  const child = fork(new URL(import.meta.url), ['--input', input, '--threads', String(threads)])
  const [summary] = (await once(child, 'message')) as [ImportSummary]
  if (child.exitCode === null) await once(child, 'exit')
  return summary
}

async function importOnce(inputPath: string, threads: number): Promise<ImportSummary> {
  const quiet = () => undefined
  const env = createEnv({ debug: quiet, info: quiet, warn: quiet, error: quiet })
  const outputPath = mkdtempSync(join(tmpdir(), 'vacancy-import-bench-'))
  const today = dayOf(env.clock.wallMs())
  try {
    const outcome = await buildSnapshot(env, {
      shardId: 'bench',
      inputPath,
      outputPath,
      codecs: loadCodecFile(join(inputPath, 'codecs.yml'), 'codecs'),
      firstDay: today,
      lastDay: addOneYear(today),
      outOfWindow: 'skip',
      errorsMax: 1,
      overwrite: false,
      threads,
    })
    assert(outcome.ok, 'the files are right')
    return outcome.summary
  } finally {
    rmSync(outputPath, { recursive: true })
  }
}

type NewlineCounter = { readonly memory: WebAssembly.Memory; count(start: number, end: number): number }

function newlinesPerSecond(path: string, counter: NewlineCounter): number {
  const file = openSync(path, 'r')
  try {
    const { size } = fstatSync(file)
    const bytes = new Uint8Array(counter.memory.buffer, 0, BLOCK_BYTES)
    const startMs = performance.now()
    let newlines = 0
    for (let at = 0; at < size; ) {
      const read = readSync(file, bytes, 0, bytes.length, at)
      bytes.fill(0, read)
      newlines += counter.count(0, BLOCK_BYTES)
      at += read
    }
    return newlines / ((performance.now() - startMs) / 1000)
  } finally {
    closeSync(file)
  }
}

/** The same language and the same vectors as the kernel, by the compiler's own program. */
function compileNewlineCounter(): NewlineCounter {
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-newlines-'))
  try {
    const source = join(folder, 'newlines.ts')
    writeFileSync(
      source,
      `export function count(start: usize, end: usize): i32 {
        let newlines = 0
        for (let at = start; at < end; at += 64) {
          newlines += popcnt(i8x16.bitmask(i8x16.eq(v128.load(at), i8x16.splat(10))))
          newlines += popcnt(i8x16.bitmask(i8x16.eq(v128.load(at, 16), i8x16.splat(10))))
          newlines += popcnt(i8x16.bitmask(i8x16.eq(v128.load(at, 32), i8x16.splat(10))))
          newlines += popcnt(i8x16.bitmask(i8x16.eq(v128.load(at, 48), i8x16.splat(10))))
        }
        return newlines
      }`,
    )
    const compiler = new URL('../../../node_modules/assemblyscript/bin/asc.js', import.meta.url).pathname
    const output = join(folder, 'newlines.wasm')
    const flags = [
      '-O3',
      '--runtime',
      'stub',
      '--importMemory',
      '--sharedMemory',
      '--initialMemory',
      '1',
      '--maximumMemory',
      '65536',
    ]
    execFileSync(process.execPath, [
      compiler,
      source,
      '-o',
      output,
      ...flags,
      '--enable',
      'simd',
      '--enable',
      'threads',
    ])
    const memory = new WebAssembly.Memory({ initial: BLOCK_BYTES / 65536, maximum: 65536, shared: true })
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(readFileSync(output)), { env: { memory } })
    return { memory, count: exports['count'] as NewlineCounter['count'] }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function writeSample(folder: string, order: 'grouped' | 'shuffled', records: number): void {
  mkdirSync(folder)
  const rows = Math.ceil(records / NIGHTS)
  const random = createRandom(1)
  writeFileSync(join(folder, 'codecs.yml'), `rate_features:\n${FEATURES.map((name) => `  - ${name}\n`).join('')}`)
  const properties = Math.ceil(rows / ROOM_TYPES)
  writeLines(join(folder, 'properties.csv'), properties, (i) => {
    const place = `segment_${i % Math.ceil(properties / 25_000)},area_${random.below(20)}`
    return `${idOf(i)},${place},${['hotel', 'hostel'][i % 2]},standard,${1 + (i % 5)},${40 + (i % 97) / 100},${i % 89},wifi|pool\n`
  })
  const firstDay = dayOf(Date.now()) + 1
  const dates = Array.from({ length: NIGHTS }, (_, night) => formatDay(firstDay + night))
  const prefixes = Array.from(
    { length: rows },
    (_, row) => `${idOf(Math.floor(row / ROOM_TYPES))},room${1 + (row % ROOM_TYPES)},`,
  )
  const features = Array.from({ length: 97 }, () => FEATURES.filter(() => random.below(2) === 0).join('|'))
  const step = order === 'grouped' ? 1 : stepThrough(rows * NIGHTS)
  let place = 0
  writeLines(join(folder, 'packages.csv'), rows * NIGHTS, () => {
    const row = Math.floor(place / NIGHTS)
    const date = dates[place % NIGHTS]
    place = (place + step) % (rows * NIGHTS)
    return `${prefixes[row]}${date},${random.below(20)},${100 + random.below(128)},${features[row % 97]}\n`
  })
}

function idOf(property: number): string {
  return `p_${String(property + 1).padStart(7, '0')}`
}

/** A step that meets every place once before it comes back, each far from the one before. */
function stepThrough(places: number): number {
  const divisor = (a: number, b: number): number => (b === 0 ? a : divisor(b, a % b))
  let step = Math.floor(places * 0.6180339887)
  while (divisor(step, places) !== 1) step++
  return step
}

function writeLines(path: string, count: number, lineOf: (i: number) => string): void {
  const file = openSync(path, 'w')
  let lines: string[] = []
  for (let i = 0; i < count; i++) {
    lines.push(lineOf(i))
    if (lines.length < 20_000 && i + 1 < count) continue
    writeSync(file, lines.join(''))
    lines = []
  }
  closeSync(file)
}

function millions(count: number | undefined): string {
  return `${((count ?? 0) / 1e6).toFixed(1)} M/s`
}

function ratio(a: number | undefined, b: number | undefined): string {
  return ((a ?? 0) / (b ?? 1)).toFixed(2)
}

function print(text: string): void {
  if (!values.json) process.stdout.write(`${text}\n`)
}
