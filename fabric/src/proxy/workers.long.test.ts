import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { encodeReply } from '@vacancy/shared/wire'
import { type Program, startProgram } from '@vacancy/testkit/program'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createObserved, type Observed, observe, slowRequests, sumObserved } from './observed.ts'
import { CONTEXT, openStandIn, type StandIn } from './testing/stand-in.ts'
import { canSharePorts } from './workers.ts'

const PROGRAM = path.join(import.meta.dirname, '../../../bin/vacancy.mjs')
const WORKERS = 3
const READ = JSON.stringify({ command: 'PROPEXIST', body: { property_id: 'p1' } })

let folder: string
let behind: StandIn
const running: Program[] = []

beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'vacancy-workers-'))
  behind = await openStandIn('node')
  behind.answer = ({ id }) => encodeReply('PROPEXIST', id, { exists: true }, CONTEXT)
})

afterEach(async () => {
  for (const program of running.splice(0)) if (program.isRunning()) await program.stop()
  await behind.close()
  rmSync(folder, { recursive: true, force: true })
})

function launch(args: readonly string[]): Program {
  const common = ['--mode', 'standalone', '--upstream-addr', '127.0.0.1', '--upstream-port', String(behind.port)]
  const program = startProgram(
    [PROGRAM, 'proxy', ...common, '--listening-addr', '127.0.0.1', '--workers', String(WORKERS), ...args],
    { cwd: folder },
  )
  running.push(program)
  return program
}

/** On a connection of its own, so that any worker may serve it. */
function call(port: string, where: string, token: string, body?: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = request({
      host: '127.0.0.1',
      port,
      path: where,
      method: body === undefined ? 'GET' : 'POST',
      headers: { Authorization: `Bearer ${token}`, ...(body && { 'Content-Length': Buffer.byteLength(body) }) },
      agent: new Agent(),
    })
    outgoing.on('error', reject)
    outgoing.on('response', (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
    })
    outgoing.end(body)
  })
}

const times = <T>(count: number, run: () => Promise<T>) => Promise.all(Array.from({ length: count }, run))

const readSeries = (page: string, series: string) =>
  Number(
    page
      .split('\n')
      .find((line) => line.startsWith(`${series} `))
      ?.split(' ')[1],
  )

test('workers share a port: sums of metrics, reload of tokens, a port in use, and an end that finishes requests', async () => {
  // Elsewhere one worker serves, which the other tests cover.
  const size = (await canSharePorts('127.0.0.1')) ? WORKERS : 1
  const auth = path.join(folder, 'auth.yml')
  writeFileSync(auth, 'full_access_tokens: [first]')
  const program = launch(['--http-port', '0', '--auth-enabled', '--tokens-path', auth, '--conn-per-node', '2'])
  const [, port = ''] = await program.printed(/^serving: http 127\.0\.0\.1:(\d+)$/m)
  await expect.poll(async () => (await call(port, '/ready', '')).status).toBe(200)
  expect(JSON.parse((await call(port, '/ready', '')).text)).toMatchObject({ ready: true, workers: size })
  await expect
    .poll(async () => JSON.parse((await call(port, '/ready', '')).text).connections, { timeout: 5_000 })
    .toBe(2 * size)

  const answers = await times(40, () => call(port, '/api', 'first', READ))
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  // Every worker reports the same sums.
  for (const { text } of await times(12, () => call(port, '/metrics', 'first'))) {
    expect(readSeries(text, 'api_requests_total{command="PROPEXIST",status="200"}')).toBe(40)
    expect(readSeries(text, 'api_request_duration_seconds_count{command="PROPEXIST",status="200"}')).toBe(40)
    expect(readSeries(text, 'api_workers')).toBe(size)
    expect(readSeries(text, 'backend_connections')).toBe(2 * size)
  }

  writeFileSync(auth, 'full_access_tokens: [second]')
  program.signal('SIGHUP')
  const statuses = async (token: string) => [
    ...new Set((await times(20, () => call(port, '/api', token, READ))).map(({ status }) => status)),
  ]
  await expect.poll(() => statuses('second')).toEqual([200])
  expect(await statuses('first')).toContain(401)
  // An address has 20 tries a minute, whichever workers its connections reach.
  const guesses = await times(60, () => call(port, '/api', 'guess', READ))
  expect(guesses.filter(({ status }) => status === 401).length).toBeLessThanOrEqual(20)
  expect(guesses.at(-1)?.status).toBe(429)

  const other = launch(['--http-port', port])
  expect(await other.ended).toBe(69)
  expect(other.output()).toContain('Cannot listen on')

  const held: (() => void)[] = []
  behind.answer = ({ id, socket }) => {
    held.push(() => socket.write(encodeReply('PROPEXIST', id, { exists: true }, CONTEXT)))
    return undefined
  }
  const last = times(6, () => call(port, '/api', 'second', READ))
  await expect.poll(() => held.length).toBe(6)
  program.signal('SIGTERM')
  await program.printed(/"msg":"stopping"/)
  for (const release of held) release()
  expect((await last).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200])
  expect(await program.ended).toBe(0)
})

test('a worker that cannot start ends the program with its exit code and message', async () => {
  const cluster = [
    '--mode',
    'cluster',
    '--shard-id',
    's',
    '--registry-addr',
    '127.0.0.1:1',
    '--resolver-addr',
    '127.0.0.1:2',
  ]
  const program = startProgram(
    [PROGRAM, 'proxy', ...cluster, '--registry-token-file', 'none', '--workers', '2', '--http-port', '0'],
    { cwd: folder },
  )
  running.push(program)

  expect(await program.ended).toBe(64)
  expect(program.output()).toContain('vacancy proxy: none: cannot be read')
})

test('counts of workers add up, and the newest slow requests are kept', () => {
  const count = (atMs: number, more: object = {}): Observed => {
    const observed = createObserved(100)
    const response = {
      id: String(atMs),
      atMs,
      command: 'SEARCHAVAIL',
      segment: 's',
      status: 200,
      bytes: 10,
      traceId: undefined,
    }
    for (let n = 0; n < 80; n++) {
      observe(observed, { ...response, token: 'web', totalMs: 150 + n, upstreamMs: 2, ...more, atMs: atMs + 2 * n })
    }
    observed.rejections.limit = 3
    return observed
  }
  const sum = sumObserved([count(1_000), count(1_001, { status: 400, upstreamMs: undefined })])

  expect(sum).toMatchObject({ commands: 80, bytesSent: 1_600, clientErrors: 80, slowMs: 100 })
  expect(sum.tokens.get('web')).toBe(160)
  expect(sum.rejections.limit).toBe(6)
  expect(sum.requests.get('SEARCHAVAIL')?.get(200)?.total).toBe(80)
  expect(
    sum.requests
      .get('SEARCHAVAIL')
      ?.get(400)
      ?.counts.reduce((a, b) => a + b),
  ).toBe(80)
  expect(sum.upstream.get('SEARCHAVAIL')?.sum).toBeCloseTo(0.16)
  const slow = slowRequests(sum) as { at: string }[]
  expect(slow).toHaveLength(100)
  expect(slow.map(({ at }) => at)).toEqual(
    slow
      .map(({ at }) => at)
      .sort()
      .reverse(),
  )
  expect(slow[0]?.at).toBe(new Date(1_001 + 2 * 79).toISOString())
})
