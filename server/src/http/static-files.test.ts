import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { accepts } from '@vacancy/shared/api/encodings'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createStaticFiles } from './static-files.ts'

const SCRIPT = 'console.log("a script")\n'.repeat(100)
let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'vacancy-static-'))
  mkdirSync(join(folder, 'static/chunks'), { recursive: true })
  writeFileSync(join(folder, 'secret.js'), 'not below the folder')
  writeFileSync(join(folder, 'static/chunks/a.js'), SCRIPT)
  writeFileSync(join(folder, 'static/chunks/a.css'), 'body{}')
  writeFileSync(join(folder, 'static/chunks/media.bin'), 'left to Next')
})
afterEach(() => rmSync(folder, { recursive: true }))

test('a file is sent in the best accepted encoding and read from disk once', async () => {
  const files = createStaticFiles(join(folder, 'static'))
  const text = 'text/javascript; charset=utf-8'

  const plain = await files('chunks/a.js', '')
  const brotli = await files('chunks/a.js', 'gzip, deflate, br')
  const zipped = await files('chunks/a.js', 'gzip')
  rmSync(join(folder, 'static/chunks/a.js'))

  expect(plain).toEqual({ type: text, encoding: undefined, body: Buffer.from(SCRIPT) })
  expect(brotli).toMatchObject({ type: text, encoding: 'br' })
  expect(brotliDecompressSync(brotli?.body ?? '').toString()).toBe(SCRIPT)
  expect(zipped).toMatchObject({ type: text, encoding: 'gzip' })
  expect(gunzipSync(zipped?.body ?? '').toString()).toBe(SCRIPT)
  expect(await files('chunks/a.js', 'gzip')).toBe(zipped)
})

test('other paths are not opened', () => {
  const files = createStaticFiles(join(folder, 'static'))

  for (const path of ['../secret.js', 'chunks/../../secret.js', 'chunks/none.js', 'chunks', '', 'chunks/media.bin'])
    expect(files(path, 'br')).toBeUndefined()
})

test('an unreadable file fails, and the next request reads it again', async () => {
  const files = createStaticFiles(join(folder, 'static'))
  rmSync(join(folder, 'static/chunks/a.css'))

  await expect(files('chunks/a.css', 'br')).rejects.toThrow('ENOENT')
  writeFileSync(join(folder, 'static/chunks/a.css'), 'a{}')

  expect((await files('chunks/a.css', ''))?.body.toString()).toBe('a{}')
  expect((await files('chunks/a.css', 'br'))?.encoding).toBe('br')
})

test.each([
  ['gzip', true],
  ['br;q=1.0, gzip;q=0.8', true],
  ['gzip;q=0', false],
  ['gzip; q=0.00', false],
  ['xgzip', false],
  ['*', false],
  ['', false],
])('%j allows gzip: %s', (header, takes) => expect(accepts(header, 'gzip')).toBe(takes))
