/** Reading packages.csv on one thread with the fallback kernel: which lines are errors, and what ends a pass. */

import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createCodecList, packPropertyId } from '@vacancy/shared'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ColumnOrder, createPackageParser, LINE_BYTES_MAX } from './csv.ts'
import { createFallback } from './kernel-fallback.ts'
import { CONTEXT, HEADER, hashId, type ImportKernel } from './layout.ts'
import { explainPackages, type PackageThread, readSharedRanges } from './packages.ts'
import type { Fault } from './row-errors.ts'
import { createBlocks } from './split.ts'
import { beginPass, createMemory, createStaging, FAILED } from './staging.ts'

const FIRST_DAY = 20_454 // 2026-01-01
const DAYS = 31
const codecs = createCodecList(['a', 'b'])

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'vacancy-packages-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

type Options = {
  readonly strict?: boolean
  readonly order?: ColumnOrder
  readonly blockBytes?: number
  readonly memoryBytes?: number
  readonly firstLine?: number
  /** Bytes before and after the data that are not read. */
  readonly start?: number
  readonly rangeBytes?: number
  readonly kernelOf?: (kernel: ImportKernel) => ImportKernel
}

function indexOf(id: string) {
  const ids = packPropertyId(id) as Uint8Array
  const [w0, w1, w2, w3] = new Uint32Array(ids.slice().buffer) as unknown as [number, number, number, number]
  const slots = new Uint32Array(2)
  slots[hashId(w0, w1, w2, w3) >>> 31] = 1
  return { ids, slots, shift: 31 }
}

function read<T>(content: string, options: Options, work: (thread: PackageThread, bytes: number) => T): T {
  const path = join(folder, 'packages.csv')
  const bytes = new TextEncoder().encode(content)
  writeFileSync(path, bytes)
  const file = openSync(path, 'r')
  try {
    const memory = createMemory(options.memoryBytes ?? 8 * 2 ** 20, 0)
    const blockBytes = options.blockBytes ?? 2 * LINE_BYTES_MAX
    const index = indexOf('p')
    const staging = createStaging({ memory, index, codecs, firstDay: FIRST_DAY, days: DAYS, threads: 1, blockBytes })
    const parser = createPackageParser(codecs, options.order)
    const kernel = createFallback(memory, parser)
    const { buffer } = memory
    const at = staging.buffers[0] as number
    const thread: PackageThread = {
      ...{ memory, parser, context: staging.contexts[0] as number, buffer: at },
      kernel: options.kernelOf?.(kernel) ?? kernel,
      blocks: createBlocks(file, path, bytes.length, new Uint8Array(buffer, at, staging.bufferBytes)),
      ...{ u8: new Uint8Array(buffer), u32: new Uint32Array(buffer), f64: new Float64Array(buffer) },
    }
    beginPass(staging, { explain: false, strictWindow: options.strict ?? false, threads: 1 })
    return work(thread, bytes.length)
  } finally {
    closeSync(file)
  }
}

const counter = ({ f64, context }: PackageThread, offset: number) => f64[(context + offset) >>> 3]

function share(content: string, options: Options = {}) {
  return read(content, options, (thread, bytes) => {
    const file = { start: options.start ?? 0, end: bytes, firstLine: 1 }
    readSharedRanges(thread, file, options.rangeBytes ?? bytes + 1)
    return {
      failed: thread.u32[HEADER.failed],
      accepted: counter(thread, CONTEXT.accepted),
      skipped: counter(thread, CONTEXT.skipped),
      lines: counter(thread, CONTEXT.lines),
      bytesDone: counter(thread, CONTEXT.bytesDone),
      threads: thread.u32[HEADER.threads],
    }
  })
}

function explain(content: string, options: Options = {}) {
  return read(content, options, (thread, bytes) => {
    const found: (Fault & { line: number; row: string })[] = []
    thread.u32[HEADER.explain] = 1
    const file = { start: options.start ?? 0, end: bytes, firstLine: options.firstLine ?? 1 }
    explainPackages(thread, file, (line, fault, row) =>
      found.push({ line, row: Buffer.from(row).toString(), ...fault }),
    )
    return {
      found,
      lines: counter(thread, CONTEXT.lines),
      threads: thread.u32[HEADER.threads],
      failed: thread.u32[HEADER.failed],
      accepted: counter(thread, CONTEXT.accepted),
      skipped: counter(thread, CONTEXT.skipped),
    }
  })
}

const line = (night: number, rest = '1,100,a') => `p,r,2026-01-${String(night).padStart(2, '0')},${rest}\n`
const good = line(1) + line(2)

test('valid lines are counted, with all bytes', () => {
  expect(share(good)).toEqual({
    ...{ failed: FAILED.no, accepted: 2, skipped: 0, lines: 2, bytesDone: good.length, threads: 0 },
  })
  expect(share(`header\n${good}`, { start: 7 })).toMatchObject({
    failed: FAILED.no,
    accepted: 2,
    bytesDone: good.length,
  })
})

test('every line is read once, however the file is cut into ranges and blocks', () => {
  const content = Array.from({ length: 31 }, (_, i) => line(i + 1, `${i},${i},a | b${i % 2 ? '' : ' |'}`)).join('')
  for (const rangeBytes of [1, 7, 26, 27, 100, content.length - 1, content.length]) {
    expect(share(content, { rangeBytes }), `${rangeBytes}`).toMatchObject({
      failed: FAILED.no,
      accepted: 31,
      lines: 31,
    })
  }
})

test('equivalent notations are read by the slow path', () => {
  const content = '"p", r ,2026-01-01,1,100,a | b\n\r\n p,"r",2026-01-02,1,100.00,"a|b"\n'

  expect(share(content)).toMatchObject({ failed: FAILED.no, accepted: 2, lines: 3 })
})

test('a last line without a line end counts', () => {
  expect(share(good.slice(0, -1))).toMatchObject({ failed: FAILED.no, accepted: 2 })
})

test.each([
  ['an invalid cell', line(3, '256,100,a')],
  ['an unknown property', 'q,r,2026-01-03,1,100,a\n'],
  ['a repeat', line(2)],
  ['a line end in quotes', 'p,"r\n",2026-01-03,1,100,a\n'],
  ['an open quote', '"p,r,2026-01-03,1,100,a\n'],
  ['a line above the limit', `p,${'x'.repeat(LINE_BYTES_MAX)}\n`],
])('%s ends the shared pass, and the thread leaves it', (_, wrong) => {
  const { failed, threads } = share(good + wrong + line(4))

  expect([failed, threads]).toEqual([FAILED.needsExplaining, 0])
})

test('an error of another thread ends the pass before the next range', () => {
  const result = read(good, {}, (thread, bytes) => {
    thread.u32[HEADER.failed] = FAILED.needsExplaining
    readSharedRanges(thread, { start: 0, end: bytes, firstLine: 1 }, bytes)
    return counter(thread, CONTEXT.accepted)
  })

  expect(result).toBe(0)
})

test('dates outside the window are skipped, or errors', () => {
  const content = `${good}p,r,2025-12-31,1,100,a\np,r,2026-02-01,1,100,"a"\n`

  expect(share(content)).toMatchObject({ failed: FAILED.no, accepted: 2, skipped: 2, lines: 4 })
  expect(explain(content)).toMatchObject({ found: [], skipped: 2 })
  expect(share(content, { strict: true }).failed).toBe(FAILED.needsExplaining)
  const range = '2026-01-01 to 2026-01-31'
  expect(explain(content, { strict: true }).found).toMatchObject([
    { line: 3, kind: 'window', column: 3, value: '2025-12-31', range },
    { line: 4, kind: 'window', column: 3, value: '2026-02-01', range },
  ])
})

test('every error is explained with its line, in the order of the file', () => {
  const { found, lines, threads, accepted } = explain(
    [
      line(1),
      'q,r,2026-01-03,1,100,a\n',
      '\n',
      line(1),
      'p,"r\nr",2026-01-03,1,100,a\n',
      'p,r\n',
      `p,${'x'.repeat(LINE_BYTES_MAX)},${'y'.repeat(LINE_BYTES_MAX)}\n`,
      line(2),
      'p,"r"r,2026-01-03,1,100,a\n',
      '"p,r,2026-01-03,1,100,a\n',
    ].join(''),
    { firstLine: 10 },
  )

  expect(found.map(({ row, ...fault }) => ({ ...fault, row: row.slice(0, 25) }))).toMatchObject([
    { line: 11, kind: 'unknown_property', column: 1, value: 'q', row: 'q,r,2026-01-03,1,100,a' },
    { line: 13, kind: 'package_twice', column: 0, value: 'p,r,2026-01-01', firstLine: 10 },
    { line: 14, kind: 'text', column: 2, row: 'p,"r\nr",2026-01-03,1,100,a'.slice(0, 25) },
    { line: 16, kind: 'columns', column: 0, found: 2, expected: 6 },
    { line: 17, kind: 'long', column: 0, expected: LINE_BYTES_MAX },
    { line: 19, kind: 'trailing', column: 2, value: 'r' },
    { line: 20, kind: 'unclosed', column: 1 },
  ])
  expect(found[4]?.row.length).toBe(LINE_BYTES_MAX)
  expect(lines).toBe(21)
  expect([threads, accepted]).toEqual([0, 2])
})

test('an error-free file has no errors to explain', () => {
  expect(explain(good)).toMatchObject({ found: [], failed: FAILED.no, accepted: 2, lines: 3 })
})

test('errors of moved columns name those of the file', () => {
  const content = 'a,100,1,2026-01-01,r,p\na,100,256,2026-01-02,r,p\n'
  const order = [5, 4, 3, 2, 1, 0]

  expect(explain(content, { order }).found).toMatchObject([{ line: 2, kind: 'availability', column: 3, value: '256' }])
  expect(share(content.slice(0, 23), { order })).toMatchObject({ failed: FAILED.no, accepted: 1 })
})

test('a property with more than 256 room types is an error of its line', () => {
  const content = Array.from({ length: 257 }, (_, i) => `p,r${i},2026-01-01,1,100,a\n`).join('')

  expect(share(content).failed).toBe(FAILED.needsExplaining)
  expect(explain(content).found).toMatchObject([
    { line: 257, kind: 'rooms', column: 2, value: 'r256', found: 257, expected: 256 },
  ])
})

test('tables that become half full are enlarged on the way', () => {
  const content = Array.from(
    { length: 130 },
    (_, i) => `p,r${i},2026-01-01,1,100,a\np,r${i},2026-01-02,1,"100",a\n`,
  ).join('')
  const result = read(content, {}, (thread, bytes) => {
    // As if 400 room types of other properties were in the table of 1,024 slots.
    thread.u32[HEADER.rooms] = 400
    readSharedRanges(thread, { start: 0, end: bytes, firstLine: 1 }, bytes)
    return [
      thread.u32[HEADER.failed],
      counter(thread, CONTEXT.accepted),
      thread.u32[HEADER.growths],
      thread.u32[HEADER.rooms],
    ]
  })

  expect(result).toEqual([FAILED.no, 260, 1, 530])
})

test.each([
  ['plain', line(1)],
  ['quoted', '"p",r,2026-01-01,1,100,a\n'],
])('a full memory ends the pass at a %s line, also one that explains', (_, content) => {
  const fill = (thread: PackageThread) => {
    thread.u32[HEADER.limit] = thread.u32[HEADER.top]
  }
  const shared = read(content, {}, (thread, bytes) => {
    fill(thread)
    readSharedRanges(thread, { start: 0, end: bytes, firstLine: 1 }, bytes)
    return thread.u32[HEADER.failed]
  })
  const explained = read(content, {}, (thread, bytes) => {
    fill(thread)
    explainPackages(thread, { start: 0, end: bytes, firstLine: 1 }, () => expect.unreachable())
    return thread.u32[HEADER.failed]
  })

  expect([shared, explained]).toEqual([FAILED.memoryFull, FAILED.memoryFull])
})

test('features that the slow path reads are remembered for the kernel, except in quotes or moved columns', () => {
  const remembered = (content: string, order?: ColumnOrder) => {
    const texts: [string, number][] = []
    const kernelOf = (kernel: ImportKernel): ImportKernel => ({
      ...kernel,
      scan: (context, start) => {
        // Leaves every line to the slow path.
        machine.u32[(context + CONTEXT.cursor) >>> 2] = start
        return 1
      },
      remember: (_context, text, length, mask) =>
        texts.push([Buffer.from(machine.u8.slice(text, text + length)).toString(), mask]),
    })
    let machine: PackageThread
    read(content, { kernelOf, ...(order && { order }) }, (thread, bytes) => {
      machine = thread
      readSharedRanges(thread, { start: 0, end: bytes, firstLine: 1 }, bytes)
      expect(thread.u32[HEADER.failed]).toBe(FAILED.no)
    })
    return texts
  }

  expect(remembered('p,r,2026-01-01,1,100,a | b\r\np,r,2026-01-02,1,100, b\n')).toEqual([
    ['a | b\r\n', 3],
    [' b\n', 2],
  ])
  expect(remembered('p,"r",2026-01-01,1,100,a | b\n')).toEqual([])
  expect(remembered('a | b,100,1,2026-01-01,r,p\n', [5, 4, 3, 2, 1, 0])).toEqual([])
})
