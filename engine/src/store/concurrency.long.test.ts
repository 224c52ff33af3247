import { Worker } from 'node:worker_threads'
import { assert } from '@vacancy/shared'
import { expect, test } from 'vitest'
import { LIST_AT, PARAMETER, PARAMETER_BYTES, PLANES_AT } from '../search/parameters.ts'
import { referenceKernels } from '../testing/search-reference.ts'
import { fillSynthetic } from '../testing/synthetic.ts'
import { loadKernels } from '../threads/kernels.ts'
import { TABLE } from './layout.ts'
import { createStore, scratchOf } from './store.ts'
import { field } from './table-fields.ts'

const WORDS = 4096
const ROUNDS = 3000

/** Writes words whose halves belong together: hi = ~(lo * 2654435761). */
const WRITER = `
import { workerData, parentPort } from 'node:worker_threads'
const words = new BigInt64Array(workerData.memory.buffer)
const stop = new Int32Array(workerData.stop)
let n = 1
while (Atomics.load(stop, 0) === 0) {
  for (let row = 0; row < ${WORDS}; row++) {
    const lo = ((n++ * 40503) & 0xffffff00 | 7) >>> 0
    const hi = ~Math.imul(lo, 2654435761) >>> 0
    Atomics.store(words, workerData.first / 8 + row, (BigInt(hi) << 32n) | BigInt(lo))
  }
  if (n === ${WORDS} + 1) parentPort.postMessage(n)
}
parentPort.postMessage(n)
`

test('a reader never sees a torn word, with the kernel and with its reference, while another thread writes', async () => {
  const store = createStore({ memoryBytes: 64 << 20, readers: 1, scratchBytes: 1 << 20, sessionBytesMax: 1 << 20 })
  const { memory } = store
  const prepared = fillSynthetic(store, loadKernels(memory).put, {
    segments: 1,
    propertiesPerSegment: WORDS,
    roomTypes: 1,
    nights: 1,
    firstDay: 20_777,
    ordered: true,
    seed: 1,
  })
  const table = prepared.tables[0]
  const first = prepared.planeMap.words[0]
  const stop = new SharedArrayBuffer(4)
  for (let row = 0; row < WORDS; row++) loadKernels(memory).put(first + row * 8, 7, ~Math.imul(7, 2654435761) >>> 0)
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(WRITER)}`), {
    workerData: { memory: memory.wasm, first, stop },
  })

  const nextMessage = () => new Promise<number>((resolve) => worker.once('message', resolve))
  // A busy machine starts a thread late.
  const begun = await nextMessage()

  const p = scratchOf(memory, 0)
  const out = p + PARAMETER_BYTES
  const cells = memory.u32.subarray(p >>> 2, (p + LIST_AT) >>> 2)
  let torn = 0
  let seen = 0
  for (const kernels of [loadKernels(memory), referenceKernels(memory)]) {
    for (let round = 0; round < ROUNDS / 10; round++) {
      cells.fill(0)
      cells[PARAMETER.endRow] = WORDS
      cells[PARAMETER.rowProperties] = field(memory, table + TABLE.rowProperties)
      cells[PARAMETER.rowIds] = field(memory, table + TABLE.rowIds)
      cells[PARAMETER.nights] = 1
      cells[PARAMETER.limit] = 200
      cells[PARAMETER.invertedMin] = 1
      cells[PARAMETER.invertedMax] = 0xffffffff
      cells[PARAMETER.out] = out
      cells[PARAMETER.outEnd] = out + 65_536
      cells[PARAMETER.fieldId] = 2
      cells[PLANES_AT / 4] = first
      kernels.search(p)
      const hits = cells[PARAMETER.hits]
      for (let hit = 0; hit < hits; hit++) {
        const at = out + hit * 43 + 32
        const view = new DataView(memory.buffer, at, 11)
        const lo = ((view.getUint32(7, true) << 8) | view.getUint8(2)) >>> 0
        seen++
        if (view.getUint32(3, true) !== Math.imul(lo, 2654435761) >>> 0) torn++
      }
    }
  }
  Atomics.store(new Int32Array(stop), 0, 1)
  const written = await nextMessage()

  assert(written > begun, 'the writer ran')
  expect(seen).toBeGreaterThan(10_000)
  expect(torn).toBe(0)
})
