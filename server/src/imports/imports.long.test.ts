import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { BUILD_PHASES, IMPORT_LIMITS, type ImportView } from '@vacancy/shared/contract'
import { TEST_CODECS } from '@vacancy/testkit/node'
import { eventually } from '@vacancy/testkit/until'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Caller, sendBytes, startTestControlPlane, type TestControlPlane } from '../testing/control-plane.ts'
import {
  beginImport,
  beginUpload,
  csvFiles,
  importEnds,
  nightIn,
  sendChunk,
  sendRest,
  sha256,
} from '../testing/import-files.ts'
import { startNode } from '../testing/nodes.ts'

// Builds are separate processes on two shared cores.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

let plane: TestControlPlane
let operator: Caller
let node: Awaited<ReturnType<typeof startNode>>

beforeAll(async () => {
  node = await startNode()
  plane = await startTestControlPlane({ config: { nodes: [node.apiUrl] } })
  operator = await plane.signIn('operator')
  await eventually(async () => {
    const { body } = await operator.call('GET', '/api/v1/import-options')
    expect(body.codecs).toMatchObject({ names: TEST_CODECS })
  })
})
afterAll(async () => {
  await plane.stop()
  await node.close()
})

/** A small disk needs root and permission to mount; otherwise the test is skipped. */
function canMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-mount-'))
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder])
  if (status === 0) execFileSync('umount', [folder])
  rmSync(folder, { recursive: true })
  return status === 0
}

const filesIn = (folder: string) => readdirSync(join(plane.dataDir, 'imports', folder))
const failed = async (files: { properties: Buffer; packages: Buffer }): Promise<ImportView> => {
  const { id } = await beginImport(plane.url, operator, files)
  return await importEnds(operator, id)
}

test('two files become a snapshot whose three counters agree, with coverage by segment and day', async () => {
  const files = csvFiles(300, 4)

  const view = await failed(files)

  expect(view).toMatchObject({ state: 'built', cancellable: false, progress: { percent: 100 } })
  const phases = view.progress?.phases.map(({ phase }) => phase) ?? []
  // Those that are over at once are not reported.
  expect(phases).toEqual(BUILD_PHASES.filter((phase) => phases.includes(phase)))
  expect([phases[0], phases.at(-1)]).toEqual(['settings', 'verify'])
  expect(view.counters).toEqual({
    reader: { properties: 300, packages: 1_200 },
    builder: { properties: 300, packages: 1_200, outOfWindow: 0 },
    readBack: { properties: 300, packages: 1_200 },
    agree: true,
    differs: [],
  })
  expect(view.files.packages).toMatchObject({ rows: 1_200, sha256: sha256(files.packages) })
  // The log used to lack these lines.
  expect(view.log.join('\n')).toContain(`properties.csv: 300 rows, sha256 ${sha256(files.properties)}`)
  expect(view.log.join('\n')).toContain(`packages.csv: 1,200 rows, sha256 ${sha256(files.packages)}`)
  const { body: snapshot } = await operator.call('GET', `/api/v1/snapshots/${view.snapshot}`)
  expect(snapshot).toMatchObject({ installable: true, codecsCurrent: true, packages: 1_200, codecs: TEST_CODECS })
  expect(snapshot.coverage.window).toEqual({ from: nightIn(1), to: nightIn(4) })
  expect(snapshot.coverage.segments.map(({ packages }: { packages: number[] }) => packages)).toEqual(
    Array.from({ length: 3 }, () => [100, 100, 100, 100]),
  )
  // Deleted after the response.
  await expect.poll(() => [filesIn('builds').includes(view.id), filesIn('uploads')]).toEqual([false, []])

  const download = await fetch(`${plane.url}/api/v1/snapshots/${view.snapshot}/download`, { headers: operator.headers })
  const bytes = Buffer.from(await download.arrayBuffer())
  expect(sha256(bytes)).toBe(snapshot.sha256)
  const archive = await fetch(`${plane.url}/api/v1/snapshots/${view.snapshot}/archive`, { headers: operator.headers })
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-archive-'))
  const packed = Buffer.from(await archive.arrayBuffer())
  expect(packed.length).toBe(Number(archive.headers.get('content-length')))
  writeFileSync(join(folder, 'a.tar'), packed)
  execFileSync('tar', ['-xf', 'a.tar'], { cwd: folder })
  execFileSync('sha256sum', ['-c', 'SHA256SUMS'], { cwd: folder })
  const manifest = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'))
  expect(manifest).toMatchObject({
    file: { name: `${view.snapshot}.snapshot`, bytes: bytes.length, sha256: snapshot.sha256 },
    snapshot: { shard: 's1', packages: 1_200, codecs: TEST_CODECS },
    counters: { agree: true },
    sources: [{ name: 'properties.csv', sha256: sha256(files.properties) }, { name: 'packages.csv' }],
  })
  rmSync(folder, { recursive: true })
  const part = await fetch(`${plane.url}/api/v1/snapshots/${view.snapshot}/download`, {
    headers: { ...operator.headers, range: 'bytes=10-19' },
  })
  expect([part.status, part.headers.get('content-range')]).toEqual([206, `bytes 10-19/${bytes.length}`])
  expect(Buffer.from(await part.arrayBuffer())).toEqual(bytes.subarray(10, 20))

  const { body: same } = await operator.call('GET', `/api/v1/snapshots/compare?a=${view.snapshot}&b=${view.snapshot}`)
  expect(same).toMatchObject({ equal: true, codecsEqual: true })
  const { body: shards } = await operator.call('GET', '/api/v1/shards')
  const live = await operator.call('GET', `/api/v1/snapshots/compare?a=shard:${shards.shards[0].id}&b=${view.snapshot}`)
  expect(live.body).toMatchObject({ equal: false, codecsEqual: true, a: { packages: 0 }, b: { packages: 1_200 } })
  expect(live.body.a.codecs).toEqual(live.body.b.codecs)
  expect(live.body.b.codecs.length).toBeGreaterThan(0)
  expect(live.body.segments.map(({ days }: { days: number[] }) => days)).toEqual(
    [1, 2, 3].map(() => [100, 100, 100, 100]),
  )
  const none = await operator.call('GET', `/api/v1/snapshots/compare?a=shard:unknown&b=${view.snapshot}`)
  expect(none).toMatchObject({ status: 404, body: { code: 'shard-not-found' } })
})

test('prices with decimals are read when the import says how many they have, and the refusal says so', async () => {
  const { properties, packages } = csvFiles(3, 1)
  const files = { properties, packages: Buffer.from(packages.toString().replaceAll(',120,', ',120.50,')) }

  const refused = await failed(files)
  expect(refused).toMatchObject({ state: 'failed', priceDecimals: 0, errors: { countByKind: { price_fraction: 3 } } })
  expect(refused.hint).toContain('say how many decimals')
  for (const { upload } of Object.values(refused.files)) await operator.call('DELETE', `/api/v1/uploads/${upload}`)

  const { id } = await beginImport(plane.url, operator, files, { priceDecimals: 2 })
  const view = await importEnds(operator, id)
  expect(view).toMatchObject({ state: 'built', priceDecimals: 2, counters: { agree: true } })
  expect(view.result?.command).toContain('--price-decimals 2')
})

test('two snapshots are compared by property, together with their equal or different counts', async () => {
  const [{ snapshot: a }, { snapshot: b }] = [await failed(csvFiles(6, 2)), await failed(csvFiles(7, 2))]
  const compared = async (one: unknown, other: unknown) =>
    await operator.call('GET', `/api/v1/snapshots/compare/properties?a=${one}&b=${other}`)

  const [grown, again, same] = await Promise.all([compared(a, b), compared(a, b), compared(a, a)])
  expect(grown).toMatchObject({
    status: 200,
    body: {
      ...{ a, b, onlyA: { count: 0, first: [] }, changed: { count: 0, first: [] } },
      onlyB: { count: 1, first: [{ id: 'hotel_6', segment: 'segment_0' }] },
    },
  })
  expect(again.body).toEqual(grown.body)
  expect(same.body).toMatchObject({ onlyA: { count: 0 }, onlyB: { count: 0 }, changed: { count: 0 } })
  expect(await compared(a, '0'.repeat(64))).toMatchObject({ status: 404, body: { code: 'no-such-snapshot' } })
  expect(await compared('shard:s1', b)).toMatchObject({ status: 400 })
  rmSync(join(plane.dataDir, 'imports/snapshots', `${b}.snapshot`))
  expect(await compared(a, b)).toMatchObject({ status: 410, body: { code: 'snapshot-lost' } })
})

test('columns are read by the names of the header; a different order used to swap price and rooms', async () => {
  const files = csvFiles(6, 2)
  const inOrder = await failed(files)
  const rows = files.packages.toString().trim().split('\n')
  const exchanged = rows
    .map((row) => row.split(','))
    .map(([id, room, day, left, price, rest]) => [id, room, day, price, left, rest].join(','))
  const header = (names: string) => Buffer.from(`${[names, ...exchanged].join('\n')}\n`)

  const byName = await failed({
    ...files,
    packages: header('PropertyID,"Room\nType",Date,FinalPrice,Availability,RateFeature'),
  })

  expect(byName).toMatchObject({ state: 'built', snapshot: inOrder.snapshot, counters: { agree: true } })
  expect(byName.result?.notes).toContain('packages.csv: columns are read by the names in its header')
  const refused = await failed({
    ...files,
    packages: header('PropertyID,RoomType,Date,Price,Availability,RateFeature'),
  })
  expect(refused).toMatchObject({ state: 'failed' })
  const { body } = await operator.call('GET', `/api/v1/imports/${refused.id}/errors`)
  expect(body.errors).toHaveLength(1)
  expect(body.errors[0]).toMatchObject({ file: 'packages.csv', line: 0, kind: 'header' })
  expect(body.errors[0].message).toContain('line 1 is a header that has the unknown name "Price"')
  for (const { upload } of Object.values(refused.files)) await operator.call('DELETE', `/api/v1/uploads/${upload}`)
})

test('an upload resumes at its offset and refuses other chunks', async () => {
  const { packages } = csvFiles(200, 5)
  const upload = await beginUpload(operator, 'packages', packages, '../../etc/cron.d/=cmd|\u202e"x".csv')
  expect(upload.name).toBe('=cmd|"x".csv')
  const send = (offset: number, chunk: Uint8Array, checksum?: string) =>
    sendChunk(plane.url, operator, upload.id, offset, chunk, checksum)

  expect(await send(0, packages.subarray(0, 1_000))).toMatchObject({ status: 200, body: { offset: 1_000 } })
  expect(await send(0, packages.subarray(0, 1_000))).toMatchObject({
    status: 409,
    body: { code: 'wrong-offset', offset: 1_000 },
  })
  expect(await send(1_000, packages.subarray(1_000, 2_000), sha256(Buffer.from('other')))).toMatchObject({
    status: 460,
    body: { code: 'wrong-checksum' },
  })
  expect(await send(1_000, Buffer.alloc(packages.length))).toMatchObject({ status: 413 })
  expect(await send(1_000, Buffer.alloc(0))).toMatchObject({ status: 400, body: { code: 'empty-chunk' } })
  const head = await fetch(`${plane.url}/api/v1/uploads/${upload.id}`, { method: 'HEAD', headers: operator.headers })
  expect([head.status, head.headers.get('upload-offset')]).toEqual([200, '1000'])
  const viewer = await plane.signIn('viewer')
  expect((await viewer.call('GET', `/api/v1/uploads/${upload.id}`)).status).toBe(403)
  expect((await operator.call('GET', '/api/v1/uploads/..%2f..%2fcontrol.db')).status).toBe(404)

  await sendRest(plane.url, operator, { ...upload, offset: 1_000 }, packages, 777)
  const { body } = await operator.call('GET', `/api/v1/uploads/${upload.id}`)
  expect(body).toMatchObject({ complete: true, offset: packages.length })
  expect((await operator.call('DELETE', `/api/v1/uploads/${upload.id}`)).status).toBe(204)
  expect(filesIn('uploads')).toEqual([])
})

/** The head of a request for an upload of 1,000 bytes, which refuses any larger chunk. */
async function headsOfUpload() {
  const { id } = await beginUpload(operator, 'packages', Buffer.alloc(1_000, 'x'))
  const path = `/api/v1/uploads/${id}`
  const head = (method: string, more: Record<string, string>) => {
    const headers = Object.entries({ host: new URL(plane.url).host, ...operator.headers, ...more })
    return `${method} ${path} HTTP/1.1\r\n${headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`
  }
  const chunk = { 'upload-offset': '0', 'x-chunk-sha256': sha256(Buffer.alloc(0)) }
  return {
    patch: (bytes: number) => head('PATCH', { ...chunk, 'content-length': String(bytes) }),
    get: head('GET', { connection: 'close' }),
    drop: () => operator.call('DELETE', path),
  }
}

test('after a chunk is refused before its end, its connection serves the next request', async () => {
  const { patch, get, drop } = await headsOfUpload()

  const text = await sendBytes(plane.url, patch(400_000) + 'x'.repeat(400_000) + get)

  expect(text.match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 413', 'HTTP/1.1 200'])
  await drop()
})

test('a client that still sends after its chunk was refused is disconnected', async () => {
  const { patch, drop } = await headsOfUpload()
  const bytes = 3 * IMPORT_LIMITS.chunkBytes

  // The reset can arrive before the response was read.
  const text = await sendBytes(plane.url, patch(2 * bytes) + 'x'.repeat(bytes)).catch((error) => error.code)

  expect(text).toMatch(/^(HTTP\/1.1 413 |ECONNRESET|EPIPE)/)
  await drop()
})

test('an upload that continued with another file is refused at its end', async () => {
  const { packages } = csvFiles(10, 5)
  const upload = await beginUpload(operator, 'packages', packages)

  const answer = await sendChunk(plane.url, operator, upload.id, 0, Buffer.alloc(packages.length, 'x'))

  expect(answer).toMatchObject({ status: 422, body: { code: 'other-file' } })
  expect((await operator.call('GET', `/api/v1/uploads/${upload.id}`)).status).toBe(404)
})

test('a file that does not fit on the disk is refused before any byte is sent', async () => {
  const answer = await operator.call('POST', '/api/v1/uploads', {
    name: 'packages.csv',
    kind: 'packages',
    bytes: 60 * 2 ** 40,
    fingerprint: 'a'.repeat(64),
  })
  expect(answer).toMatchObject({ status: 400, body: { code: 'invalid-request' } })

  const large = await operator.call('POST', '/api/v1/uploads', {
    name: 'packages.csv',
    kind: 'packages',
    bytes: 64 * 2 ** 30,
    fingerprint: 'a'.repeat(64),
  })
  // If the disk of the test has enough space, the upload is accepted and dropped again.
  if (large.status === 201) await operator.call('DELETE', `/api/v1/uploads/${large.body.id}`)
  else expect(large).toMatchObject({ status: 507, body: { code: 'disk-full', neededBytes: 64 * 2 ** 30 } })
})

test.skipIf(!canMount())(
  'a disk that fills up during an upload refuses the chunk, and accepts it when there is space again',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'vacancy-small-disk-'))
    // 256 MiB are kept free; the rest is available for uploads.
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=272m', 'tmpfs', folder])
    const small = await startTestControlPlane({ config: { nodes: [node.apiUrl], importsDir: folder } })
    try {
      const caller = await small.signIn('operator')
      const { packages } = csvFiles(2_000, 60)
      expect(packages.length).toBeGreaterThan(5 << 20)
      const large = { name: 'p.csv', kind: 'packages', bytes: 64 << 20, fingerprint: 'a'.repeat(64) }
      expect(await caller.call('POST', '/api/v1/uploads', large)).toMatchObject({
        status: 507,
        body: { code: 'disk-full' },
      })
      const upload = await beginUpload(caller, 'packages', packages)
      const half = 2 << 20
      expect((await sendChunk(small.url, caller, upload.id, 0, packages.subarray(0, half))).status).toBe(200)
      writeFileSync(join(folder, 'filler'), Buffer.alloc(267 << 20))

      const full = await sendChunk(small.url, caller, upload.id, half, packages.subarray(half))

      expect(full).toMatchObject({ status: 507, body: { code: 'disk-full' } })
      rmSync(join(folder, 'filler'))
      const { body } = await caller.call('GET', `/api/v1/uploads/${upload.id}`)
      expect(body).toMatchObject({ offset: half, complete: false })
      await sendRest(small.url, caller, body, packages)
      expect((await caller.call('GET', `/api/v1/uploads/${upload.id}`)).body).toMatchObject({ complete: true })
    } finally {
      await small.stop()
      execFileSync('umount', [folder])
      rmSync(folder, { recursive: true })
    }
  },
)

test('errors are listed with their rows, and downloads contain no formulas outside of the rows themselves', async () => {
  const { properties, packages } = csvFiles(3, 2)
  const bad = '=HYPERLINK("x"),double,never,3,120,breakfast\nhotel_0,double,2020-13-45,999,-1,free_wfi\n'

  const view = await failed({ properties, packages: Buffer.concat([packages, Buffer.from(bad)]) })

  expect(view).toMatchObject({
    state: 'failed',
    snapshot: null,
    errors: { count: 6, kept: 6, keptOf: { properties: 0, packages: 6 } },
  })
  const { body } = await operator.call('GET', `/api/v1/imports/${view.id}/errors`)
  // Every fault of a row.
  expect(body).toMatchObject({
    total: 6,
    next: null,
    errors: [{ file: 'packages.csv', line: 7 }, ...Array(5).fill({})],
  })
  const { body: found } = await operator.call('GET', `/api/v1/imports/${view.id}/errors?text=line%208`)
  expect(found.errors.map(({ line }: { line: number }) => line)).toEqual([8, 8, 8, 8])
  const rows = await operator.call('GET', `/api/v1/imports/${view.id}/files/rejected-packages.csv`)
  expect(rows.text).toBe(bad)
  expect(rows.headers.get('content-disposition')).toBe('attachment; filename="rejected-packages.csv"')
  const csv = await operator.call('GET', `/api/v1/imports/${view.id}/files/errors.csv`)
  const cells = csv.text.split(/\r?\n/).flatMap((line) => line.split(','))
  expect(cells.filter((cell) => /^"?[=+@]/.test(cell))).toEqual([])
  const json = await operator.call('GET', `/api/v1/imports/${view.id}/files/errors.json`)
  expect(json.body).toHaveLength(6)
  expect((await operator.call('GET', `/api/v1/imports/${view.id}/files/..%2ferrors.jsonl`)).status).toBe(400)
  // Both uploads are kept for an import with a fixed file.
  expect(filesIn('uploads').sort()).toEqual([view.files.properties.upload, view.files.packages.upload].sort())
  for (const { upload } of Object.values(view.files)) await operator.call('DELETE', `/api/v1/uploads/${upload}`)
})

test('rejected rows are omitted from a second build with a reason, and counted', async () => {
  const { properties, packages } = csvFiles(4, 3)
  const rows = packages.toString().split('\n')
  rows[2] = 'hotel_0,double,never,3,120,breakfast'
  rows[5] = 'hotel_1,"dou\nble",2026-13-01,1,120,breakfast'
  const view = await failed({ properties, packages: Buffer.from(rows.join('\n')) })
  expect(view.errors).toMatchObject({ rows: 2, again: '' })
  const again = (id: string, body: object) => operator.call('POST', `/api/v1/imports/${id}/again`, body)

  expect((await again(view.id, { reason: 'short' })).status).toBe(400)
  const { status, body } = await again(view.id, { reason: 'two rows of a test' })
  const built = await importEnds(operator, body.id)

  expect([status, built.state, built.message]).toEqual([201, 'built', expect.any(String)])
  expect(built).toMatchObject({ withoutRowsOf: view.id, name: view.name })
  // The second row spans three lines of the file, because of line ends inside its quotes.
  expect(built.counters).toMatchObject({
    reader: { properties: 4, packages: 13 },
    builder: { packages: 10 },
    rejected: { properties: 0, packages: 3 },
    agree: true,
  })
  expect(built.files.packages.sha256).toBe(view.files.packages.sha256)
  expect((await again(built.id, { reason: 'nothing to leave out' })).body).toMatchObject({ code: 'nothing-rejected' })
})

test('rows are not omitted because of a rate feature that is not in the codec list', async () => {
  const { properties, packages } = csvFiles(3, 2)
  const bad = 'hotel_0,double,2026-13-45,9,1,free_wfi\nhotel_0,single,'.concat(nightIn(1), ',9,1,free_wfi\n')
  const view = await failed({ properties, packages: Buffer.concat([packages, Buffer.from(bad)]) })

  const answer = await operator.call('POST', `/api/v1/imports/${view.id}/again`, { reason: 'without the feature' })

  expect(view.errors).toMatchObject({ rows: null, again: expect.stringContaining('codec list') })
  expect(answer).toMatchObject({ status: 409, body: { code: 'rows-unknown' } })
  for (const { upload } of Object.values(view.files)) await operator.call('DELETE', `/api/v1/uploads/${upload}`)
})

test('a codec file given with the files applies if the node reads one of its own', async () => {
  const text = 'rate_features:\n  - breakfast\n  - sauna\n'
  const { body: read } = await operator.call('POST', '/api/v1/import-codecs', { text })
  expect(read).toMatchObject({ names: ['breakfast', 'sauna'], hash: expect.stringMatching(/^[0-9a-f]{64}$/) })
  for (const wrong of ['rate_features: x', 'rate_features: [a, A]', '- [', 'other: 1', 'rate_features: []']) {
    const answer = await operator.call('POST', '/api/v1/import-codecs', { text: wrong })
    expect([wrong, answer.status, answer.body.code]).toEqual([wrong, 400, 'invalid-codecs'])
  }

  const view = await importEnds(
    operator,
    (await beginImport(plane.url, operator, csvFiles(3, 2), { codecs: read.names })).id,
  )
  const { body: snapshot } = await operator.call('GET', `/api/v1/snapshots/${view.snapshot}`)

  expect([view.state, view.codecs]).toEqual(['built', read.names])
  expect(snapshot).toMatchObject({ codecs: read.names, codecHash: read.hash, codecsCurrent: false })
})

test('files of the import folder are imported in place, and files outside are refused', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-folder-'))
  const outside = mkdtempSync(join(tmpdir(), 'vacancy-outside-'))
  const { properties, packages } = csvFiles(5, 2)
  mkdirSync(join(folder, 'nov'))
  writeFileSync(join(folder, 'nov', 'properties.csv'), properties)
  writeFileSync(join(folder, 'nov', 'packages.csv.gz'), gzipSync(packages))
  writeFileSync(join(folder, 'notes.txt'), 'no CSV')
  writeFileSync(join(folder, 'empty.csv'), '')
  writeFileSync(join(outside, 'secret.csv'), 'secret\n')
  symlinkSync(join(outside, 'secret.csv'), join(folder, 'link.csv'))
  symlinkSync(outside, join(folder, 'away'))
  symlinkSync('round.csv', join(folder, 'round.csv'))
  mkdirSync(join(folder, 'folder.csv'))
  const own = await startTestControlPlane({ config: { nodes: [node.apiUrl], importFolder: folder } })
  try {
    const caller = await own.signIn('operator')
    const take = (path: string, kind: string) => caller.call('POST', '/api/v1/import-folder', { path, kind })

    const { body: listed } = await caller.call('GET', '/api/v1/import-folder')
    expect([listed.files.map(({ path }: { path: string }) => path), listed.more]).toEqual([
      ['empty.csv', 'nov/packages.csv.gz', 'nov/properties.csv'],
      false,
    ])
    for (const path of [
      ...['../secret.csv', 'nov/../../secret.csv', join(outside, 'secret.csv'), 'link.csv', 'away/secret.csv'],
      ...[
        'round.csv',
        'folder.csv',
        'notes.txt',
        'nov\\..\\..\\secret.csv',
        'nov/properties.csv\u0000.csv',
        'none.csv',
      ],
    ]) {
      expect([path, await take(path, 'packages')]).toEqual([path, expect.objectContaining({ status: 404 })])
    }
    expect((await take('empty.csv', 'packages')).body).toMatchObject({ code: 'wrong-size' })
    const [a, b] = [await take('nov/properties.csv', 'properties'), await take('nov/packages.csv.gz', 'packages')]
    expect(a.body).toMatchObject({ name: 'properties.csv', complete: true, bytes: properties.length })
    const { body: begun } = await caller.call('POST', '/api/v1/imports', {
      ...{ name: 'folder', shard: 's1', properties: a.body.id, packages: b.body.id },
    })

    const view = await importEnds(caller, begun.id)

    expect([view.state, view.message]).toEqual(['built', expect.any(String)])
    expect(view.files.packages).toMatchObject({ unpacked: true, rows: 10 })
    // The source files still exist after the build.
    expect(readFileSync(join(folder, 'nov', 'properties.csv'))).toEqual(properties)
    const without = await operator.call('GET', '/api/v1/import-folder')
    expect(without).toMatchObject({ status: 404, body: { code: 'no-import-folder' } })
  } finally {
    await own.stop()
    for (const path of [folder, outside]) rmSync(path, { recursive: true })
  }
})

const right = csvFiles(3, 2)
test.each<[string, { properties: Buffer; packages: Buffer }, RegExp]>([
  ['a picture', { ...right, packages: Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex') }, /NUL bytes/],
  [
    'a web page',
    { ...right, packages: Buffer.from('<!doctype html>\n<p>hello\n') },
    /has 1 column; packages.csv has 6/,
  ],
  ['both files swapped', { properties: right.packages, packages: right.properties }, /has the columns of packages/],
  ['UTF-16', { ...right, packages: Buffer.from('\ufeffp,r', 'utf16le') }, /UTF-16/],
  ['a ZIP archive', { ...right, packages: Buffer.from('504b03040a00000000', 'hex') }, /ZIP archive/],
  ['a broken gzip file', { ...right, packages: gzipSync(right.packages).subarray(0, 40) }, /damaged gzip/],
  ['a gzip bomb', { ...right, packages: gzipSync(Buffer.alloc(128 << 20, 'p')) }, /unpacks to more than \d+ times/],
  ['no properties', { ...right, properties: Buffer.from('\n\n') }, /nothing was built/],
])('%s fails the import with a specific message', async (_, files, message) => {
  const view = await failed(files)

  expect([view.state, view.message]).toEqual(['failed', expect.stringMatching(message)])
  expect(view.hint).not.toBe('')
})

test('gzip files are unpacked, and their rows are counted', async () => {
  const files = csvFiles(20, 3)

  const view = await failed({ properties: gzipSync(files.properties), packages: gzipSync(files.packages) })

  expect([view.state, view.message]).toEqual(['built', expect.any(String)])
  expect(view.files.packages).toMatchObject({ unpacked: true, rows: 60 })
})

test('an import can be cancelled while it waits for its files, and its uploads can be used again', async () => {
  const { properties, packages } = csvFiles(5, 2)
  const [a, b] = [
    await beginUpload(operator, 'properties', properties),
    await beginUpload(operator, 'packages', packages),
  ]
  const body = { name: 'later', shard: 's1', properties: a.id, packages: b.id }
  const { body: view } = await operator.call('POST', '/api/v1/imports', body)
  expect(view).toMatchObject({ state: 'uploading', cancellable: true })
  const running = async () => (await operator.call('GET', '/api/v1/summary')).body.running
  const overview = { kind: 'import', id: view.id, href: `/imports/${view.id}`, percent: null }
  await expect.poll(running).toEqual([expect.objectContaining(overview)])
  expect((await operator.call('POST', '/api/v1/imports', body)).body).toMatchObject({ code: 'upload-in-use' })
  expect((await operator.call('DELETE', `/api/v1/uploads/${a.id}`)).body).toMatchObject({ code: 'upload-in-use' })

  const cancelled = await operator.call('POST', `/api/v1/imports/${view.id}/cancel`, {})
  expect(cancelled.body).toMatchObject({ state: 'cancelled' })
  expect((await operator.call('POST', `/api/v1/imports/${view.id}/cancel`, {})).status).toBe(409)

  const { body: again } = await operator.call('POST', '/api/v1/imports', body)
  await sendRest(plane.url, operator, a, properties)
  await sendRest(plane.url, operator, b, packages)
  expect(await importEnds(operator, again.id)).toMatchObject({ state: 'built' })
})

test('a build that was interrupted by the end of the control plane is restarted', async () => {
  const dataDir = join(plane.dataDir, 'second')
  const options = { dataDir, config: { nodes: [node.apiUrl] } }
  const first = await startTestControlPlane(options)
  const admin = await first.signIn('admin', 'ana')
  const { id } = await beginImport(first.url, admin, csvFiles(2_000, 30))
  // Waits for the start of the build, not its end, since starting the process takes a while.
  await eventually(
    async () => expect((await admin.call('GET', `/api/v1/imports/${id}`)).body.state).not.toBe('uploading'),
    { timeout: 45_000, interval: 5 },
  )
  await first.stop()
  writeFileSync(join(dataDir, 'imports', 'builds', 'left-over'), '')

  const second = await startTestControlPlane(options)
  const view = await importEnds(await second.signIn('admin', 'ana'), id)

  expect(view).toMatchObject({ state: 'built', counters: { agree: true } })
  expect(view.log.join('\n')).toContain('the control plane was restarted')
  // Its end is reported before its folder is deleted.
  await eventually(() => expect(readdirSync(join(dataDir, 'imports', 'builds'))).toEqual([]), { timeout: 45_000 })
  await second.stop()
})

test('a snapshot is fetched only with the token issued for it, and deleted only with its digest', async () => {
  const { snapshot } = await failed(csvFiles(7, 2))
  const pull = (headers: { [name: string]: string }) => fetch(`${plane.url}/api/v1/pull/${snapshot}`, { headers })

  expect((await pull({})).status).toBe(401)
  expect((await pull({ authorization: `Bearer ${'a'.repeat(43)}` })).status).toBe(401)
  expect((await pull(operator.headers)).status).toBe(401)
  const admin = await plane.signIn('admin')
  const remove = (confirm: string) =>
    admin.call('POST', `/api/v1/snapshots/${snapshot}/delete`, { confirm, reason: 'old' })
  expect((await operator.call('POST', `/api/v1/snapshots/${snapshot}/delete`, { confirm: snapshot })).status).toBe(403)
  expect(await remove('yes')).toMatchObject({ status: 400, body: { code: 'not-confirmed' } })
  expect((await remove(snapshot ?? '')).status).toBe(204)
  expect((await operator.call('GET', `/api/v1/snapshots/${snapshot}`)).status).toBe(404)
})
