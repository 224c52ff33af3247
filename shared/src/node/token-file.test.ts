import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { openTokenFile, readTokenFile } from './token-file.ts'

const WAIT = { timeout: 30_000, interval: 2 }

let folder: string

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'vacancy-token-'))
})

afterEach(() => rmSync(folder, { recursive: true, force: true }))

function put(text: string): string {
  const file = path.join(folder, 'token')
  writeFileSync(`${file}.new`, text)
  renameSync(`${file}.new`, file)
  return file
}

test.each([
  ['secret', 'secret'],
  ['secret\n', 'secret'],
  ['  secret \r\nsecond line', 'secret'],
  ['!~', '!~'],
  ['x'.repeat(255), 'x'.repeat(255)],
])('the token of %j is %j', (text, token) => {
  expect(readTokenFile(put(text))).toBe(token)
})

test.each(['', '\nsecret', 'two words', 'ümlaut', '\u007f', 'x'.repeat(256)])('%j holds no token', (text) => {
  const file = put(text)

  expect(() => readTokenFile(file)).toThrow(
    expect.objectContaining({ code: 'invalid_tokens', message: `${file} holds no token in its first line` }),
  )
})

test('a file that cannot be read is refused with the reason', () => {
  expect(() => readTokenFile(path.join(folder, 'none'))).toThrow(
    expect.objectContaining({ code: 'invalid_tokens', message: expect.stringMatching(/none cannot be read: ENOENT/) }),
  )
})

test('a changed token is used, a broken file keeps the previous one, and a closed file is not read', async () => {
  const lines: string[] = []
  const keep = (_fields: object, message: string) => void lines.push(message)
  const log = { debug: keep, info: keep, warn: keep, error: keep }
  const file = put('first')
  const opened = openTokenFile({ file, log, lookMs: 2 })
  expect(opened.token()).toBe('first')

  put('second')
  await vi.waitUntil(() => opened.token() === 'second', WAIT)
  put('two words')
  await vi.waitUntil(() => lines.length === 2, WAIT)
  expect(() => opened.reload()).toThrow('holds no token')
  expect(opened.token()).toBe('second')
  expect(lines).toEqual(['token reloaded', 'the token file changed but cannot be used; keeping the previous token'])

  opened.close()
  put('third')
  opened.reload()
  opened.reload()
  expect(opened.token()).toBe('third')
  // The same token again is no change.
  expect(lines).toEqual([expect.any(String), expect.any(String), 'token reloaded'])
})
