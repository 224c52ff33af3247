// What `npm run dist` makes: equal bytes wherever it is made, and programs that work where nothing else is installed.
import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { allCommandsOf } from '../quickstart/src/testing/blocks.ts'
import { debianRoot } from '../testkit/src/debian.ts'
import { TEST_CODECS } from '../testkit/src/node.ts'
import { ROOT } from './pinned-node.mjs'
import { inRoot } from './testing/roots.mjs'
import { placeOf, smoke } from './testing/smoke.mjs'

const MAKE_MS = 1_800_000
const SMOKE_MS = 600_000
const { version } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'))
const ARCHIVE = `vacancy-${version}-linux-x64`
const [NPM = '', UNPACK = ''] = allCommandsOf('docs/operators.md')
/** Neither root nor one that Debian knows. */
const USER = 20_000 + (process.pid % 10_000)
const isRoot = process.getuid?.() === 0

const folder = mkdtempSync(path.join(tmpdir(), 'vacancy-dist-'))
const inFolder = (...parts) => path.join(folder, ...parts)
const releases = ['one', 'another/place'].map((clone) => inFolder(clone))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const run = promisify(execFile)

/** A clone with the packages of this one, none of which a build changes. */
async function makeRelease(clone) {
  await run('git', ['clone', '--quiet', ROOT, clone])
  for (const modules of globSync('{*/,}node_modules', { cwd: ROOT }))
    await run('cp', ['--archive', '--link', path.join(ROOT, modules), path.join(clone, modules)])
  rmSync(path.join(clone, 'node_modules/.cache'), { recursive: true, force: true })
  const { VITEST: _, NODE_OPTIONS: __, ...env } = process.env
  await run(process.execPath, ['scripts/launch.mjs', 'dist'], { cwd: clone, env })
}

beforeAll(async () => {
  for (const clone of releases) await makeRelease(clone)
}, MAKE_MS)

const made = (file) => path.join(releases[0], 'dist', file)

test('a commit makes equal bytes in any folder', () => {
  const [one, another] = releases.map((clone) => readFileSync(path.join(clone, 'dist/SHA256SUMS'), 'utf8'))

  expect(another).toBe(one)
  expect(readdirSync(made('')).sort()).toEqual([
    'SHA256SUMS',
    `vacancy-${version}-linux-x64.tar.gz`,
    `vacancy-${version}.cdx.json`,
    `vacancy-${version}.tgz`,
    `vacancy-client-${version}.tgz`,
  ])
  execFileSync('sha256sum', ['--check', '--strict', '--quiet', 'SHA256SUMS'], { cwd: made('') })
})

test('the bill of materials has each package that the archives contain, and a licence for each', () => {
  const { components } = JSON.parse(readFileSync(made(`vacancy-${version}.cdx.json`), 'utf8'))
  const named = new Set(components.map(({ purl }) => decodeURIComponent(purl)))
  const shipped = [`vacancy-${version}.tgz`, `${ARCHIVE}.tar.gz`].flatMap((archive) =>
    execFileSync('tar', ['-tzf', made(archive)], { encoding: 'utf8', maxBuffer: 1 << 28 })
      .split('\n')
      .filter((file) => /(?:^|\/)node_modules\/(?:@[^/]+\/)?[^/]+\/package\.json$/.test(file)),
  )
  expect(shipped.length).toBeGreaterThan(100)
  const unpacked = inFolder('manifests')
  mkdirSync(unpacked)
  execFileSync('tar', ['-xzf', made(`vacancy-${version}.tgz`), '-C', unpacked, '--wildcards', '*/package.json'])
  const unknown = shipped.filter((file) => {
    const manifest = JSON.parse(readFileSync(path.join(unpacked, file.replace(/^[^/]+/, 'package')), 'utf8'))
    return !named.has(`pkg:npm/${manifest.name}@${manifest.version}`)
  })

  expect(unknown).toEqual([])
  expect(components.filter(({ licenses }) => licenses === undefined).map(({ purl }) => purl)).toEqual([])
})

const opt = inFolder('opt')
/** The archive as the page unpacks it. @returns the command */
function unpacked() {
  const link = inFolder('vacancy')
  if (!existsSync(opt)) {
    mkdirSync(opt)
    const unpack = UNPACK.replaceAll('/usr/local/bin/vacancy', link).replaceAll('/opt', opt)
    execFileSync('bash', ['-ec', unpack], { cwd: made('') })
  }
  return link
}

async function smokeIn(name, place) {
  mkdirSync(inFolder(name), { recursive: true })
  const here = placeOf({ folder: inFolder(name), ...place })
  try {
    await smoke(here)
  } finally {
    here.kill()
  }
}

test('the npm package installs without a network and works', { timeout: SMOKE_MS }, async () => {
  const prefix = inFolder('prefix')
  // The Node and npm of the machine, instead of those that the tests run on.
  const folders = (process.env.PATH ?? '').split(path.delimiter).filter((each) => existsSync(path.join(each, 'npm')))
  const PATH = [
    path.join(prefix, 'bin'),
    ...folders.filter((each) => !each.includes('node_modules')),
    '/usr/bin',
    '/bin',
  ]
  const env = { PATH: PATH.join(path.delimiter), HOME: inFolder('home') }
  const settings = { npm_config_prefix: prefix, npm_config_offline: 'true', npm_config_cache: inFolder('cache') }
  const bash = (script) => execFileSync('bash', ['-ec', script], { cwd: made(''), env: { ...env, ...settings } })
  bash(NPM)
  expect(String(bash('build-snapshot --version'))).toBe(`${version}\n`)

  await smokeIn('npm', {
    commandOf: (args) => ['env', '-i', ...Object.entries(env).map((pair) => pair.join('=')), 'vacancy', ...args],
  })
})

test('the clone works', { timeout: SMOKE_MS }, async () => {
  await smokeIn('clone', {
    commandOf: (args) => [process.execPath, path.join(releases[0], 'bin/vacancy.mjs'), ...args],
  })
})

test.runIf(isRoot)(
  'the archive works as any user on a read-only system without Node',
  { timeout: SMOKE_MS },
  async () => {
    expect(execFileSync(unpacked(), ['--version'], { encoding: 'utf8' })).toContain(version)
    const root = debianRoot()
    mkdirSync(inFolder('archive'))
    const there = { root, user: `${USER}:${USER}`, folders: { '/opt': opt, '/srv': inFolder('archive') } }
    const [command, ...args] = inRoot(there, [
      'sh',
      '-c',
      'command -v node nodejs || touch /usr/node || touch /opt/node',
    ])
    expect(spawnSync(command, args, { encoding: 'utf8' })).toMatchObject({ stdout: '', status: 1 })

    await smokeIn('archive', {
      inside: '/srv',
      owner: USER,
      commandOf: (words) => inRoot(there, ['env', '-i', 'PATH=/usr/bin:/bin', `/opt/${ARCHIVE}/bin/vacancy`, ...words]),
    })
  },
)

/** The fixture has nights around this time. */
const WRITTEN_MS = Date.UTC(2026, 10, 23, 8)
const FIXTURE = path.join(ROOT, 'engine/src/testing/fixtures/data-0.1.0-ordinary.tgz')

test.runIf(process.arch === 'x64')('the archive opens data of version 0.1.0, and writes to it', async () => {
  mkdirSync(inFolder('old/data'), { recursive: true })
  execFileSync('tar', ['-xzf', FIXTURE, '-C', inFolder('old/data')])
  const clock = `const now=Date.now;Date.now=()=>now()+(${WRITTEN_MS - Date.now()})`
  const environment = ['env', `NODE_OPTIONS=--import=data:text/javascript,${encodeURIComponent(clock)}`]
  const { start, run, write, stop, file, kill } = placeOf({
    folder: inFolder('old'),
    commandOf: (args) => [...environment, unpacked(), ...args],
  })
  write('codecs.yml', `rate_features:\n${TEST_CODECS.map((name) => `  - ${name}\n`).join('')}`)
  const data = ['--codecs', file('codecs.yml'), '--data-dir', file('data')]
  try {
    const node = start('run', ...data, '--tcp-port', '0', '--api-port', '0')
    const [, tcp] = await node.printed(/^serving: tcp .+:(\d+),/m)
    const { segments } = JSON.parse(await run('query', 'segments', '--port', tcp, '--json'))
    expect(segments.map(({ segment }) => segment)).toContain('segment_0')
    await run('query', 'send', 'DELSEGMENT', 'segment=segment_1', '--port', tcp)
    await stop()
    expect(await run('inspect', file('data'))).not.toContain('segment_1')
  } finally {
    kill()
  }
})
