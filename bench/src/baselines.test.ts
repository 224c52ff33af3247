import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { countLines, createBaselineKernel, syncLatency } from './baselines.ts'
import { createRandom, nextU32 } from './random.ts'

const dir = mkdtempSync(join(tmpdir(), 'vacancy-baselines-'))
afterAll(() => rmSync(dir, { recursive: true }))

test('the kernel counts the newlines and adds up the words that a plain loop finds', async () => {
  const kernel = await createBaselineKernel(65_536)
  const words = new Uint32Array(kernel.memory.buffer)
  const random = createRandom(1)
  for (let i = 0; i < words.length; i++) words[i] = nextU32(random)
  const bytes = new Uint8Array(kernel.memory.buffer, 128, 6400)

  expect(kernel.countNewlines(128, 6400)).toBe(bytes.filter((byte) => byte === 10).length)
  expect(kernel.sumWords(128, 6400)).toBe(words.subarray(32, 1632).reduce((sum, word) => (sum + word) | 0, 0))
})

test.each([
  ['', 0],
  ['one line without an end', 0],
  ['a\nb\n', 2],
  [`${'x'.repeat(97)}\n`.repeat(90_000), 90_000],
])('lines of a file are counted to its last byte (case %#)', async (text, lines) => {
  const path = join(dir, 'lines.csv')
  writeFileSync(path, text)

  expect(await countLines(path)).toMatchObject({ lines, bytes: text.length })
})

test('the sync baseline takes the requested number of samples and leaves no file', () => {
  const before = readdirSync(dir)
  const histogram = syncLatency({ dir, bytes: 4096, count: 5 })

  expect(histogram.count).toBe(5)
  expect(readdirSync(dir)).toEqual(before)
})
