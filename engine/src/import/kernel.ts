/**
 * The kernel of an import over a shared memory: compiled from kernel.as.ts, or the fallback where it is not built or
 * WebAssembly SIMD is missing.
 */

import { readFileSync } from 'node:fs'
import type { PackageParser } from './csv.ts'
import { createFallback } from './kernel-fallback.ts'
import type { ImportKernel } from './layout.ts'

export type LoadedImportKernel = {
  readonly kernel: ImportKernel
  readonly implementation: 'wasm' | 'typescript'
}

const IMPORT_KERNEL_FILE = new URL('../../build/import-kernel.wasm', import.meta.url)

/** @returns undefined where the kernel is not built or cannot run on this machine */
export function compileImportKernel(file: URL | string = IMPORT_KERNEL_FILE): WebAssembly.Module | undefined {
  try {
    return new WebAssembly.Module(readFileSync(file))
  } catch {
    // The fallback has the same results; the summary of the import names the kernel used.
    return undefined
  }
}

export function createImportKernel(
  memory: WebAssembly.Memory,
  module: WebAssembly.Module | undefined,
  parser: PackageParser,
): LoadedImportKernel {
  if (module === undefined) return { kernel: createFallback(memory, parser), implementation: 'typescript' }
  const { exports } = new WebAssembly.Instance(module, { env: { memory } })
  return { kernel: exports as unknown as ImportKernel, implementation: 'wasm' }
}
