/**
 * Injects defects into real processes by changing a module while it is loaded, so production code has no switch for it.
 * Applies to one process and its threads through the environment.
 */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** @returns the environment of a process in which `text` of the module that ends with `module` reads `instead` */
export function plantedIn(folder: string, module: string, text: string, instead: string) {
  const file = join(folder, 'planted.mjs')
  writeFileSync(
    file,
    `import { registerHooks } from 'node:module'
registerHooks({
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
  // A bundle loads no module by its name.
  return { NODE_OPTIONS: `--import ${file}`, VACANCY_FROM_SOURCE: '1' }
}
