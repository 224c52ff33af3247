/** Bytes of uploads on disk: names, fingerprints, partial writes, and a full disk. */

import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { cleanName, diskFull, fingerprintOf, isDiskFull, writeAll } from './upload-files.ts'

test.each([
  ['hotels.csv', 'hotels.csv'],
  ['/home/ada/hotels.csv', 'hotels.csv'],
  ['C:\\data\\hotels.csv', 'hotels.csv'],
  [' a\u0000b\u001fc\u007fd\u009fe\u200bf\u202eg\u2069h.csv ', 'abcdefgh.csv'],
  ['a b~ü\u00a0.csv', 'a b~ü\u00a0.csv'],
  ['', 'file.csv'],
  ['folder/', 'file.csv'],
  ['..', 'file.csv'],
  ['.', 'file.csv'],
  ['.a', '.a'],
  ['x'.repeat(200), 'x'.repeat(200)],
  ['x'.repeat(201), 'x'.repeat(200)],
])('the file %j is shown as %j', (name, shown) => {
  expect(cleanName(name)).toBe(shown)
})

const MEBIBYTE = 2 ** 20
test.each([1, 100, MEBIBYTE - 1, MEBIBYTE, MEBIBYTE + 1, 2 * MEBIBYTE + 5])(
  'the fingerprint of %d bytes has their number, the first and the last MiB',
  async (size) => {
    const folder = mkdtempSync(join(tmpdir(), 'vacancy-fingerprint-'))
    try {
      const bytes = Buffer.alloc(size, 'abcdefg')
      writeFileSync(join(folder, 'file'), bytes)

      expect(await fingerprintOf(join(folder, 'file'), size)).toBe(
        createHash('sha256')
          .update(`${size}\n`)
          .update(bytes.subarray(0, MEBIBYTE))
          .update(bytes.subarray(-MEBIBYTE))
          .digest('hex'),
      )
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
)

test('partial writes are continued', async () => {
  const file = Buffer.alloc(12, '.')
  const write = async (piece: Buffer, offset: number, length: number, position: number) => {
    const bytesWritten = Math.min(3, length)
    piece.copy(file, position, offset, offset + bytesWritten)
    return { bytesWritten }
  }

  await writeAll({ write } as unknown as FileHandle, Buffer.from('01234567'), 2)

  expect(String(file)).toBe('..01234567..')
})

test.each<[unknown, boolean]>([
  [{ code: 'ENOSPC' }, true],
  [{ code: 'EDQUOT' }, true],
  [{ code: 'EIO' }, false],
  [new Error('x'), false],
  [undefined, false],
])('%j is a full disk: %s', (error, expected) => {
  expect(isDiskFull(error)).toBe(expected)
})

test('a full disk is a problem with its cause', () => {
  const cause = new Error('x')

  expect(diskFull(cause)).toMatchObject({ code: 'disk-full', cause })
})
