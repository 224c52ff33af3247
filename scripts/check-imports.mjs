// The import rules: which workspace may import which, which folders stay pure, and that every import resolves.
// Type imports count like any other: a type of a higher layer couples two layers as well.
import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import path from 'node:path'
import { init, parse } from 'es-module-lexer'

/** Workspace → the workspaces below it. */
const WORKSPACES = {
  shared: [],
  testkit: ['shared'],
  engine: ['shared'],
  client: ['shared'],
  cli: ['shared', 'client'],
  fabric: ['shared', 'client'],
  queue: ['shared', 'client'],
  server: ['shared', 'client', 'queue'],
  web: ['shared'],
  bench: ['shared', 'client', 'testkit'],
  quickstart: ['shared', 'client', 'cli'],
  proofs: ['shared', 'client', 'testkit', 'engine', 'fabric', 'queue', 'server', 'bench', 'quickstart'],
  e2e: ['shared', 'client', 'quickstart', 'testkit'],
}
/** What tests of a workspace may use besides: whole shards are tested through the client and the commands. */
const TESTS_USE = {
  engine: ['cli', 'testkit'],
  client: ['testkit'],
  cli: ['testkit'],
  queue: ['testkit'],
  server: ['testkit'],
  fabric: ['client', 'testkit'],
  quickstart: ['testkit'],
}

/** Layers of engine/src from top to bottom: an import goes to a lower layer or stays in its own. */
const ENGINE_LAYERS = [
  ['cli', 'docs', 'node', 'cluster-node', 'thread-plan'],
  ['tcp', 'http', 'timed-tasks'],
  ['cluster'],
  ['bootstrap'],
  ['data', 'registry', 'transport'],
  ['import-source'],
  ['import', 'search', 'threads'],
  ['protocol'],
  ['snapshot', 'wal'],
  ['raft', 'store', 'env', 'metrics', 'config'],
]
/** Layers of server/src, likewise. */
const SERVER_LAYERS = [
  ['cli', 'docs'],
  ['app', 'parts', 'program', 'client-package', 'data-folder'],
  ['golden', 'imports', 'playground', 'probes', 'segments', 'stays', 'queue', 'config', 'metrics'],
  ['nodes'],
  ['cluster'],
  ['fabric'],
  ['history', 'live'],
  ['http', 'access', 'database'],
]
const LAYERS = { engine: ENGINE_LAYERS, server: SERVER_LAYERS }

/** Pairs of folders that import each other, each with the reason why it may. A pair that no longer does is an error, too. */
const FOLDER_PAIRS = {}

/** A folder: the first level below src, and in web/src/features the feature. */
const FOLDER = /^([^/]+)\/src\/(?:features\/)?([^/]+)\//

const NOT_SHIPPED = /[.](test|bench|fuzz|sim|spec)[.]tsx?$|\/testing\/|^(?:proofs|e2e|testkit)\//
const PURE =
  /^(shared\/src\/(?!node\/)|engine\/src\/(store|search|protocol|raft)\/|fabric\/src\/(registry\/(model|state|stored|journal)|router\/(datasets|stored)|bridge\/(topology|stored))[.])/
/** Threads of a node and of the queue's journal: what each loads when it starts costs time and memory. */
const THREADS = /^(engine|server|queue)\/src\/.*-worker[.]ts$/
/** Code that tests share. */
const TEST_HELPER = /^(?:testkit|proofs)\/|\/testing\//
/** Tests that start no program, nor import a helper that does. */
const QUICK_TEST = /(?<![.](?:program|long))[.]test[.]tsx?$/
/** Command line, HTTP, log and configuration, and the schemas of all APIs. */
const PROGRAMS_ONLY = ['shared/src/node/index.ts', 'shared/src/contract/index.ts']

await init

/**
 * Checks every module of the workspaces under a root.
 *
 * @returns one line per error, and the number of modules checked; zero means that nothing was checked
 */
export function checkImports(root, exceptions = FOLDER_PAIRS) {
  const files = Object.keys(WORKSPACES).flatMap((workspace) =>
    globSync(workspace === 'proofs' ? '**/*.ts' : 'src/**/*.{ts,tsx}', { cwd: path.join(root, workspace) }).map(
      (file) => path.posix.join(workspace, file),
    ),
  )
  const faults = []
  const graph = new Map()
  const loads = new Map()
  const arrows = new Map()
  const starters = new Set()
  for (const file of files.sort()) {
    const source = readFileSync(path.join(root, file), 'utf8')
    const say = (text) => faults.push(`${file}: ${text}`)
    try {
      const edges = edgesOf(root, file, source)
      for (const edge of edges) {
        for (const text of broken(file, edge)) say(text)
        if (edge.isLoaded && edge.name === 'node:child_process' && (TEST_HELPER.test(file) || QUICK_TEST.test(file)))
          starters.add(file)
        const arrow = arrowOf(file, edge)
        if (arrow && !arrows.has(arrow)) arrows.set(arrow, `${file} → ${edge.file}`)
      }
      graph.set(
        file,
        edges.filter((edge) => edge.kind === 'import' && edge.file).map((edge) => edge.file),
      )
      loads.set(
        file,
        edges.filter((edge) => edge.isLoaded && edge.file).map((edge) => edge.file),
      )
    } catch (error) {
      say(`cannot be read as a module: ${error.message}`)
    }
    if (isPure(file) && callsRandom(source)) say('pure-core: takes randomness as an argument, never from Math.random')
  }
  for (const circle of circles(graph)) faults.push(`no-circles: ${circle.join(' → ')}`)
  for (const file of files.filter((file) => THREADS.test(file)))
    for (const trail of trailsTo(loads, file)) faults.push(`light-threads: ${trail.join(' → ')}`)
  for (const file of files.filter((file) => QUICK_TEST.test(file))) {
    const trail = trailToStarter(loads, file, starters)
    if (trail) faults.push(`quick-tests: ${trail.join(' → ')} starts programs; name it .program.test or .long.test`)
  }
  faults.push(...mutual(arrows, exceptions))
  const workspaces = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')).workspaces
  for (const workspace of workspaces)
    if (!WORKSPACES[workspace]) faults.push(`${workspace}: belongs to no layer. Add a row to check-imports`)
  if (graph.size !== files.length) faults.push(`visited ${graph.size} of ${files.length} modules`)
  return { faults: [...new Set(faults)], modules: graph.size }
}

/** What a module imports or starts as a worker: `file` from the root, or the `fault` of an import that does not resolve. */
function edgesOf(root, file, source) {
  return importsOf(file, source).map((edge) => ({ ...edge, ...resolve(root, file, edge.name) }))
}

/** What a module names: static, dynamic and type imports, and the worker files it starts. */
function importsOf(file, source) {
  const named = (pattern, kind) => [...source.matchAll(pattern)].map((match) => ({ kind, name: match[2] }))
  // AssemblyScript is not TypeScript (decorators on functions), and has no other form of import.
  if (file.endsWith('.as.ts')) return named(/^\s*(?:im|ex)port\b[^'"]*?\bfrom\s*(['"])(.+?)\1/gm, 'import')
  // Nor does the lexer know JSX, whose text may hold quotes that never end.
  if (file.endsWith('.tsx'))
    return [
      ...named(/^\s*(?:im|ex)port\b(?:[^'";]*?\bfrom)?\s*(['"])(.+?)\1/gm, 'import'),
      ...named(/\bimport\(\s*(['"])(.+?)\1\s*\)/g, 'lazy'),
    ]
  const [imports] = parse(source, file)
  return [
    ...imports
      .filter(({ type }) => type !== 'import-meta')
      .map(({ specifier, typeOnly, type }) => {
        const isLoaded = typeOnly !== true && type !== 'dynamic'
        return { kind: 'import', name: specifier, isTypeOnly: typeOnly === true, isLoaded }
      }),
    // The lexer passes over `type A = import('./b.ts').B`.
    ...named(/^(?!\s*(?:[*]|\/\/)).*\bimport\(\s*(['"])(.+?)\1\s*\)/gm, 'import'),
    ...named(/^(?!\s*(?:[*]|\/\/)).*\bnew URL\(\s*(['"])([.][^'"]*[.]ts)\1/gm, 'worker'),
  ]
}

/** Where an import leads: a file of ours (from the root), or a fault. A built-in or an installed package is neither. */
function resolve(root, from, name) {
  if (name === undefined) return NOT_SHIPPED.test(from) ? {} : { fault: 'resolvable: imports a computed name' }
  if (isBuiltin(name)) return {}
  const workspace = from.split('/')[0]
  if (name.startsWith('.')) {
    const file = path.posix.join(path.posix.dirname(from), from.endsWith('.as.ts') ? `${name}.ts` : name)
    return isFile(path.join(root, file)) ? { file } : { fault: `resolvable: ${name} is not there` }
  }
  const parts = name.split('/')
  const pack = parts.slice(0, name.startsWith('@') ? 2 : 1).join('/')
  const own = readManifest(root, workspace)
  const rootManifest = readManifest(root, '.')
  const forTests = { ...rootManifest.devDependencies, ...own.devDependencies }
  const known = { ...own.dependencies, ...(NOT_SHIPPED.test(from) ? forTests : {}) }
  if (known[pack] === undefined) return { fault: `resolvable: ${pack} is not among the dependencies of ${workspace}` }
  if (!pack.startsWith('@vacancy/')) {
    return existsSync(path.join(root, 'node_modules', pack)) ? {} : { fault: `resolvable: ${pack} is not installed` }
  }
  const other = pack.slice('@vacancy/'.length)
  const entry = readManifest(root, other).exports?.[`.${name.slice(pack.length)}`]
  const file = entry && path.posix.join(other, entry)
  return file && isFile(path.join(root, file))
    ? { file, byName: true }
    : { fault: `resolvable: ${name} is not an export of ${other}` }
}

/** The rules an import breaks, in words. */
function* broken(from, { name, file, byName, fault }) {
  if (fault) yield fault
  const workspace = from.split('/')[0]
  if (isPure(from) && isBuiltin(name ?? ''))
    yield `pure-core: takes time, bytes and randomness as arguments, not ${name}`
  if (!file) return
  const target = file.split('/')[0]
  // Proofs run sources that no workspace exports.
  if (target !== workspace && !byName && workspace !== 'proofs')
    yield `by-name: imports ${target} by a path; use its name`
  const below = [...WORKSPACES[workspace], ...(NOT_SHIPPED.test(from) ? (TESTS_USE[workspace] ?? []) : [])]
  if (target !== workspace && !below.includes(target)) yield `${workspace}-layer: may not import ${target}`
  if (isPure(from) && file.startsWith('shared/src/node/')) yield `pure-core: ${name} touches the machine`
  if (NOT_SHIPPED.test(from)) return
  if (workspace !== 'bench' && NOT_SHIPPED.test(file)) yield `tests-are-not-shipped: ${name} is not shipped`
  if (workspace !== target || !LAYERS[workspace]) return
  if (from.startsWith('engine/src/raft/') && !file.startsWith('engine/src/raft/'))
    yield `raft-knows-no-neighbour: not even ${name}`
  const [own, theirs] = [layerOf(workspace, from), layerOf(workspace, file)]
  if (own === -1) yield `${workspace}-looks-down: this file belongs to no layer. Add its folder to check-imports`
  if (theirs !== -1 && theirs < own) yield `${workspace}-looks-down: ${name} is above`
}

function layerOf(workspace, file) {
  const [head] = file.slice(`${workspace}/src/`.length).split(/[./]/)
  return LAYERS[workspace].findIndex((layer) => layer.includes(head))
}

/** The folders of a workspace that an import connects, as `workspace from to`. Tests import where they need. */
function arrowOf(from, { file }) {
  if (!file || NOT_SHIPPED.test(from) || NOT_SHIPPED.test(file)) return
  const [own, theirs] = [FOLDER.exec(from), FOLDER.exec(file)]
  if (own && theirs && own[1] === theirs[1] && own[2] !== theirs[2]) return `${own[1]} ${own[2]} ${theirs[2]}`
}

/** The pairs of folders that import each other without being an exception, and the exceptions that no longer do. */
function* mutual(arrows, exceptions) {
  const pairs = new Set()
  for (const [arrow, example] of arrows) {
    const [workspace, from, to] = arrow.split(' ')
    const back = arrows.get(`${workspace} ${to} ${from}`)
    const pair = `${workspace} ${from} ${to}`
    if (!back || from > to) continue
    pairs.add(pair)
    if (!exceptions[pair]) yield `one-way: ${pair} import each other: ${example}, ${back}`
  }
  for (const pair of Object.keys(exceptions))
    if (!pairs.has(pair)) yield `one-way: ${pair} no longer import each other. Remove the exception`
}

function isPure(file) {
  return PURE.test(file) && !NOT_SHIPPED.test(file) && !file.endsWith('-worker.ts')
}

function callsRandom(source) {
  return /\bMath\s*[.]\s*random\b/.test(source.replaceAll(/\/\*[\s\S]*?\*\/|(?<!:)\/\/.*/g, ''))
}

/** One circle for each module that closes one, found by a walk in depth. */
function circles(graph) {
  const found = []
  const state = new Map()
  const walk = (file, trail) => {
    state.set(file, 'open')
    for (const next of graph.get(file) ?? []) {
      if (state.get(next) === 'open') found.push([...trail.slice(trail.indexOf(next)), next])
      else if (!state.has(next)) walk(next, [...trail, next])
    }
    state.set(file, 'done')
  }
  for (const file of graph.keys()) if (!state.has(file)) walk(file, [file])
  return found
}

/** The shortest ways by which a thread loads what programs alone need. */
function trailsTo(loads, from) {
  const trails = new Map([[from, [from]]])
  for (const [file, trail] of trails)
    for (const next of loads.get(file) ?? []) if (!trails.has(next)) trails.set(next, [...trail, next])
  return PROGRAMS_ONLY.filter((file) => trails.has(file)).map((file) => trails.get(file))
}

/** How a test gets to code of tests that starts programs. What is shipped may start some, which is not followed. */
function trailToStarter(loads, from, starters) {
  const trails = new Map([[from, [from]]])
  for (const [file, trail] of trails) {
    if (starters.has(file)) return trail
    for (const next of loads.get(file) ?? [])
      if (TEST_HELPER.test(next) && !trails.has(next)) trails.set(next, [...trail, next])
  }
  return undefined
}

function readManifest(root, folder) {
  const file = path.join(root, folder, 'package.json')
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {}
}

function isFile(file) {
  return statSync(file, { throwIfNoEntry: false })?.isFile() ?? false
}

if (process.argv[1] === import.meta.filename) {
  const { faults, modules } = checkImports(path.resolve(import.meta.dirname, '..'))
  for (const fault of faults) console.error(fault)
  console.log(`imports: ${modules} modules, ${faults.length} faults`)
  process.exitCode = faults.length > 0 || modules === 0 ? 1 : 0
}
