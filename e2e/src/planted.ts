/**
 * Injects a defect into one node of a stack by changing a module while it is loaded, so production code has no switch
 * for it. All programs of a stack have the same environment; a file with the name of the node selects the affected one.
 */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type Planted = {
  /** Of the stack. */
  readonly environment: { readonly NODE_OPTIONS: string; readonly VACANCY_FROM_SOURCE: string }
  /** From its next start, this node has the defect. */
  into(node: string): void
  /** From its next start, it no longer has the defect. */
  outOf(node: string): void
  remove(): void
}

/** @returns a defect with which `text` of the module that ends with `module` reads `instead` */
export function planted(module: string, text: string, instead: string): Planted {
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-planted-'))
  const file = join(folder, 'planted.mjs')
  writeFileSync(
    file,
    `import { existsSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { isMainThread } from 'node:worker_threads'

// Threads inherit the environment of their process, but not its arguments.
if (isMainThread) process.env.PLANTED_NODE = process.argv[process.argv.indexOf('--node-id') + 1] ?? ''
const isPlanted = existsSync(join(${JSON.stringify(folder)}, 'node-' + process.env.PLANTED_NODE))
if (isPlanted) registerHooks({
  load(url, context, next) {
    const loaded = next(url, context)
    if (!url.endsWith(${JSON.stringify(module)})) return loaded
    const source = String(loaded.source).replace(${JSON.stringify(text)}, ${JSON.stringify(instead)})
    if (source === String(loaded.source)) throw new Error('there is no such text to change: ' + url)
    return { ...loaded, source }
  },
})
`,
  )
  const mark = (node: string) => join(folder, `node-${node}`)
  return {
    // A bundle loads no module by its name.
    environment: { NODE_OPTIONS: `--import ${file}`, VACANCY_FROM_SOURCE: '1' },
    into: (node) => writeFileSync(mark(node), ''),
    outOf: (node) => rmSync(mark(node)),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
