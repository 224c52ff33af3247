/**
 * Thread entry of an import: reads ranges of packages.csv, counts tables and encodes parts of words. Executes one
 * task at a time, as assigned by worker-pool.ts.
 */

import { parentPort } from 'node:worker_threads'
import { assert, createCodecList, formatDay, packPropertyId } from '@vacancy/shared'
import { failureOf } from '../failure.ts'
import { createWordsCoder, encodeWords, planWords, type WordsPart } from '../snapshot/words.ts'
import { createPackageParser } from './csv.ts'
import { createImportKernel } from './kernel.ts'
import { hashId, type ImportKernel } from './layout.ts'
import { explainPackages, type PackageThread, readSharedRanges } from './packages.ts'
import { digestOfProperties } from './properties.ts'
import type { Fault } from './row-errors.ts'
import { gatherWords, runCensus, tableShapes } from './source.ts'
import { createBlocks } from './split.ts'
import { beginPass, createMemory, createStaging, touchMemory } from './staging.ts'
import type { Answer, Begin, Explained, PoolTask, ToWorker } from './worker-pool.ts'

const MEMORY_BYTES = 4 * 1024 * 1024
const BLOCK_BYTES = 256 * 1024
const DAYS = 32
const FIRST_DAY = 20_000
/** Each is some 4,000 lines; V8 compiles for speed after a few. */
const ROUNDS = 40

/**
 * Runs the kernel over made-up lines, so that WebAssembly's optimising compiler is through with it before the file is
 * read. Threads have nothing else to do while properties.csv is read.
 */
function warmUp(module: WebAssembly.Module): void {
  const codecs = createCodecList(['a', 'b'])
  const ids = packPropertyId('warm-up') as Uint8Array
  const [w0, w1, w2, w3] = new Uint32Array(ids.buffer) as unknown as [number, number, number, number]
  const slots = new Uint32Array(2)
  slots[hashId(w0, w1, w2, w3) >>> 31] = 1
  const staging = createStaging({
    memory: createMemory(MEMORY_BYTES, 0),
    index: { ids, slots, shift: 31 },
    codecs,
    firstDay: FIRST_DAY,
    priceDecimals: 0,
    days: DAYS,
    threads: 1,
    blockBytes: BLOCK_BYTES,
  })
  const kernel = createImportKernel(staging.memory, module)
  const [context, buffer] = [staging.contexts[0], staging.buffers[0]]
  const lines = new TextEncoder().encode(madeUpLines())
  new Uint8Array(staging.memory.buffer).set(lines, buffer)
  for (let round = 0; round < ROUNDS; round++) {
    beginPass(staging, { explain: false, strictWindow: false, threads: 1 })
    kernel.scan(context, buffer, buffer + lines.length)
  }
}

/** Grouped lines, and lines in no order. */
function madeUpLines(): string {
  const lines: string[] = []
  for (let room = 0; room < 60; room++) {
    for (let night = 0; night < DAYS; night++) {
      lines.push(
        `warm-up,room${room},${formatDay(FIRST_DAY + night)},${night},${100 + night},${night < 9 ? 'a|b' : 'b'}\n`,
      )
    }
  }
  for (let night = 0; night < DAYS; night++) {
    for (let room = 60; room < 120; room++) {
      lines.push(`warm-up,room${room},${formatDay(FIRST_DAY + night)},${night},${100 + night},a\n`)
    }
  }
  return lines.join('')
}

const port = parentPort
assert(port, 'this file runs in a worker')

type State = {
  readonly begin: Begin
  readonly kernel: ImportKernel
  readonly thread: PackageThread
}

let state: State | undefined
let encode: ((part: number) => unknown) | undefined

port.on('message', ({ number, task }: ToWorker) => {
  let answer: Answer
  let transfer: ArrayBuffer[] = []
  try {
    const value = run(task)
    answer = { number, value }
    if (task.kind === 'encode')
      transfer = [(value as ReturnType<typeof encodeWords> & object).chunk.bytes.buffer as ArrayBuffer]
  } catch (error) {
    answer = { number, failure: failureOf(error) }
  }
  port.postMessage(answer, transfer)
})

function run(task: PoolTask): unknown {
  if (task.kind === 'warm-up') {
    warmUp(task.module)
    touchMemory(task.memory, task.thread, task.threads)
    return undefined
  }
  if (task.kind === 'begin') {
    state = begin(task)
    return undefined
  }
  assert(state, 'a thread begins before it works')
  const { kernel, thread, begin: begun } = state
  switch (task.kind) {
    case 'read':
      return readSharedRanges(thread, begun.data, task.rangeBytes)
    case 'explain':
      return explain(thread, begun, task)
    case 'census':
      return runCensus(begun.memory, kernel, task.tasks, task.rowList)
    case 'digest':
      return digestOfProperties(task)
    case 'prepare-words':
      encode = prepareWords(begun, kernel, task)
      return undefined
    case 'encode':
      assert(encode, 'words are prepared before they are encoded')
      return encode(task.part)
  }
}

function begin(task: Begin): State {
  const { memory } = task
  const parser = createPackageParser(createCodecList(task.codecs), task.order, task.priceDecimals)
  const kernel = createImportKernel(memory, task.module)
  const { buffer } = memory
  const bytes = new Uint8Array(buffer, task.buffer, task.bufferBytes)
  const thread: PackageThread = {
    memory,
    kernel,
    parser,
    context: task.context,
    buffer: task.buffer,
    blocks: createBlocks(task.file, task.path, task.data.end, bytes),
    u8: new Uint8Array(buffer),
    u32: new Uint32Array(buffer),
    f64: new Float64Array(buffer),
  }
  return { begin: task, kernel, thread }
}

/** Reads the file in order. The first errors are kept, all are counted. */
function explain(
  thread: PackageThread,
  { data }: Begin,
  { faultsMax, rowBytesMax }: Extract<PoolTask, { kind: 'explain' }>,
): Explained {
  const first: { line: number; fault: Fault; row?: Uint8Array }[] = []
  let rowBytesLeft = rowBytesMax
  const groups = new Map<string, { count: number; line: number; fault: Fault }>()
  explainPackages(thread, data, (line, fault, row) => {
    const key = `${fault.kind} ${fault.column}`
    const group = groups.get(key)
    if (group) group.count++
    else groups.set(key, { count: 1, line, fault })
    if (first.length >= faultsMax) return
    const isKept = row.length <= rowBytesLeft
    if (isKept) rowBytesLeft -= row.length
    first.push({ line, fault, ...(isKept && rowBytesMax > 0 && { row: row.slice() }) })
  })
  return { first, groups: [...groups.values()] }
}

function prepareWords(
  { memory, context }: Begin,
  kernel: ImportKernel,
  task: Extract<PoolTask, { kind: 'prepare-words' }>,
): (part: number) => unknown {
  const { tables, ids, roomTypes, scratch, target, codecsOrderedHash } = task
  const shapes = tableShapes(tables)
  const parts = planWords(shapes).flat()
  const coder = createWordsCoder(memory, scratch, { tables: shapes, ids, roomTypes })
  const words = (table: number, rowStart: number, rows: number, addresses: Uint32Array) => {
    gatherWords(memory, kernel, tables, { context, table, rowStart, rows, target }, addresses)
    return true
  }
  return (part) => encodeWords(coder, parts[part] as WordsPart, codecsOrderedHash, words)
}
