// Makes the package that users install: build/package, compiled JavaScript and types that run on plain Node 20, with
// the parts of shared that the client needs inside it. `npm pack ./client/build/package` makes the tarball.
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const HERE = path.dirname(fileURLToPath(import.meta.url))
const ROOT = path.resolve(HERE, '..')
/** Import name → the module it stands for, in the house as in the package. */
const SHARED = { '@vacancy/shared': 'shared/src/index', '@vacancy/shared/wire': 'shared/src/wire/index' }
/** Name in `exports` → its module. */
const ENTRIES = { '.': 'client/src/index', './queue': 'client/src/queue/index' }

buildPackage(path.resolve(process.argv[2] ?? path.join(HERE, 'build/package')))

function buildPackage(out) {
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out, { recursive: true })
  compile(out)
  for (const file of readdirSync(out, { recursive: true })) {
    if (file.endsWith('.js') || file.endsWith('.d.ts')) rewriteImports(out, file)
  }
  writeManifest(out)
  cpSync(path.join(HERE, 'README.md'), path.join(out, 'README.md'))
  const license = path.join(ROOT, 'LICENSE')
  if (existsSync(license)) cpSync(license, path.join(out, 'LICENSE'))
}

/** The client and all that it imports of shared, each in its own folder. */
function compile(out) {
  const config = path.join(out, 'tsconfig.json')
  const options = {
    extends: path.join(ROOT, 'tsconfig.base.json'),
    compilerOptions: {
      target: 'es2023',
      rootDir: ROOT,
      outDir: out,
      noEmit: false,
      incremental: false,
      declaration: true,
      rewriteRelativeImportExtensions: true,
      // By path, not through node_modules: what comes from there is not compiled along.
      paths: Object.fromEntries(Object.entries(SHARED).map(([name, file]) => [name, [path.join(ROOT, `${file}.ts`)]])),
      typeRoots: [path.join(ROOT, 'node_modules/@types')],
    },
    files: Object.values(ENTRIES).map((entry) => path.join(ROOT, `${entry}.ts`)),
  }
  writeFileSync(config, JSON.stringify(options))
  const tsc = path.join(ROOT, 'node_modules/typescript/bin/tsc')
  execFileSync(process.execPath, [tsc, '-p', config], { stdio: 'inherit' })
  rmSync(config)
}

/** The package stands alone: what is imported by the name of a workspace becomes a path inside it. */
function rewriteImports(out, file) {
  const source = readFileSync(path.join(out, file), 'utf8')
  const named = source.replace(/(['"])(@vacancy\/[a-z/]+)\1/g, (_, quote, name) => {
    const target = SHARED[name]
    if (!target) throw new Error(`${file} imports ${name}, which is not part of the package`)
    const to = path.posix.relative(path.posix.dirname(file.replaceAll(path.sep, '/')), `${target}.js`)
    return `${quote}${to.startsWith('.') ? to : `./${to}`}${quote}`
  })
  // Declarations keep the extension of their source.
  const text = file.endsWith('.d.ts') ? named.replace(/(['"])([.][^'"\n]*)[.]ts\1/g, '$1$2.js$1') : named
  if (text !== source) writeFileSync(path.join(out, file), text)
}

function writeManifest(out) {
  const { name, version, license, dependencies } = JSON.parse(readFileSync(path.join(HERE, 'package.json'), 'utf8'))
  const shared = JSON.parse(readFileSync(path.join(ROOT, 'shared/package.json'), 'utf8'))
  const manifest = {
    name,
    version,
    description: 'Native client of Vacancy: searches and updates hotel availability, submits and processes jobs.',
    license,
    type: 'module',
    engines: { node: '>=20.19' },
    exports: Object.fromEntries(
      Object.entries(ENTRIES).map(([at, entry]) => [at, { types: `./${entry}.d.ts`, default: `./${entry}.js` }]),
    ),
    sideEffects: false,
    dependencies: { '@noble/hashes': shared.dependencies['@noble/hashes'], ws: dependencies.ws },
  }
  writeFileSync(path.join(out, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
}
