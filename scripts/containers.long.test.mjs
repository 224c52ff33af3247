// The image and the services of deploy/compose.yaml in containers, as docs/operators.md#run-in-containers says. No registry of
// images is asked: the base is a Debian made by debootstrap, and PostgreSQL is a server of this machine.
import { execFile, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { pipeline } from 'node:stream'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { allCommandsOf } from '../quickstart/src/testing/blocks.ts'
import { debianRoot } from '../testkit/src/debian.ts'
import { freePort } from '../testkit/src/free-port.ts'
import { findOrInstall } from '../testkit/src/installed.ts'
import { getText } from '../testkit/src/node.ts'
import { startPostgres } from '../testkit/src/postgres.ts'
import { startProgram } from '../testkit/src/program.ts'
import { ROOT } from './pinned-node.mjs'
import { readCompose, readContainerfile, secretsOf } from './testing/containers.mjs'
import { placeOf, smoke, useShard } from './testing/smoke.mjs'

const MAKE_MS = 1_800_000
const TEST_MS = 900_000
const { version } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'))
const IMAGE = `vacancy:${version}`
const BASE = 'localhost/vacancy-base'
/** None that the image knows. */
const USER = 20_000 + (process.pid % 10_000)
const USER_OF_PAGE = 10_001
/** Most files that a container gets here: a machine of CI may allow fewer than the services want. */
const DESCRIPTORS = 12_288
const PG_PORT = 5_432
const [BUILD = '', RUN = '', SECRETS = ''] = allCommandsOf('docs/operators.md').slice(4, 7)
const canTry = process.getuid?.() === 0 && process.platform === 'linux'

const folder = mkdtempSync(path.join(tmpdir(), 'vacancy-containers-'))
const inFolder = (...parts) => path.join(folder, ...parts)
/** Storage and network of its own; runc knows the control groups of more machines than crun. */
const STORAGE = [
  '--root',
  inFolder('storage'),
  '--runroot',
  inFolder('run'),
  '--cgroup-manager',
  'cgroupfs',
  '--runtime',
  'runc',
]
/** Podman raises limits that are not named, which a machine may forbid. */
const LIMITS = ['--ulimit', 'nofile=12288:12288', '--ulimit', 'nproc=4096:4096']
const NETWORK = `vacancy-${process.pid}`

const podman = (...args) => execFileSync('podman', [...STORAGE, ...args], { encoding: 'utf8', maxBuffer: 1 << 28 })
/** The words of a command line that runs `vacancy` in a container, which sees a folder of this machine as /data. */
const inContainer = (data, user, words) => [
  ...['podman', ...STORAGE, 'run', '--rm', '--read-only', '--user', `${user}:${user}`, '--network', 'host', ...LIMITS],
  ...['--volume', `${data}:/data`, IMAGE, ...words],
]
/** Runs a block of the page with commands of this test in place of `podman` and `vacancy`. */
function follow(block, cwd, commands) {
  const functions = Object.entries(commands).map(([name, words]) => `${name}() { ${words}; }\n`)
  const options = { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }
  return execFileSync('bash', ['-ec', `${functions.join('')}${block}`], options)
}
/** `podman WORD` with more flags. */
const podmanWith = (...flags) =>
  `local word=$1; shift; command podman ${STORAGE.join(' ')} $word ${flags.join(' ')} "$@"`

beforeAll(async () => {
  if (!canTry) return
  for (const program of ['podman', 'runc'])
    findOrInstall({ programs: [program], folders: '/usr/sbin', aptPackage: program })
  const { VITEST: _, NODE_OPTIONS: __, ...env } = process.env
  await promisify(execFile)(process.execPath, ['scripts/launch.mjs', 'dist'], { cwd: ROOT, env })
  execFileSync('bash', ['-ec', `tar -C "$1" -c . | podman ${STORAGE.join(' ')} import - ${BASE}`, 'bash', debianRoot()])
  follow(BUILD.replace('debian:bookworm-slim', BASE), ROOT, { podman: podmanWith('--isolation', 'chroot') })
  podman('network', 'create', NETWORK)
}, MAKE_MS)

afterEach(() => {
  if (canTry) podman('rm', '--all', '--force', '--time', '0')
})
afterAll(() => {
  if (canTry) {
    podman('network', 'rm', NETWORK)
    podman('rmi', '--all', '--force')
  }
  rmSync(folder, { recursive: true, force: true })
})

test.runIf(canTry)('the image has a user by number, a health check, and labels', () => {
  const [{ Config, Labels, Healthcheck }] = JSON.parse(podman('image', 'inspect', IMAGE))
  const [user] = readContainerfile().USER

  expect(Config).toMatchObject({ User: user, Entrypoint: ['vacancy'], StopSignal: 'SIGTERM' })
  expect(Healthcheck.Test).toEqual(['CMD', 'vacancy', 'health', '--address', '127.0.0.1:8080'])
  expect(Labels).toMatchObject({
    'org.opencontainers.image.version': version,
    'org.opencontainers.image.licenses': 'Apache-2.0',
  })
})

test.runIf(canTry)('the programs work as any user with a read-only root', { timeout: TEST_MS }, async () => {
  mkdirSync(inFolder('smoke'))
  await smoke(
    placeOf({
      ...{ folder: inFolder('smoke'), inside: '/data', owner: USER },
      commandOf: (words) => inContainer(inFolder('smoke'), USER, words),
    }),
  )
})

test.runIf(canTry)(
  'the node of the page runs, tells its health, and stops by itself',
  { timeout: TEST_MS },
  async () => {
    const data = inFolder('page/data')
    mkdirSync(data, { recursive: true })
    const commandOf = (words) => inContainer(data, USER_OF_PAGE, words)
    const { run, until } = placeOf({ folder: data, inside: '/data', owner: USER_OF_PAGE, commandOf })
    await run('sample', '--packages', '20000', '--shape', 'region', '--out', 'csv')
    await run('build-snapshot', '--shard-id', 's1', '--input-path', 'csv', '--output-path', '.')
    cpSync(path.join(data, 'csv/codecs.yml'), path.join(data, 'codecs.yml'))
    const port = String(await freePort())
    const flags = ['--network', NETWORK, '--ulimit', 'nproc=4096:4096']
    const startWith = async (memory) => {
      const command = RUN.replace('127.0.0.1:7777', `127.0.0.1:${port}`).replace('--memory 5g', `--memory ${memory}`)
      follow(command, inFolder('page'), { podman: podmanWith(...flags) })
      await until('the node is healthy', () => podman('healthcheck', 'run', 'node') || true)
    }
    await startWith('5g')
    expect(JSON.parse(await run('query', 'segments', '--port', port, '--json')).segments.length).toBeGreaterThan(0)
    podman('stop', 'node')
    const [{ State, HostConfig }] = JSON.parse(podman('inspect', 'node'))

    expect(State).toMatchObject({ ExitCode: 0, Status: 'exited' })
    expect(HostConfig).toMatchObject({ Memory: 5 * 1024 ** 3, ReadonlyRootfs: true })

    podman('rm', 'node')
    await startWith('300m')
    const [{ NetworkSettings }] = JSON.parse(podman('inspect', 'node'))
    const [, status] = await getText({ host: NetworkSettings.Networks[NETWORK].IPAddress, apiPort: 8_080 }, '/status')
    const { budget } = JSON.parse(status).memory
    // 192 MiB are for the node itself.
    expect(budget).toBeGreaterThan(0)
    expect(budget).toBeLessThan(108 * 1024 ** 2)
  },
)

/** The services of the file as Compose starts them, but names are lines of /etc/hosts. */
function services(folderOf, prefix) {
  const compose = readCompose()
  const hosts = Object.fromEntries(Object.keys(compose.services).map((name, at) => [name, `${prefix}.${100 + at}`]))
  hosts.postgres = `${prefix}.1`
  const names = Object.entries(hosts).flatMap(([name, host]) => ['--add-host', `${name}:${host}`])
  const flagsOf = (service) => [
    ...['--user', service.user, ...(service.read_only ? ['--read-only'] : [])],
    ...service.tmpfs.flatMap((place) => ['--tmpfs', place]),
    ...service.cap_drop.flatMap((name) => ['--cap-drop', name]),
    ...service.security_opt.flatMap((option) => ['--security-opt', option.replace(/:true$/, '')]),
    ...Object.entries(service.environment ?? {}).flatMap((pair) => ['--env', pair.join('=')]),
    ...['--ulimit', 'nproc=4096:4096', '--ulimit', `nofile=${Math.min(service.ulimits?.nofile ?? 4_096, DESCRIPTORS)}`],
    ...(service.mem_limit ? ['--memory', service.mem_limit] : []),
    ...Object.entries(secretsOf(service)).flatMap(([file, secret]) => [
      ...['--volume', `${path.join(folderOf, compose.secrets[secret].file)}:/run/secrets/${file}:ro`],
    ]),
    ...(service.volumes ?? []).flatMap((volume) => ['--volume', path.join(folderOf, volume)]),
  ]
  return {
    hosts,
    start(name) {
      const { command, ...service } = compose.services[name]
      const flags = ['run', '--name', name, '--network', NETWORK, '--ip', hosts[name], ...names, ...flagsOf(service)]
      return startProgram([...STORAGE, ...flags, service.image, ...command], { program: 'podman', isBound: true })
    },
    isHealthy: (name) => podman('exec', name, ...compose.services[name].healthcheck.test.slice(1)) !== '',
    needsOf: (name) => Object.keys(compose.services[name].depends_on ?? {}).filter((each) => each !== 'postgres'),
  }
}

test.runIf(canTry)('the services of compose.yaml start in their order and work', { timeout: TEST_MS }, async () => {
  const cwd = inFolder('compose')
  mkdirSync(cwd)
  const place = placeOf({ folder: cwd, inside: '/data', commandOf: (words) => inContainer(cwd, 0, words) })
  const { run, until } = place
  follow(SECRETS, cwd, { vacancy: `${inContainer(cwd, 0, []).join(' ')} "$@"` })
  await run('sample', '--packages', '20000', '--shape', 'region', '--out', 'csv')
  for (const node of ['n1', 'n2'])
    await run('build-snapshot', '--shard-id', 's1', '--input-path', 'csv', '--output-path', node)
  cpSync(path.join(cwd, 'csv/codecs.yml'), path.join(cwd, 'secrets/codecs.yml'))
  const [{ subnets }] = JSON.parse(podman('network', 'inspect', NETWORK))
  const { hosts, start, isHealthy, needsOf } = services(cwd, subnets[0].subnet.replace(/\.0\/24$/, ''))
  const running = new Map()
  const postgres = await startPostgres()
  const address = new URL(await postgres.createDatabase())
  writeFileSync(path.join(cwd, 'secrets/database.url'), address.href.replace(address.host, `postgres:${PG_PORT}`))
  // PostgreSQL listens on loopback.
  const relay = createServer((near) => pipeline(near, connect(Number(address.port), '127.0.0.1'), near, () => {}))
  try {
    for (const name of Object.keys(hosts).filter((each) => each !== 'postgres')) {
      mkdirSync(path.join(cwd, name), { recursive: true })
      execFileSync('chown', ['-R', '10001', path.join(cwd, name)])
      for (const needed of needsOf(name)) await until(`${needed} is healthy`, () => isHealthy(needed))
      // The address of the network is there with its first container.
      if (name === 'control-plane') await once(relay.listen(PG_PORT, hosts.postgres), 'listening')
      running.set(name, start(name))
    }
    const plane = running.get('control-plane')
    await plane.printed(/^set-up: http:\/\/localhost:8000\/sign-in#code=/m)
    // Not podman(), which would hold the relay up.
    const link = startProgram(
      [...STORAGE, 'exec', 'control-plane', 'vacancy', 'control-plane', 'link', '--person', 'ada', '--create', 'admin'],
      { program: 'podman' },
    )
    const [, code] = await link.printed(/#code=(\S+)/)
    const nodes = Object.fromEntries(Object.entries(hosts).filter(([name]) => /^n\d$/.test(name)))
    const url = `http://${hosts['control-plane']}:8000`
    await useShard(place, {
      hosts: nodes,
      url,
      code,
      token: '/data/secrets/admin.token',
    })
    for (const [name, program] of [...running].reverse()) expect([name, await program.stop()]).toEqual([name, 0])
  } finally {
    relay.close()
    await postgres.close()
  }
})
