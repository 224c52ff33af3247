/** The page for users of the queue: its commands give the output that it shows. Its tables: ../docs.test.ts. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { parseTokens } from '@vacancy/shared/node'
import { freePort } from '@vacancy/testkit/free-port'
import { type Postgres, startPostgres } from '@vacancy/testkit/postgres'
import { until } from '@vacancy/testkit/until'
import { afterAll, expect, test } from 'vitest'
import { startTestQueue, TOKENS } from './testing/queue.ts'
import { QUEUE_ROLES, TOPIC_ROLES } from './tokens.ts'

const ROOT = join(import.meta.dirname, '../..')
const PAGE = readFileSync(join(ROOT, 'docs/queue.md'), 'utf8')

/** Code blocks of the page, in order, each with the output block that follows it. */
type Block = { readonly language: string; readonly text: string; readonly shows: string | undefined }
const FENCE = /^```(\w+)\n(.*?)^```\n(?:\n```(?:json|text)\n(.*?)^```\n)?/gms
const BLOCKS: readonly Block[] = [...PAGE.matchAll(FENCE)].map(([, language = '', text = '', shows]) => ({
  language,
  text,
  shows: shows?.trimEnd(),
}))

test('the auth file of the page is valid', () => {
  const [yaml] = BLOCKS.filter(({ language }) => language === 'yaml')
  const tokens = parseTokens(yaml?.text ?? '', 'auth.yml', { roles: QUEUE_ROLES, withTopics: TOPIC_ROLES })

  expect(tokens.map(({ role }) => role)).toEqual(['admin', 'producer', 'consumer', 'monitoring'])
})

// --- The commands, against a queue of its own ---

type Running = { readonly child: ChildProcess; readonly output: () => string }
type Ended = { readonly code: number | null; readonly output: string }

const folder = mkdtempSync(join(tmpdir(), 'vacancy-queue-docs-'))
const running: Running[] = []
let postgres: Postgres | undefined
/** Ports of the page. */
const PORTS = ['8080', '8081', '8082', '8083']

afterAll(async () => {
  await Promise.all(running.map(({ child }) => stopped(child)))
  await postgres?.close()
  rmSync(folder, { recursive: true })
})

test('every command of the page runs, in order, and gives the output of the page', { timeout: 300_000 }, async () => {
  postgres = await startPostgres()
  const database = await postgres.createDatabase()
  const ports = new Map<string, string>()
  for (const port of PORTS) ports.set(port, String(await freePort()))
  const withPorts = (text: string) =>
    text
      .replaceAll(new RegExp(PORTS.join('|'), 'g'), (port) => ports.get(port) ?? port)
      .replaceAll('postgres://vacancy@127.0.0.1/vacancy', database)
  const cwd = join(folder, '.vacancy/queue')
  const path = `${postgres.programs}${delimiter}${process.env['PATH']}`
  const env = { ...process.env, PATH: path, VACANCY_QUEUE_LISTEN_PORT: withPorts('8080'), ROOT, NODE: process.execPath }
  // The packages of the clone, as after an installation.
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  let exports = ''
  for (const { language, text, shows } of BLOCKS) {
    if (language === 'js') writeFileSync(join(cwd, 'worker.mjs'), text)
    if (language === 'ts')
      writeFileSync(join(cwd, text.includes('createProducer') ? 'producer.ts' : 'consumer.ts'), text)
    if (language !== 'sh') continue
    const script = withPorts(text)
    const expected = shows === undefined ? undefined : withPorts(shows)
    if (text.startsWith('export ')) exports += script
    else if (expected !== undefined && isLongLived(text, expected)) {
      const program = start(`${exports}${script}`, text.includes('mkdir -p') ? folder : cwd, env)
      running.push(program)
      await until(`${text}prints ${expected}`, () => program.output().includes(expected))
    } else await runUntil(`${exports}${script}`, expected, cwd, env)
  }
  expect(running.length).toBe(7)
})

test('workers of the page work on each job once, although their connections are cut all the time', {
  timeout: 120_000,
}, async () => {
  const queue = await startTestQueue()
  const relay = createServer((client) => {
    const server = connect(Number(new URL(queue.url).port), '127.0.0.1')
    const end = () => void [client, server].map((side) => side.destroy())
    for (const side of [client, server]) side.on('error', end).on('close', end)
    client.pipe(server).pipe(client)
    setTimeout(end, 700)
  })
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve))
  const worker = BLOCKS.find(({ language }) => language === 'js')?.text ?? ''
  const slow = worker
    .replace('await work(jobId, data)', 'await new Promise((end) => setTimeout(end, 3_000)); work(jobId, data)')
    .replace('setTimeout(connect, 1000)', 'setTimeout(connect, 100)')
  expect(slow).toMatch(/3_000.*connect, 100\)/s)
  const cwd = mkdtempSync(join(folder, 'cut-'))
  writeFileSync(join(cwd, 'worker.mjs'), slow)
  await queue.call('POST', '/producer/topic', {
    topic: 'orders',
    config: { ack_deadline_ms: 120_000, max_deliveries: 2 },
  })
  const jobs = Array.from({ length: 5 }, (_, order) => ({ id: `order-${order}`, json: { order } }))
  await queue.call('POST', '/producer/jobs', { topic: 'orders', jobs })
  const { port } = relay.address() as AddressInfo
  const env = { ...process.env, QUEUE: `http://127.0.0.1:${port}`, CONSUMER: TOKENS.consumer, NODE: process.execPath }
  const workers = [1, 2].map(() => start('node --experimental-websocket worker.mjs', cwd, env))
  running.push(...workers)
  const stats = async () => (await queue.call('GET', '/api/v1/queue/topics/orders/stats')).body
  await until('all jobs are done', async () => (await stats()).totals.acked === 5)
  expect(await stats()).toMatchObject({ ready: 0, leased: 0, dead: 0 })
  expect((await stats()).totals).toMatchObject({ delivered: 5, redelivered: 0, nacked: 0, expired: 0, disconnected: 0 })
  const output = workers.map(({ output }) => output()).join('')
  expect(output.match(/^order-\d/gm)?.toSorted()).toEqual(jobs.map(({ id }) => id))
  expect(output.match(/closed: 1006/g)?.length).toBeGreaterThan(3)
  await Promise.all(workers.map(({ child }) => stopped(child)))
  relay.close()
  await queue.stop()
})

/** Programs that continue after their first lines. */
function isLongLived(text: string, shows: string): boolean {
  return (
    /^(DATABASE_URL=\S+ )?(npx vacancy queue serve|node )/m.test(text) && !shows.startsWith('vacancy queue serve: ')
  )
}

/** Runs a block; a result that follows from what happens in the background may take some tries. */
async function runUntil(script: string, shows: string | undefined, cwd: string, env: NodeJS.ProcessEnv): Promise<void> {
  await until(script, async () => {
    const { code, output } = await ended(start(script, cwd, env))
    if (shows === undefined) expect({ code, output }).toEqual({ code: 0, output: '' })
    else expect(masked(output)).toBe(masked(shows))
    return true
  })
}

/** What differs from run to run. */
function masked(text: string): string {
  return (
    text
      // The log depends on the machine.
      .replaceAll(/^\{"level":.*\n/gm, '')
      .trim()
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
      .replaceAll(/"remote":"[^"]*"/g, '"remote":"ADDRESS"')
      .replaceAll(/"worker-\d+"/g, '"worker-PID"')
  )
}

/** `npx vacancy` is the command of this clone. */
const PRELUDE = 'set -e; npx() { shift; exec "$NODE" "$ROOT/bin/vacancy.mjs" "$@"; }; node() { exec "$NODE" "$@"; }\n'

function start(script: string, cwd: string, env: NodeJS.ProcessEnv): Running {
  const child = spawn('bash', ['-c', PRELUDE + script], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  return { child, output: () => output }
}

function ended({ child, output }: Running): Promise<Ended> {
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, output: output() }))
  })
}

async function stopped(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const closed = new Promise((resolve) => child.once('close', resolve))
  child.kill('SIGTERM')
  await closed
}
