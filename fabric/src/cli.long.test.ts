import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { get as getOverTls } from 'node:https'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { eventually } from '@vacancy/testkit/until'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { REGISTRY_FLAGS, RESOLVER_FLAGS } from './config.ts'
import { AUTHORITY, CALLER, SERVER, STRANGER } from './testing/certificates.ts'

const PROGRAM = path.join(import.meta.dirname, '../../bin/vacancy.mjs')

let folder: string

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'vacancy-fabric-'))
  writeFileSync(inFolder('codecs.yml'), 'rate_features: [breakfast, refundable]\nother: 1\n')
})

const running = new Set<Program>()

// The folder is deleted when no process writes to it any more.
afterEach(async () => {
  for (const { child, ended } of running) {
    child.kill('SIGKILL')
    await ended
  }
  running.clear()
  rmSync(folder, { recursive: true, force: true })
})

const inFolder = (name: string) => path.join(folder, name)

type Ended = { readonly code: number | null; readonly signal: string | null }
type Program = {
  readonly output: () => string
  readonly ended: Promise<Ended>
  readonly child: ChildProcess
}

function launch(args: readonly string[], environment: Record<string, string> = {}): Program {
  const child = spawn(process.execPath, [PROGRAM, ...args], { cwd: folder, env: { ...process.env, ...environment } })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      output += chunk
    })
  const ended = new Promise<Ended>((resolve) => child.once('close', (code, signal) => resolve({ code, signal })))
  const program = { output: () => output, ended, child }
  running.add(program)
  return program
}

async function serve(args: readonly string[], environment?: Record<string, string>) {
  const program = launch(args, environment)
  const address = await eventually(
    () => {
      const found = /^serving: (https?) (\S+:\d+)$/m.exec(program.output())
      if (program.child.exitCode === null) expect(found, program.output()).not.toBeNull()
      return found
    },
    { timeout: 30_000 },
  )
  if (!address) throw new Error(program.output())
  const base = `${address[1]}://${address[2]}`
  const ask = async (where: string, body?: object, headers: Record<string, string> = {}) => {
    const answer = await fetch(
      base + where,
      body ? { method: 'POST', body: JSON.stringify(body), headers } : { headers },
    )
    const text = await answer.text()
    return { status: answer.status, text, json: text.startsWith('{') ? JSON.parse(text) : undefined }
  }
  const end = async (signal: NodeJS.Signals) => {
    program.child.kill(signal)
    return await program.ended
  }
  return { ...program, base, ask, end }
}

const REGISTRY = ['registry', '--addr', '127.0.0.1', '-p', '0'] as const
const node = (id: string) => ({ kind: 'node', id, zone: 'z1', shard: 's1' })

test.each([
  ['registry', REGISTRY_FLAGS],
  ['resolver', RESOLVER_FLAGS],
])('%s --help names every flag', async (name, flags) => {
  const { ended, output } = launch([name, '--help'])

  expect((await ended).code).toBe(0)
  for (const [flag, { summary }] of Object.entries(flags)) {
    expect(output()).toContain(`--${flag}`)
    expect(output()).toContain(summary)
  }
})

test.each([
  [['registry', '--prot', '1'], 64, 'unknown flag --prot; did you mean --port?'],
  [['registry', '--port', '70000'], 64, '--port: 70000 is not a whole number from 0 to 65535'],
  [['registry', '-p', 'x'], 64, '--port: "x" is not a whole number'],
  [['registry', '--buffer-ms', '9'], 64, '--buffer-ms'],
  [['registry', '--heartbeat-timeout-secs', '0'], 64, '--heartbeat-timeout-secs'],
  [['registry', '--segment-conflict', 'last'], 64, 'one of first-wins, reject'],
  [['registry', '--storage', 'disk'], 64, 'one of file, etcd'],
  [['registry', '--storage', 'etcd'], 64, '--storage etcd needs --etcd-endpoints'],
  [['registry', '--etcd-endpoints', 'http://a:1'], 64, 'need --storage etcd'],
  [['registry', '--storage', 'etcd', '--etcd-endpoints', 'ftp://a'], 64, 'ftp://a is not a URL'],
  [['registry', '--storage', 'etcd', '--etcd-endpoints', 'a', '--etcd-prefix', 'a b'], 64, '--etcd-prefix'],
  [['registry', '--storage', 'etcd', '--etcd-endpoints', 'a', '--etcd-user-file', 'none'], 64, 'none cannot be read'],
  [['registry', '--storage', 'etcd', '--etcd-endpoints', 'a', '--etcd-user-file', 'auth.yml'], 64, 'NAME:PASSWORD'],
  [['registry', '--storage', 'etcd', '--etcd-endpoints', 'a', '--etcd-ca', 'auth.yml'], 64, 'no PEM certificate'],
  [['registry', '--codecs-path', 'none.yml'], 64, 'none.yml: does not exist. Name the codec file with --codecs-path'],
  [['registry', '--codecs-path', 'bad.yml'], 64, 'repeats a'],
  [['registry', '--auth-file', 'none.yml'], 64, 'cannot be read'],
  [['registry', '--auth-file', 'auth.yml'], 64, 'role: must be one of admin, component, client, monitoring'],
  [
    ['registry', '--addr', '0.0.0.0'],
    64,
    '--addr 0.0.0.0: everyone who reaches it could change data; give --auth-file',
  ],
  [
    ['router', '--registry-addr', 'r:1', '--resolver-addr', 'r:2', '--listen-host', '::'],
    64,
    '--allow-anonymous if the network admits only those who may',
  ],
  [['registry', '--tls-cert', 'a'], 64, '--tls-cert and --tls-key must be set together'],
  [['registry', '--tls-cert', 'a', '--tls-key', 'b'], 64, 'cannot be read'],
  [['registry', '--state-file', 'bad.yml'], 65, 'bad.yml cannot be used: is not valid JSON'],
  [['registry', '--state-file', 'bad.yml/state.json', '-p', '0'], 65, 'bad.yml/state.json: cannot be read'],
  [['resolver'], 64, 'one of --file, --map and --echo is needed'],
  [['resolver', '--file', 'none.yml'], 64, 'none.yml: cannot be read'],
  [['resolver', '--file', 'bad.yml'], 64, 'the file has shards, bridges, routers and patterns'],
  [['resolver', '--map', 'x'], 64, 'x is not id=host'],
])('%j ends with exit code %i', async (args, code, message) => {
  writeFileSync(inFolder('bad.yml'), 'rate_features: [a, A]\n')
  writeFileSync(inFolder('auth.yml'), 'tokens:\n  - { token: secret-token, role: king }\n')
  const { ended, output } = launch(args)

  expect((await ended).code).toBe(code)
  expect(output()).toContain(message)
  expect(output()).not.toContain('secret-token')
})

test.each([
  ['a port in use ends with exit code 69', ['--state-file', 'other.json'], 69, 'Cannot listen on 127.0.0.1:'],
  ['a state in use ends with exit code 65', [], 65, 'state.json is in use by another registry'],
])('%s', async (_, args, code, message) => {
  const one = await serve([...REGISTRY])
  await one.ask('/register', node('n1'))
  const port = new URL(one.base).port
  const { ended, output } = launch(['registry', '--addr', '127.0.0.1', '--port', port, ...args])

  expect((await ended).code).toBe(code)
  expect(output()).toContain(message)
})

test('GET /config shows each flag with its source: to an admin, and without tokens to this machine', async () => {
  writeFileSync(
    inFolder('auth.yml'),
    'tokens:\n  - { token: of-ops, role: admin }\n  - { token: of-n1, role: component }\n',
  )
  const registry = await serve([...REGISTRY, '--auth-file', 'auth.yml'], { VACANCY_REGISTRY_BUFFER_MS: '50' })
  const resolver = await serve(['resolver', '--port', '0', '--map', 'n1=127.0.0.1'])

  expect((await registry.ask('/config')).status).toBe(401)
  expect((await registry.ask('/config', undefined, { Authorization: 'Bearer of-n1' })).status).toBe(403)
  const { json } = await registry.ask('/config', undefined, { Authorization: 'Bearer of-ops' })
  expect(Object.keys(json)).toEqual(Object.keys(REGISTRY_FLAGS))
  expect(json.port).toEqual({ value: 0, origin: 'flag', at: '--port' })
  expect(json['buffer-ms']).toEqual({ value: 50, origin: 'env', at: 'VACANCY_REGISTRY_BUFFER_MS' })
  expect(json.storage).toEqual({ value: 'file', origin: 'default', at: '' })
  expect((await resolver.ask('/config')).json.map).toEqual({ value: 'n1=127.0.0.1', origin: 'flag', at: '--map' })
  // A page in a browser on this machine.
  expect((await resolver.ask('/config', undefined, { Origin: 'http://evil.example' })).status).toBe(403)
})

test('environment variables set flags, and flags override them', async () => {
  const environment = {
    VACANCY_REGISTRY_PORT: '0',
    VACANCY_REGISTRY_ADDR: '127.0.0.1',
    VACANCY_REGISTRY_STATE_FILE: 'here.json',
  }
  const { end } = await serve(['registry', '--buffer-ms', '10'], { ...environment, VACANCY_REGISTRY_BUFFER_MS: '5' })

  expect(existsSync(inFolder('here.json'))).toBe(true)
  expect((await end('SIGTERM')).code).toBe(0)
})

test.each(['SIGTERM', 'SIGINT'] as const)(
  '%s writes the state, responds to waiting requests, and exits with 0',
  async (signal) => {
    const { ask, end, output } = await serve([...REGISTRY, '--buffer-ms', '60000'])
    await ask('/register', node('n1'))
    const { global_version: since } = (await ask('/versions')).json
    const waiting = ask(`/versions?since=${since}&wait_secs=60`)
    await ask('/health')

    expect((await end(signal)).code).toBe(0)
    expect((await waiting).status).toBe(200)
    expect(readFileSync(inFolder('state.json'), 'utf8')).toContain('"n1"')
    expect(output()).toContain('"msg":"stopped"')
  },
)

test('after kill -9 at any time the written state is complete and can be loaded', async () => {
  let epoch: string | undefined
  let last = 0
  let kept = 0
  for (let round = 0; round < 4; round++) {
    const { ask, end } = await serve([...REGISTRY, '--buffer-ms', '10'])
    const versions = (await ask('/versions')).json
    expect(epoch ?? versions.epoch).toBe(versions.epoch)
    expect(versions.global_version).toBeGreaterThanOrEqual(last)
    const { segments } = round === 0 ? { segments: [] } : (await ask('/shards/s1/segments')).json
    expect(segments.length).toBeGreaterThanOrEqual(kept)
    epoch = versions.epoch
    // Continuous changes, so that the kill interrupts a write.
    for (let i = segments.length; i < segments.length + 30; i++) {
      const names = Array.from({ length: i + 1 }, (_, n) => `segment_${n}`)
      expect((await ask('/shards/s1/segments', { zone: 'z1', segments: names })).status).toBe(200)
    }
    const file = readFileSync(inFolder('state.json'), 'utf8')
    kept = (JSON.parse(file).claims[0]?.segments ?? []).length
    last = JSON.parse(file).global_version
    expect((await end('SIGKILL')).signal).toBe('SIGKILL')
  }
})

test('a damaged state is replaced by its backup; if both are damaged, only with --reset-state', async () => {
  const one = await serve([...REGISTRY, '--buffer-ms', '10'])
  await one.ask('/register', node('n1'))
  await eventually(() => expect(readFileSync(inFolder('state.json'), 'utf8')).toContain('"n1"'))
  await one.ask('/shards/s1/segments', { zone: 'z1', segments: ['a'] })
  await one.end('SIGTERM')
  writeFileSync(inFolder('state.json'), '{"format":1,')
  const two = await serve([...REGISTRY])
  expect((await two.ask('/shards/s1/nodes')).json.nodes).toEqual(['n1'])
  expect(two.output()).toContain('the state before it is used')
  await two.end('SIGKILL')

  writeFileSync(inFolder('state.json'), '')
  writeFileSync(inFolder('state.json.bak'), 'x')
  const three = launch([...REGISTRY])
  expect((await three.ended).code).toBe(65)
  expect(three.output()).toContain('--reset-state')
  const four = await serve([...REGISTRY, '--reset-state'])
  expect((await four.ask('/shards')).json).toEqual({ shards: {} })
})

test('tokens are reloaded when their file changes, and with SIGHUP', async () => {
  writeFileSync(inFolder('auth.yml'), 'tokens:\n  - { token: first, role: component }\n')
  const { ask, child, output } = await serve([...REGISTRY, '--auth-file', 'auth.yml'])
  const as = async (token: string) => (await ask('/register', node('n1'), { Authorization: `Bearer ${token}` })).status
  expect(await as('first')).toBe(200)
  expect((await ask('/register', node('n1'))).status).toBe(401)

  writeFileSync(inFolder('auth.yml'), 'tokens:\n  - { token: second, role: component }\n')
  child.kill('SIGHUP')
  await eventually(async () => expect(await as('second')).toBe(200), { timeout: 10_000 })
  expect(await as('first')).toBe(401)
  writeFileSync(inFolder('auth.yml'), 'tokens: [')
  child.kill('SIGHUP')
  await eventually(() => expect(output()).toMatch(/keeping the previous/), { timeout: 10_000 })
  expect(await as('second')).toBe(200)
})

test('over TLS only callers with a certificate of the authority are accepted', async () => {
  for (const [name, text] of Object.entries({ 'ca.pem': AUTHORITY, 'cert.pem': SERVER.cert, 'key.pem': SERVER.key }))
    writeFileSync(inFolder(name), text)
  const tls = ['--tls-cert', 'cert.pem', '--tls-key', 'key.pem', '--tls-client-ca', 'ca.pem']
  const { base } = await serve([...REGISTRY, ...tls])
  const ask = (shown: object) =>
    new Promise((resolve) => {
      getOverTls(`${base}/health`, { ca: AUTHORITY, agent: false, ...shown }, (answer) => {
        answer.resume()
        resolve(answer.statusCode)
      }).on('error', () => resolve('refused'))
    })

  expect(base).toMatch(/^https:/)
  expect(await ask(CALLER)).toBe(200)
  expect(await ask({})).toBe('refused')
  expect(await ask(STRANGER)).toBe('refused')
})

test('the resolver serves the table of its flags and its variable, and exits with 0', async () => {
  writeFileSync(inFolder('resolver.yml'), 'bridges: { b: 127.0.2.1 }\n')
  const { ask, end } = await serve(['resolver', '--port', '0', '--file', 'resolver.yml'], {
    VACANCY_RESOLVER_MAP: 'n1=127.0.1.1:7000',
  })

  expect(await ask('/shards/any/nodes/n1')).toMatchObject({ status: 200, text: '127.0.1.1:7000' })
  expect(await ask('/bridges/b')).toMatchObject({ status: 200, text: '127.0.2.1' })
  expect(await ask('/bridges/none')).toMatchObject({ status: 404, json: { error: 'unknown id' } })
  expect((await end('SIGTERM')).code).toBe(0)
})
