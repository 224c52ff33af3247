import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { errorLines, holdOutput, summaryLines } from './command.ts'
import { progressLine } from './progress.ts'

const PROGRAM = fileURLToPath(new URL('../../../bin/build-snapshot.mjs', import.meta.url))
let root: string
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'vacancy-build-'))
})
afterAll(() => rmSync(root, { recursive: true }))

function inputFolder(packages: string): string {
  const folder = mkdtempSync(join(root, 'in-'))
  writeFileSync(join(folder, 'codecs.yml'), 'rate_features:\n  - free_wifi\n')
  writeFileSync(join(folder, 'properties.csv'), 'p,S,A,hotel,luxury,4,1,2,wifi\n')
  writeFileSync(join(folder, 'packages.csv'), packages)
  return folder
}

function build(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [PROGRAM, '--shard-id', 's1', ...args], {
    encoding: 'utf8',
  })
  return { status, stdout, stderr }
}

const WINDOW = ['--from', '2026-09-01', '--to', '2026-09-30']

test('a program reads progress and result as JSON lines', () => {
  const input = inputFolder('p,r,2026-09-10,3,120,free_wifi\np,r,2027-09-10,3,120,\n')
  const report = join(input, 'report.json')

  const { status, stdout, stderr } = build('--input-path', input, ...WINDOW, '--progress', 'json', '--report', report)

  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  const events = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  expect(events.slice(0, -1).every(({ event }) => event === 'progress')).toBe(true)
  expect(events.at(-1)).toMatchObject({
    event: 'done',
    packages: 1,
    properties: 1,
    outOfWindow: 1,
    seconds: expect.any(Number),
    recordsPerSecond: expect.any(Number),
    snapshotId: expect.stringMatching(/^[0-9a-f]{64}$/),
    bytes: readFileSync(join(input, 'seed.snapshot')).length,
  })
  expect(JSON.parse(readFileSync(report, 'utf8'))).toMatchObject({ ok: true, packages: 1 })
})

test('errors go to stderr, one a line, and end with 65', () => {
  const input = inputFolder('p,r,2026-09-10,3,120,free_wfi\np,r,2026-09-10,3,120,\np,r,never,3,120,\n')
  const report = join(input, 'report.json')
  const output = join(input, 'out')

  const args = ['--input-path', input, '--output-path', output, ...WINDOW, '--max-errors', '1', '--report', report]
  const { status, stdout, stderr } = build(...args)

  expect({ status, stdout }).toEqual({ status: 65, stdout: '' })
  expect(stderr.trimEnd().split('\n')).toEqual([
    'packages.csv:1: RateFeature (column 6) "free_wfi" is not in the codec list; the nearest entry is "free_wifi"',
    '… and 1 more; --max-errors shows more of them. All, by their first:',
    '  1 like packages.csv:1: RateFeature (column 6) "free_wfi" is not in the codec list; the nearest entry is "free_wifi"',
    '  1 like packages.csv:3: Date (column 3) "never" is not a date YYYY-MM-DD',
    '2 errors; nothing was written',
  ])
  expect(existsSync(output)).toBe(false)
  expect(JSON.parse(readFileSync(report, 'utf8'))).toMatchObject({
    ok: false,
    errors: { count: 2, countByKind: { feature: 1, date: 1 } },
  })
})

test('all errors are written as lines of JSON with their original rows', () => {
  const input = inputFolder('p,r,never,3,120,\r\nq,"r"x,2026-09-10,3,120,\np,r,2026-09-10,3,120,')
  const bytes = Buffer.concat([
    readFileSync(join(input, 'packages.csv')),
    Buffer.from('\np,\xff,2026-09-11,1,1,\n', 'latin1'),
  ])
  writeFileSync(join(input, 'packages.csv'), bytes)
  writeFileSync(join(input, 'properties.csv'), 'p,S,A,hotel,luxury,4,1,2,wifi\np2,S,A,hotel,luxury,6,1,2,wifi\n')
  const errors = join(input, 'errors.jsonl')

  const args = ['--input-path', input, ...WINDOW, '--max-errors', '1', '--errors', errors, '--progress', 'json']
  const { status, stdout } = build(...args)

  expect(status).toBe(65)
  expect(JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '')).toMatchObject({ count: 4, first: [{ kind: 'stars' }] })
  const lines = readFileSync(errors, 'utf8').trimEnd().split('\n')
  expect(lines.map((line) => JSON.parse(line) as Record<string, unknown>)).toMatchObject([
    { file: 'properties.csv', line: 2, column: 6, kind: 'stars', row: 'p2,S,A,hotel,luxury,6,1,2,wifi' },
    { file: 'packages.csv', line: 1, column: 3, kind: 'date', row: 'p,r,never,3,120,' },
    { file: 'packages.csv', line: 2, kind: 'trailing', row: 'q,"r"x,2026-09-10,3,120,' },
    {
      file: 'packages.csv',
      line: 4,
      kind: 'text',
      row64: Buffer.from('p,\xff,2026-09-11,1,1,', 'latin1').toString('base64'),
    },
  ])
  expect(existsSync(join(input, 'seed.snapshot'))).toBe(false)
})

test('without an error the file of errors is empty', () => {
  const input = inputFolder('p,r,2026-09-10,3,120,\n')
  const errors = join(input, 'errors.jsonl')

  const { status } = build('--input-path', input, ...WINDOW, '--errors', errors)

  expect([status, readFileSync(errors, 'utf8')]).toEqual([0, ''])
})

test('a failed build reports its errors in the last line, for programs', () => {
  const input = inputFolder('p,r,never,3,120,\n')

  const { status, stdout } = build('--input-path', input, ...WINDOW, '--progress', 'json')

  expect(status).toBe(65)
  expect(JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '')).toMatchObject({
    event: 'failed',
    count: 1,
    first: [{ line: 1, column: 3 }],
  })
})

test.each<[string, (input: string) => string[], RegExp]>([
  ['an input folder that is none', () => ['--input-path', '/nowhere'], /--input-path: \/nowhere is not a folder/],
  ['a shard id that is none', (input) => ['--input-path', input, '--shard-id', 'a b'], /--shard-id: "a b" is not/],
  [
    'a date that is none',
    (input) => ['--input-path', input, '--from', '2026-02-30'],
    /--from: "2026-02-30" is not a date YYYY-MM-DD/,
  ],
  [
    'a codec file that is missing',
    (input) => ['--input-path', input, '--codecs', '/nowhere.yml'],
    /\/nowhere\.yml: does not exist/,
  ],
  [
    'an unknown flag',
    (input) => ['--input-path', input, '--thread', '2'],
    /unknown flag --thread; did you mean --threads/,
  ],
])('%s ends with 64', (_, argsOf, message) => {
  const { status, stderr } = build(...argsOf(inputFolder('')))

  expect(status).toBe(64)
  expect(stderr).toMatch(message)
})

test('a build keeps others out of its output folder, and leaves nothing else there', async () => {
  const input = inputFolder('p,r,2026-09-10,3,120,free_wifi\n')
  const output = join(input, 'out')
  const release = await holdOutput(output)
  const args = ['--input-path', input, '--output-path', output, ...WINDOW]

  const { status, stderr } = build(...args)
  expect(status).toBe(65)
  expect(stderr).toContain(`${output} is in use by another process, which calls itself process ${process.pid}.`)
  release()
  expect(existsSync(output)).toBe(false)

  expect(build(...args)).toMatchObject({ status: 0 })
  expect(readdirSync(output)).toEqual(['seed.snapshot'])
})

test('a folder that cannot be created ends with 70', () => {
  const input = inputFolder('p,r,2026-09-10,3,120,\n')
  writeFileSync(join(input, 'file'), '')

  const { status, stderr } = build('--input-path', input, ...WINDOW, '--output-path', join(input, 'file', 'out'))

  expect(status).toBe(70)
  expect(stderr).toMatch(/write of .*out failed: .*ENOTDIR/)
})

test('the summary of an import in words', () => {
  const lines = summaryLines({
    snapshotId: 'ab12',
    path: '/data/seed.snapshot',
    bytes: 12_345_678,
    packages: 60_000_000,
    properties: 250_000,
    rows: 1_000_000,
    segments: 10,
    roomTypes: 4,
    outOfWindow: 12,
    nights: { from: '2026-12-01', to: '2027-01-29' },
    window: { from: '2026-11-20', to: '2027-11-20' },
    seconds: 3.456,
    recordsPerSecond: 17_361_111,
    phases: {},
    threads: 2,
    kernel: 'wasm',
    notes: ['something'],
  })

  expect(lines).toEqual([
    '60,000,000 packages of 250,000 properties in 3.46 s: 17.4 M records/s with 2 threads',
    'segments 10  room types 4  nights 2026-12-01 to 2027-01-29',
    'left out: 12 packages outside 2026-11-20 to 2027-11-20',
    'note: something',
    'snapshot ab12  12,345,678 bytes  /data/seed.snapshot',
  ])
})

test('one error is reported in the singular', () => {
  expect(errorLines({ count: 1, countByKind: { date: 1 }, first: [], groups: [] }).at(-1)).toBe(
    '1 error; nothing was written',
  )
})

test('the bar shows share, records, rate and time left, and fits the terminal', () => {
  const progress = {
    phase: 'packages',
    done: 25,
    total: 100,
    packages: 15_000_000,
    seconds: 1,
    recordsPerSecond: 22_500_000,
    etaSeconds: 75.2,
  } as const

  expect(progressLine(progress, 200)).toBe(
    'reading packages     ██████░░░░░░░░░░░░░░░░░░  25 %  15,000,000  22.5 M records/s  ETA 1 min 15 s',
  )
  expect(progressLine(progress, 40)).toHaveLength(40)
})
