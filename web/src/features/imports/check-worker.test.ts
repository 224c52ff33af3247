/** The worker runs in the thread of the test; files, streams and compression are real. */
import { gzipSync } from 'node:zlib'
import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex } from '@noble/hashes/utils.js'
import { beforeAll, beforeEach, expect, test, vi } from 'vitest'
import type { CheckReply, CheckRequest } from './check-worker.ts'

const PROPERTY = 'p1,alpine,valley,hotel,luxury,4,47.123456,11.123456,wifi'
const MEBIBYTE = 1 << 20
const options = { codecs: ['breakfast'], today: '2026-11-20', lastDay: '2027-11-20', priceDecimals: 0 }

let replies: CheckReply[] = []
const scope = {
  onmessage: undefined as ((event: { data: CheckRequest }) => void) | undefined,
  postMessage: (reply: CheckReply) => void replies.push(reply),
}

beforeAll(async () => {
  vi.stubGlobal('self', scope)
  await import('./check-worker.ts')
})
beforeEach(() => {
  replies = []
})

test('a whole file is read to its end, across blocks', async () => {
  const lines = Array.from({ length: 200_000 }, (_, index) => PROPERTY.replace('p1', `p${index}`))
  const file = new File([lines.join('\n')], 'properties.csv')

  const report = await check([{ kind: 'properties', file }], true)

  expect(report.files).toMatchObject([
    { kind: 'properties', rows: 200_000, rowsEstimate: 200_000, bytesChecked: file.size, findings: [] },
  ])
  expect(report).toMatchObject({ full: true, stopped: false })
})

test('a sample of a large file estimates its rows', async () => {
  const file = new File([`${PROPERTY}\n`.repeat(100_000)], 'properties.csv')

  const [{ bytesChecked, rows, rowsEstimate } = fail()] = (await check([{ kind: 'properties', file }], false)).files

  expect(bytesChecked).toBeGreaterThan(MEBIBYTE)
  expect(bytesChecked).toBeLessThan(file.size)
  expect(rows).toBeLessThan(100_000)
  expect(Math.abs(rowsEstimate - 100_000)).toBeLessThan(100)
})

test('a small file is sampled as a whole', async () => {
  const file = new File([`${PROPERTY}\n${PROPERTY.replace('p1', 'p2')}`], 'properties.csv')

  expect((await check([{ kind: 'properties', file }], false)).files).toMatchObject([
    { rows: 2, bytesChecked: file.size },
  ])
})

test('findings of a sample have the line of the file', async () => {
  const file = new File([`${PROPERTY}\n${PROPERTY.replace('p1', 'p2').replace(',4,', ',6,')}\n`], 'properties.csv')

  expect((await check([{ kind: 'properties', file }], false)).files[0]?.findings).toMatchObject([
    { kind: 'stars', line: 2 },
  ])
})

test('a compressed file is unpacked', async () => {
  const file = new File([gzipSync(`${PROPERTY}\n${PROPERTY.replace('p1', 'p2')}\n`)], 'properties.csv.gz')

  for (const full of [true, false]) {
    expect((await check([{ kind: 'properties', file }], full)).files).toMatchObject([{ rows: 2, findings: [] }])
  }
})

test('packages are checked against the properties, whichever file comes first', async () => {
  const packages = new File(['p1,double,2026-11-24,3,120,breakfast\np2,double,2026-11-24,3,120,\n'], 'packages.csv')
  const files = [
    { kind: 'packages', file: packages },
    { kind: 'properties', file: new File([PROPERTY], 'properties.csv') },
  ] as const

  const report = await check(files, true)

  expect(report.files.map(({ kind }) => kind)).toEqual(['properties', 'packages'])
  expect(report.files[1]?.findings).toMatchObject([{ kind: 'unknown', count: 1, line: 2 }])
})

test('a check that was stopped reads no further and reports it', async () => {
  const file = new File([`${PROPERTY}\n`.repeat(200_000)], 'properties.csv')
  scope.onmessage?.({ data: { t: 'stop', id: 7 } })

  const report = await check([{ kind: 'properties', file }], true, 7)

  expect(report.stopped).toBe(true)
  expect(report.files[0]?.rows).toBe(0)
  expect((await check([{ kind: 'properties', file }], true, 7)).stopped).toBe(false)
})

test('files are classified by their content', async () => {
  const files = [
    new File([PROPERTY], 'a'),
    new File(['p1,double,2026-11-24,3,120,'], 'b'),
    new File([gzipSync(PROPERTY)], 'c'),
    new File([], 'd'),
    new File([new Uint8Array([0xff, 0xfe, 0x41, 0x00])], 'e'),
    new File(['PK\u0003\u0004'], 'f'),
    new File(['a\u0000b'], 'g'),
  ]

  const reply = await ask({ t: 'classify', id: 1, files })

  expect('classified' in reply && reply.classified.map(({ kind, zipped }) => [kind, zipped])).toEqual([
    ['properties', false],
    ['packages', false],
    ['properties', true],
    ...Array.from({ length: 4 }, () => [undefined, false]),
  ])
})

test('the fingerprint of a file covers its size, its first and its last mebibyte', async () => {
  const bytes = new Uint8Array(3 * MEBIBYTE).map((_, index) => index % 251)
  const size = new TextEncoder().encode(`${bytes.length}\n`)
  const expected = sha256.create().update(size).update(bytes.slice(0, MEBIBYTE)).update(bytes.slice(-MEBIBYTE)).digest()

  expect(await ask({ t: 'fingerprint', id: 1, file: new File([bytes], 'a') })).toEqual({
    id: 1,
    digest: bytesToHex(expected),
  })
  expect(await ask({ t: 'digest', id: 2, blob: new Blob(['abc']) })).toEqual({
    id: 2,
    digest: 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
  })
})

async function ask(request: CheckRequest): Promise<CheckReply> {
  scope.onmessage?.({ data: request })
  const isReply = (reply: CheckReply) => reply.id === request.id && !('progress' in reply)
  return await vi.waitUntil(() => replies.find(isReply), { timeout: 30_000, interval: 5 })
}

async function check(files: Extract<CheckRequest, { t: 'check' }>['files'], full: boolean, id = 1) {
  replies = []
  const reply = await ask({ t: 'check', id, files, full, ...options })
  return 'report' in reply ? reply.report : fail()
}

function fail(): never {
  throw new Error(`unexpected: ${JSON.stringify(replies)}`)
}
