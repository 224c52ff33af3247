import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { claimFolder, filesOf, readRunning, readState, removeData, type State, writeState } from './files.ts'
import { checkState } from './start.ts'

const folder = mkdtempSync(join(tmpdir(), 'vacancy-platform-files-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const STATE: State = { shards: 2, zones: 2, nodesPerShard: 3, packages: 3_200, seed: 1, days: 10, lastDay: 20_009 }
const own = { pid: process.pid, port: 1, token: 'secret', processes: { 'node-0-0': 1 } }
/** It runs for as long as this test. */
const other = { pid: process.ppid, port: 2, token: 'other', processes: {} }

test('a folder is claimed once, and again when its platform has ended; its token is for its user only', () => {
  const files = filesOf(join(folder, 'new'))
  const release = claimFolder(files, own)

  expect(readRunning(files)).toEqual(own)
  expect(statSync(files.running).mode & 0o077).toBe(0)
  expect(() => claimFolder(files, other)).toThrow(`a platform is running in ${files.dir}, process ${process.pid}`)
  expect(() => removeData(files)).toThrow('stop it first')
  expect(readRunning(files)).toEqual(own)

  release()
  expect(existsSync(files.running)).toBe(false)
  expect(readState(files)).toBeUndefined()
  // A process whose id is in use again left this.
  writeFileSync(files.running, JSON.stringify(other))
  claimFolder(files, own)()
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
  const release = claimFolder(files, own)
  mkdirSync(files.csvOf('shard1'), { recursive: true })
  writeFileSync(join(files.dir, 'notes.txt'), 'mine')
  release()

  expect(removeData(files)).toBe(true)
  expect(readdirSync(files.dir)).toEqual(['notes.txt'])
  rmSync(join(files.dir, 'notes.txt'))
})

test('folders of earlier versions keep their places', () => {
  const put = (...path: string[]) => {
    mkdirSync(join(folder, 'earlier', ...path.slice(0, -1)), { recursive: true })
    writeFileSync(join(folder, 'earlier', ...path), '{}')
  }
  const at = (name: string) => filesOf(join(folder, 'earlier', name))
  put('shard', 'n1', 'seed.snapshot')
  put('shard', 'n2', 'IDENTITY')
  put('node', 'data', 'IDENTITY')
  put('platform', 'sample', 'shard1', 'properties.csv')
  writeFileSync(
    join(at('shard').dir, 'quickstart.json'),
    '{ "packages": 300000, "days": 120, "seed": 1, "last_day": "2027-03-27" }',
  )
  writeFileSync(
    at('platform').state,
    '{ "shards": 2, "zones": 2, "nodes_per_shard": 3, "seed": 1, "days": 10, "last_day": "2026-12-07" }',
  )

  expect(['n1', 'n2', 'n3'].map(at('shard').dataOf)).toEqual(
    ['n1', 'n2', 'data/n3'].map((path) => join(at('shard').dir, path)),
  )
  expect(at('node').dataOf('node')).toBe(join(at('node').dir, 'data'))
  expect(at('platform').csvOf('shard1')).toBe(join(at('platform').dir, 'sample', 'shard1'))
  expect(readState(at('shard'))).toMatchObject({ packages: 300_000, days: 120, seed: 1 })
  expect(readState(at('platform'))).toMatchObject({ shards: 2, packages: undefined, days: 10 })
  claimFolder(at('shard'), own)()
  expect(removeData(at('shard'))).toBe(true)
  expect(existsSync(at('shard').dir)).toBe(false)
})
