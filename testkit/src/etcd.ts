/**
 * A private etcd server for tests: found on this machine, or unpacked from its Debian package into a cache folder, and
 * started in a temporary folder on free ports. Without one the tests fail with instructions.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './free-port.ts'
import { findOrUnpack } from './installed.ts'
import { until } from './until.ts'

export type Etcd = {
  readonly endpoint: string
  /** Its data folder, for a copy while it does not run. */
  readonly data: string
  /** A prefix that no test has used. */
  readonly newPrefix: () => string
  /** Ends it like a failure of its machine. */
  readonly kill: () => Promise<void>
  /** Starts it again, with the same data on the same port. */
  readonly start: () => Promise<void>
  /** Stops its execution, with open connections, until it is resumed. */
  readonly freeze: () => void
  readonly resume: () => void
  /** A call of the JSON gateway. */
  readonly call: (path: string, body: object) => Promise<Record<string, unknown>>
  /** Forgets all data, as if another server had taken its place. */
  readonly wipe: () => Promise<void>
  readonly close: () => Promise<void>
}

/** Files of a server that speaks TLS, and the authority of its certificate as PEM. */
export type EtcdTls = { readonly cert: string; readonly key: string; readonly authority: string }

/** @param flags further ones of etcd */
export async function startEtcd(flags: readonly string[] = [], tls?: EtcdTls): Promise<Etcd> {
  const program = findEtcd()
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-etcd-'))
  const [port, peerPort] = [await freePort(), await freePort()]
  const [endpoint, peer] = [`${tls ? 'https' : 'http'}://127.0.0.1:${port}`, `http://127.0.0.1:${peerPort}`]
  const data = join(folder, 'data')
  let server: ChildProcess | undefined
  let prefixes = 0
  const call = async (path: string, body: object) =>
    JSON.parse(await send(endpoint + path, JSON.stringify(body), tls?.authority)) as Record<string, unknown>
  const end = () => server?.kill('SIGKILL')
  const start = async () => {
    const places = [
      ['--data-dir', data],
      ['--listen-client-urls', endpoint],
      ['--advertise-client-urls', endpoint],
      ['--listen-peer-urls', peer],
      ['--initial-advertise-peer-urls', peer],
      ['--initial-cluster', `default=${peer}`],
      // An election is over soon, and leases may be short.
      ['--heartbeat-interval', '50'],
      ['--election-timeout', '250'],
      ...(tls
        ? [
            ['--cert-file', tls.cert],
            ['--key-file', tls.key],
          ]
        : []),
    ].flat()
    const running = spawn(program, [...places, '--logger', 'zap', ...flags], { stdio: 'ignore', cwd: folder })
    server = running
    await until('etcd answers', async () => {
      if (running.exitCode !== null) throw new Error(`etcd ended with exit code ${running.exitCode}`)
      const { health } = JSON.parse(await send(`${endpoint}/health`, undefined, tls?.authority)) as { health: string }
      return health === 'true'
    })
  }
  const kill = async () => {
    const running = server
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return
    const ended = new Promise((resolve) => running.once('exit', resolve))
    running.kill('SIGKILL')
    await ended
  }
  process.once('exit', end)
  await start()
  return {
    endpoint,
    data,
    newPrefix() {
      prefixes += 1
      return `/test/${prefixes}/`
    },
    kill,
    start,
    freeze: () => void server?.kill('SIGSTOP'),
    resume: () => void server?.kill('SIGCONT'),
    call,
    async wipe() {
      await kill()
      rmSync(data, { recursive: true, force: true })
      await start()
    },
    async close() {
      process.off('exit', end)
      await kill()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** A GET, or a POST with a body. */
function send(url: string, body: string | undefined, ca: string | undefined): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { method: body === undefined ? 'GET' : 'POST', agent: false, ...(ca !== undefined && { ca }) }
    const request = (ca === undefined ? requestHttp : requestHttps)(url, options, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      response.once('end', () => resolve(text)).once('error', reject)
    })
    request.once('error', reject).end(body)
  })
}

/** The program: `ETCD_BIN`, on the PATH, or from the Debian package. */
function findEtcd(): string {
  const named = process.env['ETCD_BIN']
  if (named !== undefined) return named
  const [found] = findOrUnpack(['etcd'], 'etcd-server') ?? []
  if (found !== undefined) return found
  throw new Error(
    'These tests need an etcd server: install one (Debian: apt-get install etcd-server; macOS: brew install etcd) so that etcd is on the PATH, or name the program with ETCD_BIN.',
  )
}
