/**
 * The client library as a tarball for `npm install URL`: the built package with its dependencies inside, so that it
 * installs without a registry.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { problem } from '@vacancy/shared/api/errors'
import { type ControlModule, moduleOf } from '@vacancy/shared/api/route'
import { CLIENT_ROUTES } from '@vacancy/shared/contract'
import { type TarEntry, tarOf } from './http/tar.ts'

const require = createRequire(import.meta.url)
/** What npm takes as the time of files without one: 26 October 1985. */
const MODIFIED_AT = 499_162_500
/** Files of a dependency that run; its sources and declarations of the build are left out. */
const RUNS = /\.(?:js|mjs|cjs|json|d\.ts)$|^(?:LICENSE|README\.md)$/

export const clientModule: ControlModule = moduleOf('client', CLIENT_ROUTES, {
  'GET /api/v1/client.tgz': async ({ reply }) => {
    const tarball = await clientTarball()
    reply.header('content-type', 'application/gzip')
    reply.header('content-disposition', 'attachment; filename="vacancy-client.tgz"')
    return Readable.from([tarball], { objectMode: false })
  },
})

let packed: Promise<Buffer> | undefined

/**
 * The tarball, packed on the first request. scripts/dist.mjs packs that of a release.
 *
 * @throws ProblemError 503 while the package is not built
 */
export function clientTarball(): Promise<Buffer> {
  packed ??= pack().catch((error: unknown) => {
    packed = undefined
    throw error
  })
  return packed
}

async function pack(): Promise<Buffer> {
  const folder = fileURLToPath(new URL('../../client/build/package', import.meta.url))
  const own = ownFiles(folder)
  const manifest = own.get('package.json')
  if (!manifest) throw problem('client-not-built', { detail: `${folder} has no package.` })
  const { dependencies, ...rest } = JSON.parse(manifest.toString()) as { dependencies: { [name: string]: string } }
  const names = Object.keys(dependencies)
  own.set('package.json', Buffer.from(JSON.stringify({ ...rest, dependencies, bundleDependencies: names }, null, 2)))
  for (const name of names) {
    for (const [file, content] of dependencyFiles(name)) own.set(`node_modules/${name}/${file}`, content)
  }
  const entries: TarEntry[] = [...own]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([file, content]) => ({ name: `package/${file}`, bytes: content.length, content }))
  return await promisify(gzip)(await buffer(tarOf(entries, MODIFIED_AT)))
}

function ownFiles(folder: string): Map<string, Buffer> {
  let files: string[]
  try {
    files = filesIn(folder)
  } catch (error) {
    throw problem('client-not-built', { detail: `${folder} cannot be read.`, cause: error })
  }
  return new Map(files.map((file) => [file, readFileSync(path.join(folder, file))]))
}

function dependencyFiles(name: string): [string, Buffer][] {
  const folder = folderOf(name)
  return filesIn(folder)
    .filter((file) => RUNS.test(file) && !file.startsWith('src/') && !file.startsWith('node_modules/'))
    .map((file) => [file, readFileSync(path.join(folder, file))])
}

/** The nearest folder of an installed package; its `exports` may hide its manifest. */
function folderOf(name: string): string {
  const found = (require.resolve.paths(name) ?? []).map((root) => path.join(root, name)).find(hasManifest)
  if (found === undefined) throw problem('client-not-built', { detail: `The dependency ${name} is not installed.` })
  return found
}

function hasManifest(folder: string): boolean {
  try {
    return readdirSync(folder).includes('package.json')
  } catch {
    return false
  }
}

/** Paths with `/`, relative to the folder. */
function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)).replaceAll(path.sep, '/'))
}
