/**
 * What an import reports: phases, seconds, rates, counts and errors. Its only thread runs in this one, on a clock that
 * advances with the tasks.
 */

import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createCodecList, parseDay } from '@vacancy/shared'
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createEnv } from '../env.ts'
import { buildSnapshot, type ImportOptions } from './import.ts'
import type { ImportProgress } from './progress.ts'
import type { PoolTask } from './worker-pool.ts'

type Message = { readonly number: number; readonly task: PoolTask }

const port = vi.hoisted(() => ({
  handle: (_message: unknown): void => undefined,
  reply: (_answer: unknown): void => undefined,
  /** Milliseconds of the clock. */
  nowMs: 0,
  /** Called before a task runs. */
  before: (_task: { readonly kind: string }): void => undefined,
  ended: 0,
}))

vi.mock('node:worker_threads', () => ({
  parentPort: {
    on: (_event: string, handle: (message: unknown) => void) => {
      port.handle = handle
    },
    postMessage: (answer: unknown) => port.reply(answer),
  },
  Worker: class {
    on(event: string, listener: (answer: unknown) => void): void {
      if (event === 'message') port.reply = listener
    }
    postMessage(message: Message): void {
      queueMicrotask(() => {
        port.before(message.task)
        port.handle(message)
      })
    }
    async terminate(): Promise<number> {
      return ++port.ended
    }
  },
}))

await import('./import-worker.ts')

const root = mkdtempSync(join(tmpdir(), 'vacancy-report-'))
afterAll(() => rmSync(root, { recursive: true }))

const FIRST_DAY = parseDay('2026-09-01') as number
const quiet = () => undefined
const real = createEnv({ debug: quiet, info: quiet, warn: quiet, error: quiet })
const env = { ...real, clock: { ...real.clock, monotonicMs: () => port.nowMs } }

let folder: string
let progress: ImportProgress[]

beforeEach(() => {
  folder = mkdtempSync(join(root, 'in-'))
  progress = []
  port.nowMs = 1_000_000
  port.ended = 0
  /** Reading takes two seconds, counting half of one, a part of words four, the report of errors three. */
  port.before = ({ kind }) => {
    port.nowMs += ({ read: 2000, census: 500, encode: 4000, explain: 3000 } as Record<string, number>)[kind] ?? 0
    // The timer of the reports.
    if (kind === 'read' || kind === 'explain') vi.advanceTimersByTime(101)
  }
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
})
afterEach(() => {
  expect(vi.getTimerCount()).toBe(0)
  vi.useRealTimers()
})

function optionsOf(changes: Partial<ImportOptions> = {}): ImportOptions {
  return {
    ...{ shardId: 's1', inputPath: folder, outputPath: join(folder, 'out'), codecs: createCodecList(['a', 'b']) },
    ...{ firstDay: FIRST_DAY, lastDay: FIRST_DAY + 29, outOfWindow: 'skip', errorsMax: 20, overwrite: false },
    ...{ threads: 1, kernel: 'typescript', memoryBytesMax: 64 << 20, blockBytes: 200_000 },
    onProgress: (each) => progress.push(each),
    ...changes,
  }
}

function build(properties: string, packages: string, changes: Partial<ImportOptions> = {}) {
  writeFileSync(join(folder, 'properties.csv'), properties)
  writeFileSync(join(folder, 'packages.csv'), packages)
  return buildSnapshot(env, optionsOf(changes))
}

async function summaryOf(...values: Parameters<typeof build>) {
  const outcome = await build(...values)
  if (!outcome.ok) throw new Error(`the import has ${outcome.errors.count} errors`)
  return outcome.summary
}

const property = (id: string, segment = 's', more = '') => `${id},${segment},A,hotel,c,4,47,8,${more}\n`
const night = (id: string, room: string, day: number) =>
  `${id},${room},2026-09-${String(day).padStart(2, '0')},3,120,a\n`
const nights = (id: string, room: string, count: number) =>
  Array.from({ length: count }, (_, i) => night(id, room, i + 1)).join('')

const PROPERTIES = property('p') + property('q', 't') + property('r')
const PACKAGES = nights('p', 'double', 5) + nights('q', 'suite', 2) + night('p', 'double', 31) + night('q', 'x', 9)

describe('the summary', () => {
  test('it counts what was imported, and names window and nights', async () => {
    const summary = await summaryOf(PROPERTIES, PACKAGES.replace('2026-09-31', '2026-10-01'))

    expect(summary).toMatchObject({
      ...{ packages: 8, properties: 3, rows: 3, segments: 2, roomTypes: 3, outOfWindow: 1 },
      nights: { from: '2026-09-01', to: '2026-09-09' },
      window: { from: '2026-09-01', to: '2026-09-30' },
      ...{ threads: 1, kernel: 'typescript', notes: [], path: join(folder, 'out', 'seed.snapshot') },
    })
    expect(summary.snapshotId).toMatch(/^[0-9a-f]{64}$/)
    expect(port.ended).toBe(1)
  })

  test('it has the seconds of each phase and of the whole, and the rate', async () => {
    const { phases, seconds, recordsPerSecond } = await summaryOf(PROPERTIES, nights('p', 'double', 26))

    expect(phases).toEqual({ properties: 0, packages: 2, tables: 0.5, write: 4 })
    expect([seconds, recordsPerSecond]).toEqual([6.5, 4])
  })

  test('an import in no time has a finite rate', async () => {
    port.before = () => undefined

    expect(await summaryOf(PROPERTIES, nights('p', 'double', 4))).toMatchObject({ seconds: 0, recordsPerSecond: 4000 })
  })

  test.each([
    [10, 0, []],
    [11, 0, ['1 property has more than 10 room types']],
    [11, 11, ['2 properties have more than 10 room types']],
  ])('%i and %i room types of two properties give these notes: %j', async (ofP, ofQ, notes) => {
    const rooms = (id: string, count: number) => Array.from({ length: count }, (_, i) => night(id, `r${i}`, 1)).join('')

    expect((await summaryOf(PROPERTIES, rooms('p', ofP) + rooms('q', ofQ))).notes).toEqual(notes)
  })

  test('columns in another order are noted, by file', async () => {
    const header = 'Segment,PropertyID,Area,PropertyType,Category,Stars,Latitude,Longitude,Amenities\n'
    const packages = 'RoomType,PropertyID,Date,Availability,FinalPrice,RateFeature\ndouble,p,2026-09-01,3,120,a\n'

    expect((await summaryOf(`${header}s,p,A,hotel,c,4,47,8,\n`, packages)).notes).toEqual([
      'packages.csv: columns are read by the names in its header',
      'properties.csv: columns are read by the names in its header',
    ])
  })
})

describe('progress', () => {
  test('each phase reports its share, seconds, rate and the time left', async () => {
    await summaryOf(PROPERTIES, nights('p', 'double', 20))

    const bytes = [PROPERTIES.length, nights('p', 'double', 20).length]
    expect(progress).toEqual([
      {
        ...{ phase: 'properties', done: bytes[0], total: bytes[0], packages: 0 },
        ...{ seconds: 0, recordsPerSecond: 0, etaSeconds: 0 },
      },
      // The timer fires before the thread has read anything.
      { phase: 'packages', done: 0, total: bytes[1], packages: 0, seconds: 2, recordsPerSecond: 0 },
      // Two chunks before the words, in no time.
      {
        ...{ phase: 'write', done: 1, total: 3, packages: 20 },
        ...{ seconds: 2.5, recordsPerSecond: 10, etaSeconds: 0 },
      },
      {
        ...{ phase: 'write', done: 3, total: 3, packages: 20 },
        ...{ seconds: 6.5, recordsPerSecond: 10, etaSeconds: 0 },
      },
    ])
  })

  test('reports are at least 100 ms apart, and the last one of a phase is never left out', async () => {
    // Each clock reading takes 40 ms.
    const ticking = { ...env, clock: { ...env.clock, monotonicMs: () => (port.nowMs += 40) } }
    const amenities = ['x', 'y', 'z'].map((letter) => letter.repeat(60)).join('|')
    const lines = Array.from({ length: 1_500 }, (_, i) => property(`p${i}`, 's', amenities)).join('')
    writeFileSync(join(folder, 'properties.csv'), lines)
    writeFileSync(join(folder, 'packages.csv'), night('p1', 'double', 1))

    const outcome = await buildSnapshot(ticking, optionsOf({ blockBytes: 140_000 }))

    expect(outcome.ok).toBe(true)
    const reported = progress.filter(({ phase }) => phase === 'properties')
    expect(reported.at(-1)).toMatchObject({ done: lines.length, total: lines.length })
    for (const [i, { seconds, done }] of reported.entries()) {
      const before = reported[i - 1]
      if (before && done < lines.length) expect(seconds - before.seconds).toBeGreaterThanOrEqual(0.1)
      expect(done).toBeGreaterThan(before?.done ?? 0)
    }
  })

  test('an import without a listener reports nothing', async () => {
    const { onProgress: _unused, ...silent } = optionsOf()
    writeFileSync(join(folder, 'properties.csv'), PROPERTIES)
    writeFileSync(join(folder, 'packages.csv'), night('p', 'double', 1))

    expect((await buildSnapshot(env, silent)).ok).toBe(true)
    expect(progress).toEqual([])
  })
})

describe('errors', () => {
  const wrong = (count: number) => Array.from({ length: count }, (_, i) => `p,r,2026-09-01,${300 + i},1,\n`).join('')

  async function errorsOf(...values: Parameters<typeof build>) {
    const outcome = await build(...values)
    if (outcome.ok) throw new Error('the import has no errors')
    expect(existsSync(join(folder, 'out'))).toBe(false)
    return outcome.errors
  }

  test.each([
    [3, 2, 3],
    [1, 2, 3],
    [1, 2, 2],
    [4, 1, 3],
  ])(
    'of %i errors of properties and %i of packages the first %i are kept, and all are counted',
    async (ofProperties, ofPackages, errorsMax) => {
      const properties =
        property('p') + Array.from({ length: ofProperties }, (_each, i) => property(`q${i}`, '')).join('')

      const { count, countByKind, first } = await errorsOf(properties, wrong(ofPackages), { errorsMax })

      expect(count).toBe(ofProperties + ofPackages)
      expect(countByKind).toEqual({ empty: ofProperties, availability: ofPackages })
      expect(first).toHaveLength(Math.min(errorsMax, ofProperties + ofPackages))
      const files = first.map(({ file }) => file)
      const kept = Math.min(ofProperties, errorsMax)
      expect(files).toEqual([
        ...new Array(kept).fill('properties.csv'),
        ...new Array(first.length - kept).fill('packages.csv'),
      ])
    },
  )

  test('errors of the same kind in both files are added up', async () => {
    const { count, countByKind } = await errorsOf(property('p') + property('q', ''), 'p,,2026-09-01,1,1,\n')

    expect([count, countByKind]).toEqual([2, { empty: 2 }])
  })

  test('lines are kept while their bytes fit', async () => {
    const line = property('q', '', 'wifi|pool').trimEnd()
    const other = 'p,r,2026-09-01,300,1,'
    const rowsWith = async (rowBytesMax: number) => {
      const { first } = await errorsOf(property('p') + line, other, { rowBytesMax })
      return first.map((finding) => ('row' in finding && finding.row ? Buffer.from(finding.row).toString() : ''))
    }

    expect(await rowsWith(line.length + other.length)).toEqual([line, other])
    expect(await rowsWith(line.length + other.length - 1)).toEqual([line, ''])
    expect(await rowsWith(line.length - 1)).toEqual(['', other])
    expect(await rowsWith(0)).toEqual(['', ''])
  })

  test('their report is a phase of its own', async () => {
    await errorsOf(PROPERTIES, wrong(1))

    expect(progress.at(-1)).toMatchObject({ phase: 'errors', total: wrong(1).length, seconds: 5 })
    expect(progress.map(({ phase }) => phase)).toEqual(['properties', 'packages', 'errors'])
  })

  test('a file without properties is an error, but not in addition to others', async () => {
    expect((await errorsOf('', '')).countByKind).toEqual({ no_properties: 1 })
    expect((await errorsOf(property('q', ''), '')).countByKind).toEqual({ empty: 1 })
  })

  test('dates outside the window are errors when they shall be', async () => {
    const packages = night('p', 'r', 1).replace('09-01', '08-31') + night('p', 'r', 1)

    expect((await errorsOf(PROPERTIES, packages, { outOfWindow: 'error' })).countByKind).toEqual({ window: 1 })
    expect((await summaryOf(PROPERTIES, packages)).outOfWindow).toBe(1)
  })
})

describe('options', () => {
  test.each<[string, Partial<ImportOptions>, RegExp | undefined]>([
    ['one night', { lastDay: FIRST_DAY }, undefined],
    ['a last day before the first', { lastDay: FIRST_DAY - 1 }, /--to 2026-08-31 is before --from 2026-09-01/],
    ['367 nights', { lastDay: FIRST_DAY + 366 }, undefined],
    ['368 nights', { lastDay: FIRST_DAY + 367 }, /are 368 nights; at most 367 are kept/],
  ])('%s', async (_, changes, refusal) => {
    const building = build(PROPERTIES, night('p', 'r', 1), changes)

    if (refusal) await expect(building).rejects.toThrow(refusal)
    else expect((await building).ok).toBe(true)
  })

  test('an existing snapshot stays unless it is to be replaced', async () => {
    mkdirSync(join(folder, 'out'))
    writeFileSync(join(folder, 'out', 'seed.snapshot'), 'old')

    await expect(build(PROPERTIES, '')).rejects.toThrow(/already exists. Replace it with --overwrite/)
    expect((await build(PROPERTIES, '', { overwrite: true })).ok).toBe(true)
  })
})

test('a folder that cannot be made is a failed write, which names the file', async () => {
  const outputPath = join(folder, 'properties.csv', 'out')

  await expect(build(PROPERTIES, night('p', 'r', 1), { outputPath })).rejects.toMatchObject({
    code: 'disk_failed',
    message: expect.stringContaining(join(outputPath, 'seed.snapshot')),
  })
})
