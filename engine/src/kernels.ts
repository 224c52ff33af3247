/** The compiled kernels (docs/design/search.md#kernels). There is no other form of them: without one, a program ends. */

import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { VacancyError } from '@vacancy/shared'

/** Throws what `compileKernel` throws, before a program has done anything. */
export function requireKernels(...names: readonly KernelName[]): void {
  for (const name of names) compileKernel(name)
}

type KernelName = 'search' | 'snapshot' | 'import'

const FOLDER = fileURLToPath(new URL('../build', import.meta.url))

/** @throws VacancyError kernel_unavailable when it is not built, or this machine cannot run it */
export function compileKernel(name: KernelName, folder = FOLDER): WebAssembly.Module {
  const file = `${folder}/${name}-kernel.wasm`
  try {
    return new WebAssembly.Module(readFileSync(file))
  } catch (error) {
    throw new VacancyError('kernel_unavailable', { file, reason: (error as Error).message }, { cause: error })
  }
}
