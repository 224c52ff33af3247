/** Reading an uploaded file: its rows, its kind, its digest, and the copy for the builder. */

import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { IMPORT_COLUMNS } from '@vacancy/shared'
import { IMPORT_LIMITS } from '@vacancy/shared/contract'
import { createRandom } from '@vacancy/testkit/random'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { sha256 } from '../testing/import-files.ts'
import { FileFault, type Reading, readUpload } from './reading.ts'

const MEBIBYTE = 2 ** 20
const SEED = Number(process.env['VACANCY_SEED'] ?? 1)

/** What the mocked file system does: undefined leaves it to the real one. */
const disk = vi.hoisted(() => ({
  pieceBytes: undefined as number | undefined,
  freeBytes: [] as number[],
  looks: 0,
  linkError: undefined as string | undefined,
}))

vi.mock('node:fs', async (original) => {
  const fs = await original<typeof import('node:fs')>()
  const createReadStream = (path: string, options: { highWaterMark: number }) =>
    fs.createReadStream(path, { ...options, highWaterMark: disk.pieceBytes ?? options.highWaterMark })
  return { ...fs, createReadStream }
})
vi.mock('node:fs/promises', async (original) => {
  const fs = await original<typeof import('node:fs/promises')>()
  return {
    ...fs,
    statfs: async () => {
      disk.looks++
      const free = disk.freeBytes.shift() ?? 2 ** 40
      return { bsize: 4_096, bavail: free / 4_096 }
    },
    link: async (from: string, to: string) => {
      if (disk.linkError === undefined) return await fs.link(from, to)
      throw Object.assign(new Error('no link'), { code: disk.linkError })
    },
  }
})

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'vacancy-reading-'))
  Object.assign(disk, { pieceBytes: undefined, freeBytes: [], looks: 0, linkError: undefined })
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

type Run = { readonly without?: readonly number[] | undefined; readonly onProgress?: (bytes: number) => void }

const target = () => join(folder, 'out.csv')
async function read(bytes: Buffer | string, run: Run = {}): Promise<Reading> {
  writeFileSync(join(folder, 'in'), bytes)
  return await readUpload({
    ...{ source: join(folder, 'in'), target: target(), name: 'data.csv', signal: new AbortController().signal },
    without: run.without && new Set(run.without),
    onProgress: run.onProgress ?? (() => {}),
  })
}
const faultOf = async (bytes: Buffer | string, run: Run = {}): Promise<FileFault> => {
  const error: unknown = await read(bytes, run).then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (error instanceof FileFault) return error
  throw new Error(`not a fault of the file: ${error}`)
}

const HEADER = IMPORT_COLUMNS.packages.join(',')
const ROW = 'h1,double,2026-01-01,1,120,breakfast'
// The kind of a file and its rows

/** Rows without those of a header, from whole lines. */
function rowsOf(text: string): number {
  const isData = (line: string) => /[^ \t\r]/.test(line)
  const lines = text.split('\n')
  let first = lines.findIndex(isData)
  if (first < 0) return 0
  // The first record ends with the first line that leaves no quote open.
  let quotes = 0
  for (; first < lines.length; first++) {
    quotes += (lines[first] as string).split('"').length - 1
    if (quotes % 2 === 0) break
  }
  return 1 + lines.slice(first + 1).filter(isData).length
}

test('rows and copies of drawn files agree with a model, whatever the pieces and the lines to omit', async () => {
  const random = createRandom(SEED)
  const parts = ['a', ',', 'é', '"', ' ', '\t', '\n', '\n', '\r\n']
  for (let round = 0; round < 15; round++) {
    const text = Array.from({ length: random.below(25) }, () => parts[random.below(parts.length)]).join('')
    const omitted = [1, 2, 3, 4, 5].filter(() => random.below(3) === 0)
    const left = text.match(/[^\n]*\n|[^\n]+/g)?.filter((_, at) => !omitted.includes(at + 1)) ?? []
    const message = `seed ${SEED}, round ${round}: ${JSON.stringify(text)} without ${omitted}`
    disk.pieceBytes = 2 + random.below(12)

    const rows = rowsOf(text)
    expect((await read(text)).rows, message).toBe(rows)
    const isPacked = random.below(2) === 0
    const counted = await read(isPacked ? gzipSync(text) : text, { without: omitted })
    const content = left.join('')
    expect(counted, message).toMatchObject({ rows, rejected: rows - rowsOf(content), isUnpacked: isPacked })
    expect(readFileSync(target(), 'utf8'), message).toBe(content)
  }
})

test('a file with other separators than commas says which', async () => {
  expect((await read('p;r;2026-11-20;3;120;\n')).separator).toMatch(
    /^separates its cells by semicolons; save the file with commas/,
  )
  expect((await read(`${ROW}\n`)).separator).toBeUndefined()
})

test('gzip is unpacked for the builder; the digest is that of the uploaded bytes', async () => {
  const packed = gzipSync(`${HEADER}\n${ROW}\n`)

  expect(await read(packed)).toEqual({
    ...{ rows: 1, kind: 'packages', columns: 6, rejected: 0, isUnpacked: true },
    sha256: sha256(packed),
  })
  expect(readFileSync(target(), 'utf8')).toBe(`${HEADER}\n${ROW}\n`)
})

/** `mebibytes` of data in one line as gzip of exactly `bytes` bytes: the name in the gzip header fills the rest. */
function packedTo(mebibytes: number, bytes: number, more = ''): Buffer {
  const one = gzipSync(Buffer.alloc(MEBIBYTE, 'x'))
  const last = gzipSync(more)
  const named = Buffer.from(one)
  named[3] = 8
  const rest = [...Array.from({ length: mebibytes - 1 }, () => one), last]
  const size = one.length * mebibytes + last.length
  const name = Buffer.concat([Buffer.alloc(bytes - size - 1, 'n'), Buffer.alloc(1)])
  return Buffer.concat([named.subarray(0, 10), name, named.subarray(10), ...rest])
}

test('a file that unpacks to 64 MiB may grow by any factor', async () => {
  disk.looks = 0
  const file = packedTo(64, 80_000)

  expect(await read(file)).toMatchObject({ rows: 1, isUnpacked: true })
  expect(statSync(target()).size).toBe(64 * MEBIBYTE)
})

test('a larger file may grow 250 times, and the free space is checked every 64 MiB', async () => {
  const bytes = (64 * MEBIBYTE + 250 - ((64 * MEBIBYTE) % 250)) / 250
  const more = 'y'.repeat(bytes * 250 - 64 * MEBIBYTE)

  expect(await read(packedTo(64, bytes, more))).toMatchObject({ rows: 1 })
  expect(disk.looks).toBe(2)
  expect(await faultOf(packedTo(64, bytes, `${more}y`))).toMatchObject({
    message: 'data.csv unpacks to more than 250 times its size.',
    hint: 'The limit is 250 times. Upload the file uncompressed.',
  })
})

test('an unpacked file has the same limit as an uploaded one', async () => {
  const limits = IMPORT_LIMITS as { fileBytesMax: number }
  const { fileBytesMax } = limits
  try {
    limits.fileBytesMax = ROW.length
    expect(await read(gzipSync(ROW))).toMatchObject({ rows: 1 })
    expect(await faultOf(gzipSync(`${ROW}x`))).toMatchObject({
      message: `data.csv unpacks to more than ${ROW.length} bytes.`,
      hint: 'Split the data over more shards.',
    })
  } finally {
    limits.fileBytesMax = fileBytesMax
  }
})
