/**
 * Runs the kernel over made-up lines, so that WebAssembly's optimising compiler is through with it before the file is
 * read. Threads have nothing else to do while properties.csv is read.
 */

import { createCodecList, formatDay, packPropertyId } from '@vacancy/shared'
import { createImportKernel } from './kernel.ts'
import { hashId } from './layout.ts'
import { beginPass, createMemory, createStaging } from './staging.ts'

const MEMORY_BYTES = 4 * 1024 * 1024
const BLOCK_BYTES = 256 * 1024
const DAYS = 32
const FIRST_DAY = 20_000
/** Each is some 4,000 lines; V8 compiles for speed after a few. */
const ROUNDS = 40

export function warmUp(module: WebAssembly.Module): void {
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
