import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { digestOf, fingerprintOf } from './digest.ts'

const MEBIBYTE = 1 << 20
const sha256 = (...parts: (string | Uint8Array)[]) =>
  parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest('hex')

test('the digest of a chunk is its SHA-256', async () => {
  const bytes = new Uint8Array(MEBIBYTE + 7).map((_, index) => index % 251)

  expect(await digestOf(new Blob([bytes]))).toBe(sha256(bytes))
  expect(await digestOf(new Blob([]))).toBe(sha256())
})

test('the fingerprint of a file covers its size, its first and its last mebibyte', async () => {
  const bytes = new Uint8Array(3 * MEBIBYTE).map((_, index) => index % 251)
  const expected = sha256(`${bytes.length}\n`, bytes.slice(0, MEBIBYTE), bytes.slice(-MEBIBYTE))

  expect(await fingerprintOf(new File([bytes], 'a'))).toBe(expected)
  expect(await fingerprintOf(new File(['abc'], 'b'))).toBe(sha256('3\n', 'abc', 'abc'))
})
