/**
 * Planted defects: mistakes that tests must find. Each replaces one place of production code in the process of its run
 * alone; a run fails when the place no longer exists.
 */

import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { assert } from '@vacancy/shared'

export type Defect = {
  readonly name: string
  /** Path below the folder that it is planted in. */
  readonly file: string
  readonly from: string
  readonly to: string
}

/** Plants a defect in this process. Its file must not have been loaded yet. */
export function plantDefect(defect: Defect, folder: string): void {
  registerHooks({
    load: (url, context, next) => {
      const loaded = next(url, context)
      const path = url.startsWith('file:') ? fileURLToPath(url) : ''
      if (relative(folder, path) !== defect.file) return loaded
      const text = readFileSync(path, 'utf8')
      assert(text.split(defect.from).length === 2, `${defect.file} has the place of "${defect.name}" once`)
      return { ...loaded, source: text.replace(defect.from, () => defect.to) }
    },
  })
}
