/** What a thread calls of the search kernel. */

import { VacancyError } from '@vacancy/shared'
import { compileKernel } from '../kernels.ts'
import { LIST_AT, PAGE_AT, type PageKernel, type SearchKernel } from '../search/parameters.ts'
import type { PutWord } from '../store/planes.ts'
import type { Memory } from '../store/store.ts'

export type Kernels = PageKernel & {
  readonly search: SearchKernel
  readonly put: PutWord
}

type Exports = Kernels & { readonly LIST_AT: WebAssembly.Global; readonly PAGE_AT: WebAssembly.Global }

/** @throws VacancyError kernel_unavailable */
export function loadKernels(memory: Memory): Kernels {
  const { exports } = new WebAssembly.Instance(compileKernel('search'), { env: { memory: memory.wasm } })
  const kernels = exports as Exports
  // List and page are behind all parts whose sizes the kernel repeats.
  if (kernels.LIST_AT.value === LIST_AT && kernels.PAGE_AT.value === PAGE_AT) return kernels
  const reason = `its parameter block has ${kernels.PAGE_AT.value} bytes, not ${PAGE_AT}`
  throw new VacancyError('kernel_unavailable', { file: 'The search kernel', reason })
}
