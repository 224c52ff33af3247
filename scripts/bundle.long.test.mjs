import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { bundledProgram, bundlePrograms, isBundled } from './bundle.mjs'

const NAME = '@vacancy/one/cli'
const ONE = [{ workspaces: ['one'], withPackages: true }]
const roots = []

afterEach(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true, force: true })
})

/** A repository with one program, which reads a file beside its sources and starts a thread. */
function repository(files = {}) {
  const root = mkdtempSync(path.join(tmpdir(), 'vacancy bundle-'))
  roots.push(root)
  const all = {
    'scripts/bundle.mjs': '',
    'node_modules/.package-lock.json': '{}',
    'node_modules/given/package.json': '{"name": "given", "type": "module", "exports": "./index.js"}',
    'node_modules/given/index.js': "export const url = import.meta.url\nexport const text = 'from a package'\n",
    'one/package.json': '{"name": "@vacancy/one", "type": "module", "exports": {"./cli": "./src/cli.ts"}}',
    'start.mjs':
      'const { main } = await import(process.argv[2])\nconsole.log(JSON.stringify(await main()))\nprocess.exit()\n',
    'one/data.txt': 'some data',
    'one/src/cli.ts': `
      import { readFileSync } from 'node:fs'
      import { text, url } from 'given'
      import { ask } from './deep/ask.ts'
      const data: string = readFileSync(new URL('../data.txt', import.meta.url), 'utf8')
      if (import.meta.main) console.log('runs by itself')
      export const main = async () => {
        const { late } = await import('./late.ts')
        return { data, text, url, late, answer: await ask(), dirname: import.meta.dirname, filename: import.meta.filename }
      }`,
    'one/src/late.ts': "export const late: string = 'imported later'\n",
    'one/src/deep/ask.ts': `
      import { once } from 'node:events'
      import { Worker } from 'node:worker_threads'
      export async function ask(): Promise<unknown> {
        const worker = new Worker(new URL('../answer-worker.ts', import.meta.url), { workerData: 20 })
        const [answer] = await once(worker, 'message')
        return answer
      }`,
    'one/src/answer-worker.ts': `
      import { parentPort, workerData } from 'node:worker_threads'
      parentPort?.postMessage({ answer: workerData + 1, url: import.meta.url })`,
    ...files,
  }
  for (const [file, text] of Object.entries(all)) {
    mkdirSync(path.dirname(path.join(root, file)), { recursive: true })
    writeFileSync(path.join(root, file), text)
  }
  mkdirSync(path.join(root, 'node_modules/@vacancy'))
  symlinkSync('../../one', path.join(root, 'node_modules/@vacancy/one'))
  return root
}

/** What the program returns in a process of its own, and what it prints. */
function start(url) {
  const root = roots.at(-1)
  return JSON.parse(
    execFileSync(process.execPath, [path.join(root, 'start.mjs'), url], { encoding: 'utf8', stdio: 'pipe' }),
  )
}

function change(root, file) {
  utimesSync(path.join(root, file), new Date(), new Date(Date.now() + 5_000))
}

test('a bundled program finds its files and threads, and behaves as from its sources', async () => {
  const root = repository()
  expect(isBundled(root)).toBe(false)
  await bundlePrograms(root, ONE)
  const url = bundledProgram(root, NAME)
  const bundled = start(url)

  expect(fileURLToPath(url)).toContain(path.join(root, 'build/programs'))
  expect(bundled).toEqual({ ...start(new URL(`file://${root}/one/src/cli.ts`)), url: bundled.url })
  expect(bundled).toMatchObject({ data: 'some data', late: 'imported later', dirname: path.join(root, 'one/src') })
  expect(bundled.answer.answer).toBe(21)
  // The package is part of the bundle.
  expect(bundled.url).toContain('/build/programs/')
})

test('packages stay in node_modules where a group wants them there', async () => {
  const root = repository()
  await bundlePrograms(root, [{ workspaces: ['one'], withPackages: false }])

  expect(start(bundledProgram(root, NAME)).url).toContain('/node_modules/given/index.js')
})

test.each([
  'one/src/cli.ts',
  'one/src/late.ts',
  'one/src/answer-worker.ts',
  'one/package.json',
  'node_modules/.package-lock.json',
  'scripts/bundle.mjs',
])('a change of %s makes the bundle unusable, and another one is made', async (file) => {
  const root = repository()
  await bundlePrograms(root, ONE)
  expect(bundledProgram(root, NAME)).toBeDefined()
  change(root, file)

  expect(isBundled(root)).toBe(false)
  expect(bundledProgram(root, NAME)).toBeUndefined()
  await bundlePrograms(root, ONE)
  expect(bundledProgram(root, NAME)).toBeDefined()
})

test('a removed source makes the bundle unusable; other files do not count', async () => {
  const root = repository({ 'one/src/other.test.ts': '' })
  await bundlePrograms(root, ONE)
  change(root, 'one/src/other.test.ts')
  expect(isBundled(root)).toBe(true)
  rmSync(path.join(root, 'one/src/late.ts'))

  expect(isBundled(root)).toBe(false)
})

test('the previous bundle stays for programs that run, and is removed after two days', async () => {
  const root = repository()
  await bundlePrograms(root, ONE)
  const first = bundledProgram(root, NAME)
  change(root, 'one/src/late.ts')
  await bundlePrograms(root, ONE)
  expect(start(first).late).toBe('imported later')
  const longAgo = new Date(Date.now() - 49 * 3_600_000)
  utimesSync(path.dirname(fileURLToPath(first)), longAgo, longAgo)
  change(root, 'one/src/cli.ts')
  await bundlePrograms(root, ONE)

  expect(readdirSync(path.join(root, 'build/programs'))).toHaveLength(3)
  expect(() => start(first)).toThrow('ERR_MODULE_NOT_FOUND')
})

test('sources that cannot be bundled are an error, and the program has no bundle', async () => {
  const root = repository({ 'one/src/late.ts': 'export const late = (' })

  await expect(bundlePrograms(root, ONE)).rejects.toThrow('late.ts')
  expect(bundledProgram(root, NAME)).toBeUndefined()
})

test('a thread that the bundler would not find is refused', async () => {
  const started = "const url = new URL('./late.ts', import.meta.url)\nexport const main = () => new Worker(url)\n"
  const root = repository({ 'one/src/cli.ts': `import { Worker } from 'node:worker_threads'\n${started}` })

  await expect(bundlePrograms(root, ONE)).rejects.toThrow('one/src/cli.ts: start a thread with new Worker(new URL(')
})
