/** A program that cannot load its kernels does not start: there is no other form of them. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EXIT, errorRow } from '@vacancy/shared'
import { afterAll, expect, test, vi } from 'vitest'
import { PAGE_AT } from './search/parameters.ts'
import { createStore } from './store/store.ts'

const folder = mkdtempSync(join(tmpdir(), 'vacancy-kernels-'))
afterAll(() => rmSync(folder, { recursive: true }))

const { compileKernel } = await import('./kernels.ts')
// The programs below look for their kernels in a folder without any.
vi.doMock(import('./kernels.ts'), async (original) => {
  const actual = await original()
  const compile: typeof actual.compileKernel = (name) => actual.compileKernel(name, folder)
  return { compileKernel: compile, requireKernels: (...names) => names.forEach((name) => void compile(name)) }
})
const { startNode } = await import('./node.ts')
const { buildSnapshot } = await import('./import/import.ts')
const { loadKernels } = await import('./threads/kernels.ts')

const missing = (name: string) => ({
  code: 'kernel_unavailable',
  message: expect.stringMatching(
    `${name}-kernel.wasm cannot be loaded: ENOENT.*Build it with \`npm run build -w engine\``,
  ),
})

test('a node names the missing kernel and ends, with the exit code of a wrong installation', async () => {
  await expect(startNode({} as never)).rejects.toMatchObject(missing('search'))
  expect(errorRow('kernel_unavailable').exit).toBe(EXIT.usage)
})

test('build-snapshot ends before it reads a file', async () => {
  for (const name of ['properties.csv', 'packages.csv']) writeFileSync(join(folder, name), '')
  const days = { firstDay: 20_000, lastDay: 20_001 }
  const building = buildSnapshot({} as never, { inputPath: folder, outputPath: folder, threads: 1, ...days } as never)

  await expect(building).rejects.toMatchObject(missing('snapshot'))
})

test('a file that is no kernel is named with the reason', () => {
  writeFileSync(join(folder, 'import-kernel.wasm'), 'noise')

  expect(() => compileKernel('import', folder)).toThrow(/import-kernel.wasm cannot be loaded: .*expected magic word/)
})

test('a search kernel with another parameter block than the plan is not used', () => {
  // (module (global (export "PAGE_AT") i32 (i32.const 1)))
  const bytes = [0, 97, 115, 109, 1, 0, 0, 0, 6, 6, 1, 127, 0, 65, 1, 11, 7, 11, 1, 7, ...Buffer.from('PAGE_AT'), 3, 0]
  writeFileSync(join(folder, 'search-kernel.wasm'), Uint8Array.from(bytes))
  const { memory } = createStore({ memoryBytes: 32 << 20, readers: 1, scratchBytes: 1 << 20, sessionBytesMax: 1 << 20 })

  expect(() => loadKernels(memory)).toThrow(`its parameter block has 1 bytes, not ${PAGE_AT}`)
})
