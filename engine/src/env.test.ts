/** What a failed call of the disk means: a full disk is an answer, anything else ends the process. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { VacancyError } from '@vacancy/shared'
import { expect, onTestFinished, test } from 'vitest'
import {
  type Disk,
  errnoOf,
  guarded,
  isDiskFull,
  realDisk,
  renameFile,
  replaceFile,
  syncFile,
  syncFolder,
  unlinkFile,
  writeFully,
} from './env.ts'

const errno = (code: string) => Object.assign(new Error(code), { code })

/** The real disk, of which one call fails. */
function failing(call: keyof Disk, code: string): Disk {
  const fail = () => {
    throw errno(code)
  }
  return { ...realDisk, [call]: fail }
}

function caught(run: () => unknown): unknown {
  try {
    run()
  } catch (error) {
    return error
  }
  return undefined
}

test('a disk is full without room or without quota', () => {
  expect(['ENOSPC', 'EDQUOT', 'EIO'].map((code) => isDiskFull(errno(code)))).toEqual([true, true, false])
})

test('a write that makes no progress is an error', () => {
  const disk = { ...realDisk, write: () => 0 }
  expect(errnoOf(caught(() => writeFully(disk, 1, new Uint8Array(4), 0, 4, 0)))).toBe('EIO')
})

test.each<[keyof Disk, string, string | undefined]>([
  ['write', 'ENOSPC', undefined],
  ['write', 'EIO', 'write'],
  ['syncData', 'ENOSPC', 'fdatasync'],
  ['rename', 'EDQUOT', undefined],
  ['rename', 'EIO', 'rename'],
  ['syncDirectory', 'EIO', 'fsync'],
])('replacing a file whose %s fails with %s: %s', (call, code, operation) => {
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-env-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'a')
  writeFileSync(path, 'old')

  const error = caught(() => replaceFile(failing(call, code), path, Buffer.from('new')))

  if (operation === undefined) expect(errnoOf(error)).toBe(code)
  else expect(error).toMatchObject({ code: 'disk_failed', fields: { operation, reason: code } })
  if (call !== 'syncDirectory') expect(readFileSync(path, 'utf8')).toBe('old')
})

test.each<[string, (disk: Disk) => void, keyof Disk, string]>([
  ['a removal', (disk) => unlinkFile(disk, '/f'), 'unlink', 'unlink'],
  ['a sync', (disk) => syncFile(disk, 1, '/f'), 'syncData', 'fdatasync'],
  ['a sync of a folder', (disk) => syncFolder(disk, '/f'), 'syncDirectory', 'fsync'],
  ['a rename', (disk) => renameFile(disk, '/f', '/g'), 'rename', 'rename'],
])('%s that fails ends the process and names file and cause', (_, run, call, operation) => {
  const error = caught(() => run(failing(call, 'EROFS')))
  expect(error).toMatchObject({ code: 'disk_failed', fields: { operation, file: '/f', reason: 'EROFS' } })
})

test('other calls end the process, too, but not on a full disk or with an error of our own', () => {
  const thrown = (error: unknown) =>
    caught(() =>
      guarded('list', '/f', () => {
        throw error
      }),
    )
  expect(thrown(errno('EACCES'))).toMatchObject({ code: 'disk_failed', fields: { operation: 'list', file: '/f' } })
  for (const error of [errno('ENOSPC'), errno('EDQUOT'), new VacancyError('failure', { reason: 'x' })])
    expect(thrown(error)).toBe(error)
})
