/**
 * Which kernel a thread uses: the compiled one, or its TypeScript twin where WebAssembly SIMD, shared memory or the
 * compiled file is missing.
 */

import { readFileSync } from 'node:fs'
import { createTypescriptKernel } from '../search/kernel.ts'
import type { SearchKernel } from '../search/parameters.ts'
import type { Memory } from '../store/store.ts'
import { type PutWord, plainPutWord } from '../store/table.ts'

export type Kernels = {
  readonly kind: 'wasm' | 'typescript'
  readonly search: SearchKernel
  readonly put: PutWord
}

const KERNEL_FILE = new URL('../../build/search-kernel.wasm', import.meta.url)

/** @param only 'typescript' forces the twin; for tests and for comparing */
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
    // Not built: the twin serves, and /status says so.
    return undefined
  }
  return WebAssembly.validate(bytes) ? new WebAssembly.Module(bytes) : undefined
}
