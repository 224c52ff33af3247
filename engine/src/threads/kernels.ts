/**
 * Selects the kernel of a thread: the compiled one, or the TypeScript fallback kernel if WebAssembly SIMD, shared
 * memory or the compiled file is missing.
 */

import { readFileSync } from 'node:fs'
import { createTypescriptKernel } from '../search/kernel.ts'
import type { SearchKernel } from '../search/parameters.ts'
import { type PutWord, plainPutWord } from '../store/planes.ts'
import type { Memory } from '../store/store.ts'

export type Kernels = {
  readonly kind: 'wasm' | 'typescript'
  readonly search: SearchKernel
  readonly put: PutWord
}

const KERNEL_FILE = new URL('../../build/search-kernel.wasm', import.meta.url)

/** @param only 'typescript' forces the fallback kernel; for tests and comparisons */
export function loadKernels(memory: Memory, only?: 'typescript'): Kernels {
  const module = only === 'typescript' ? undefined : compile()
  if (!module) {
    return {
      kind: 'typescript',
      search: createTypescriptKernel(memory),
      put: plainPutWord(memory),
    }
  }
  const { exports } = new WebAssembly.Instance(module, { env: { memory: memory.wasm } })
  return {
    kind: 'wasm',
    search: exports['search'] as SearchKernel,
    put: exports['put'] as PutWord,
  }
}

function compile(): WebAssembly.Module | undefined {
  let bytes: Uint8Array<ArrayBuffer>
  try {
    bytes = new Uint8Array(readFileSync(KERNEL_FILE))
  } catch {
    // Not built: the fallback kernel serves, and /status reports it.
    return undefined
  }
  return WebAssembly.validate(bytes) ? new WebAssembly.Module(bytes) : undefined
}
