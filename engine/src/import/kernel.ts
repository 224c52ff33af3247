import { compileKernel } from '../kernels.ts'
import type { ImportKernel } from './layout.ts'

/** @param module of the import kernel, compiled once for all threads */
export function createImportKernel(memory: WebAssembly.Memory, module = compileKernel('import')): ImportKernel {
  return new WebAssembly.Instance(module, { env: { memory } }).exports as unknown as ImportKernel
}
