import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import {
  checkState,
  claimFolder,
  filesOf,
  readRunning,
  readState,
  releaseFolder,
  removeData,
  type State,
  writeSample,
  writeState,
} from './files.ts'

const folder = mkdtempSync(join(tmpdir(), 'vacancy-platform-files-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const STATE: State = { shards: 2, zones: 2, nodesPerShard: 3, seed: 1, days: 10, lastDay: 20_009 }
const own = { pid: process.pid, port: 1, token: 'secret' }
/** It runs for as long as this test. */
const other = { pid: process.ppid, port: 2, token: 'other' }

test('a folder is claimed and released; its token is for its user only', () => {
  const files = filesOf(join(folder, 'new'))

  claimFolder(files, own)

  expect(readRunning(files)).toEqual(own)
  expect(statSync(files.running).mode & 0o077).toBe(0)
  releaseFolder(files)
  expect(existsSync(files.running)).toBe(false)
  expect(readState(files)).toBeUndefined()
})

test('a folder of a running platform is refused, one of an ended platform is taken over', () => {
  const files = filesOf(join(folder, 'used'))
  claimFolder(files, other)

  expect(() => claimFolder(files, own)).toThrow(`a platform is running in ${files.dir}, process ${process.ppid}`)
  expect(readRunning(files)).toEqual(other)
  releaseFolder(files)
  expect(existsSync(files.running)).toBe(true)

  writeFileSync(files.running, JSON.stringify({ ...other, pid: 2 ** 30 }))
  claimFolder(files, own)
  expect(readRunning(files)).toEqual(own)
})

test('a folder with files of someone else is refused and never emptied', () => {
  const files = filesOf(join(folder, 'foreign'))
  mkdirSync(join(files.dir, 'data'), { recursive: true })

  expect(() => claimFolder(files, own)).toThrow('holds other files')
  expect(removeData(files)).toBe(false)
  expect(readdirSync(files.dir)).toEqual(['data'])
})

test('the data of a folder is known by its state, and other flags are refused with those to use', () => {
  const files = filesOf(join(folder, 'state'))
  claimFolder(files, own)
  writeState(files, STATE)

  expect(readState(files)).toEqual(STATE)
  expect(() => checkState(files, STATE, STATE)).not.toThrow()
  expect(() => checkState(files, STATE, { ...STATE, shards: 3, seed: 2 })).toThrow(
    'holds data with --shards 2 --seed 1',
  )
})

test('removing the data leaves what the user put there', () => {
  const files = filesOf(join(folder, 'removed'))
  claimFolder(files, own)
  expect(writeSample(files, STATE, 20_000)).toBe(3_200)
  writeFileSync(join(files.dir, 'notes.txt'), 'mine')
  releaseFolder(files)

  expect(removeData(files)).toBe(true)
  expect(readdirSync(files.dir)).toEqual(['notes.txt'])
  rmSync(join(files.dir, 'notes.txt'))
})
