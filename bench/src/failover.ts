/**
 * `npm run bench -- failover`: how long a shard of three nodes accepts no writes after losing its leader, and whether reads
 * continue.
 */

import { join } from 'node:path'
import { connect, type VacancyClient } from '@vacancy/client'
import { dayOf, EXIT, formatDay, VacancyError } from '@vacancy/shared'
import { defineCommand, whole } from '@vacancy/shared/node'
import { until } from '@vacancy/testkit/until'
import { type Bench, SIZES, seedOf, tablesOf } from './bench.ts'
import { failure } from './failure.ts'
import type { RowReport } from './format.ts'
import { longestPause, quantile, type Request, slowest } from './pauses.ts'
import { updates } from './queries.ts'
import { below, createRandom, type Random } from './random.ts'
import { dirFlag, RECORD_FLAGS, recordSection, type SectionHead } from './record-section.ts'
import { refusePartialWrite } from './results.ts'
import {
  ADMIN_TOKEN,
  becomesWhole,
  endMember,
  infoOf,
  type Member,
  type RunningShard,
  startMember,
  startShard,
  stopShard,
  WHOLE_MS,
} from './running-shard.ts'
import { judged, type Measure, worstOf } from './verdict.ts'

/**
 * A steady stream of single writes and reads on a shard, sent at their moments whatever comes back: what a booking
 * platform sees while leaders come and go. Everything goes through the native client with its defaults: it finds the
 * leader, follows changes, and repeats writes under their request keys.
 */
type SteadyOptions = {
  writeEveryMs: number
  readEveryMs: number
  write(client: VacancyClient, place: number): Promise<unknown>
  read(client: VacancyClient): Promise<unknown>
}

type Steady = {
  readonly writes: Request[]
  readonly reads: Request[]
  /** Longest time that a request was sent after its moment, since it was set to 0. */
  lateMsMax: number
  stop(): void
}

/** Timers have a resolution of a millisecond. */
const TURN_MS = 1

export function startSteady(client: VacancyClient, options: SteadyOptions): Steady {
  const begun = performance.now()
  const timer = setInterval(() => turn(), TURN_MS)
  const steady: Steady = { writes: [], reads: [], lateMsMax: 0, stop: () => clearInterval(timer) }
  let writesSent = 0
  let readsSent = 0
  const turn = () => {
    const now = performance.now()
    for (; begun + writesSent * options.writeEveryMs <= now; writesSent++) {
      const intendedMs = begun + writesSent * options.writeEveryMs
      steady.lateMsMax = Math.max(steady.lateMsMax, now - intendedMs)
      follow(steady.writes, intendedMs, options.write(client, writesSent))
    }
    for (; begun + readsSent * options.readEveryMs <= now; readsSent++) {
      follow(steady.reads, begun + readsSent * options.readEveryMs, options.read(client))
    }
  }
  return steady
}

function follow(requests: Request[], intendedMs: number, answer: Promise<unknown>): void {
  const request: Request = { intendedMs, settledMs: Number.POSITIVE_INFINITY, error: '' }
  requests.push(request)
  answer.then(
    () => {
      request.settledMs = performance.now()
    },
    (error: unknown) => {
      request.settledMs = performance.now()
      const { code, message } = error as Error & { code?: string }
      request.error = code ?? message
    },
  )
}

/** Forgets what was settled before a moment; what is under way stays. */
function forgetBefore(requests: Request[], ms: number): void {
  const kept = requests.findIndex(({ settledMs }) => settledMs >= ms)
  requests.splice(0, kept < 0 ? requests.length : kept)
}

/**
 * Whether writes flow: all that were intended up to `calmMs` ago are settled, and one of those since then was answered
 * that was intended after `sinceMs`.
 */
function flows(writes: readonly Request[], calmMs: number, sinceMs = Number.NEGATIVE_INFINITY): boolean {
  const calmFromMs = performance.now() - calmMs
  const isBehind = ({ intendedMs, settledMs }: Request) =>
    intendedMs <= calmFromMs && settledMs === Number.POSITIVE_INFINITY
  const isFresh = ({ intendedMs, settledMs, error }: Request) =>
    intendedMs > Math.max(calmFromMs, sinceMs) && error === '' && settledMs < Number.POSITIVE_INFINITY
  return writes.some(isFresh) && !writes.some(isBehind)
}

const KINDS = ['death', 'cut', 'transfer', 'stop'] as const
export type Kind = (typeof KINDS)[number]

const WHAT: Record<Kind, string> = {
  death: 'the process of the leader dies (SIGKILL)',
  cut: 'the leader is cut off from the other nodes, clients still reach it',
  transfer: 'leadership is transferred (POST /cluster/transfer-leader)',
  stop: 'the leader shuts down gracefully (SIGTERM)',
}

/** Seconds (docs/design/testing.md#published-figures). */
const TARGETS: Record<Kind, { p50?: number; p99: number }> = {
  death: { p50: 0.4, p99: 1.5 },
  cut: { p50: 2.6, p99: 4.5 },
  transfer: { p99: 0.15 },
  stop: { p99: 0.15 },
}

const PACKAGES = 50_000
const WRITE_EVERY_MS = 5
const READ_EVERY_MS = 5
const DIFFERENT_WRITES = 1_000
/** Writes flow again when nothing older than this waits. */
const CALM_MS = 250
const RECOVERY_MS = 30_000
/** A fault comes at a random moment between two heartbeats, and none of them right behind the last repair. */
const SETTLE_MS = { min: 500, spread: 450 }

/** One fault; durations in milliseconds. */
export type Round = {
  readonly kind: Kind
  /** From the first write without an answer to the next answer. */
  readonly pauseMs: number
  /** The same while the lost node comes back. */
  readonly returnPauseMs: number
  readonly slowestWriteMs: number
  readonly slowestReadMs: number
  readonly writesFailed: number
  readonly readsFailed: number
  /** Codes of the errors of both, with how often they came. */
  readonly errors: Readonly<Record<string, number>>
  readonly reads: number
  /** How much later than its moment the generator sent a request before writes flowed again: part of the pause. */
  readonly lateMs: number
}

export const failoverCommand = defineCommand({
  name: 'bench failover',
  component: 'failover',
  summary: 'Repeatedly takes the leader of a three-node shard away; prints how long writes were unavailable.',
  flags: {
    rounds: { ...whole(100, 1, 10_000), summary: 'Faults of each kind.' },
    only: { type: 'list', value: KINDS.join(','), summary: 'These kinds of fault only.' },
    ...RECORD_FLAGS,
    dir: dirFlag('failover'),
  },
  run: async ({ flags }) => {
    refusePartialWrite(flags)
    const kinds = kindsOf(flags.only)
    const size = { ...SIZES.quick, packages: PACKAGES }
    await recordSection(flags, size, headOf(flags.rounds), (bench) => measureFailover(bench, kinds, flags.rounds))
    return EXIT.ok
  },
})

export function kindsOf(only: readonly string[] | undefined): readonly Kind[] {
  const unknown = only?.find((name) => !KINDS.some((kind) => kind === name))
  if (unknown === undefined) return KINDS.filter((kind) => only?.includes(kind) ?? true)
  throw new VacancyError('usage_error', { reason: `--only: there is no ${unknown}; there are ${KINDS.join(', ')}` })
}

/** Measures so many faults of each kind. */
async function measureFailover(
  bench: Bench,
  kinds: readonly Kind[],
  count: number,
): Promise<{ rows: RowReport[]; rounds: Round[] }> {
  const rounds: Round[] = []
  const rows: RowReport[] = []
  const random = createRandom(1)
  // A relay between two nodes would take connections for a dead one: only the shard whose links are cut has them.
  for (const hasLinks of [false, true]) {
    const some = kinds.filter((kind) => (kind === 'cut') === hasLinks)
    if (some.length > 0) rows.push(...(await measureShard(bench, { hasLinks, kinds: some, count, random, rounds })))
  }
  return { rows: rows.toSorted((a, b) => a.id - b.id), rounds }
}

const headOf = (count: number): SectionHead => ({
  name: 'failover',
  title: 'Failover',
  command: `npm run bench -- failover --rounds ${count}`,
  scope: `${count} faults of each kind on a shard of 3 nodes`,
  how: HOW,
})

const HOW = [
  'Three nodes with the defaults of the contract (ticks of 30 ms, elections after 60 to 120 of them, heartbeats every 15), mutual TLS, everything on one machine. Before each fault the shard is healthy.',
  `One client with its defaults, request keys included, sends a write every ${WRITE_EVERY_MS} ms and a read to the nodes that do not lead every ${READ_EVERY_MS} ms, on schedule whatever the replies.`,
  'A pause lasts from the first write without a reply to the next reply. It includes the time in which the client finds the new leader.',
  'Cut: a relay for each direction between any two nodes forwards nothing and closes nothing.',
]

type Plan = { hasLinks: boolean; kinds: readonly Kind[]; count: number; random: Random; rounds: Round[] }

async function measureShard(bench: Bench, { hasLinks, kinds, count, random, rounds }: Plan): Promise<RowReport[]> {
  const { file: seed, codecs } = await seedOf(bench, 'random')
  bench.say(`starting a shard of 3 nodes${hasLinks ? ' with links that can be cut' : ''}`)
  const dir = join(bench.dir, 'shard')
  const shard = await startShard({ dir, seed, codecs, config: { serving_threads: 1 }, hasLinks })
  const client = await connect({
    token: ADMIN_TOKEN,
    nodes: shard.members.map(({ host, port, api }) => ({ host, port, api })),
  })
  const steady = await startStream(bench, client)
  try {
    const rows: RowReport[] = []
    for (const kind of kinds) {
      const own: Round[] = []
      for (let round = 0; round < count; round++) {
        own.push(await takeRound(kind, { shard, client, steady, random }))
        if (count <= 10 || (round + 1) % 10 === 0) bench.say(progress(kind, own, count))
      }
      rounds.push(...own)
      rows.push(rowOf(kind, own))
    }
    return rows
  } finally {
    steady.stop()
    await client.close()
    await stopShard(shard)
  }
}

function progress(kind: Kind, rounds: readonly Round[], count: number): string {
  const pauses = rounds.map(({ pauseMs }) => pauseMs)
  const text = [quantile(pauses, 0.5), quantile(pauses, 1)].map((ms) => `${Math.round(ms)} ms`)
  return `${kind}: ${rounds.length} of ${count}, p50 ${text[0]}, at most ${text[1]}`
}

async function startStream(bench: Bench, client: VacancyClient): Promise<Steady> {
  // A run may go past midnight, and the day that ends is dropped.
  const first = formatDay(dayOf(Date.now()) + 2)
  const places = updates(await tablesOf(bench), { count: DIFFERENT_WRITES, seed: 5 })
    .map(({ fields: { propertyId, roomType, date } }) => ({ propertyId, roomType, date }))
    .filter(({ date }) => String(date) >= first)
  const placeOf = (turn: number) => places[turn % places.length] ?? failedPlace()
  let turn = 0
  return startSteady(client, {
    writeEveryMs: WRITE_EVERY_MS,
    readEveryMs: READ_EVERY_MS,
    write: (_, place) => client.setAvailability({ ...placeOf(place), amount: place % 200 }),
    read: () => client.getPackage(placeOf(turn++)),
  })
}

function failedPlace(): never {
  throw failure('the data set has no packages')
}

type Scene = { shard: RunningShard; client: VacancyClient; steady: Steady; random: Random }

/** One fault: the shard is whole before it and whole again behind it. */
async function takeRound(kind: Kind, scene: Scene): Promise<Round> {
  const { shard, client, steady, random } = scene
  const leader = await becomesWhole(shard)
  await until('the client is connected to all nodes', () => isConnected(client), WHOLE_MS)
  await passes(SETTLE_MS.min + below(random, SETTLE_MS.spread))
  await until('writes flow', () => flows(steady.writes, CALM_MS), WHOLE_MS)
  for (const requests of [steady.writes, steady.reads]) forgetBefore(requests, performance.now() - 2 * CALM_MS)
  steady.lateMsMax = 0
  const fromMs = performance.now()
  const repair = await disturb(kind, shard, leader)
  const leadsMs = await until(`another node leads after ${kind}`, () => newLeader(shard, leader), RECOVERY_MS)
  await until(`writes flow again after ${kind}`, () => flows(steady.writes, CALM_MS, leadsMs), RECOVERY_MS)
  const mendedMs = performance.now()
  const lateMs = steady.lateMsMax
  await repair()
  await becomesWhole(shard)
  await until('writes flow', () => flows(steady.writes, CALM_MS), WHOLE_MS)
  return { ...roundOf(kind, steady, { fromMs, mendedMs, toMs: performance.now() }), lateMs }
}

const passes = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

function isConnected(client: VacancyClient): boolean {
  return client.status().nodes?.every(({ connections }) => connections > 0) ?? false
}

/** Does it. @returns what undoes it */
async function disturb(kind: Kind, shard: RunningShard, leader: Member): Promise<() => Promise<void>> {
  switch (kind) {
    case 'death':
    case 'stop': {
      const ended = endMember(leader, kind === 'death' ? 'SIGKILL' : 'SIGTERM')
      return async () => {
        const code = await ended
        if (kind === 'stop' && code !== 0) throw failure(`${leader.id} stopped with exit code ${code}`)
        startMember(leader)
      }
    }
    case 'cut': {
      const cut = [...shard.links].filter(([name]) => name.split('>').includes(leader.id)).map(([, link]) => link)
      for (const link of cut) link.cut()
      return () => {
        for (const link of cut) link.mend()
        return Promise.resolve()
      }
    }
    case 'transfer':
      await transfer(shard, leader)
      return () => Promise.resolve()
  }
}

async function transfer({ members }: RunningShard, leader: Member): Promise<void> {
  const target = members.find(({ id }) => id !== leader.id)?.id
  const response = await fetch(`${leader.api}/cluster/transfer-leader`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${ADMIN_TOKEN}` },
    body: JSON.stringify({ target_node_id: target }),
  })
  if (response.status !== 202) throw failure(`transfer-leader answered ${response.status}: ${await response.text()}`)
}

/** @returns when another node was seen to lead */
async function newLeader({ members }: RunningShard, before: Member): Promise<number | undefined> {
  const others = await Promise.all(members.filter((member) => member !== before).map(infoOf))
  return others.some((info) => info && info.node_id === info.leader_id) ? performance.now() : undefined
}

function roundOf(
  kind: Kind,
  { writes, reads }: Steady,
  { fromMs, mendedMs, toMs }: { fromMs: number; mendedMs: number; toMs: number },
): Omit<Round, 'lateMs'> {
  const during = { fromMs, toMs: mendedMs }
  const failed = (requests: Steady['writes']) =>
    requests.filter(({ error, settledMs }) => error !== '' && settledMs >= fromMs && settledMs <= toMs)
  return {
    kind,
    pauseMs: longestPause(writes, during).lengthMs,
    returnPauseMs: longestPause(writes, { fromMs: mendedMs, toMs }).lengthMs,
    slowestWriteMs: slowest(writes, { fromMs: fromMs - CALM_MS, toMs: mendedMs }),
    slowestReadMs: slowest(reads, during),
    writesFailed: failed(writes).length,
    readsFailed: failed(reads).length,
    errors: Object.fromEntries(
      Object.entries(Object.groupBy([...failed(writes), ...failed(reads)], ({ error }) => error)).map(
        ([error, some]) => [error, some?.length ?? 0],
      ),
    ),
    reads: reads.filter(({ intendedMs }) => intendedMs >= fromMs && intendedMs <= toMs).length,
  }
}

/** The figures of one kind of fault. */
export function rowOf(kind: Kind, rounds: readonly Round[]): RowReport {
  const { p50, p99 } = TARGETS[kind]
  const pauses = rounds.map(({ pauseMs }) => pauseMs / 1000)
  const sum = (pick: (round: Round) => number) => rounds.reduce((total, round) => total + pick(round), 0)
  const most = (pick: (round: Round) => number) => Math.max(...rounds.map(pick)) / 1000
  const seconds = (name: string, value: number, atMost?: number): Measure =>
    atMost === undefined ? { name, value, unit: 's' } : judged({ name, value, unit: 's', target: { atMost } })
  const measures: Measure[] = [
    seconds('no writes, p50', quantile(pauses, 0.5), p50),
    seconds('no writes, p99', quantile(pauses, 0.99), p99),
    seconds('no writes, longest', quantile(pauses, 1)),
    judged({ name: 'reads that failed', value: sum((round) => round.readsFailed), unit: '', target: { atMost: 0 } }),
    { name: 'reads in that time', value: sum(({ reads }) => reads), unit: '' },
    seconds(
      'slowest read',
      most(({ slowestReadMs }) => slowestReadMs),
    ),
    seconds(
      'slowest write that was answered',
      most(({ slowestWriteMs }) => slowestWriteMs),
    ),
    { name: 'writes that failed', value: sum(({ writesFailed }) => writesFailed), unit: '' },
    ...(kind === 'transfer'
      ? []
      : [
          seconds(
            'no writes while it comes back, longest',
            most(({ returnPauseMs }) => returnPauseMs),
          ),
        ]),
    seconds(
      'sent late, at most',
      most(({ lateMs }) => lateMs),
    ),
  ]
  return { id: KINDS.indexOf(kind) + 1, what: WHAT[kind], verdict: worstOf(measures), measures }
}
