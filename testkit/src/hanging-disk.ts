/** Programs whose disk neither works nor fails: their syncs do not return while a file exists. */

import { rmSync, writeFileSync } from 'node:fs'

/** The environment of a program whose syncs hang while `file` exists, in all of its threads. */
export function hangingDisk(file: string): { readonly NODE_OPTIONS: string } {
  const patch = `
    import fs from 'node:fs'
    import { syncBuiltinESMExports } from 'node:module'
    const cell = new Int32Array(new SharedArrayBuffer(4))
    for (const name of ['fsyncSync', 'fdatasyncSync']) {
      const real = fs[name]
      fs[name] = (descriptor) => {
        while (fs.existsSync(${JSON.stringify(file)})) Atomics.wait(cell, 0, 0, 20)
        return real(descriptor)
      }
    }
    syncBuiltinESMExports()`
  const preload = `--import data:text/javascript,${encodeURIComponent(patch)}`
  return { NODE_OPTIONS: `${process.env['NODE_OPTIONS'] ?? ''} ${preload}`.trim() }
}

export const hang = (file: string): void => writeFileSync(file, '')
export const recover = (file: string): void => rmSync(file, { force: true })
