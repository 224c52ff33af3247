import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { CLUSTER_COMMANDS } from '@vacancy/cli/cluster'
import { clusterInfoBody, operationsBody } from '@vacancy/shared/contract'
import { parseCommand } from '@vacancy/shared/node'
import { makeCertificate } from '@vacancy/shared/testing/certificates'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { ClusterStatus, FinishedOperation, StaysStatus } from '../status.ts'
import { FOLLOWING, fakeCluster, LEADING, REPLICA, SET_TIME } from '../testing/fake-handle.ts'
import { closeServers, serve, TOKENS } from '../testing/http-server.ts'
import type { ClusterAnswer, ClusterRequest } from './handle.ts'

const FIRST_CERTIFICATE = makeCertificate({ subject: 'first' })

const PROGRAM = fileURLToPath(new URL('../../../bin/vacancy.mjs', import.meta.url))
const SERVING = { tokens: TOKENS }

let folder: string
let out: string
let err: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cluster-'))
  writeFileSync(join(folder, 'admin.token'), 'the-admin\n')
  out = ''
  err = ''
  vi.spyOn(process.stdout, 'write').mockImplementation((chunk) => {
    out += String(chunk)
    return true
  })
  vi.spyOn(process.stderr, 'write').mockImplementation((chunk) => {
    err += String(chunk)
    return true
  })
})

afterEach(async () => {
  vi.restoreAllMocks()
  rmSync(folder, { recursive: true })
  await closeServers()
})

/** Runs a command as typed after `vacancy cluster`. */
async function type(line: string): Promise<number | undefined> {
  const [word = '', ...args] = line.split(' ')
  const command = CLUSTER_COMMANDS.find(({ name }) => name.endsWith(` ${word}`))
  if (!command) throw new Error(`no command ${word}`)
  return await command.run(parseCommand(command, args, {}))
}

const asAdmin = (port: number) => `--node 127.0.0.1:${port} --token-file ${join(folder, 'admin.token')}`

/** A shard whose leader accepts a change and then shows one state after the other, the last one forever. */
async function shard(
  states: readonly ClusterStatus[],
  answer: ClusterAnswer = { status: 202, text: '' },
  before: ClusterStatus = LEADING,
) {
  const requests: ClusterRequest[] = []
  let looks = 0
  const cluster = fakeCluster({
    info: () => (requests.length === 0 ? before : (states[Math.min(looks++, states.length - 1)] as ClusterStatus)),
    leaderUrl: () => '',
    request: async (request) => {
      requests.push(request)
      return answer
    },
  })
  const { port } = await serve({ handle: { cluster, wallMs: Date.now }, ...SERVING })
  return { requests, port }
}

const ended = (differs: Partial<FinishedOperation>): FinishedOperation => ({
  kind: 'promote',
  node: 'n4',
  result: 'failed',
  reason: '',
  atMs: Date.now(),
  ...differs,
})

const staysWith = (dayBegins: number): StaysStatus => ({
  ...{
    stays: 0,
    held: 0,
    bytes: 0,
    oversoldNights: 0,
    oversold: [],
    nextDeadlineMs: 0,
    expired: 0,
    overflowedRooms: 0,
  },
  ...{ unrecordedRooms: 0, evicted: { ended: 0, booked: 0 }, isFull: false, refused: {} },
  settings: { stays_bytes: 1, holds_max: 2, holds_max_per_source: 3, day_begins_minutes: dayBegins },
})

const [n1, n2, n3, n4] = LEADING.members as [never, never, never, never]
const promoted = { ...LEADING, members: [n1, n2, n3, { ...(n4 as object), role: 'follower', isVoter: true } as never] }

test('set-time prints its plan and executes it with --yes, also on a standalone node', async () => {
  const requested: boolean[] = []
  const setTime = async (confirm: boolean): Promise<ClusterAnswer> => {
    requested.push(confirm)
    return { status: 202, text: JSON.stringify({ ...SET_TIME, applied: confirm }) }
  }
  const { port } = await serve({ handle: { cluster: undefined, setTime }, ...SERVING })

  expect(await type(`set-time ${asAdmin(port)}`)).toBe(0)
  expect(out.split('\n')).toEqual([
    'shard time   2026-01-17T12:00:00.000Z',
    'new time     2026-01-15T12:00:00.000Z',
    'new import   2026-01-15 to 2026-01-16: maintenance dropped these nights; they can be sold again',
    'missed       2026-01-15 to 2026-01-16: writes for these nights were refused as past',
    '',
    'Nothing was changed. Add --yes to set the time.',
    '',
  ])
  expect(await type(`set-time ${asAdmin(port)} --dry-run`)).toBe(0)
  await expect(type(`set-time ${asAdmin(port)} --dry-run --yes`)).rejects.toThrow('exclude each other')
  expect(requested).toEqual([false, false])
  expect(await type(`set-time ${asAdmin(port)} --yes`)).toBe(0)
  expect(out).toContain('The time is set.')
  await expect(type(`set-time --node 127.0.0.1:${port} --yes`)).rejects.toThrow('401')
})

test('settings are shown, and one is changed and shown once the node has it', async () => {
  let dayBegins = 0
  const { port } = await serve({
    handle: {
      cluster: undefined,
      changeSetting: async (_name: string, value: number) => {
        dayBegins = value
        return { status: 202, text: 'day_begins_minutes was proposed' }
      },
      replica: () => ({ ...REPLICA, stays: staysWith(dayBegins) }),
    },
    ...SERVING,
  })

  expect(await type(`settings --node 127.0.0.1:${port}`)).toBe(0)
  expect(out).toContain('day_begins_minutes        0')
  expect(await type(`settings day_begins_minutes=-60 ${asAdmin(port)}`)).toBe(0)
  expect(out).toContain('day_begins_minutes      -60')
  await expect(type(`settings day_begins_minutes=1201 ${asAdmin(port)}`)).rejects.toThrow('-840 to 1200')
  await expect(type(`settings day_begin=60 ${asAdmin(port)}`)).rejects.toThrow('unknown setting day_begin')
  await expect(type(`settings day_begins_minutes ${asAdmin(port)}`)).rejects.toThrow('is not NAME=VALUE')
})

test('info is a table of the members, with the change that runs and the last one', async () => {
  const info: ClusterStatus = {
    ...LEADING,
    operation: { kind: 'promote', node: 'n4', startedMs: 0, step: 'waits until n4 has caught up' },
    lastOperations: [ended({ reason: 'n4 was lost', atMs: 0 })],
  }
  const { port } = await serve({ handle: { cluster: fakeCluster({ info: () => info, leaderUrl: () => '' }) } })

  expect(await type(`info --node 127.0.0.1:${port}`)).toBe(0)

  expect(out.split('\n')).toEqual([
    'shard s1, zone z1: leader n1, term 3, committed to 119, as n1 sees it',
    '',
    'node  role      voter  health      index  behind  seconds  host',
    'n1    leader    yes    active        120       0        0  127.0.0.1',
    'n2    follower  yes    active        119       1    0.015  127.0.0.2',
    'n3    follower  yes    inactive       20     100        4  127.0.0.2',
    'n4    learner   no     installing    119       1    0.015  127.0.0.2',
    '',
    'running: promote n4, since 1970-01-01T00:00:00.000Z: waits until n4 has caught up',
    '',
    'last change: promote n4 failed at 1970-01-01T00:00:00.000Z: n4 was lost',
    '',
  ])
})

test('info of a shard that has not formed shows what each voter holds', async () => {
  const info: ClusterStatus = {
    ...FOLLOWING,
    leader: '',
    term: 0,
    members: [],
    bootstrap: {
      waitsFor: 'snapshot',
      why: 'snapshot 8f3a… is on 1 of 3 voters, 2 needed',
      needed: 2,
      voters: [
        { id: 'n1', state: 'seeded', snapshot: '8f3a'.repeat(16), index: 1, detail: '' },
        { id: 'n2', state: 'silent', snapshot: '', index: 0, detail: '' },
      ],
    },
  }
  const { port } = await serve({ handle: { cluster: fakeCluster({ info: () => info }), replica: () => undefined } })

  await type(`info --node 127.0.0.1:${port}`)

  expect(out).toBe(
    [
      'shard s1, zone z1: no leader, term 0, committed to 0, as n2 sees it',
      '',
      'not formed: snapshot 8f3a… is on 1 of 3 voters, 2 needed',
      'voter  state   snapshot      index  details',
      'n1     seeded  8f3a8f3a8f3a      1',
      'n2     silent',
      '',
    ].join('\n'),
  )
})

test('info comes from the leader if it is reachable, since others know less', async () => {
  const leader = await serve({ handle: { cluster: fakeCluster({ leaderUrl: () => '' }) } })
  const follower = async (leaderUrl: string) =>
    await serve({ handle: { cluster: fakeCluster({ info: () => FOLLOWING, leaderUrl: () => leaderUrl }) } })
  const viewOf = async (port: number) => {
    out = ''
    await type(`info --json --node 127.0.0.1:${port}`)
    return clusterInfoBody.parse(JSON.parse(out)).node_id
  }

  expect(await viewOf((await follower(`http://127.0.0.1:${leader.port}`)).port)).toBe('n1')
  expect(await viewOf((await follower('http://127.0.0.1:1')).port)).toBe('n2')
  expect(await viewOf((await follower('')).port)).toBe('n2')
})

test('of several nodes the first that responds is used', async () => {
  const { port } = await serve({ handle: { cluster: fakeCluster({ leaderUrl: () => '' }) } })

  expect(await type(`info --node 127.0.0.1:1,127.0.0.1:${port}`)).toBe(0)

  const unreachable = type('info --node 127.0.0.1:1,127.0.0.1:2')
  await expect(unreachable).rejects.toMatchObject({ code: 'failure', message: expect.stringContaining('127.0.0.1:2') })
})

test('a change without --wait prints how to see its result', async () => {
  const { requests, port } = await shard([LEADING])

  expect(await type(`promote n4 ${asAdmin(port)}`)).toBe(0)
  expect(out).toBe('promote n4: add in progress; see `vacancy cluster operations` for the result\n')
  await type(`demote n3 ${asAdmin(port)}`)
  await type(`transfer n2 ${asAdmin(port)}`)
  await type(`load /srv/seed.snapshot ${asAdmin(port)}`)
  await type(`load ${'ab'.repeat(32)} ${asAdmin(port)}`)
  await type(`drop-load ${'ab'.repeat(32)} ${asAdmin(port)}`)

  expect(requests).toEqual([
    { kind: 'promote', node: 'n4' },
    { kind: 'demote', node: 'n3' },
    { kind: 'transfer', node: 'n2' },
    { kind: 'load', file: '/srv/seed.snapshot' },
    { kind: 'load', digest: 'ab'.repeat(32) },
    { kind: 'drop-load', digest: 'ab'.repeat(32) },
  ])
})

test('a refusal shows the text of the leader', async () => {
  const { port } = await shard([LEADING], { status: 409, text: 'n9 is the last voter' })

  const demote = type(`demote n9 ${asAdmin(port)}`)

  await expect(demote).rejects.toMatchObject({
    code: 'failure',
    message: `127.0.0.1:${port} answered 409: n9 is the last voter`,
  })
})

test('without a token the error names it, and a token is never printed', async () => {
  const { port } = await shard([LEADING])

  await expect(type(`promote n4 --node 127.0.0.1:${port}`)).rejects.toMatchObject({
    message: expect.stringMatching(/answered 401: missing authorization header \(give a token .* --token-file/),
  })
  writeFileSync(join(folder, 'admin.token'), 'secret one\n')
  const wrong = type(`promote n4 ${asAdmin(port)}`)
  await expect(wrong).rejects.toMatchObject({ code: 'usage_error', message: expect.not.stringContaining('secret') })
})

test('waiting ends when the shard shows the learner among its voters', async () => {
  const running = { kind: 'promote', node: 'n4', startedMs: 0 } as const
  const steps = ['waits until n4 has caught up: 5,200 entries', 'its entry is being committed']
  const states = steps.flatMap((step) => {
    const state = { ...LEADING, operation: { ...running, step } }
    return Array.from({ length: 4 }, () => state)
  })
  const { port } = await shard([...states, promoted])

  expect(await type(`promote n4 --wait ${asAdmin(port)}`)).toBe(0)

  expect(err.trim().split('\n')).toEqual(steps.map((step) => `promote n4: ${step}`))
  expect(out).toBe('promote n4: done\n')
})

test('waiting ends when the leader reports the failure, but not an older one', async () => {
  const old = ended({ reason: 'long ago', atMs: Date.now() - 3_600_000 })
  const states = [
    { ...LEADING, lastOperations: [old] },
    { ...LEADING, lastOperations: [ended({ reason: 'n4 was lost' }), old] },
  ]
  const { port } = await shard(states)

  const promote = type(`promote n4 --wait ${asAdmin(port)}`)

  await expect(promote).rejects.toMatchObject({ code: 'failure', message: 'promote n4: n4 was lost' })
})

test('a timeout is not reported as a failure of the shard', async () => {
  const { port } = await shard([LEADING])

  const transfer = type(`transfer n2 --wait --wait-secs 1 --json ${asAdmin(port)}`)

  await expect(transfer).rejects.toMatchObject({ message: expect.stringContaining('the change continues') })
  expect(JSON.parse(out)).toMatchObject({
    request: 'transfer to n2',
    answer: 'transfer in progress',
    result: 'unknown',
  })
})

test('a demoted voter is a learner, a demoted learner is gone, a new leader leads', async () => {
  const demoted = { ...LEADING, members: [n1, n2, { ...(n3 as object), role: 'learner', isVoter: false } as never, n4] }
  expect(await type(`demote n3 --wait ${asAdmin((await shard([LEADING, demoted])).port)}`)).toBe(0)

  const removed = { ...LEADING, members: [n1, n2, n3] }
  expect(await type(`demote n4 --wait ${asAdmin((await shard([LEADING, removed])).port)}`)).toBe(0)

  const moved = { ...LEADING, leader: 'n2' }
  expect(await type(`transfer n2 --wait ${asAdmin((await shard([{ ...LEADING, leader: '' }, moved])).port)}`)).toBe(0)
  expect(err).toContain('no leader at the moment')
})

test('step-down moves leadership to the active voter with the least lag', async () => {
  const behind = { ...(n3 as object), health: 'active' } as never
  const moved = { ...LEADING, leader: 'n2' }
  const { requests, port } = await shard([moved], undefined, { ...LEADING, members: [n1, behind, n4, n2] })

  expect(await type(`step-down --wait ${asAdmin(port)}`)).toBe(0)
  expect(requests).toEqual([{ kind: 'transfer', node: 'n2' }])
  expect(out).toBe('transfer to n2: done\n')
})

test('step-down changes nothing where the node does not lead, and fails where no other voter is active', async () => {
  const follower = await shard([], undefined, FOLLOWING)
  expect(await type(`step-down --wait ${asAdmin(follower.port)}`)).toBe(0)
  expect(out).toBe('step down: done (n2 does not lead)\n')
  out = ''
  await type(`step-down --json ${asAdmin(follower.port)}`)
  expect(JSON.parse(out)).toMatchObject({ request: 'step down', result: 'done' })
  expect(follower.requests).toEqual([])

  const { port } = await shard([], undefined, { ...LEADING, members: [n1, n3, n4] })
  await expect(type(`step-down ${asAdmin(port)}`)).rejects.toThrow('n1 leads, and no other voter is active')
})

test('a load is done when the leader reports it, with the snapshot of the previous data', async () => {
  const reason = `the previous data is snapshot ${'cd'.repeat(32)}`
  const loaded = ended({ kind: 'load', node: 'ab'.repeat(32), result: 'done', reason })
  const { port } = await shard([LEADING, LEADING, LEADING, { ...LEADING, lastOperations: [loaded] }])

  expect(await type(`load /srv/seed.snapshot --wait ${asAdmin(port)}`)).toBe(0)

  expect(out).toBe(`load /srv/seed.snapshot: done (${reason})\n`)
})

test('operations are listed newest first, as text and as JSON', async () => {
  const lastOperations = [
    ended({ reason: 'n4 was lost', atMs: 60_000 }),
    ended({ kind: 'transfer', node: 'n1', result: 'done', atMs: 0 }),
  ]
  const info = { ...LEADING, lastOperations }
  const { port } = await serve({ handle: { cluster: fakeCluster({ info: () => info, leaderUrl: () => '' }) } })

  await type(`operations --node 127.0.0.1:${port}`)
  expect(out.trimEnd().split('\n')).toEqual([
    'ended                     change    node  result  details',
    '1970-01-01T00:01:00.000Z  promote   n4    failed  n4 was lost',
    '1970-01-01T00:00:00.000Z  transfer  n1    done',
  ])
  out = ''
  await type(`operations --json --node 127.0.0.1:${port}`)
  expect(operationsBody.parse(JSON.parse(out)).operations).toHaveLength(2)
})

test('a standalone node and a server that is not a node are reported', async () => {
  const { port } = await serve()
  await expect(type(`info --node 127.0.0.1:${port}`)).rejects.toMatchObject({
    message: `127.0.0.1:${port} answered 404: not available in standalone mode`,
  })

  const other = createServer((_, response) => response.end('hello')).listen(0, '127.0.0.1')
  await new Promise((resolve) => other.once('listening', resolve))
  const info = type(`info --node 127.0.0.1:${(other.address() as AddressInfo).port}`)
  await expect(info).rejects.toMatchObject({ message: expect.stringContaining('does not respond like a node') })
  other.close()
})

test('invalid arguments are refused before any request', async () => {
  for (const line of [
    'info --node nowhere',
    'promote a/b',
    'load seed.snapshot',
    'drop-load ab',
    'info --token-file nowhere',
    'transfer',
  ]) {
    await expect(type(line), line).rejects.toMatchObject({ code: 'usage_error' })
  }
})

test('TLS is used when the authority of the nodes is given', async () => {
  writeFileSync(join(folder, 'ca.pem'), FIRST_CERTIFICATE.cert)
  const tls = { ...FIRST_CERTIFICATE, clientCa: undefined, notBeforeMs: 0, notAfterMs: 0, fingerprint: '' }
  const { port } = await serve({ handle: { cluster: fakeCluster({ leaderUrl: () => '' }) }, tls })

  expect(await type(`info --node localhost:${port} --tls-ca ${join(folder, 'ca.pem')}`)).toBe(0)

  await expect(type(`info --node localhost:${port}`)).rejects.toMatchObject({ code: 'failure' })
})

async function program(...args: string[]) {
  const child = spawn(process.execPath, [PROGRAM, 'cluster', ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  const code = new Promise((resolve) => child.once('close', resolve))
  return { stdout: await text(child.stdout), stderr: await text(child.stderr), code: await code }
}

test('as a program it has help, one line per error, and exit codes', async () => {
  const { stdout, code } = await program('--help')
  expect(code).toBe(0)
  for (const { name } of CLUSTER_COMMANDS) expect(stdout).toContain(`  ${name.split(' ').at(-1)} `)

  expect(await program('info', '--node', '127.0.0.1:1')).toEqual({
    code: 1,
    stdout: '',
    stderr: 'vacancy cluster info: No connection to 127.0.0.1:1: ECONNREFUSED. Nothing was sent.\n',
  })
  expect((await program('promote')).code).toBe(64)
  expect((await program('nothing')).code).toBe(64)
})
