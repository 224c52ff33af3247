// Which test files reach a module: through imports, workers started by path, and the command `vacancy`.
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { edgesOf } from './check-imports.mjs'

const TEST = /[.]test[.]tsx?$/
/** Tests of other workspaces start whole nodes and take minutes. */
const OTHERS_MAX = 3
const PROGRAM = 'bin/vacancy.mjs'

/** The importers of each module of the workspaces, tests included. */
export function readImporters(root, workspaces) {
  const importers = new Map()
  const files = globSync(`{${workspaces.join(',')}}/{src,sim,chaos}/**/*.{ts,tsx}`, { cwd: root })
  const doors = files.filter((file) => /^\w+\/src\/(cli\/)?cli[.]ts$/.test(file))
  for (const file of files.sort()) {
    const source = readFileSync(path.join(root, file), 'utf8')
    const imported = edgesOf(root, file, source).flatMap((edge) => edge.file ?? [])
    for (const target of source.includes(PROGRAM) ? [...imported, ...doors] : imported) {
      importers.set(target, [...(importers.get(target) ?? []), file])
    }
  }
  return importers
}

/**
 * The test files that reach a module, nearest first: those of its own workspace, or where it has none, few of the
 * workspaces that use it.
 */
export function relatedTests(importers, module, count) {
  const workspace = `${module.split('/')[0]}/`
  const reached = new Set([module])
  for (const file of reached) for (const importer of importers.get(file) ?? []) reached.add(importer)
  const tests = [...reached].filter((file) => TEST.test(file))
  const own = tests.filter((file) => file.startsWith(workspace))
  return own.length > 0 ? own.slice(0, count) : tests.slice(0, Math.min(count, OTHERS_MAX))
}
