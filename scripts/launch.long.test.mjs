import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { cpSync, globSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { installFault } from './install.mjs'
import { findNode, pinnedNodePath, ROOT } from './pinned-node.mjs'

const hasGit = spawnSync('git', ['--version']).status === 0

const canUnshare = spawnSync('unshare', ['--map-root-user', '--net', 'true']).status === 0

const BUNDLES = 'build/programs/bundle.json'

let root

// A temporary repository: our launcher, the tools it calls, one workspace without programs to bundle, and a satisfied lockfile.
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'vacancy-launch-'))
  for (const script of globSync('scripts/*.mjs', { cwd: ROOT })) {
    if (!script.endsWith('.test.mjs')) cpSync(path.join(ROOT, script), path.join(root, script))
  }
  cpSync(path.join(ROOT, 'turbo.json'), path.join(root, 'turbo.json'))
  cpSync(path.join(ROOT, 'vitest.config.ts'), path.join(root, 'vitest.config.ts'))
  write('package.json', { name: 'root', packageManager: 'npm@11.19.1', type: 'module', workspaces: ['quickstart'] })
  write('quickstart/package.json', { name: 'quickstart', version: '0.0.0', type: 'module' })
  write('package-lock.json', { name: 'root', lockfileVersion: 3, packages: { '': {} } })
  write('node_modules/.package-lock.json', { packages: {} })
  write(BUNDLES, [])
  for (const name of [
    path.basename(path.resolve(pinnedNodePath(), '../..')),
    'turbo',
    '@turbo',
    'vitest',
    'vite',
    'fast-check',
  ]) {
    symlinkSync(path.join(ROOT, 'node_modules', name), path.join(root, 'node_modules', name))
  }
})

afterEach(() => rmSync(root, { recursive: true, force: true }))

function write(file, content) {
  mkdirSync(path.dirname(path.join(root, file)), { recursive: true })
  writeFileSync(path.join(root, file), typeof content === 'string' ? content : JSON.stringify(content))
}

/** Starts the launcher with a vanilla environment: this test runs under one already. */
function launch(args, onOutput = () => {}, given = {}) {
  const { VACANCY_TEST_COUNTS, VACANCY_SEED, VITEST, NODE_OPTIONS, ...env } = process.env
  const child = spawn(process.execPath, ['scripts/launch.mjs', ...args], { cwd: root, env: { ...env, ...given } })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text
      onOutput(output, child)
    })
  }
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, output })))
}

test('a program is started with the pinned Node and its arguments, and its exit code is returned', async () => {
  write(
    'quickstart/src/shard.ts',
    'const code: number = 7\nconsole.log(process.execPath, process.argv.slice(2).join("+"))\nprocess.exit(code)',
  )

  const { code, output } = await launch(['start', '--days', '3'])

  expect(code).toBe(7)
  expect(output).toContain(`${pinnedNodePath()} --days+3`.replace(ROOT, ''))
})

test('programs that cannot be bundled are reported, and the command continues', async () => {
  rmSync(path.join(root, BUNDLES))
  write('quickstart/src/shard.ts', 'process.exit(7)')

  const { code, output } = await launch(['start'])

  expect(code).toBe(7)
  expect(output).toMatch(/^vacancy: programs run from their sources and start more slowly; bundling failed: /m)
})

test('the first Ctrl-C during an install ends it, even if npm does not (it used to be ignored)', async () => {
  write('package-lock.json', { packages: { '': {}, 'node_modules/new': { version: '1.0.0' } } })
  write('npm.js', `process.on('SIGINT', () => {}); console.error('npm runs'); setInterval(() => {}, 1000)`)

  let sent = false
  const { code, output } = await launch(
    ['start'],
    (text, child) => {
      if (sent || !text.includes('npm runs')) return
      sent = true
      child.kill('SIGINT')
    },
    { npm_execpath: path.join(root, 'npm.js') },
  )

  expect(code).toBe(130)
  expect(output).toContain('installing packages (node_modules/new is missing); 1.1 GB')
})

test('a folder of data that is a file is refused before anything is installed', async () => {
  write('package-lock.json', { packages: { '': {}, 'node_modules/new': { version: '1.0.0' } } })
  write('taken', '')

  const { code, output } = await launch(['start', '--dir', 'taken'])

  expect(code).toBe(1)
  expect(output.trimEnd().split('\n')).toEqual([expect.stringContaining('is a file, not a folder. Choose another')])
})

test('a signal reaches the program once, even if terminal and npm repeat it', async () => {
  write(
    'quickstart/src/shard.ts',
    `let signals = 0
     process.on('SIGINT', () => { signals += 1; console.log('stopping'); setTimeout(() => process.exit(20 + signals), 300) })
     setInterval(() => {}, 1000)
     console.log('up')`,
  )

  let sent = false
  const { code } = await launch(['start'], (output, child) => {
    if (sent || !output.includes('up')) return
    sent = true
    child.kill('SIGINT')
    child.kill('SIGINT')
  })

  expect(code).toBe(21)
})

test.skipIf(!canUnshare)('nothing starts where the loopback interface is down, though listening works there', () => {
  const command = ['--map-root-user', '--net', process.execPath, 'scripts/launch.mjs', 'start']
  const { status, stderr } = spawnSync('unshare', command, { cwd: root, encoding: 'utf8' })

  expect(stderr).toContain('ip link set lo up')
  expect(status).not.toBe(0)
})

test('a program ended by a signal returns 128 plus the signal number', async () => {
  write('quickstart/src/shard.ts', 'process.kill(process.pid, "SIGKILL")')

  expect((await launch(['start'])).code).toBe(137)
})

test('the tests end in one line that counts failed tests, broken files and failed hooks', async () => {
  write(
    'quickstart/src/mixed.test.ts',
    `import { beforeAll, describe, expect, test } from 'vitest'
     test('right', () => expect(1).toBe(1))
     test('wrong', () => expect(1).toBe(2))
     test.skip('left out', () => {})
     describe('a hook', () => { beforeAll(() => { throw new Error('no') }); test('never runs', () => {}) })`,
  )
  write('quickstart/src/broken.test.ts', "import './missing.ts'")

  const { code, output } = await launch(['test'])

  expect(code).not.toBe(0)
  const lines = output.trimEnd().split('\n')
  expect(lines.slice(-2)).toEqual(['2 skipped', '1 passed, 3 failed'])
  // Failures are repeated at the end, since a long log may be truncated.
  expect(lines.filter((line) => line.startsWith('failed: ')).sort()).toEqual([
    expect.stringMatching(/^failed: quickstart\/src\/broken\.test\.ts: .*missing/),
    'failed: quickstart/src/mixed.test.ts > a hook: no',
    'failed: quickstart/src/mixed.test.ts > wrong: expected 1 to be 2 // Object.is equality',
  ])
})

test('passing tests end in exit code 0, and a run without tests fails', async () => {
  write('quickstart/src/right.test.ts', "import { test } from 'vitest'\ntest('right', () => {})")

  const right = await launch(['test'])
  const none = await launch(['test', 'no-such-file'])

  expect(right).toMatchObject({ code: 0, output: expect.stringMatching(/\n1 passed, 0 failed\n$/) })
  expect(none.code).not.toBe(0)
  expect(none.output).toMatch(/\n0 passed, \d failed\n$/)
})

test('browser tests run after the others, also when one of those failed, and both are counted', async () => {
  const ended = path.join(root, 'vitest-ended')
  write(
    'quickstart/src/mixed.test.ts',
    `import { writeFileSync } from 'node:fs'
     import { afterAll, expect, test } from 'vitest'
     afterAll(() => writeFileSync('${ended}', ''))
     test('right', () => {})
     test('wrong', () => expect(1).toBe(2))`,
  )
  write('e2e/playwright.config.ts', '')
  write('node_modules/@playwright/test/package.json', { type: 'module' })
  write(
    'node_modules/@playwright/test/cli.js',
    `import { existsSync, writeFileSync } from 'node:fs'
     console.log(existsSync('${ended}') ? 'in the browser, afterwards' : 'in the browser, too early')
     const counts = { passed: 1, skipped: 1, failures: ['a page: no'] }
     writeFileSync(process.env.VACANCY_TEST_COUNTS, JSON.stringify(counts))
     process.exitCode = 1`,
  )

  const { code, output } = await launch(['test'], undefined, { CHROMIUM_PATH: process.execPath })

  expect(code).toBe(1)
  expect(output).toContain('\nin the browser, afterwards\n')
  expect(output).toMatch(/\nfailed: a page: no\n1 skipped\n2 passed, 2 failed\n$/)
})

test('`npm test` leaves long tests out, unless they are named', async () => {
  write('quickstart/src/quick.test.ts', "import { test } from 'vitest'\ntest('quick', () => {})")
  write('quickstart/src/some.program.test.ts', "import { test } from 'vitest'\ntest('program', () => {})")
  write('quickstart/src/some.long.test.ts', "import { test } from 'vitest'\ntest('long', () => {})")

  expect((await launch(['test'])).output).toMatch(/\n2 passed, 0 failed\n$/)
  expect((await launch(['test', 'some'])).output).toMatch(/\n2 passed, 0 failed\n$/)
  expect((await launch(['test:all'])).output).toMatch(/\n3 passed, 0 failed\n$/)
})

test('the parts of all tests run each file once', async () => {
  for (const name of ['a', 'b', 'c'])
    write(
      `quickstart/src/${name}.long.test.ts`,
      `import { test } from 'vitest'\ntest('${name}', () => console.log('ran ${name}'))`,
    )
  const ran = async (part) =>
    [...(await launch(['test:all', '--part', part])).output.matchAll(/ran ([abc])\n/g)].map(([, name]) => name)

  expect([...(await ran('1/2')), ...(await ran('2/2'))].sort()).toEqual(['a', 'b', 'c'])
})

test('arguments of test:all that are no part are refused by name', async () => {
  expect(await launch(['test:all', '--prat', '1/2'])).toEqual({
    code: 64,
    output: 'vacancy: test:all: unknown argument --prat 1/2; usage: --part 1/4\n',
  })
})

test.runIf(hasGit)(
  '`npm test` has one seed, all tests draw a seed from the commit, and a given seed is used',
  async () => {
    write(
      'quickstart/src/seed.test.ts',
      "import { test } from 'vitest'\ntest('any', () => console.log('drawn from', process.env.VACANCY_SEED))",
    )
    write('.gitignore', 'node_modules\n.turbo\n')
    const git = (...args) => execFileSync('git', args, { cwd: root })
    git('init', '--quiet')
    git('add', '--all')
    git('-c', 'user.name=n', '-c', 'user.email=e', '-c', 'commit.gpgsign=false', 'commit', '--quiet', '--message', 'm')
    const seedOf = async (command, given) =>
      (await launch([command], undefined, given)).output.match(/drawn from (\d+)/)?.[1]

    const first = await seedOf('test:all')

    expect(first).toMatch(/^\d+$/)
    expect(await seedOf('test:all')).toBe(first)
    expect(await seedOf('test:all', { VACANCY_SEED: '77' })).toBe('77')
    expect(await seedOf('test')).toBe(await seedOf('test'))
    write('changed', 'since')
    expect(await seedOf('test:all')).not.toBe(first)
  },
)

test('a failed build is shown and nothing is started', async () => {
  write('quickstart/package.json', {
    name: 'quickstart',
    version: '0.0.0',
    scripts: { build: 'echo kernel is wrong; exit 3' },
  })
  write('quickstart/src/shard.ts', 'console.log("up and running")')

  const { code, output } = await launch(['start'])

  expect(code).not.toBe(0)
  expect(output).toContain('kernel is wrong')
  expect(output).not.toContain('up and running')
})

test('an unknown command ends with exit code 64 and lists the known ones', async () => {
  const { code, output } = await launch(['strat'])

  expect(code).toBe(64)
  expect(output).toContain('unknown command "strat"; available: start, start:node, start:shard, start:platform, test')
})

test('an installation is compared with the lockfile by content', () => {
  const entry = { version: '1.0.0', integrity: 'sha512-a' }
  const check = (wanted, installed) => {
    write('package-lock.json', { packages: { '': {}, quickstart: {}, ...wanted } })
    write('node_modules/.package-lock.json', { packages: installed })
    return installFault(root)
  }

  expect(check({ 'node_modules/a': entry }, { 'node_modules/a': entry, quickstart: {} })).toBe('')
  expect(check({ 'node_modules/a': { ...entry, optional: true } }, {})).toBe('')
  expect(check({ 'node_modules/a': entry }, {})).toBe('node_modules/a is missing')
  expect(check({ 'node_modules/a': { ...entry, version: '2.0.0' } }, { 'node_modules/a': entry })).toContain(
    'another version',
  )
  expect(check({}, { 'node_modules/a': entry })).toBe('node_modules/a is no longer used')
  rmSync(path.join(root, 'node_modules'), { recursive: true })
  expect(installFault(root)).toBe('nothing is installed yet')
})

test('without a pinned Node, the running one is used from version 24; an older one gets an error in one line', () => {
  rmSync(path.join(root, 'node_modules'), { recursive: true })

  expect(findNode(root, { path: '/usr/bin/node', version: 'v24.0.0' })).toEqual({ path: '/usr/bin/node' })
  expect(findNode(root, { path: '/usr/bin/node', version: 'v20.20.2' }).fix).toMatch(
    /^Vacancy needs Node 24 or newer, this is v20\.20\.2/,
  )
})

test('a pinned Node that cannot run here (musl) is skipped', () => {
  rmSync(path.join(root, 'node_modules'), { recursive: true })
  const pinned = pinnedNodePath(root)
  write(path.relative(root, pinned), 'not a program')

  expect(findNode(root, { path: '/usr/bin/node', version: 'v26.0.0' })).toEqual({ path: '/usr/bin/node' })
})
