/**
 * The kernel of an import over a shared memory: compiled from kernel.as.ts, or its TypeScript twin where that is not
 * built or WebAssembly SIMD is missing.
 */

import { readFileSync } from 'node:fs'
import type { PackageParser } from './csv.ts'
import type { Stop } from './layout.ts'
import { createTwin } from './twin.ts'

/** All arguments but counts are addresses in the memory of the kernel (layout.ts). */
export type ImportKernel = {
  /** Reads whole lines of [start, end) from where PADDING_BYTES more may be read; stops at context.cursor. */
  scan(context: number, start: number, end: number): Stop
  /** Takes one package: id and room type lie in the context; `line` is what the word holds in an explaining pass. */
  add(context: number, night: number, lo: number, hi: number, line: number): Stop
  /** From now on the bytes from the rate features to the newline mean `mask`. */
  remember(context: number, text: number, length: number, mask: number): void
  /** Packages, nights and digest of the rows of one table, without their words (RESULT_BYTES at `result`). */
  census(list: number, count: number, result: number): void
  /** Words of the `nights` (bits) among 16, row by row, into planes `stride` bytes apart. */
  gather(
    context: number,
    list: number,
    count: number,
    index: number,
    nights: number,
    target: number,
    stride: number,
  ): void
}

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
