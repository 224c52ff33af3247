// Which test files reach a module: through imports, workers started by path, and the command `vacancy`.
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { edgesOf } from './check-imports.mjs'

const TEST = /[.]test[.]tsx?$/
/** Tests of other workspaces start whole nodes and take minutes. */
const OTHERS_MAX = 3
const PROGRAM = 'bin/vacancy.mjs'
/**
 * Beside a generator, these compare the reference pages with the tables that they are made from, wherever these stand.
 * Others start the programs of a page, which reach most modules and take minutes.
 */
const DOCUMENTS = /\/docs[.]test[.]ts$/
/** Simulations and property tests of a whole workspace. */
const SIMULATION = /^\w+\/sim\//

/** The importers of each module of the workspaces, tests included. */
export function readImporters(root, workspaces) {
  const importers = new Map()
  const files = globSync(`{${workspaces.join(',')}}/{src,sim,chaos}/**/*.{ts,tsx}`, { cwd: root })
  const doors = files.filter((file) => /^\w+\/src\/(cli\/)?cli[.]ts$/.test(file))
  for (const file of files.sort()) {
    const source = readFileSync(path.join(root, file), 'utf8')
    const edges = edgesOf(root, file, source).filter((edge) => edge.file && !edge.isTypeOnly)
    const imported = edges.map((edge) => edge.file)
    for (const target of source.includes(PROGRAM) ? [...imported, ...doors] : imported) {
      importers.set(target, [...(importers.get(target) ?? []), file])
    }
  }
  return importers
}

/**
 * The test files that reach a module: those of its own workspace, or where it has none, few of the workspaces that use it.
 * Simulations and the tests of reference pages are always among them. The others are the nearest. Of equally near ones
 * that of the module's name is first (`store.test.ts` of `store.ts`), then those named after it (`store-words.test.ts`),
 * then those of its folder.
 */
export function relatedTests(importers, module, count) {
  const workspace = `${module.split('/')[0]}/`
  const distances = new Map([[module, 0]])
  for (const [file, distance] of distances) {
    for (const importer of importers.get(file) ?? [])
      if (!distances.has(importer)) distances.set(importer, distance + 1)
  }
  const name = module.replace(/[.]tsx?$/, '')
  const ranks = [
    (file) => file.startsWith(`${name}.test.`),
    (file) => file.startsWith(`${name}-`),
    (file) => path.dirname(file) === path.dirname(module),
    () => true,
  ]
  const rankOf = (file) => ranks.findIndex((isOf) => isOf(file))
  const tests = [...distances.keys()]
    .filter((file) => TEST.test(file))
    .sort((a, b) => distances.get(a) - distances.get(b) || rankOf(a) - rankOf(b))
  const isDocuments = (file) => DOCUMENTS.test(file) && importers.get(file.replace('.test.', '.'))?.includes(file)
  const own = tests.filter((file) => file.startsWith(workspace) || isDocuments(file))
  if (own.every(isDocuments))
    return [...own, ...tests.filter((file) => !isDocuments(file)).slice(0, OTHERS_MAX)].slice(0, count)
  const isAlways = (file) => SIMULATION.test(file) || isDocuments(file)
  const always = own.filter(isAlways).slice(0, count)
  const others = own.filter((file) => !isAlways(file)).slice(0, count - always.length)
  return own.filter((file) => always.includes(file) || others.includes(file))
}
