/** The commands that work with a running queue, as processes. */
import { spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createConsumer, RejectJob } from '@vacancy/client/queue'
import { until } from '@vacancy/testkit/until'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestQueue, type TestQueue, TOKENS } from './testing/queue.ts'

const VACANCY = join(import.meta.dirname, '../../bin/vacancy.mjs')
let queue: TestQueue

beforeAll(async () => {
  queue = await startTestQueue()
  for (const topic of ['orders', 'mail', 'failing'])
    await queue.call('POST', '/producer/topic', { topic, config: { max_attempts: 1 } })
})

afterAll(async () => {
  await queue.stop()
})

type Run = { readonly code: number | null; readonly stdout: string; readonly stderr: string }

/** Runs a command with the admin token in the environment. */
function run(args: readonly string[], input = '', env: NodeJS.ProcessEnv = {}): Promise<Run> {
  const child = spawn(process.execPath, [VACANCY, 'queue', ...args], {
    env: { ...process.env, VACANCY_QUEUE_URL: queue.url, VACANCY_QUEUE_TOKEN: TOKENS.admin, ...env },
  })
  child.stdin.end(input)
  const read = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      read[name] += text
    })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, ...read }))
  })
}

/** Makes dead jobs: each text becomes the error of its job. */
async function die(errors: readonly string[]): Promise<void> {
  const jobs = errors.map((error, n) => ({
    id: `dead-${n}`,
    data: Buffer.from(JSON.stringify({ error })).toString('base64'),
  }))
  await queue.call('POST', '/producer/jobs', { topic: 'failing', jobs })
  const consumer = createConsumer({
    url: queue.url,
    token: TOKENS.consumer,
    topic: 'failing',
    handler: ({ data }) => {
      throw new RejectJob((data as { error: string }).error)
    },
  })
  await until('all are dead', () => consumer.stats().dead === errors.length)
  await consumer.close()
}

const topicOf = async (topic: string) => (await queue.call('GET', `/api/v1/queue/topics/${topic}`)).body

test('submit stores a payload of the command line, of a file and of stdin as it is', async () => {
  const file = join(queue.dir, 'payload.bin')
  writeFileSync(file, Buffer.from([0, 255]))

  const results = [
    await run(['submit', 'orders', '{"order": 1}', '--id', 'a', '--priority', '3']),
    await run(['submit', 'orders', '--file', file, '--id', 'b']),
    await run(['submit', 'orders', '--id', 'c', '--json'], 'from stdin\n'),
    await run(['submit', 'orders', 'again', '--id', 'a']),
  ]

  expect(results.map(({ code, stderr }) => ({ code, stderr }))).toEqual(Array(4).fill({ code: 0, stderr: '' }))
  expect(results[0]?.stdout).toBe('a accepted\n')
  expect(JSON.parse(results[2]?.stdout ?? '')).toEqual({ topic: 'orders', id: 'c', outcome: 'accepted' })
  expect(results[3]?.stdout).toBe('a duplicate\n')
  const payloads = await Promise.all(
    ['a', 'b', 'c'].map(async (id) => (await queue.call('GET', `/producer/jobs/orders/${id}?data=1`)).body.data),
  )
  expect(payloads.map((data) => Buffer.from(data, 'base64').toString('latin1'))).toEqual([
    '{"order": 1}',
    '\x00\xff',
    'from stdin\n',
  ])
})

test('submit --lines makes each line a job, and repeats of the same file are duplicates', async () => {
  const lines = Array.from({ length: 2_500 }, (_, n) => `{"n":${n}}`).join('\n')

  const first = await run(['submit', 'mail', '--lines', '--id', 'file-1'], `${lines}\n\n`)
  const second = await run(['submit', 'mail', '--lines', '--id', 'file-1', '--json'], lines)

  expect(first).toEqual({ code: 0, stdout: '2,500 jobs accepted\n', stderr: '' })
  const { accepted, duplicate, stored, failed } = JSON.parse(second.stdout)
  expect([accepted, duplicate + stored, failed]).toEqual([0, 2_500, 0])
  expect((await topicOf('mail')).ready).toBe(2_500)
  const { body } = await queue.call('GET', '/producer/jobs/mail/file-1-2500?data=1')
  expect(Buffer.from(body.data, 'base64').toString()).toBe('{"n":2499}')
})

test('submit names the lines that failed, and ends with 1', async () => {
  const { code, stdout, stderr } = await run(['submit', 'mail', '--lines', '--id', 'x'.repeat(255)], 'a\nb\n')

  expect(code).toBe(1)
  expect(stdout).toBe('0 jobs accepted, 2 failed\n')
  expect(stderr).toMatch(/^vacancy queue submit: line 1: Job "x{100}…" was refused: invalid_id/)
})

test('topics lists counts, tail prints them with rates', async () => {
  await queue.call('POST', '/api/v1/queue/topics/mail/pause')

  const table = await run(['topics'])
  const json = await run(['topics', '--prefix', 'ma', '--json'])
  const tail = await run(['tail', 'mail', '--rounds', '2', '--interval-ms', '100'])
  const rows = await run(['tail', '--rounds', '1', '--json'])
  const monitoring = await run(['topics'], '', { VACANCY_QUEUE_TOKEN: TOKENS.monitoring })

  expect(table.stdout).toMatch(/^topic +ready +delayed +leased +dead +consumers\n/)
  expect(table.stdout).toMatch(/^mail +2500 +0 +0 +0 +0 +paused$/m)
  expect(table.stdout).toMatch(/^orders +3 /m)
  expect(JSON.parse(json.stdout)).toMatchObject([{ topic: 'mail', ready: 2_500, paused: true }])
  expect(tail.stdout).toMatch(/^topic +ready .*accepted\/s.*\nmail +2500 .* -\n\n.*\n.*\nmail +2500 +0 +0 +0 +0 +0 /m)
  const topics = rows.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).topic)
  expect(topics).toContain('orders')
  expect(monitoring.code).toBe(0)
})

test('dead lists jobs, their groups and payloads; redrive takes ids, a group, all, and another topic', async () => {
  await die(['HTTP 500', 'HTTP 502', 'no such user', 'bad \x1b[31mcolour'])

  const list = await run(['dead', 'failing', '--payload'])
  const groups = await run(['dead', 'failing', '--groups'])
  const filtered = await run(['dead', 'failing', '--error', 'HTTP', '--limit', '1', '--json'])
  expect(list.stdout).toMatch(/^id +died +reason +failures +deliveries +bytes +last error +payload\n/)
  expect(list.stdout).toMatch(/^dead-0 .* rejected +1 +1 +20 +HTTP 500 +\{"error":"HTTP 500"\}$/m)
  expect(list.stdout).toContain('bad \\x1b[31mcolour')
  expect(list.stdout).not.toContain('\x1b')
  expect(groups.stdout).toMatch(/^ +2 .* HTTP \*$/m)
  expect(JSON.parse(filtered.stdout)).toMatchObject([{ id: 'dead-0', lastError: 'HTTP 500' }])

  expect(await run(['redrive', 'failing', '--group', 'HTTP *'])).toMatchObject({ code: 0, stdout: '2 jobs redriven\n' })
  const some = await run(['redrive', 'failing', '--ids', 'dead-2,absent'])
  expect(some).toMatchObject({ code: 1, stdout: '1 job redriven\nnot dead: absent\n' })
  expect(await run(['redrive', 'failing', '--all', '--to', 'mail', '--json'])).toMatchObject({ code: 0 })
  expect(await topicOf('failing')).toMatchObject({ ready: 3, dead: 0 })
  expect((await queue.call('GET', '/producer/jobs/mail/dead-3')).body.state).toBe('ready')
  expect((await run(['dead', 'failing'])).stdout).toBe('No dead jobs.\n')
})

test('backup copies the journal, and refuses a name that exists', async () => {
  const first = await run(['backup', 'copy-1.db'])
  const second = await run(['backup', 'copy-1.db'])

  expect(first).toMatchObject({ code: 0, stdout: `${join(queue.dir, 'data', 'copy-1.db')}\n` })
  expect(existsSync(first.stdout.trim())).toBe(true)
  expect(second.code).toBe(1)
  expect(second.stderr).toContain('there is a file copy-1.db already; choose another name')
})

test('errors name what is wrong and what to do, with exit code 64 for usage and 1 for the rest', async () => {
  const noToken = { VACANCY_QUEUE_TOKEN: '' }
  const cases: readonly [readonly string[], number, RegExp, NodeJS.ProcessEnv?][] = [
    [['topics'], 1, /responded with 401.*VACANCY_QUEUE_TOKEN/, noToken],
    [['topics', '--token', TOKENS.producer], 1, /responded with 403.*another role/],
    [['topics', '--url', 'queue'], 64, /--url: queue is not an address/],
    [['topics', '--url', 'http://127.0.0.1:1'], 1, /No connection to 127\.0\.0\.1:1/],
    [['tail', 'absent'], 1, /topic "absent" does not exist/],
    [['dead', 'absent'], 1, /404 topic_not_found: topic "absent" does not exist/],
    [['dead'], 64, /TOPIC is required/],
    [['redrive', 'failing'], 64, /give --ids, --all, or --error and --group/],
    [['submit', 'orders', 'x', '--lines'], 64, /give PAYLOAD, or --file and --lines/],
    [['submit', 'orders', '--file', '/absent'], 64, /--file \/absent: cannot be read/],
    [['submit', 'orders', '--lines', '--file', '/'], 64, /--file \/: is a folder/],
    [['submit', 'absent', 'x'], 1, /topic "absent" does not exist/],
    [['submit', 'orders', 'x', '--token-file', '/absent'], 64, /not both/],
    [['backup', '../x'], 1, /400/],
    [['weather'], 64, /unknown command weather; available: vacancy queue serve, /],
  ]
  const runs = cases.map(async ([args, expected, message, env]) => {
    const { code, stderr } = await run(args, '', env)
    expect({ args, code, stderr }).toEqual({ args, code: expected, stderr: expect.stringMatching(message) })
    expect(stderr).not.toContain(TOKENS.admin)
  })
  await Promise.all(runs)
})

test('every command has --help, and the list of commands names all', async () => {
  const { stdout } = await run(['--help'])
  const names = [...stdout.matchAll(/^ {2}([a-z]+) /gm)].map(([, name = '']) => name)

  expect(names).toEqual(['serve', 'topics', 'submit', 'tail', 'dead', 'redrive', 'backup'])
  const helps = await Promise.all(names.map((name) => run([name, '--help'])))
  for (const [n, { code, stdout: help }] of helps.entries()) {
    expect(code).toBe(0)
    expect(help).toMatch(new RegExp(`^usage: vacancy queue ${names[n]} `))
  }
})
