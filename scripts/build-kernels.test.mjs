import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { buildKernels, kernelsAreCurrent } from './build-kernels.mjs'

const ADD_ONE = 'export function addOne(address: usize): void { store<u32>(address, load<u32>(address) + 1) }\n'

let engine

beforeEach(() => {
  engine = mkdtempSync(path.join(tmpdir(), 'vacancy-kernels-'))
})

afterEach(() => rmSync(engine, { recursive: true, force: true }))

function write(file, text) {
  mkdirSync(path.dirname(path.join(engine, file)), { recursive: true })
  writeFileSync(path.join(engine, file), text)
}

test('a kernel works on imported memory and exports none', async () => {
  write('src/search/kernel.as.ts', ADD_ONE)

  const built = await buildKernels(engine)

  expect(built).toEqual(['search-kernel.wasm'])
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 65536, shared: true })
  const module = new WebAssembly.Module(readFileSync(path.join(engine, 'build/search-kernel.wasm')))
  const { exports } = new WebAssembly.Instance(module, { env: { memory } })
  exports.addOne(8)
  exports.addOne(8)
  expect(new Uint32Array(memory.buffer)[2]).toBe(2)
  expect(Object.keys(exports)).toEqual(['addOne'])
})

test('current kernels are not built again, and a changed import is detected', async () => {
  write('src/search/kernel.as.ts', `import { STEP } from './step.as'\n${ADD_ONE.replace('1)', 'STEP)')}`)
  write('src/search/step.as.ts', 'export const STEP: u32 = 1\n')
  await buildKernels(engine)
  const output = path.join(engine, 'build/search-kernel.wasm')
  const before = statSync(output).mtimeMs

  expect(await buildKernels(engine)).toEqual([])
  expect(statSync(output).mtimeMs).toBe(before)

  write('src/search/step.as.ts', 'export const STEP: u32 = 2\n')
  expect(kernelsAreCurrent(engine)).toBe(false)
  expect(await buildKernels(engine)).toEqual(['search-kernel.wasm'])
  expect(kernelsAreCurrent(engine)).toBe(true)
})

test('a damaged or missing output is built again', async () => {
  write('src/import/kernel.as.ts', ADD_ONE)
  await buildKernels(engine)

  write('build/import-kernel.wasm', 'noise')
  expect(await buildKernels(engine)).toEqual(['import-kernel.wasm'])
  rmSync(path.join(engine, 'build/import-kernel.wasm'))
  expect(await buildKernels(engine)).toEqual(['import-kernel.wasm'])
  write('build/kernels.json', '{ torn')
  expect(await buildKernels(engine)).toEqual(['import-kernel.wasm'])
})

test('a kernel with static data is refused, since it would overwrite the store', async () => {
  write(
    'src/search/kernel.as.ts',
    'const NAMES: StaticArray<u32> = [5, 6, 7]\nexport function at(i: i32): u32 { return NAMES[i] }\n',
  )

  await expect(buildKernels(engine)).rejects.toThrow('src/search/kernel.as.ts holds static data')

  expect(existsSync(path.join(engine, 'build/search-kernel.wasm'))).toBe(false)
})

test('a kernel that does not compile fails with the location and the compiler’s message', async () => {
  write('src/search/kernel.as.ts', 'export function wrong(): u32 { return missing }\n')

  await expect(buildKernels(engine)).rejects.toThrow(/src\/search\/kernel\.as\.ts does not build:[\s\S]*missing/)
})

test('an engine without kernels builds nothing, and the output of a removed kernel is deleted', async () => {
  expect(await buildKernels(engine)).toEqual([])
  write('src/search/kernel.as.ts', ADD_ONE)
  await buildKernels(engine)
  rmSync(path.join(engine, 'src/search/kernel.as.ts'))

  expect(await buildKernels(engine)).toEqual([])

  expect(existsSync(path.join(engine, 'build/search-kernel.wasm'))).toBe(false)
})
