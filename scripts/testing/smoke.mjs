// What an operator does first with installed programs, wherever they run: one way for every artifact.
import { chownSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect } from 'vitest'
import { getText } from '../../testkit/src/node.ts'
import { startProgram } from '../../testkit/src/program.ts'
import { infoOf, PORTS, takeBlock } from '../../testkit/src/shard.ts'
import { happens } from '../../testkit/src/until.ts'

const VOTERS = ['n1', 'n2', 'n3']
const TOKEN = 'of-the-smoke-test'
/** Three of them share a machine. */
const SMALL = ['--memory-max-bytes', '268435456', '--wal-file-bytes', '4194304', '--serving-threads', '1']
const ROOM = 'double'
/** On cores that other tests use. */
const WITHIN_MS = 240_000

/**
 * Programs in one place.
 *
 * @param commandOf the words of a command line that runs `vacancy` with these arguments
 * @param folder of this machine; the programs see it as `inside`
 * @param owner number of the user that they run as, whom the folder belongs to
 */
export function placeOf({ commandOf, folder, inside = folder, owner }) {
  const started = []
  const start = (...args) => {
    const [program, ...rest] = commandOf(args)
    const running = startProgram(rest, { program, isBound: true })
    started.push(running)
    return running
  }
  const own = (name) => {
    if (owner !== undefined) chownSync(path.join(folder, name), owner, owner)
  }
  own('.')
  return {
    start,
    file: (name) => path.join(inside, name),
    /** Waits; a failure shows what those that run have printed. */
    until: (what, check) =>
      happens(
        what,
        started.filter((each) => each.isRunning()),
        check,
        WITHIN_MS,
      ),
    /** Runs one to its end. @returns what it prints */
    async run(...args) {
      const running = start(...args)
      const code = await running.ended
      expect(code, `vacancy ${args.join(' ')}\n${running.output()}`).toBe(0)
      return running.streams.stdout
    },
    write(name, text) {
      mkdirSync(path.dirname(path.join(folder, name)), { recursive: true })
      writeFileSync(path.join(folder, name), text, { mode: 0o600 })
      own(name)
    },
    /** Stops those that run, the last first. */
    async stop() {
      for (const running of started.filter((each) => each.isRunning()).reverse())
        expect(await running.stop(), running.output()).toBe(0)
    },
    kill: () => {
      for (const running of started.filter((each) => each.isRunning())) running.signal('SIGKILL')
    },
  }
}

/** All steps: with a node, then with a shard and its console. */
export async function smoke(place) {
  const { run, file } = place
  expect(await run('--version')).toMatch(/^\d+\.\d+\.\d+ \(commit [0-9a-f]+.*, Node v\d+\.\d+\.\d+\)\n$/)
  await run('sample', '--packages', '20000', '--shape', 'region', '--out', file('csv'))
  for (const folder of ['node', 'n1', 'n2'])
    await run('build-snapshot', '--shard-id', 's1', '--input-path', file('csv'), '--output-path', file(folder))
  await standalone(place)
  const { guard, ...shard } = await startShard(place)
  try {
    await useShard(place, shard)
    await place.stop()
  } finally {
    guard.close()
  }
}

async function standalone({ run, start, file, until, stop }) {
  const data = ['--shard-id', 's1', '--codecs', file('csv/codecs.yml'), '--data-dir', file('node')]
  const node = start('run', ...data, '--tcp-port', '0', '--api-port', '0', ...SMALL)
  const [, tcp, api] = await node.printed(/^serving: tcp .+:(\d+), http .+:(\d+)$/m)
  await until('the node is ready', async () => (await getText({ apiPort: api }, '/ready'))[0] === 200)
  await run('health', '--address', `127.0.0.1:${api}`)
  await searchAndBook(run, ['--port', tcp])
  await stop()
}

/** @param at flags that name a node */
async function searchAndBook(run, at) {
  const query = async (...args) => JSON.parse(await run('query', ...args, ...at, '--json'))
  const [{ segment }] = (await query('segments')).segments
  const stay = ['--segment', segment, '--room-type', ROOM, '--from', '+7', '--nights', '2']
  const { properties } = await query('search', ...stay, '--order', 'total', '--limit', '5')
  const [{ propertyId }] = properties
  const arrival = new Date(Date.now() + 7 * 86_400_000).toISOString().slice(0, 10)
  const lines = JSON.stringify([{ propertyId, roomType: ROOM, arrival, nights: 2, rooms: 1 }])
  expect(await query('send', 'BOOKSTAY', 'stayId=smoke', `lines=${lines}`)).toMatchObject({ state: 'booked' })
  expect(await query('send', 'GETSTAY', 'stayId=smoke')).toMatchObject({ state: 'booked' })
}

/** Registry, resolver, three voters and the control plane. */
async function startShard({ run, start, file, write }) {
  const { prefix, guard } = await takeBlock()
  const hosts = Object.fromEntries(VOTERS.map((node, index) => [node, `${prefix}.${11 + index}`]))
  const [registry, resolver] = [`http://${prefix}.1:${PORTS.registry}`, `http://${prefix}.2:${PORTS.resolver}`]
  write('admin.token', `${TOKEN}\n`)
  write('tokens.yml', `tokens:\n  - { token: ${TOKEN}, role: admin, name: smoke }\n`)
  write(
    'control-plane.yml',
    `${['monitoring', 'client', 'admin'].map((role) => `node_${role}_token: file:${file('admin.token')}\n`).join('')}`,
  )
  await run('certs', 'init', '--out', file('certs'))
  for (const node of VOTERS)
    await run('certs', 'node', '--ca', file('certs'), '--node-id', node, '--out', file('certs'))
  start(
    ...['registry', '--addr', `${prefix}.1`, '--port', String(PORTS.registry)],
    ...['--state-file', file('registry/state.json'), '--codecs-path', file('csv/codecs.yml')],
  )
  const map = VOTERS.map((node) => `${node}=${hosts[node]}`).join(',')
  start('resolver', '--host', `${prefix}.2`, '--port', String(PORTS.resolver), '--map', map)
  for (const node of VOTERS)
    start(
      ...['run-clustered', '--node-id', node, '--shard-id', 's1', '--zone-id', 'z1', '--data-dir', file(node)],
      ...['--initial-voters', VOTERS.join(','), '--registry-addr', registry, '--resolver-addr', resolver],
      ...['--cert-path', file(`certs/${node}.pem`), '--key-path', file(`certs/${node}.key`)],
      ...['--ca-cert-path', file('certs/ca.pem'), '--auth-file', file('tokens.yml')],
      ...['tcp', 'api', 'quic'].flatMap((listener) => [`--${listener}-listen-addr`, hosts[node]]),
      ...SMALL,
    )
  const plane = start(
    ...['control-plane', '--config', file('control-plane.yml'), '--data-dir', file('control-plane')],
    ...['--listen-host', `${prefix}.3`, '--registry', registry, '--resolver', resolver, '--sign-in', 'ada'],
  )
  const [, url, code] = await plane.printed(/^sign-in: (http:\S+)\/sign-in#code=(\S+)$/m)
  return { guard, hosts, url, code, token: file('admin.token') }
}

/**
 * A search and a booking in a shard, a transfer of its leadership, and a sign-in to its console.
 *
 * @param hosts of its nodes by their names
 * @param url of the control plane, with the `code` of a link
 * @param token file with an admin token
 */
export async function useShard({ run, until }, { hosts, url, code, token }) {
  const nodes = Object.entries(hosts)
  const [[, first]] = nodes
  const leaderOf = async (host) => (await infoOf({ host, apiPort: PORTS.api })).leader_id
  const isReady = async ([, host]) => (await getText({ host, apiPort: PORTS.api }, '/ready'))[0] === 200
  await until('all nodes are ready', async () => (await Promise.all(nodes.map(isReady))).every(Boolean))
  const leader = await leaderOf(first)
  await searchAndBook(run, ['--host', hosts[leader]])
  const next = Object.keys(hosts).find((name) => name !== leader)
  await run('cluster', 'transfer', next, '--wait', '--node', `${first}:${PORTS.api}`, '--token-file', token)
  expect(await until('another leader', async () => [await leaderOf(first)].find((name) => name !== leader))).toBe(next)
  await signIn(until, url, code)
}

/** As a browser: page, its files, session, and a page that only signed-in people see, with the shard. */
async function signIn(until, url, code) {
  const page = await fetch(`${url}/sign-in`)
  const html = await page.text()
  expect(page.status, html).toBe(200)
  const files = [...html.matchAll(/(?:src|href)="(\/_next\/[^"]+)"/g)].map(([, file]) => file)
  expect(files.length).toBeGreaterThan(3)
  for (const file of files) expect([file, (await fetch(`${url}${file}`)).status]).toEqual([file, 200])
  const session = await fetch(`${url}/api/v1/session/link`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code }),
  })
  expect(await session.json()).toMatchObject({ csrf: expect.any(String) })
  const cookie = session.headers.get('set-cookie')?.split(';')[0] ?? ''
  const shown = await until('the console shows the shard', async () => {
    const text = await (await fetch(`${url}/api/v1/summary`, { headers: { cookie } })).text()
    return text.includes('"s1"') && text
  })
  expect(shown).toContain('s1')
  const overview = await fetch(url, { headers: { cookie }, redirect: 'manual' })
  expect([overview.status, await overview.text()]).toEqual([200, expect.stringContaining('<html')])
}
