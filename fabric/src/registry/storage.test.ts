import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { fileStorage } from './storage.ts'

let folder: string
let file: string

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'vacancy-storage-'))
  file = path.join(folder, 'deep', 'er', 'state.json')
})

afterEach(() => rmSync(folder, { recursive: true, force: true }))

const lines: string[] = []
const note = (_fields: object, text: string) => {
  lines.push(text)
}
const open = () => fileStorage(file, { debug: note, info: note, warn: note, error: note })
const anything = () => ''
const only = (text: string) => (found: string) => (found === text ? '' : 'is another one')

test('nothing was kept in a place that is not there', async () => {
  expect(await open().load(anything)).toBeUndefined()
})

test('the last save is loaded, and the previous one is kept as a backup', async () => {
  const storage = open()
  for (const text of ['one', 'two', 'three']) await storage.save(text)

  expect(await open().load(anything)).toBe('three')
  expect(readFileSync(`${file}.bak`, 'utf8')).toBe('two')
  expect(readdirSync(path.dirname(file)).sort()).toEqual(['state.json', 'state.json.bak'])
})

test('a file that cannot be used is put aside, and the one before is loaded and stays the backup', async () => {
  const storage = open()
  for (const text of ['one', 'two']) await storage.save(text)

  expect(await open().load(only('one'))).toBe('one')
  expect(readFileSync(`${file}.damaged`, 'utf8')).toBe('two')
  expect(lines.at(-1)).toContain('the state before it is used')
  await storage.save('three')
  // The damaged file must not have become the backup.
  expect(readFileSync(`${file}.bak`, 'utf8')).toBe('one')
  expect(await open().load(anything)).toBe('three')
})

test('when no file is usable the error names the action, and setting aside deletes nothing', async () => {
  const storage = open()
  for (const text of ['one', 'two']) await storage.save(text)

  await expect(storage.load(() => 'is damaged')).rejects.toMatchObject({
    code: 'data_conflict',
    message: expect.stringMatching(/state\.json cannot be used: is damaged; .*\.bak cannot be used.*--reset-state/),
  })
  await storage.setAside('old')
  expect(await storage.load(anything)).toBeUndefined()
  expect(readFileSync(`${file}.old`, 'utf8')).toBe('two')
  expect(readFileSync(`${file}.bak.old`, 'utf8')).toBe('one')
})

/** The folder after each step of a save, if the process dies there. */
test.each([
  ['before anything', []],
  ['in the middle of writing the new one', [['.tmp', 'thr']]],
  ['before the new one takes its name', [['.tmp', 'three']]],
  [
    'between the names of the copy and its own',
    [
      ['.tmp', 'three'],
      ['.bak.tmp', 'two'],
    ],
  ],
  [
    'after the backup was replaced',
    [
      ['.tmp', 'three'],
      ['.bak', 'two'],
    ],
  ],
] as const)('a crash %s leaves a state, and the next save works', async (_when, left) => {
  const storage = open()
  for (const text of ['one', 'two']) await storage.save(text)
  for (const [suffix, text] of left) writeFileSync(`${file}${suffix}`, text)

  const next = open()
  expect(await next.load(anything)).toBe('two')
  await next.save('four')
  expect(await open().load(anything)).toBe('four')
  expect(readFileSync(`${file}.bak`, 'utf8')).toBe('two')
  expect(existsSync(`${file}.tmp`)).toBe(false)
})

test('a place that cannot be written to is a failure, and what was there stays', async () => {
  await open().save('one')
  const inFile = fileStorage(path.join(file, 'below', 'state.json'), {
    debug: note,
    info: note,
    warn: note,
    error: note,
  })

  await expect(inFile.save('two')).rejects.toThrow()
  expect(await open().load(anything)).toBe('one')
})

test('a file that another process has written is not written over', async () => {
  const [one, two] = [open(), open()]
  await one.save('one')
  expect(await two.load(anything)).toBe('one')
  await two.save('two')

  await expect(one.save('three')).rejects.toThrow('is a second registry using it?')
  expect(await open().load(anything)).toBe('two')
  // A deleted file belongs to no other process.
  rmSync(file)
  await one.save('four')
  expect(await open().load(anything)).toBe('four')
})
