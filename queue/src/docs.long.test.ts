/** The page for users of the queue: its commands give the output that it shows. Its tables: ../docs.test.ts. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { parseTokens } from '@vacancy/shared/node'
import { freePort } from '@vacancy/testkit/free-port'
import { type Postgres, startPostgres } from '@vacancy/testkit/postgres'
import { until } from '@vacancy/testkit/until'
import { afterAll, expect, test } from 'vitest'
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
  return text
    .trim()
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replaceAll(/"remote":"[^"]*"/g, '"remote":"ADDRESS"')
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
