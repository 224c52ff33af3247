/**
 * Planted defects: mistakes that tests must find. Each is an edit of production code while it is loaded, in the programs
 * that are given the environment and in their threads, so the product has no switch for it.
 */

import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

type Edit = {
  /** Path from the root of the repository. */
  readonly file: string
  /** Stands there once. */
  readonly from: string
  readonly to: string
}

export type Planted = { readonly name: string; readonly edits: readonly Edit[] }

const ROOT = join(import.meta.dirname, '../..')

/** Plants a defect in this thread. Its files must not have been loaded yet. */
export function plant(planted: Planted): void {
  registerHooks({
    load: (url, context, next) => {
      const loaded = next(url, context)
      const source = url.startsWith('file:') ? editedSource(planted, fileURLToPath(url)) : undefined
      return source === undefined ? loaded : { ...loaded, source }
    },
  })
}

/**
 * The text of a file with the edits of a defect; undefined for a file without any.
 *
 * @throws when a text that is to be replaced does not stand there once
 */
export function editedSource({ name, edits }: Planted, path: string): string | undefined {
  const own = edits.filter(({ file }) => file === relative(ROOT, path))
  if (own.length === 0) return undefined
  let text = readFileSync(path, 'utf8')
  for (const { file, from, to } of own) {
    const found = text.split(from).length - 1
    if (found !== 1) throw new Error(`"${name}": ${file} has the text to replace ${found} times: ${from}`)
    text = text.replace(from, () => to)
  }
  return text
}

/**
 * The environment of programs that have a defect.
 *
 * @param marks a folder: only nodes with a file of their name there have it
 */
export function environmentWith(planted: Planted, marks?: string) {
  const preload = new URL('./planted-program.ts', import.meta.url).href
  return {
    NODE_OPTIONS: `${process.env['NODE_OPTIONS'] ?? ''} --import ${preload}`.trim(),
    VACANCY_PLANTED: JSON.stringify({ planted, marks }),
    // A bundle loads no module by its name.
    VACANCY_FROM_SOURCE: '1',
  }
}

/** Defects of real nodes in tests that are not about the search for defects. */
export const NODE_PLANTS = {
  wrongDecrement: {
    name: 'a decrement adds',
    edits: [
      {
        file: 'engine/src/store/apply.ts',
        from: '    noteTime(store, reader.timeMs)',
        to: '    if (reader.kind === KIND.decreaseAvailability) Object.assign(reader, { kind: KIND.increaseAvailability })\n    noteTime(store, reader.timeMs)',
      },
    ],
  },
  equalDigestsDiffer: {
    name: 'equal digests count as different',
    edits: [
      { file: 'engine/src/store/apply.ts', from: 'if (expected.lo !== own.lo', to: 'if (expected.lo === own.lo' },
    ],
  },
  noBlock: {
    name: 'memory has no block for a package',
    edits: [
      {
        file: 'engine/src/store/store.ts',
        from: 'return allocateZeroed(store, store.writer.planes, bytes)',
        to: "throw new VacancyError('memory_exhausted', { bytes, used: 0, limit: store.memory.u8.length })",
      },
    ],
  },
} as const satisfies { readonly [name: string]: Planted }
