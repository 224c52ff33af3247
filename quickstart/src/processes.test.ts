import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { claim, release, writeProcesses } from './processes.ts'

const folder = mkdtempSync(join(tmpdir(), 'vacancy-processes-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('an unused folder is acquired and released', () => {
  const file = join(folder, 'new', 'processes.json')

  claim(file)
  writeProcesses(file, { n1: process.pid })
  claim(file)
  release(file)

  expect(existsSync(file)).toBe(false)
})

test('a folder with a running process of another start is refused with its name and process id', () => {
  const file = join(folder, 'used.json')
  writeFileSync(file, JSON.stringify({ 'start:shard': 2 ** 30, n2: process.ppid }))

  expect(() => claim(file)).toThrow(`n2 is process ${process.ppid}. Stop them first (kill ${process.ppid})`)
  release(file)
  expect(existsSync(file)).toBe(true)
})

test('ended processes are ignored', () => {
  const file = join(folder, 'left.json')
  writeFileSync(file, JSON.stringify({ 'start:shard': 2 ** 30, n1: 2 ** 30 + 1 }))

  expect(() => claim(file)).not.toThrow()
})

test('a foreign file is an error with the action to take', () => {
  const file = join(folder, 'odd.json')
  writeFileSync(file, 'not JSON')

  expect(() => claim(file)).toThrow('remove it')
})
