/** Operator actions on the folder of a stopped node, without starting one. */

import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import {
  type Cluster,
  closeDataDirectory,
  logIdentity,
  openDataDirectory,
  setAside,
  walFolder,
  writeCluster,
} from '../data/data-directory.ts'
import { createEnv } from '../env.ts'
import { entries, SMALL } from '../testing/log-fixture.ts'
import { createWal } from '../wal/open.ts'
import { FILE_HEADER_BYTES } from '../wal/record.ts'
import { appendGroup, closeWal } from '../wal/wal.ts'
import { compareSnapshotFiles, inspectDirectory, inspectSnapshotFile, quarantine } from './operations.ts'

const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
const env = createEnv(silent)
const LOG_FILE = 'wal-0000000001-0000000000000001.log'
const CLUSTER: Cluster = {
  ...{ clusterId: '01'.repeat(16), shardId: 's1', codecs: ['breakfast', 'wifi'], codecHash: 'ab'.repeat(32) },
  ...{ baseIndex: 0, baseTerm: 0, voters: ['n1'] },
}

function newFolder(): string {
  const path = mkdtempSync(join(tmpdir(), 'operations-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

/** The folder of a node with five entries, stopped. */
function createFolder(): string {
  const path = newFolder()
  const directory = openDataDirectory(env, path, { nodeId: 'n1' })
  const wal = createWal(env, walFolder(directory), logIdentity(directory, CLUSTER), { index: 0, term: 0 }, SMALL)
  appendGroup(wal, { hardState: { term: 1, vote: 1, commit: 0 }, batches: [entries(1, 5, 1)] })
  writeCluster(directory, CLUSTER)
  closeWal(wal)
  closeDataDirectory(directory)
  return path
}

const usage = (reason: string) => expect.objectContaining({ code: 'usage_error', fields: { reason } })

test('an inspection of a new folder, of a formed one, and of none', () => {
  const path = newFolder()
  expect(inspectDirectory(path)).toEqual({
    ...{ lines: ['not formed yet: no CLUSTER', 'no log'], isDamaged: false },
    document: { path, cluster: null, snapshots: [], log: null, quarantine: [], isDamaged: false },
  })
  const formed = createFolder()
  const { lines, document, isDamaged } = inspectDirectory(formed)
  expect(lines).toEqual([
    ...['shard s1, codec list breakfast, wifi', 'log: entries 1 to 5 verify'],
    expect.stringMatching(new RegExp(`^ {2}${LOG_FILE}: entries 1 to 5, \\d+ of \\d+ bytes used$`)),
  ])
  expect(isDamaged).toBe(false)
  const files = [{ identity: { clusterId: expect.stringMatching(/^[0-9a-f]{32}$/) } }]
  expect(document).toMatchObject({ path: formed, cluster: CLUSTER, log: { lastIndex: 5, files }, isDamaged: false })
  expect(() => inspectDirectory(join(path, 'no'))).toThrow(usage(`${join(path, 'no')}: no such folder`))
})

test('an inspection reports damage of the log with its position and what to do', () => {
  const path = createFolder()
  const file = join(path, 'wal', LOG_FILE)
  const bytes = readFileSync(file)
  bytes[FILE_HEADER_BYTES + 20] = (bytes[FILE_HEADER_BYTES + 20] as number) ^ 1
  writeFileSync(file, bytes)

  const { lines, document, isDamaged } = inspectDirectory(path)

  expect([isDamaged, document]).toEqual([true, expect.objectContaining({ isDamaged: true })])
  expect(lines.slice(3)).toEqual([
    expect.stringContaining(`log damaged: ${file} at byte ${FILE_HEADER_BYTES}: `),
    expect.stringContaining('what to do: copy the folder'),
  ])
  // Nothing was changed.
  expect(readFileSync(file).equals(bytes)).toBe(true)
})

test('an inspection reports damaged files of the folder', () => {
  const path = createFolder()
  writeFileSync(join(path, 'CLUSTER'), 'x')
  writeFileSync(join(path, 'seed.snapshot'), 'x')
  const { lines, document, isDamaged } = inspectDirectory(path)
  expect(isDamaged).toBe(true)
  expect(lines[0]).toMatch(/^CLUSTER: damaged: .*it does not begin like CLUSTER/)
  expect(lines[1]).toMatch(/^snapshot .*seed[.]snapshot: unreadable: damaged: /)
  expect(document).toMatchObject({ cluster: null, snapshots: [{ damage: expect.any(String) }] })
})

test('a snapshot file that cannot be read is reported as damaged', () => {
  const path = join(newFolder(), 'a.snapshot')
  writeFileSync(path, 'x')
  const advice = 'what to do: copy or build the file again'
  expect(inspectSnapshotFile(path)).toEqual({
    lines: [expect.stringContaining(`snapshot ${path}: damaged: `), advice],
    document: { path, damage: expect.any(String) },
    isDamaged: true,
  })
  expect(compareSnapshotFiles(path, path)).toEqual({
    lines: [expect.stringMatching(/^damaged: ./), advice],
    document: { path, damage: expect.any(String) },
    isDamaged: true,
  })
})

test('data set aside is listed with its bytes, and removed or restored by its name', () => {
  const path = createFolder()
  expect(quarantine(path, 'list', undefined)).toEqual([])
  const directory = openDataDirectory(env, path, { nodeId: 'n1' })
  const place = setAside(directory, ['CLUSTER'], 'a test')
  closeDataDirectory(directory)
  const name = place.slice('quarantine/'.length)
  mkdirSync(join(path, 'quarantine', 'other', 'deep'), { recursive: true })
  writeFileSync(join(path, 'quarantine', 'other', 'deep', 'a'), 'abc')
  writeFileSync(join(path, 'quarantine', 'other', 'b'), 'defg')

  const bytes = readFileSync(join(path, place, 'CLUSTER')).length
  expect(quarantine(path, 'list', undefined)).toEqual([`${name}  ${bytes} bytes`, 'other  7 bytes'])
  expect(inspectDirectory(path).lines.at(-1)).toBe(`set aside: ${name}, other (vacancy quarantine list)`)

  expect(quarantine(path, 'remove', 'other')).toEqual(['removed other'])
  expect(quarantine(path, 'restore', name)).toEqual([`restored ${name}`])
  expect(inspectDirectory(path).lines[0]).toBe('shard s1, codec list breakfast, wifi')
  expect(readdirSync(path)).not.toContain('LOCK')
})

test('restored data replaces the present one, which is set aside', () => {
  const path = createFolder()
  const directory = openDataDirectory(env, path, { nodeId: 'n1' })
  const name = setAside(directory, ['CLUSTER'], 'a test').slice('quarantine/'.length)
  closeDataDirectory(directory)
  const again = openDataDirectory(env, path, { nodeId: 'n1' })
  writeCluster(again, { ...CLUSTER, shardId: 's2' })
  closeDataDirectory(again)

  const [line] = quarantine(path, 'restore', name)

  expect(line).toMatch(new RegExp(`^restored ${name}; the previous data is in quarantine/[0-9]+T[0-9]+Z-replaced$`))
  expect(inspectDirectory(path).lines[0]).toContain('shard s1')
})

test('only what was set aside can be restored or removed', () => {
  const path = createFolder()
  const forms = usage('use list, restore NAME, remove NAME or accept NAME')
  expect(() => quarantine(path, 'list', 'x')).toThrow(forms)
  expect(() => quarantine(path, 'restore', undefined)).toThrow(forms)
  expect(() => quarantine(path, 'delete', 'x')).toThrow(forms)
  expect(() => quarantine(path, 'remove', 'x')).toThrow(usage(`x was not set aside in ${path}; there are: none`))
  mkdirSync(join(path, 'quarantine', 'a'), { recursive: true })
  mkdirSync(join(path, 'quarantine', 'b'))
  expect(() => quarantine(path, 'remove', '../wal')).toThrow(
    usage(`../wal was not set aside in ${path}; there are: a, b`),
  )
  expect(existsSync(join(path, 'wal'))).toBe(true)
})
