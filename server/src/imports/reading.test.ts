/** Reading an uploaded file: its rows, its kind, its digest, and the copy for the builder. */

import { mkdtempSync, readFileSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
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
const RESERVE_BYTES = 256 * MEBIBYTE
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
const PROPERTY = 'h1,s1,valley,hotel,standard,3,47.1,11.1,wifi'

// The kind of a file and its rows

const CASES: [text: string, rows: number, kind: Reading['kind'], columns: number][] = [
  ['', 0, undefined, 0],
  ['\n\n', 0, undefined, 0],
  [' \t\r\n \n', 0, undefined, 0],
  [ROW, 1, 'packages', 6],
  [`${ROW}\n`, 1, 'packages', 6],
  [`${ROW}\r\n${ROW}\r\n`, 2, 'packages', 6],
  [`${ROW}\n\n \t\r\n${ROW}`, 2, 'packages', 6],
  [`${HEADER}\n`, 0, 'packages', 6],
  [HEADER, 0, 'packages', 6],
  [`${HEADER}\n${ROW}\n${ROW}`, 2, 'packages', 6],
  [`\n \n${HEADER}\r\n${ROW}\n`, 1, 'packages', 6],
  [`\ufeff${HEADER}\n${ROW}\n`, 1, 'packages', 6],
  [`\ufeff${ROW}\n`, 1, 'packages', 6],
  [` ${HEADER.replaceAll(',', ' , ')} \n${ROW}\n`, 1, 'packages', 6],
  [`${HEADER}\n${HEADER}\n`, 1, 'packages', 6],
  [`${ROW}\n${HEADER}\n`, 2, 'packages', 6],
  [`${PROPERTY}\n${PROPERTY}\n`, 2, 'properties', 9],
  [`${IMPORT_COLUMNS.properties.join(',')}\n${PROPERTY}\n`, 1, 'properties', 9],
  ['a,b\n', 1, undefined, 2],
  ['a\nb\n', 2, undefined, 1],
  ['"a,b",c\nd\n', 2, undefined, 2],
  [`"a,1",${ROW.slice(3)}\n`, 1, 'packages', 6],
  // A quoted name of the first record may contain line ends; later ones are errors of the builder.
  [`"Property\nID",${HEADER.slice(11)}\n${ROW}\n`, 1, 'packages', 6],
  [`"Property\n\nID",${HEADER.slice(11)}\n${ROW}`, 1, 'packages', 6],
  [`${HEADER}\n"h\n1",double\n`, 2, 'packages', 6],
  ['"a\nb,c\n', 1, undefined, 1],
  ['"a\n\nb",c\nd', 2, undefined, 2],
]

test.each(CASES)('%j has %d rows of kind %s with %d columns', async (text, rows, kind, columns) => {
  const expected = { rows, kind, columns, sha256: sha256(Buffer.from(text)), isUnpacked: false, rejected: 0 }

  expect(await read(text)).toEqual(expected)
  expect(await read(text, { without: [] })).toEqual(expected)
})

test.each([7])('rows are the same when a file arrives in pieces of %d bytes', async (pieceBytes) => {
  disk.pieceBytes = pieceBytes
  for (const [text, rows, kind, columns] of CASES) {
    const expected = { rows, kind, columns, rejected: 0 }

    expect([text, await read(text)]).toMatchObject([text, expected])
    expect([text, await read(gzipSync(text))]).toMatchObject([text, { ...expected, isUnpacked: true }])
  }
})

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

test.each([
  [65_535, 2],
  [65_536, 1],
  [65_537, 1],
])(
  'of a first line whose quoted id has %d bytes there are %d columns: 65,536 bytes are read',
  async (bytes, columns) => {
    const text = `"${'x'.repeat(bytes - 2)}",double,2026-01-01,1,120,wifi\n${ROW}\n`

    expect(await read(text)).toMatchObject({ rows: 2, columns })
  },
)

test('a quote that is open for more than 65,536 bytes ends with its line', async () => {
  const long = 'x'.repeat(65_535)

  expect(await read(`"${long}\n${ROW}\n${ROW}\n`)).toMatchObject({ rows: 3 })
  expect(await read(`"${long.slice(1)}\n${ROW}\n${ROW}\n`)).toMatchObject({ rows: 2 })
})

// The file for the builder

test('the builder reads the uploaded file itself', async () => {
  writeFileSync(target(), 'of an earlier attempt')

  await read(ROW)

  expect(statSync(target()).ino).toBe(statSync(join(folder, 'in')).ino)
})

test.each(['EXDEV', 'EPERM'])('a file that cannot be linked hard (%s) gets a symbolic link', async (code) => {
  disk.linkError = code

  expect(await read(ROW)).toMatchObject({ rows: 1 })
  expect(realpathSync(target())).toBe(realpathSync(join(folder, 'in')))
})

test('other errors of the link are reported', async () => {
  disk.linkError = 'EIO'

  await expect(read(ROW)).rejects.toMatchObject({ code: 'EIO' })
})

test('a symbolic link of the import folder is resolved', async () => {
  writeFileSync(join(folder, 'real'), ROW)
  symlinkSync(join(folder, 'real'), join(folder, 'linked'))

  await readUpload({
    ...{ source: join(folder, 'linked'), target: target(), name: 'data.csv' },
    ...{ signal: new AbortController().signal, onProgress: () => {} },
  })

  expect(statSync(target(), { bigint: true }).ino).toBe(statSync(join(folder, 'real'), { bigint: true }).ino)
})

test('gzip is unpacked for the builder; the digest is that of the uploaded bytes', async () => {
  const packed = gzipSync(`${HEADER}\n${ROW}\n`)

  expect(await read(packed)).toEqual({
    ...{ rows: 1, kind: 'packages', columns: 6, rejected: 0, isUnpacked: true },
    sha256: sha256(packed),
  })
  expect(readFileSync(target(), 'utf8')).toBe(`${HEADER}\n${ROW}\n`)
})

test.each<[string, (text: string) => Buffer, readonly number[] | undefined]>([
  ['plain', Buffer.from, undefined],
  ['without lines', Buffer.from, [2]],
  ['gzip', gzipSync, undefined],
])('progress counts the uploaded bytes: %s', async (_, pack, without) => {
  const bytes = pack(`${ROW}\n`.repeat(3))
  disk.pieceBytes = 50
  const seen: number[] = []

  await read(bytes, { without, onProgress: (done) => seen.push(done) })

  const pieces = Math.ceil(bytes.length / 50)
  expect(seen).toEqual(Array.from({ length: pieces }, (_, at) => Math.min(bytes.length, 50 * (at + 1))))
})

test.each<[string, (text: string) => Buffer, readonly number[] | undefined]>([
  ['plain', Buffer.from, undefined],
  ['without lines', Buffer.from, [2]],
  ['gzip', gzipSync, undefined],
])('an abort ends the reading: %s', async (_, pack, without) => {
  writeFileSync(join(folder, 'in'), pack(ROW))
  const signal = AbortSignal.abort()

  await expect(
    readUpload({
      ...{ source: join(folder, 'in'), target: target(), name: 'data.csv', signal, onProgress: () => {} },
      without: without && new Set(without),
    }),
  ).rejects.toMatchObject({ name: 'AbortError' })
})

// Refused files

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex')
test.each<[Buffer, string, string]>([
  [hex('504b0304'), 'data.csv is a ZIP archive.', 'Unpack it, or compress the file itself with gzip.'],
  [hex('fffe 6100'), 'data.csv is UTF-16.', 'Save it as UTF-8.'],
  [hex('feff 0061'), 'data.csv is UTF-16.', 'Save it as UTF-8.'],
  [hex('610062'), 'data.csv contains NUL bytes: it is not text.', 'Export it as CSV in UTF-8.'],
  [gzipSync('a\0'), 'data.csv contains NUL bytes: it is not text.', 'Export it as CSV in UTF-8.'],
  [hex('1f8b 0000'), 'data.csv is a damaged gzip file.', 'Compress it again, or upload it uncompressed.'],
  [gzipSync(ROW).subarray(0, 30), 'data.csv is a damaged gzip file.', 'Compress it again, or upload it uncompressed.'],
])('file %# is refused', async (bytes, message, hint) => {
  expect(await faultOf(bytes)).toMatchObject({ name: 'FileFault', message, hint })
})

test.each(['504b0305', '504b03', 'fffd', 'ff', '1f', '1f8c'])('the bytes %s are read as text', async (bytes) => {
  expect(await read(hex(bytes))).toMatchObject({ rows: 1, isUnpacked: false })
})

test('a missing file is an error of the system', async () => {
  const parts = { target: target(), name: 'data.csv', signal: new AbortController().signal, onProgress: () => {} }

  await expect(readUpload({ ...parts, source: join(folder, 'missing') })).rejects.toMatchObject({ code: 'ENOENT' })
})

// Limits of unpacked files

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

test.each<[Buffer, readonly number[] | undefined]>([
  [gzipSync(ROW), undefined],
  [Buffer.from(ROW), []],
])('a copy keeps 256 MiB of the disk free: case %#', async (bytes, without) => {
  disk.freeBytes = [RESERVE_BYTES + 4_096]
  expect(await read(bytes, { without })).toMatchObject({ rows: 1 })

  disk.freeBytes = [RESERVE_BYTES]
  await expect(read(bytes, { without })).rejects.toMatchObject({ code: 'ENOSPC', message: 'no disk space to unpack' })
})

test('a file that is not copied needs no space', async () => {
  disk.freeBytes = [0]

  expect(await read(ROW)).toMatchObject({ rows: 1 })
  expect(disk.looks).toBe(0)
})
