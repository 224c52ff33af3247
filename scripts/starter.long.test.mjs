import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { cpSync, globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { ROOT } from './pinned-node.mjs'

const IN_TIME = { timeout: 45_000, interval: 20 }
const SERVING = /^serving: /m
/** Marks processes of this test in their environment. Only Linux shows that of other processes. */
const MARK = 'VACANCY_TEST_MARK'
const test_ = test.runIf(process.platform === 'linux')

let folder
let mark

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'vacancy-starter-'))
  mark = randomUUID()
})

afterEach(async () => {
  for (const { pid } of marked()) endIfThere(pid)
  await vi.waitFor(() => expect(marked()).toEqual([]), IN_TIME)
  rmSync(folder, { recursive: true, force: true })
})

/** Processes started by this test, directly or indirectly, without zombies. */
function marked() {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        if (!readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(`${MARK}=${mark}`)) return []
        return [
          { pid: Number(pid), command: readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim() },
        ]
      } catch (error) {
        // Ended meanwhile, or owned by another user.
        if (['ENOENT', 'ESRCH', 'EACCES', 'EPERM'].includes(error.code)) return []
        throw error
      }
    })
}

function endIfThere(pid) {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if (error.code !== 'ESRCH') throw error
  }
}

function start(command, args, cwd = folder) {
  const { NODE_OPTIONS, ...env } = process.env
  const child = spawn(command, args, { cwd, env: { ...env, [MARK]: mark } })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text
    })
  }
  const ended = new Promise((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })))
  return { child, output: () => output, ended }
}

/** `vacancy` under a Node that reports version 20, so that it starts the pinned one. */
function vacancyOnOldNode(args) {
  const isOld = 'data:text/javascript,Object.defineProperty(process,"version",{value:"v20.0.0"})'
  return start(process.execPath, ['--import', isOld, path.join(ROOT, 'bin/vacancy.mjs'), ...args])
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}

function isListening(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true))
    socket.once('error', () => resolve(false)).once('connect', () => socket.destroy())
  })
}

const file = (name, content) => {
  writeFileSync(path.join(folder, name), content)
  return path.join(folder, name)
}

const services = []

afterEach(() => {
  for (const service of services.splice(0)) service.kill('SIGKILL')
})

/** Starts the dependencies of a shard member, outside of the counted processes. */
async function serve(name) {
  const port = await freePort()
  const args = [path.join(ROOT, 'bin/vacancy.mjs'), name, ...PROGRAMS[name](port)]
  services.push(spawn(process.execPath, args, { cwd: folder, stdio: 'ignore' }))
  await vi.waitFor(async () => expect(await isListening(port)).toBe(true), IN_TIME)
  return `http://127.0.0.1:${port}`
}

/** Arguments of each long-running subcommand; it listens on `port` when it serves. */
const PROGRAMS = {
  run: (port, other) => [
    ...['--config', file('vacancy.yml', 'serving_threads: 1\nmemory_max_bytes: 67108864\n')],
    ...['--codecs', file('codecs.yml', 'rate_features: [breakfast]\n'), '--data-dir', path.join(folder, 'data')],
    ...['--shard-id', 's1', '--node-id', 'n1', '--tcp-port', String(other), '--api-port', String(port)],
  ],
  'run-clustered': async (port, other) => [
    ...['--config', file('vacancy.yml', `serving_threads: 1\nmemory_max_bytes: 67108864\nquic_port: ${other}\n`)],
    ...['--data-dir', path.join(folder, 'data'), '--shard-id', 's1', '--node-id', 'n1', '--zone-id', 'z1'],
    ...[
      '--initial-voters',
      'n1',
      '--registry-addr',
      await serve('registry'),
      '--resolver-addr',
      await serve('resolver'),
    ],
    ...['--insecure-cluster', '--tcp-port', '0', '--api-port', String(port)],
    ...['--tcp-listen-addr', '127.0.0.1', '--api-listen-addr', '127.0.0.1', '--quic-listen-addr', '127.0.0.1'],
  ],
  registry: (port) => [
    ...['--addr', '127.0.0.1', '--port', String(port)],
    ...['--codecs-path', file('codecs.yml', 'rate_features: [breakfast]\n')],
  ],
  resolver: (port) => ['--host', '127.0.0.1', '--port', String(port), '--map', 'n1=127.0.0.1'],
  'control-plane': (port) => [
    ...['--web=false', '--listen-port', String(port), '--data-dir', path.join(folder, 'control')],
  ],
}

test_.each(Object.entries(PROGRAMS))(
  '%s under an old Node ends when its starter is killed; it used to keep running and hold its port',
  async (name, argumentsOf) => {
    const [port, other] = [await freePort(), await freePort()]
    const args = [name, ...(await argumentsOf(port, other))]
    const first = vacancyOnOldNode(args)
    await vi.waitFor(() => expect(first.output()).toMatch(SERVING), IN_TIME)
    const started = marked().filter(({ pid }) => pid !== first.child.pid)
    expect(started.map(({ command }) => command)).toEqual([expect.stringContaining(name)])

    first.child.kill('SIGKILL')
    await first.ended
    const second = vacancyOnOldNode(args)

    await vi.waitFor(() => {
      expect(second.output()).toMatch(SERVING)
      expect(marked().map(({ pid }) => pid)).not.toContain(started[0].pid)
    }, IN_TIME)
    second.child.kill('SIGTERM')
    expect(await second.ended, second.output()).toEqual({ code: 0, signal: null })
    await vi.waitFor(() => expect(marked()).toEqual([]), IN_TIME)
  },
)

/** A clone with the launcher and a program in place of the shard, which starts another one like the shard does. */
function makeRepository(child) {
  for (const script of globSync('scripts/*.mjs', { cwd: ROOT })) {
    if (!script.endsWith('.test.mjs')) cpSync(path.join(ROOT, script), path.join(folder, script))
  }
  const write = (name, content) => {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true })
    file(name, typeof content === 'string' ? content : JSON.stringify(content))
  }
  write('package.json', {
    name: 'repository',
    type: 'module',
    workspaces: [],
    scripts: { start: 'node scripts/launch.mjs start' },
  })
  write('package-lock.json', { name: 'repository', lockfileVersion: 3, packages: { '': {} } })
  write('node_modules/.package-lock.json', { packages: {} })
  write('node_modules/turbo/bin/turbo', '')
  write(
    'quickstart/src/shard.ts',
    `import { spawn } from 'node:child_process'
     import { endingWithUs } from '${path.join(ROOT, 'scripts/starter.mjs')}'
     for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(0))
     process.on('exit', () => child.kill('SIGKILL'))
     const args = ['--import', '${path.join(ROOT, 'scripts/end-with-starter.mjs')}', '-e', ${JSON.stringify(child)}]
     const child = spawn(process.execPath, args, endingWithUs({ stdio: 'inherit', detached: true }))`,
  )
}

const DEAF =
  "process.on('SIGTERM', () => {}); process.on('SIGHUP', () => {}); console.log('is up'); setInterval(() => {}, 999)"

test_.each(['SIGTERM', 'SIGHUP', 'SIGKILL'])(
  '%s to npm ends the programs of npm start, which used to keep running',
  async (signal) => {
    makeRepository(DEAF)
    const npm = start('npm', ['start'])
    await vi.waitFor(() => expect(npm.output()).toContain('is up'), IN_TIME)
    expect(marked().length).toBeGreaterThanOrEqual(4)

    npm.child.kill(signal)

    await vi.waitFor(() => expect(marked()).toEqual([]), IN_TIME)
  },
)

test_.each(['scripts/launch.mjs', 'quickstart/src/shard.ts'])('%s killed leaves nothing below it', async (program) => {
  makeRepository(DEAF)
  const npm = start('npm', ['start'])
  await vi.waitFor(() => expect(npm.output()).toContain('is up'), IN_TIME)
  const found = marked().find(
    ({ command }) => command.includes('node') && command.includes(` ${program}`) && !command.startsWith('sh'),
  )

  process.kill(found.pid, 'SIGKILL')

  await vi.waitFor(() => expect(marked()).toEqual([]), IN_TIME)
})

test_('a closed terminal ends the programs of npm start, which used to keep running', async () => {
  makeRepository(DEAF)
  // util-linux: runs the program in a terminal, and closes it at the end.
  const terminal = start('script', ['--quiet', '--flush', '--return', '--command', 'npm start', 'typescript'])
  await vi.waitFor(() => expect(terminal.output()).toContain('is up'), IN_TIME)

  terminal.child.kill('SIGKILL')

  await vi.waitFor(() => expect(marked()).toEqual([]), IN_TIME)
})

test_('a build that runs when npm is killed ends with it', async () => {
  makeRepository(DEAF)
  file(
    'node_modules/turbo/bin/turbo',
    `require('node:child_process').spawn(process.execPath, ['-e', "require('node:fs').writeFileSync('building', ''); setInterval(() => {}, 999)"])`,
  )
  const npm = start('npm', ['start'])
  await vi.waitFor(() => expect(readdirSync(folder)).toContain('building'), IN_TIME)

  npm.child.kill('SIGKILL')

  await vi.waitFor(() => expect(marked()).toEqual([]), IN_TIME)
})

test('a missing pipe of the starter ends with exit code 64 and one line', async () => {
  const { NODE_OPTIONS, ...env } = process.env
  const child = spawn(process.execPath, [path.join(ROOT, 'bin/vacancy.mjs'), 'run', '--help'], {
    env: { ...env, VACANCY_STARTER_FD: '999' },
  })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text) => {
    errors += text
  })
  const code = await new Promise((resolve) => child.once('close', resolve))

  expect(code).toBe(64)
  expect(errors).toMatch(/^vacancy: VACANCY_STARTER_FD: "999" is not an open pipe: .*\n$/)
})
