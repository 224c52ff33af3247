/**
 * The kernel of an import over a shared memory: compiled from kernel.as.ts, or its TypeScript twin where that is not
 * built or WebAssembly SIMD is missing.
 */

import { readFileSync } from 'node:fs'
import type { PackageParser } from './csv.ts'
import type { ImportKernel } from './layout.ts'
import { createTwin } from './twin.ts'

export type LoadedImportKernel = {
  readonly kernel: ImportKernel
  readonly implementation: 'wasm' | 'typescript'
}

export const IMPORT_KERNEL_FILE = new URL('../../build/import-kernel.wasm', import.meta.url)

/** @returns undefined where the kernel is not built or this machine cannot run it */
export function compileImportKernel(file: URL | string = IMPORT_KERNEL_FILE): WebAssembly.Module | undefined {
  try {
    return new WebAssembly.Module(readFileSync(file))
  } catch {
    // The twin does the same; the summary of the import says which of them worked.
    return undefined
  }
}

export function createImportKernel(
  memory: WebAssembly.Memory,
  module: WebAssembly.Module | undefined,
  parser: PackageParser,
): LoadedImportKernel {
  if (module === undefined) return { kernel: createTwin(memory, parser), implementation: 'typescript' }
  const { exports } = new WebAssembly.Instance(module, { env: { memory } })
  return { kernel: exports as unknown as ImportKernel, implementation: 'wasm' }
}
