// Bundles the programs of `vacancy`: a start reads a few files instead of some 400 modules, in every thread that needs them.
// A program runs from its bundle while all sources are those that were bundled, else from its sources.
// Plain JavaScript: the check runs on Node 20, before anything is installed.
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

const FOLDER = 'build/programs'
const MANIFEST = 'bundle.json'
/** Earlier bundles are kept so long: a program that runs imports some modules, and starts some threads, later. */
const KEPT_MS = 2 * 24 * 3_600_000
/** Workspaces with programs, bundled together. Packages of the control plane are not bundled: some read files of their own. */
const GROUPS = [
  { workspaces: ['engine', 'fabric', 'cli', 'quickstart', 'bench'], withPackages: true },
  { workspaces: ['queue', 'server'], withPackages: false },
]

if (process.argv[1] === import.meta.filename) await main()

/** A failure is reported and does not fail an installation: everything works without bundles. */
async function main() {
  const root = path.resolve(import.meta.dirname, '..')
  if (isBundled(root)) return
  try {
    await bundlePrograms(root, GROUPS)
  } catch (error) {
    console.error(`vacancy: programs run from their sources and start more slowly; bundling failed: ${error.message}`)
  }
}

/** Whether all programs have a bundle of the present sources. */
export function isBundled(root) {
  return readBundles(root)?.every(({ inputs }) => areCurrent(root, inputs)) ?? false
}

/** The URL of a program's bundle, by the name that it is imported by (`@vacancy/engine/cli`); undefined without a current one. */
export function bundledProgram(root, name) {
  const bundle = readBundles(root)?.find(({ programs }) => Object.hasOwn(programs, name))
  return bundle && areCurrent(root, bundle.inputs)
    ? pathToFileURL(path.join(root, FOLDER, bundle.programs[name])).href
    : undefined
}

/** Bundles with `programs`, name → file, and `inputs`, file → version. */
function readBundles(root) {
  try {
    return JSON.parse(readFileSync(path.join(root, FOLDER, MANIFEST), 'utf8'))
  } catch (error) {
    if (error.code === 'ENOENT') return undefined
    throw error
  }
}

function areCurrent(root, inputs) {
  return Object.entries(inputs).every(([file, version]) => versionOf(root, file) === version)
}

/** Tells versions of a file apart without reading it: there are hundreds, and programs wait for the result. */
function versionOf(root, file) {
  const found = statSync(path.join(root, file), { throwIfNoEntry: false })
  return found && `${found.size} ${found.mtimeMs}`
}

/** @param groups workspaces that are bundled together; `withPackages`: with the packages of node_modules that they import */
export async function bundlePrograms(root, groups) {
  const bundles = []
  for (const group of groups) bundles.push(await bundle(root, group))
  const manifest = path.join(root, FOLDER, MANIFEST)
  // Programs that start meanwhile find the earlier bundles or these.
  writeFileSync(`${manifest}.${process.pid}`, JSON.stringify(bundles))
  renameSync(`${manifest}.${process.pid}`, manifest)
  removeOld(root, new Set(bundles.flatMap(({ programs }) => Object.values(programs).map(path.dirname))))
}

function removeOld(root, current) {
  const folder = path.join(root, FOLDER)
  for (const entry of readdirSync(folder)) {
    if (entry === MANIFEST || current.has(entry)) continue
    const found = statSync(path.join(folder, entry), { throwIfNoEntry: false })
    if (found && Date.now() - found.mtimeMs > KEPT_MS)
      rmSync(path.join(folder, entry), { recursive: true, force: true })
  }
}

/**
 * Bundles all programs into another folder, without the versions of sources, which are not there: equal sources make equal
 * files.
 */
export async function bundleInto(target, root) {
  const bundles = []
  for (const group of GROUPS) {
    const { sources, output } = await generate(root, group)
    bundles.push({ programs: writeBundle(target, group.workspaces[0], sources, output), inputs: {} })
  }
  writeFileSync(path.join(target, FOLDER, MANIFEST), `${JSON.stringify(bundles)}\n`)
}

async function bundle(root, group) {
  const { sources, output, inputs } = await generate(root, group)
  // Never the folder of other files: programs that run may still import some of those.
  const id = createHash('sha256')
    .update(JSON.stringify([group.workspaces, inputs]))
    .digest('hex')
    .slice(0, 16)
  return { programs: writeBundle(root, id, sources, output), inputs }
}

/** @returns name → file of each program */
function writeBundle(root, id, sources, output) {
  const folder = path.join(root, FOLDER, id)
  mkdirSync(folder, { recursive: true })
  for (const { fileName, code } of output) writeFileSync(path.join(folder, fileName), code)
  return Object.fromEntries(sources.map(([name, source]) => [name, `${id}/${entryName(source)}.js`]))
}

async function generate(root, { workspaces, withPackages }) {
  const { rolldown } = await import('rolldown')
  const inputs = {}
  const addInput = (file) => {
    inputs[file] = versionOf(root, file)
  }
  for (const file of ['scripts/bundle.mjs', 'node_modules/.package-lock.json']) addInput(file)
  const sources = workspaces.map((workspace) => {
    addInput(`${workspace}/package.json`)
    const { name, exports } = JSON.parse(readFileSync(path.join(root, workspace, 'package.json'), 'utf8'))
    return [`${name}/cli`, path.join(workspace, exports['./cli'])]
  })
  const build = await rolldown({
    cwd: root,
    platform: 'node',
    input: Object.fromEntries(sources.map(([, source]) => [entryName(source), path.join(root, source)])),
    external: (id) => !withPackages && /^[@\w]/.test(id) && !id.startsWith('@vacancy/'),
    plugins: [ownSources(root, addInput)],
  })
  const { output } = await build.generate({ entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js' })
  await build.close()
  return { sources, output, inputs }
}

/** `engine/src/wal/wal-worker.ts` → `engine.src.wal.wal-worker` */
function entryName(source) {
  return source.replace(/[.]ts$/, '').replaceAll(path.sep, '.')
}

/** What modules find by their own place, they find in a bundle, too: the files beside them, and their workers, which are bundled. */
function ownSources(root, addInput) {
  const isOwn = (id) => id.startsWith(root) && !id.includes('/node_modules/')
  return {
    name: 'own-sources',
    /** Before the module is read: a change while it is bundled shows later. */
    load(id) {
      if (isOwn(id)) addInput(path.relative(root, id))
    },
    transform(code, id) {
      if (!isOwn(id) || !code.includes('import.meta.')) return undefined
      // Its code would be missing from an archive, and a checkout would run it from its source.
      if (/\bnew Worker\((?!new URL\()/.test(code))
        throw new Error(
          `${path.relative(root, id)}: start a thread with new Worker(new URL('./file.ts', import.meta.url)`,
        )
      // Seen from build/programs/<id>.
      const url = `new URL('../../../${path.relative(root, id).replaceAll(path.sep, '/')}', import.meta.url)`
      const filename = `process.getBuiltinModule('node:url').fileURLToPath(${url})`
      const worker = (file) => {
        const source = path.resolve(path.dirname(id), file)
        const name = entryName(path.relative(root, source))
        this.emitFile({ type: 'chunk', id: source, fileName: `${name}.js` })
        return `new Worker(new URL('./${name}.js', import.meta.url)`
      }
      return (
        code
          .replaceAll(/\bimport[.]meta[.](url|filename|dirname|main)\b/g, '@$1@')
          .replaceAll(/\bnew Worker\(new URL\('([^']+)', @url@\)/g, (_, file) => worker(file))
          .replaceAll('@url@', `${url}.href`)
          .replaceAll('@filename@', filename)
          .replaceAll('@dirname@', `process.getBuiltinModule('node:path').dirname(${filename})`)
          // In a bundle no module is the main program.
          .replaceAll('@main@', 'false')
      )
    },
  }
}
