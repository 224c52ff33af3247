/**
 * A real shard for a measurement: a registry and three nodes with mutual TLS between them, each a program of its own,
 * all on the loopback address. The resolver is this process: operators bring their own, and only so each node can be
 * given its own way to each other one, which can be cut (@vacancy/testkit/relay).
 */
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { join } from 'node:path'
import type { ClusterInfo } from '@vacancy/shared/contract'
import { freePort } from '@vacancy/testkit/free-port'
import type { Program } from '@vacancy/testkit/program'
import { openRelay, type Relay } from '@vacancy/testkit/relay'
import { until } from '@vacancy/testkit/until'
import { failure } from './failure.ts'
import { lastLine, runProgram, startProgram, stopProgram } from './programs.ts'

const SHARD = 'bench'
/** Membership calls always need one (docs/design/http.md#access). */
export const ADMIN_TOKEN = 'a-token-of-the-benchmark-0123456789'
/** How long a shard may take to be whole, or a client to be served. */
export const WHOLE_MS = 120_000
const ANSWER_MS = 2_000
/** Entries that a node of a whole shard may be behind: what is on its way at this load, and some more. */
const LAG_ENTRIES_MAX = 100

export type ShardOptions = {
  /** Folder for all of it; emptied before. */
  dir: string
  seed: string
  codecs: string
  /** Keys of the configuration files over the defaults. */
  config: Record<string, number | string | boolean>
  /** A relay between each two nodes, for each direction. */
  hasLinks: boolean
}

export type Member = {
  readonly id: string
  readonly host: string
  readonly port: number
  /** `http://host:port` of its HTTP API. */
  readonly api: string
  readonly peerPort: number
  readonly arguments: string[]
  program: Program | undefined
}

export type RunningShard = {
  readonly dir: string
  readonly members: readonly Member[]
  /** By `from>to`; empty without links. */
  readonly links: ReadonlyMap<string, Relay>
  readonly registry: Program
  readonly resolver: Server
}

const IDS: readonly string[] = ['node-1', 'node-2', 'node-3']

/** Starts it and waits until it is whole. */
export async function startShard(options: ShardOptions): Promise<RunningShard> {
  const { dir, codecs, hasLinks } = options
  rmSync(dir, { recursive: true, force: true })
  mkdirSync(dir, { recursive: true })
  const tls = join(dir, 'tls')
  await runProgram(['bin/vacancy.mjs', 'certs', 'init', '--out', tls])
  const registry = startProgram(
    ['bin/vacancy.mjs', 'registry', '--addr', '127.0.0.1', '--port', '0', '--codecs-path', codecs].concat([
      '--state-file',
      join(dir, 'registry.json'),
      '--log-level',
      'warn',
    ]),
  )
  writeFileSync(join(dir, 'auth.yml'), `tokens:\n  - {token: ${ADMIN_TOKEN}, role: admin}\n`)
  const ports = new Map(await Promise.all(IDS.map(async (id) => [id, await freePort()] as const)))
  const links = new Map<string, Relay>()
  for (const [from, to] of hasLinks ? pairs() : []) {
    links.set(`${from}>${to}`, await openRelay({ host: '127.0.0.1', port: ports.get(to) as number }))
  }
  const { server, url } = await startResolver((from, to) => links.get(`${from}>${to}`)?.at.port ?? ports.get(to))
  const registryUrl = (await registry.printed(/^serving: http .+$/m))[0].replace('serving: http ', 'http://')
  const members: Member[] = []
  for (const id of IDS) {
    await runProgram(['bin/vacancy.mjs', 'certs', 'node', '--ca', tls, '--node-id', id, '--out', tls])
    members.push(await prepareMember(options, { id, peerPort: ports.get(id) as number, tls, registryUrl, url }))
  }
  const shard = { dir, members, links, registry, resolver: server }
  for (const member of members) startMember(member)
  try {
    await becomesWhole(shard)
  } catch (error) {
    await stopShard(shard)
    throw error
  }
  return shard
}

function pairs(): [string, string][] {
  return IDS.flatMap((from) => IDS.filter((to) => to !== from).map((to): [string, string] => [from, to]))
}

async function prepareMember(
  { dir, seed, config }: ShardOptions,
  at: { id: string; peerPort: number; tls: string; registryUrl: string; url: string },
): Promise<Member> {
  const { id, peerPort, tls, registryUrl, url } = at
  const folder = join(dir, id)
  const dataDir = join(folder, 'data')
  mkdirSync(dataDir, { recursive: true })
  copyFileSync(seed, join(dataDir, 'seed.snapshot'))
  const [port, apiPort] = [await freePort(), await freePort()]
  const keys = { ...config, tcp_port: port, api_port: apiPort, quic_port: peerPort }
  const file = join(folder, 'vacancy.yml')
  writeFileSync(
    file,
    Object.entries(keys)
      .map(([key, value]) => `${key}: ${value}\n`)
      .join(''),
  )
  const flags = {
    config: file,
    'auth-file': join(dir, 'auth.yml'),
    'data-dir': dataDir,
    'node-id': id,
    'shard-id': SHARD,
    'zone-id': 'bench',
    'initial-voters': IDS.join(','),
    'registry-addr': registryUrl,
    'resolver-addr': `${url}/${id}`,
    'cert-path': join(tls, `${id}.pem`),
    'key-path': join(tls, `${id}.key`),
    'ca-cert-path': join(tls, 'ca.pem'),
  }
  return {
    id,
    host: '127.0.0.1',
    port,
    api: `http://127.0.0.1:${apiPort}`,
    peerPort,
    arguments: [
      'bin/vacancy.mjs',
      'run-clustered',
      ...Object.entries(flags).flatMap(([flag, value]) => [`--${flag}`, value]),
    ],
    program: undefined,
  }
}

/** Each node uses its own path for queries, so that it gets the addresses of its own links. */
async function startResolver(
  portOf: (from: string, to: string) => number | undefined,
): Promise<{ server: Server; url: string }> {
  const server = createServer((request, response) => {
    const { from = '', to = '' } =
      /^\/(?<from>[^/]+)\/shards\/[^/]+\/nodes\/(?<to>[^/]+)$/.exec(request.url ?? '')?.groups ?? {}
    const port = portOf(from, to)
    response.writeHead(port === undefined ? 404 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(port === undefined ? {} : { hostname: '127.0.0.1', quic_port: port }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return { server, url: `http://127.0.0.1:${address && typeof address === 'object' ? address.port : 0}` }
}

export function startMember(member: Member): void {
  member.program = startProgram(member.arguments)
}

/** Ends its process and waits for that. */
export async function endMember({ program }: Member, signal: 'SIGKILL' | 'SIGTERM'): Promise<number | null> {
  if (program === undefined) return 0
  if (signal === 'SIGTERM') return await stopProgram(program, { withinMs: WHOLE_MS })
  program.signal(signal)
  return await program.ended
}

export async function stopShard({ members, links, registry, resolver, dir }: RunningShard): Promise<void> {
  await Promise.all(members.map(({ program }) => program && stopProgram(program)))
  await stopProgram(registry)
  for (const link of links.values()) await link.close()
  resolver.closeAllConnections()
  resolver.close()
  rmSync(dir, { recursive: true, force: true })
}

/** The shard info of a node; undefined when it does not respond. */
export async function infoOf({ api }: Pick<Member, 'api'>): Promise<ClusterInfo | undefined> {
  try {
    const response = await fetch(`${api}/cluster/info`, { signal: AbortSignal.timeout(ANSWER_MS) })
    return response.ok ? ((await response.json()) as ClusterInfo) : undefined
  } catch {
    // It is not there, or not yet.
    return undefined
  }
}

/** Waits until all nodes serve, follow one leader, and have what it has. @returns the leader */
export async function becomesWhole({ members }: Pick<RunningShard, 'members'>): Promise<Member> {
  const look = async () => {
    const ended = members.find(({ program }) => !program?.isRunning())
    if (ended) return { ended }
    const infos = await Promise.all(members.map(infoOf))
    const health = await Promise.all(members.map(healthOf))
    const leader = members.find(({ id }) => id === leaderOfWhole(infos))
    return leader && !health.includes('unavailable') && { leader }
  }
  const { ended, leader } = await until<{ ended?: Member; leader?: Member }>('the shard is whole', look, WHOLE_MS)
  if (leader) return leader
  throw failure(`${ended?.id} ended by itself: ${ended?.program ? lastLine(ended.program) : 'it was never started'}`)
}

async function healthOf({ api }: Member): Promise<string> {
  try {
    const response = await fetch(`${api}/healthz`, { signal: AbortSignal.timeout(ANSWER_MS) })
    return (await response.text()).trim()
  } catch {
    return 'unavailable'
  }
}

/** The leader of a shard in which nothing is missing; undefined while something is. */
function leaderOfWhole(infos: readonly (ClusterInfo | undefined)[]): string | undefined {
  const [first] = infos
  const leader = infos.find((info) => info && info.node_id === info.leader_id)
  if (!first || !leader || infos.some((info) => info?.leader_id !== leader.leader_id || info.term !== leader.term)) {
    return undefined
  }
  const others = leader.nodes.filter(({ id }) => id !== leader.leader_id)
  const isWhole =
    others.length === infos.length - 1 &&
    others.every(({ health, lag_entries: lag }) => health === 'active' && lag !== null && lag <= LAG_ENTRIES_MAX)
  return isWhole && leader.operation === null ? leader.leader_id : undefined
}
