/** What a thread calls of the search kernel. */

import { VacancyError } from '@vacancy/shared'
import { compileKernel } from '../kernels.ts'
import { PAGE_AT, type PageKernel, type SearchKernel } from '../search/parameters.ts'
import type { PutWord } from '../store/planes.ts'
import type { Memory } from '../store/store.ts'

export type Kernels = PageKernel & {
  readonly search: SearchKernel
  readonly put: PutWord
}

/** PAGE_AT is missing in the kernel of an earlier build. */
type Exports = Kernels & { readonly PAGE_AT?: WebAssembly.Global }

/** @throws VacancyError kernel_unavailable */
export function loadKernels(memory: Memory): Kernels {
  const { exports } = new WebAssembly.Instance(compileKernel('search'), { env: { memory: memory.wasm } })
  const kernels = exports as Exports
  // The page is behind all parts whose sizes the kernel repeats.
  const found = kernels.PAGE_AT?.value
  if (found === PAGE_AT) return kernels
  const reason = `its parameter block has ${found ?? 'other'} bytes, not ${PAGE_AT}`
  throw new VacancyError('kernel_unavailable', { file: 'The search kernel', reason })
}
