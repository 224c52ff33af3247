/** What a thread calls of the search kernel. */

import { VacancyError } from '@vacancy/shared'
import { compileKernel } from '../kernels.ts'
import { LIST_AT, type SearchKernel } from '../search/parameters.ts'
import type { PutWord } from '../store/planes.ts'
import type { Memory } from '../store/store.ts'

export type Kernels = {
  readonly search: SearchKernel
  readonly put: PutWord
}

type Exports = Kernels & { readonly LIST_AT: WebAssembly.Global }

/** @throws VacancyError kernel_unavailable */
export function loadKernels(memory: Memory): Kernels {
  const { exports } = new WebAssembly.Instance(compileKernel('search'), { env: { memory: memory.wasm } })
  const kernels = exports as Exports
  // The list is behind all parts whose sizes the kernel repeats.
  if (kernels.LIST_AT.value === LIST_AT) return kernels
  const reason = `its parameter block has ${kernels.LIST_AT.value} bytes, not ${LIST_AT}`
  throw new VacancyError('kernel_unavailable', { file: 'The search kernel', reason })
}
