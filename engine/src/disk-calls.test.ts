/** Reading, writing and replacing files through an env: short calls, interruptions and errors (env.ts). */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { VacancyError } from '@vacancy/shared'
import { createRandom } from '@vacancy/testkit/random'
import { expect, onTestFinished, test } from 'vitest'
import {
  createEnv,
  type Disk,
  diskFailed,
  errnoOf,
  guarded,
  isDiskFull,
  readFully,
  readSmallFile,
  realDisk,
  renameFile,
  replaceFile,
  syncFile,
  syncFolder,
  unlinkFile,
  writeFully,
} from './env.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)

const errno = (code: string) => Object.assign(new Error(code), { code })
const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'vacancy-env-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

/** The real disk, whose calls fail where a test wants it; all calls are recorded. */
function failing(fails: { readonly [call in keyof Disk]?: string } = {}) {
  const calls: string[] = []
  const wrap = (call: keyof Disk) =>
    [
      call,
      (...values: readonly unknown[]) => {
        calls.push(call)
        const code = fails[call]
        if (code !== undefined) throw errno(code)
        return (realDisk[call] as (...given: readonly unknown[]) => unknown)(...values)
      },
    ] as const
  const disk = Object.fromEntries((Object.keys(realDisk) as (keyof Disk)[]).map(wrap)) as unknown as Disk
  return { disk, calls }
}

const caught = (run: () => unknown): unknown => {
  try {
    run()
  } catch (error) {
    return error
  }
  return undefined
}

test('only codes of the operating system are errno codes', () => {
  const values = [errno('ENOSPC'), errno('E2BIG'), errno('failure'), errno('xEIO'), errno('EIOx'), new Error('EIO')]
  expect(values.map(errnoOf)).toEqual(['ENOSPC', 'E2BIG', '', '', '', ''])
  expect([{ code: 'EIO' }, 'EIO', undefined, Object.assign(new Error('x'), { code: 5 })].map(errnoOf)).toEqual([
    '',
    '',
    '',
    '',
  ])
})

test('a disk is full without room or quota', () => {
  expect(['ENOSPC', 'EDQUOT', 'EIO'].map((code) => isDiskFull(errno(code)))).toEqual([true, true, false])
})

test('short and interrupted calls write and read everything, at its place', () => {
  const random = createRandom(SEED)
  for (let round = 0; round < 20; round++) {
    const content = new Uint8Array(60)
    const some = (length: number) => {
      if (random.below(4) === 0) throw errno('EINTR')
      return 1 + random.below(length)
    }
    const disk = {
      write(_file: number, bytes: Uint8Array, start: number, length: number, position: number) {
        const count = some(length)
        content.set(bytes.subarray(start, start + count), position)
        return count
      },
      read(_file: number, bytes: Uint8Array, start: number, length: number, position: number) {
        const count = Math.min(some(length), content.length - position)
        bytes.set(content.subarray(position, position + count), start)
        return count
      },
    } as unknown as Disk
    const source = Uint8Array.from({ length: 40 }, (_, i) => i + 1)
    const [start, length, position] = [random.below(10), random.below(30), random.below(30)]
    writeFully(disk, 1, source, start, length, position)
    const expected = new Uint8Array(60)
    expected.set(source.subarray(start, start + length), position)
    expect(content, `seed ${SEED}, round ${round}`).toEqual(expected)
    const target = new Uint8Array(100)
    const read = readFully(disk, 1, target, 5, 80, 20)
    expect([read, target.subarray(5, 45)], `seed ${SEED}, round ${round}`).toEqual([40, expected.subarray(20)])
    expect([...target.subarray(0, 5), ...target.subarray(45)].every((byte) => byte === 0)).toBe(true)
  }
})

test('a write of no bytes and other errors end it', () => {
  const writing = (write: () => number) => () => writeFully({ write } as unknown as Disk, 1, new Uint8Array(4), 0, 4, 0)
  expect(errnoOf(caught(writing(() => 0)))).toBe('EIO')
  expect(
    errnoOf(
      caught(
        writing(() => {
          throw errno('ENOSPC')
        }),
      ),
    ),
  ).toBe('ENOSPC')
  const reading = () => readFully(failing({ read: 'EIO' }).disk, 1, new Uint8Array(1), 0, 1, 0)
  expect(errnoOf(caught(reading))).toBe('EIO')
})

test('a small file is read up to a limit and closed; what does not exist or is a folder has no content', () => {
  const path = folder()
  writeFileSync(join(path, 'a'), 'four')
  const { disk, calls } = failing()
  const read = (name: string, bytesMax: number) => {
    const bytes = readSmallFile(disk, join(path, name), bytesMax)
    return bytes && Buffer.from(bytes).toString()
  }
  expect([read('a', 3), read('a', 4), read('a', 5), read('b', 5), read('', 5)]).toEqual([
    'fou',
    'four',
    'four',
    undefined,
    undefined,
  ])
  expect(calls.filter((call) => call === 'close')).toHaveLength(3)
})

test('a file is replaced by way of a synced temporary one, also over the rest of an earlier try', () => {
  const path = join(folder(), 'a')
  const { disk, calls } = failing()
  replaceFile(disk, path, Buffer.from('old'))
  expect(calls).toEqual(['stat', 'open', 'write', 'syncData', 'close', 'rename', 'syncDirectory'])
  writeFileSync(`${path}.tmp`, 'partial')
  replaceFile(disk, path, Buffer.from('new'))
  expect([readFileSync(path, 'utf8'), realDisk.stat(`${path}.tmp`)]).toEqual(['new', undefined])
})

test.each<[keyof Disk, string, string | undefined]>([
  ['write', 'ENOSPC', undefined],
  ['write', 'EIO', 'write'],
  ['syncData', 'ENOSPC', 'fdatasync'],
  ['rename', 'EDQUOT', undefined],
  ['rename', 'EIO', 'rename'],
  ['syncDirectory', 'EIO', 'fsync'],
])('replacing a file whose %s fails with %s: %s', (call, code, operation) => {
  const path = join(folder(), 'a')
  writeFileSync(path, 'old')
  const { disk, calls } = failing({ [call]: code })
  const error = caught(() => replaceFile(disk, path, Buffer.from('new')))
  if (operation === undefined) expect(errnoOf(error)).toBe(code)
  else expect(error).toMatchObject({ code: 'disk_failed', fields: { operation, reason: code } })
  if (call !== 'syncDirectory') expect(readFileSync(path, 'utf8')).toBe('old')
  if (call !== 'write' || operation !== undefined) return
  // The process continues: nothing stays open or on the disk.
  expect([realDisk.stat(`${path}.tmp`), calls.filter((each) => each === 'close').length]).toEqual([undefined, 1])
})

test.each<[string, (disk: Disk) => void, keyof Disk, string]>([
  ['a removal', (disk) => unlinkFile(disk, '/f'), 'unlink', 'unlink'],
  ['a sync', (disk) => syncFile(disk, 1, '/f'), 'syncData', 'fdatasync'],
  ['a sync of a folder', (disk) => syncFolder(disk, '/f'), 'syncDirectory', 'fsync'],
  ['a rename', (disk) => renameFile(disk, '/f', '/g'), 'rename', 'rename'],
])('%s that fails ends the process and names file and cause', (_, run, call, operation) => {
  const error = caught(() => run(failing({ [call]: 'EROFS' }).disk))
  expect(error).toMatchObject({ code: 'disk_failed', fields: { operation, file: '/f', reason: 'EROFS' } })
  expect((error as Error).cause).toMatchObject({ code: 'EROFS' })
})

test('other disk calls end the process, too, but not on a full disk or with an error of our own', () => {
  const thrown = (error: unknown) =>
    caught(() =>
      guarded('list', '/f', () => {
        throw error
      }),
    )
  expect(guarded('list', '/f', () => 5)).toBe(5)
  expect(thrown(errno('EACCES'))).toMatchObject({ code: 'disk_failed', fields: { operation: 'list', file: '/f' } })
  const kept = [errno('ENOSPC'), errno('EDQUOT'), new VacancyError('failure', { reason: 'x' })]
  expect(kept.map((error) => thrown(error) === error)).toEqual([true, true, true])
  expect(diskFailed('list', '/f', new Error('odd')).fields).toMatchObject({ reason: 'Error: odd' })
})

test('the disk of the operating system lists names in order and creates only new files', () => {
  const path = folder()
  const at = (name: string) => join(path, name)
  for (const name of ['b', 'a', 'c']) realDisk.close(realDisk.open(at(name), 'create'))
  realDisk.makeDirectory(at('d'))
  expect(realDisk.list(path)).toEqual(['a', 'b', 'c', 'd'])
  expect(errnoOf(caught(() => realDisk.open(at('a'), 'create')))).toBe('EEXIST')
  const file = realDisk.open(at('a'), 'write')
  expect(realDisk.write(file, Buffer.from('xyz'), 1, 2, 3)).toBe(2)
  const bytes = new Uint8Array(6)
  expect([realDisk.read(file, bytes, 1, 5, 2), [...bytes]]).toEqual([3, [0, 0, 121, 122, 0, 0]])
  realDisk.syncData(file)
  realDisk.close(file)
  expect(errnoOf(caught(() => realDisk.write(file, bytes, 0, 1, 0)))).toBe('EBADF')
  const reading = realDisk.open(at('a'), 'read')
  expect(errnoOf(caught(() => realDisk.write(reading, bytes, 0, 1, 0)))).toBe('EBADF')
  realDisk.close(reading)
  realDisk.syncDirectory(path)
  expect([realDisk.stat(at('a')), realDisk.stat(at('d'))?.isDirectory, realDisk.stat(at('e'))]).toEqual([
    { bytes: 5, isDirectory: false },
    true,
    undefined,
  ])
  realDisk.rename(at('a'), at('e'))
  realDisk.unlink(at('b'))
  realDisk.removeDirectory(at('d'))
  expect(realDisk.list(path)).toEqual(['c', 'e'])
  const { freeBytes, totalBytes } = realDisk.space(path)
  expect([freeBytes >= 0, totalBytes > 1e6, freeBytes <= totalBytes]).toEqual([true, true, true])
})

test('the host knows this process and its start, and none that does not run', () => {
  const { host, random, clock } = createEnv(silent)
  expect(host.processId).toBe(process.pid)
  expect(host.bootId.length).toBeGreaterThan(0)
  const start = host.startOf(process.pid)
  expect(start).toMatch(/^\d+$|^unknown$/)
  if (start !== 'unknown') {
    // It began after the machine, and before now.
    const upSeconds = Number(readFileSync('/proc/uptime', 'latin1').split(' ')[0])
    expect(Number(start) / 100).toBeGreaterThan(0)
    expect(Number(start) / 100).toBeLessThanOrEqual(upSeconds + 1)
  }
  expect(host.startOf(2 ** 30)).toBeUndefined()
  const bytes = random.bytes(5_000)
  expect([bytes.length, bytes.buffer.byteLength]).toEqual([5_000, 5_000])
  expect(new Set(bytes).size).toBeGreaterThan(200)
  expect(Math.abs(clock.wallMs() - Date.now())).toBeLessThan(60_000)
  expect(clock.monotonicMs()).toBeLessThanOrEqual(performance.now())
})
