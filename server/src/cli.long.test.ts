import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { connect } from 'node:tls'
import { LIVE } from '@vacancy/shared/contract'
import { until } from '@vacancy/testkit/until'
import { afterEach, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { callerOf, personOf } from './testing/control-plane.ts'

const VACANCY = resolve(import.meta.dirname, '../../bin/vacancy.mjs')
const folders: string[] = []
const running = new Set<ChildProcess>()

afterEach(async () => {
  for (const child of running) child.kill('SIGKILL')
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-cli-'))
  folders.push(folder)
  return folder
}

type Started = {
  readonly child: ChildProcess
  readonly url: string
  readonly out: () => string
  readonly err: () => string
  /** Resolves with the exit code. */
  readonly ended: Promise<number | null>
}

/** Starts it and waits until it serves and has printed the expected line. */
async function start(args: readonly string[], until: RegExp): Promise<Started> {
  const child = spawn(process.execPath, [VACANCY, 'control-plane', '--web=false', '--listen-port=0', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running.add(child)
  let out = ''
  let err = ''
  const ended = new Promise<number | null>((done) =>
    child.once('exit', (code) => {
      running.delete(child)
      done(code)
    }),
  )
  child.stderr?.on('data', (chunk) => {
    err += chunk
  })
  await new Promise<void>((served, failed) => {
    child.stdout?.on('data', (chunk) => {
      out += chunk
      if (until.test(out)) served()
    })
    void ended.then((code) => failed(new Error(`ended with exit code ${code}: ${err}`)))
  })
  const url = /^serving: (.*)$/m.exec(out)?.[1] as string
  return { child, url, out: () => out, err: () => err, ended }
}

function vacancy(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [VACANCY, ...args], {
    encoding: 'utf8',
    timeout: 240_000,
  })
  return { status, stdout, stderr }
}

const codeOf = (text: string) => /#code=([\w-]+)/.exec(text)?.[1]

test('--help lists every flag and key', () => {
  const { status, stdout } = vacancy('control-plane', '--help')

  expect(status).toBe(0)
  for (const flag of ['--config', '--sign-in', '--listen-port', '--database-url', '--nodes', '--trust-proxy'])
    expect(stdout).toContain(flag)
  expect(vacancy('control-plane', 'link', '--help').stdout).toContain('--person')
})

test('configuration errors are printed one per line, with exit code 64', () => {
  const file = join(newFolder(), 'control-plane.yml')
  writeFileSync(file, 'base_url: nowhere\nregistry: somewhere\n')

  const { status, stderr } = vacancy('control-plane', '--config', file)

  expect(status).toBe(64)
  expect(stderr.trimEnd().split('\n').length).toBe(2)
  const secret = vacancy('control-plane', '--node-admin-token', 's3cret')
  expect(secret.status).toBe(64)
  expect(secret.stderr).not.toContain('s3cret')
})

test('the first start prints a set-up link, and the admin stays signed in after a restart', async () => {
  const dataDir = newFolder()
  const first = await start(['--data-dir', dataDir], /^set-up: .*\n/m)
  const password = 'correct horse battery'
  const made = await callerOf(first.url, {}).call('POST', '/api/v1/set-up', {
    code: codeOf(first.out()),
    name: 'ada',
    password,
  })
  expect(made.status).toBe(201)
  expect(first.err()).not.toContain(password)

  first.child.kill('SIGTERM')
  expect(await first.ended).toBe(0)
  const second = await start(['--data-dir', dataDir], /^serving: .*\n/m)

  const again = callerOf(second.url, personOf(first.url, made).headers)
  expect((await again.call('GET', '/api/v1/me')).body.person.name).toBe('ada')
  expect(second.out()).not.toContain('set-up')
  second.child.kill('SIGTERM')
  expect(await second.ended).toBe(0)
})

test('--sign-in prints a link at every start, and `link` prints one while the server runs', async () => {
  const dataDir = newFolder()
  const plane = await start(['--data-dir', dataDir, '--sign-in', 'ada'], /^sign-in: .*\n/m)
  const anonymous = callerOf(plane.url, {})

  const admin = await anonymous.call('POST', '/api/v1/session/link', { code: codeOf(plane.out()) })
  expect(admin.body.person).toMatchObject({ name: 'ada', role: 'admin' })

  const port = new URL(plane.url).port
  const link = vacancy('control-plane', 'link', '--data-dir', dataDir, '--listen-port', port, '--person', 'ada')
  expect(link.stdout).toMatch(new RegExp(`^${plane.url}/sign-in#code=[\\w-]{43}\n$`))
  const again = await anonymous.call('POST', '/api/v1/session/link', { code: codeOf(link.stdout) })
  expect(again.status).toBe(200)

  const unknown = vacancy('control-plane', 'link', '--data-dir', dataDir, '--person', 'bob')
  expect(unknown.status).toBe(1)
  expect(unknown.stderr).toBe(
    'vacancy control-plane link: There is no person named bob. Give --create and a role to add the person.\n',
  )
  const added = vacancy('control-plane', 'link', '--data-dir', dataDir, '--person', 'bob', '--create', 'viewer')
  const bob = await anonymous.call('POST', '/api/v1/session/link', { code: codeOf(added.stdout) })
  expect(bob.body.person).toMatchObject({ name: 'bob', role: 'viewer' })
})

test('a port in use ends with exit code 69', async () => {
  const plane = await start(['--data-dir', newFolder()], /^set-up: .*\n/m)
  const port = new URL(plane.url).port

  const { status, stderr } = vacancy('control-plane', '--web=false', '--data-dir', newFolder(), '--listen-port', port)

  expect(status).toBe(69)
  expect(stderr).toContain(`Cannot listen on 127.0.0.1:${port}`)
})

test('a second control plane on the same folder ends with exit code 65; after a crash the next one starts', async () => {
  const dataDir = newFolder()
  const first = await start(['--data-dir', dataDir], /^set-up: .*\n/m)

  const second = vacancy('control-plane', '--web=false', '--data-dir', dataDir, '--listen-port', '0')
  expect(second.status).toBe(65)
  expect(second.stderr).toContain(`${dataDir} is in use by another control plane`)

  first.child.kill('SIGKILL')
  await first.ended
  const third = await start(['--data-dir', dataDir], /^set-up: .*\n/m)
  expect((await callerOf(third.url, {}).call('GET', '/ready')).status).toBe(200)
})

test('SIGHUP loads a new certificate, and keeps the current one when the files are invalid', async () => {
  const folder = newFolder()
  const files = { '--tls-cert': join(folder, 'console.pem'), '--tls-key': join(folder, 'console.key') }
  const make = () =>
    vacancy('certs', 'node', '--ca', folder, '--node-id', 'console', '--host', '127.0.0.1', '--out', folder, '--force')
  expect(vacancy('certs', 'init', '--out', folder).status).toBe(0)
  expect(make().status).toBe(0)
  const plane = await start(['--data-dir', newFolder(), ...Object.entries(files).flat()], /^set-up: .*\n/m)
  const fingerprint = () =>
    new Promise<string>((found, failed) => {
      const { port } = new URL(plane.url)
      const ca = readFileSync(join(folder, 'ca.pem'))
      const socket = connect({ host: '127.0.0.1', port: Number(port), ca }, () => {
        found(socket.getPeerCertificate().fingerprint256)
        socket.end()
      }).once('error', failed)
    })
  const before = await fingerprint()
  expect(plane.out()).toMatch(/^set-up: https:/m)

  expect(make().status).toBe(0)
  plane.child.kill('SIGHUP')
  const after = await until('the new one is served', async () => {
    const now = await fingerprint()
    return now !== before && now
  })
  writeFileSync(files['--tls-key'], 'no key')
  plane.child.kill('SIGHUP')
  await until('the error is logged', () => plane.err().includes('holds no private key'))

  expect(await fingerprint()).toBe(after)
  plane.child.kill('SIGTERM')
  expect(await plane.ended).toBe(0)
}, 240_000)

test('SIGTERM notifies live channels, finishes requests in flight, and exits with 0', async () => {
  const plane = await start(['--data-dir', newFolder(), '--sign-in', 'ada'], /^sign-in: .*\n/m)
  const signedIn = await callerOf(plane.url, {}).call('POST', '/api/v1/session/link', { code: codeOf(plane.out()) })
  const admin = personOf(plane.url, signedIn)
  const socket = new WebSocket(`${plane.url.replace('http', 'ws')}${LIVE.path}`, { headers: { ...admin.headers } })
  const frames: { t: string }[] = []
  socket.on('message', (data) => frames.push(JSON.parse(String(data))))
  await new Promise((open) => socket.once('open', open))
  const closed = new Promise((done) => socket.once('close', done))
  const body = JSON.stringify({ next: 'correct horse battery' })
  const headers = { ...admin.headers, 'content-type': 'application/json', 'content-length': body.length }
  const inFlight = request(`${plane.url}/api/v1/me/password`, {
    method: 'PUT',
    headers: { ...headers, expect: '100-continue' },
  })
  const answered = once(inFlight, 'response')
  inFlight.flushHeaders()
  await once(inFlight, 'continue')

  plane.child.kill('SIGTERM')

  await closed
  expect(frames.at(-1)?.t).toBe('bye')
  inFlight.end(body)
  const [answer] = await answered
  expect(answer.statusCode).toBe(204)
  expect(await plane.ended).toBe(0)
})
