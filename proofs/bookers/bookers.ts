/**
 * `npm run proofs -- bookers`: many clients want one room; then 64 clients book, hold, confirm, replace and release stays on a shard
 * of three processes whose leader is killed again and again. Every stay and every night is accounted for
 * (docs/design/stays.md#bookers).
 */
import { writeFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { connect, type VacancyClient } from '@vacancy/client'
import { dayOf, formatDay } from '@vacancy/shared'
import { commitOf, defineCommand } from '@vacancy/shared/node'
import { metric, somewhere } from '@vacancy/testkit/node'
import { between, type Random, streamOf } from '@vacancy/testkit/random'
import { infoOf, leaderOf, openShard, postText, type Shard, type ShardNode, sameDigest } from '@vacancy/testkit/shard'
import { until } from '@vacancy/testkit/until'
import { failure } from '../../bench/src/failure.ts'
import { writeRun } from '../../bench/src/pages.ts'
import { ROOT } from '../../bench/src/programs.ts'
import type { RecordedRun } from '../../bench/src/results.ts'
import { SEED_FLAG, seedOfNow } from '../seed.ts'
import {
  type Booker,
  type Bookers,
  CLIENTS,
  type Counts,
  createBooker,
  createBookers,
  INVENTORY,
  runBooker,
} from './clients.ts'
import { judge, nightName, type StayRecord, type Verdict } from './judge.ts'
import { type LastRoom, lastRoom } from './last-room.ts'
import { backUp, restore } from './restore.ts'
import { runSource, setInventory } from './source.ts'

const LAST_ROOM_CLIENTS = 10_000
/** Stays a second of all bookers, while a leader serves. */
const STAYS_PER_SECOND = 500
const CALL_MS = 5_000
/** Longer than any outage of this run. */
const JUDGE_CALL_MS = 60_000
const PROGRESS_MS = 10_000
const KILL_MS = { min: 5_000, max: 20_000 } as const
const DOWN_MS = { min: 200, max: 1_500 } as const
const READS_AT_ONCE = 32
/** All records of a run of some hours. */
const STAYS_BYTES = 512 << 20
const CONFIG = {
  // Those of the last room, and of the driver.
  tcp_max_connections: 12_000,
  // Restarts load snapshots with held stays.
  snapshot_interval_sec: 30,
  snapshot_trigger_count: 20_000,
  memory_max_bytes: 1 << 30,
} as const
const SHOWN = 20
/** Parts of a run before the backup, after it, which is lost, and after the restore. */
const SHARE = { before: 0.4, lost: 0.2, after: 0.4 } as const

export type BookersPlan = {
  readonly seconds: number
  readonly seed: number
  readonly clients: number
  readonly lastRoomClients: number
  /** Multiplies the times between kills. */
  readonly pace: number
  readonly holdSecondsMax: number
  readonly say: (line: string) => void
}

export type BookersReport = Counts & {
  readonly seed: number
  readonly seconds: number
  /** What the clocks of the shard pass in the middle of the run. */
  readonly dates: string
  readonly lastRoom: LastRoom
  readonly leadersKilled: number
  readonly allKilled: number
  readonly atEnd: Omit<Verdict, 'violations'>
  readonly violations: readonly string[]
}

/** @throws with the seed when the shard does not start, or does not become whole again */
export async function runBookers(plan: BookersPlan): Promise<BookersReport> {
  const shard = await openShard({ nodes: ['node-1', 'node-2', 'node-3'], config: CONFIG })
  const clients: VacancyClient[] = []
  const calendar = calendarOf(plan)
  const start = (name: string) => void shard.start(name, { clockOffsetMs: calendar.aheadMs + aheadOf(plan, name) })
  const { aheadMs } = calendar
  const { seed, seconds, say } = plan
  try {
    shard.startRegistry()
    shard.startResolver()
    for (const name of shard.nodes) start(name)
    await leaderOf(shard)
    const firstDay = dayOf(Date.now() + aheadMs) + 1
    const nodes = shard.nodes.map((name) => `${shard.host(name)}:7777`)
    const open = (deadlineMs: number) => connect({ nodes, reads: 'leader', deadlineMs })
    const judging = await open(JUDGE_CALL_MS)
    clients.push(judging)
    await until('the shard has stays', () => judging.stay('none').catch(({ code }) => code === 'NOT_FOUND'))
    const settings = { name: 'stays_bytes', value: STAYS_BYTES }
    const [status, answer] = await postText(await leaderOf(shard), '/admin/settings', settings)
    if (status !== 202) throw failure(`POST /admin/settings answered ${status}: ${answer}`)
    for (const propertyId of INVENTORY.properties) await setInventory(judging, propertyId, firstDay)
    const last = await wantLastRoom(shard, judging, firstDay, plan)
    for (let n = 0; n < plan.clients; n++) clients.push(await open(CALL_MS))
    const everyMs = (plan.clients * 1_000) / STAYS_PER_SECOND
    const all = createBookers({ firstDay, holdSecondsMax: plan.holdSecondsMax, aheadMs, everyMs })
    const bookers = clients.slice(1).map((client, n) => createBooker(client, n, seed))
    const kills = { leadersKilled: 0, allKilled: 0 }
    const run = { shard, all, bookers, source: judging, kills, plan, start }
    await disturb(run, seconds * SHARE.before)
    say('backing up')
    const backup = await backUp(shard, all, bookers)
    await disturb(run, seconds * SHARE.lost)
    say('restoring')
    await restore(shard, all, bookers, backup, { nodes, start })
    await disturb(run, seconds * SHARE.after)
    say('waiting for the last holds to expire')
    await until('no stay is on hold', async () => (await held(shard)) === 0, (plan.holdSecondsMax + 30) * 1_000)
    say('judging')
    const { violations, ...atEnd } = judge(await evidenceOf(judging, all))
    const found = [...lastRoomViolations(last), ...all.violations, ...violations, ...(await shardViolations(shard))]
    const { name: dates } = calendar
    return { seed, seconds, dates, lastRoom: last, ...kills, ...all.counts, atEnd, violations: found }
  } catch (error) {
    throw failure(`seed ${seed}: ${(error as Error).message}`, error)
  } finally {
    await Promise.all(clients.map((client) => client.close()))
    await shard.close()
  }
}

/** Clocks of nodes differ by less; ms. */
const APART_MS = 3_000

/** How far the clock of a node is ahead of the others. */
function aheadOf({ seed }: BookersPlan, name: string): number {
  return between(streamOf(seed, `clock of ${name}`), -APART_MS, APART_MS)
}

/** The clocks of a shard pass New Year, the end of a 28 February, or nothing; the clients keep theirs. */
function calendarOf({ seed, seconds }: BookersPlan): { readonly name: string; readonly aheadMs: number } {
  const all = [
    { name: 'New Year', at: '2027-01-01T00:00:00Z' },
    { name: 'a 29 February', at: '2028-02-29T00:00:00Z' },
    { name: 'no special day', at: '' },
  ] as const
  const { name, at } = all[seed % all.length] as (typeof all)[number]
  return { name, aheadMs: at === '' ? 0 : Date.parse(at) - Date.now() - (seconds * 1_000) / 2 }
}

const datesFrom = (first: number, count: number) => Array.from({ length: count }, (_, n) => formatDay(first + n))

async function wantLastRoom(
  shard: Shard,
  client: VacancyClient,
  firstDay: number,
  { lastRoomClients, say }: BookersPlan,
): Promise<LastRoom> {
  const night = { propertyId: 'last-room', roomType: 'single' }
  await client.setProperty(somewhere(night.propertyId) as Parameters<VacancyClient['setProperty']>[0])
  const date = formatDay(firstDay)
  await client.setPackage({ ...night, date, availability: 1, finalPrice: 100, rateFeatures: [] })
  const { host, tcpPort: port } = await leaderOf(shard)
  const found = await lastRoom({ host, port }, lastRoomClients, { ...night, arrival: date })
  const { availability } = await client.getPackage({ ...night, date })
  const left = availability === 0 ? '' : `, and ${availability} rooms are left`
  say(`last room: ${found.clients} connections, ${found.booked} booked, ${found.soldOut} sold out${left}`)
  return left === '' ? found : { ...found, others: { ...found.others, [`rooms left: ${availability}`]: 1 } }
}

function lastRoomViolations({ booked, others }: LastRoom): string[] {
  const replies = Object.entries(others).map(([text, count]) => `last room: ${count} × ${text}`)
  return booked === 1 ? replies : [`the last room was booked ${booked} times`, ...replies]
}

type Kills = { leadersKilled: number; allKilled: number }
type Run = {
  readonly shard: Shard
  readonly all: Bookers
  readonly bookers: readonly Booker[]
  readonly source: VacancyClient
  readonly kills: Kills
  readonly plan: BookersPlan
  /** Starts a node on its directory. */
  readonly start: (name: string) => void
}

/** The bookers run for a while, and every call has its reply then. */
async function disturb(run: Run, seconds: number): Promise<void> {
  const { shard, all, bookers, source, plan } = run
  const over = performance.now() + seconds * 1_000
  const progress = setInterval(() => plan.say(lineOf(all, over)), PROGRESS_MS)
  all.isOver = false
  all.lastTakenMs = performance.now()
  try {
    const running = Promise.all([
      ...bookers.map((booker) => runBooker(all, booker)),
      runSource(all, shard, source, plan.seed, plan.pace),
    ])
    // Reported by the await below; it must not end the process before.
    running.catch(() => {})
    await killLeaders(run, over, seconds)
    all.isOver = true
    await running
  } finally {
    all.isOver = true
    clearInterval(progress)
  }
}

/** Kills the leader again and again, and all nodes once, after half of the first part. */
async function killLeaders(run: Run, over: number, seconds: number): Promise<void> {
  const { shard, kills } = run
  const { pace, seed, say } = run.plan
  const random = streamOf(seed, `kills ${kills.leadersKilled}`)
  const halfAt = over - (seconds * 1_000) / 2
  for (let next = performance.now(); ; ) {
    // From kill to kill, but never while the shard is not whole.
    next = Math.max(performance.now(), next + pace * between(random, KILL_MS.min, KILL_MS.max))
    if (next > over && kills.allKilled > 0) break
    await wait(Math.max(0, Math.min(next, over) - performance.now()))
    const isAll = kills.allKilled === 0 && performance.now() >= halfAt
    const victims = isAll ? shard.running() : await leaderAmong(shard)
    await restart(run, victims, random)
    if (isAll) kills.allKilled++
    else kills.leadersKilled += victims.length
    say(`killed ${victims.map(({ name }) => name).join(', ')}`)
  }
  await wait(Math.max(0, over - performance.now()))
}

async function leaderAmong(shard: Shard): Promise<ShardNode[]> {
  for (const node of shard.running()) {
    try {
      const { leader_id: leader, node_id: id } = await infoOf(node)
      if (leader === id) return [node]
    } catch {
      // It is starting.
    }
  }
  return []
}

async function restart({ shard, all, start }: Run, victims: readonly ShardNode[], random: Random): Promise<void> {
  for (const { name, isRunning, output } of victims) {
    if (!isRunning()) all.violations.push(`${name} ended by itself:\n${output().slice(-2_000)}`)
  }
  await Promise.all(victims.map((node) => node.kill()))
  await wait(between(random, DOWN_MS.min, DOWN_MS.max))
  for (const { name } of victims) start(name)
  if (shard.running().length !== shard.nodes.length) all.violations.push('a node ended by itself')
  if (victims.length > 0) await leaderOf(shard)
}

function lineOf({ counts, violations }: Bookers, over: number): string {
  const { taken, refused, confirmed, late, replaced, voided, repeats } = counts
  const left = Math.max(0, Math.round((over - performance.now()) / 1_000))
  return `${left} s left: ${taken} stays taken, ${refused} refused, ${confirmed} confirmed, ${late} too late, ${replaced} replaced, ${voided} void, ${repeats} repeats, ${violations.length} violations`
}

async function held(shard: Shard): Promise<number> {
  return await metric(await leaderOf(shard), 'vacancy_stays_held')
}

/** Records and nights as the leader has them now. */
async function evidenceOf(client: VacancyClient, { journals, firstDay }: Bookers) {
  const { properties, roomTypes, rooms, nights: count } = INVENTORY
  const records = new Map<string, StayRecord>()
  for (const propertyId of properties) {
    for (let cursor: string | undefined; cursor !== ''; ) {
      const page = await client.stays({ propertyId, ...(cursor !== undefined && { cursor }) }, { linearizable: true })
      for (const { stayId, state, index, timeMs } of page.stays) {
        records.set(stayId, { state, index: Number(index), timeMs })
      }
      cursor = page.cursor
    }
  }
  // Void stays have no lines, so no list has them.
  await inTurn(
    journals.filter(({ id, isVoid }) => isVoid && !records.has(id)),
    async ({ id }) => {
      const { state, index } = await client.stay(id, { linearizable: true })
      records.set(id, { state, index: Number(index), timeMs: 0 })
    },
  )
  const nights = new Map<string, number>()
  const places = properties.flatMap((propertyId) => roomTypes.map((roomType) => ({ propertyId, roomType })))
  await inTurn(
    places.flatMap((place) => datesFrom(firstDay, count).map((date) => ({ ...place, date }))),
    async (night) => {
      const { availability } = await client.getPackage(night, { linearizable: true })
      nights.set(nightName(night.propertyId, night.roomType, night.date), availability)
    },
  )
  return { journals, records, nights, rooms }
}

async function inTurn<T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> {
  const rest = items.values()
  const lane = async () => {
    for (const item of rest) await act(item)
  }
  await Promise.all(Array.from({ length: READS_AT_ONCE }, lane))
}

async function shardViolations(shard: Shard): Promise<string[]> {
  const found: string[] = []
  await sameDigest(shard.running()).catch((error: Error) => found.push(`digests differ: ${error.message}`))
  for (const node of shard.running()) {
    for (const name of ['vacancy_nights_oversold', 'vacancy_stays_held', 'vacancy_stays_overflowed_rooms_total']) {
      const value = await metric(node, name)
      if (value !== 0) found.push(`${node.name}: ${name} is ${value}`)
    }
  }
  return found
}

// The command

export const bookersCommand = defineCommand({
  name: 'proofs bookers',
  component: 'bookers',
  summary:
    'Books, holds and releases stays on a shard whose leader is killed again and again; accounts for every stay.',
  flags: {
    minutes: { type: 'integer', min: 1, max: 10_000, default: 10, summary: 'Time with kills.' },
    clients: {
      type: 'integer',
      min: 1,
      max: 1_024,
      default: CLIENTS,
      summary: 'Bookers, each with connections of its own.',
    },
    seed: SEED_FLAG,
    write: { type: 'boolean', summary: 'Records the run and renews the page that shows it. Only without violations.' },
    json: { type: 'text', value: 'FILE', summary: 'Writes the report.' },
  },
  run: async ({ flags }) => {
    const say = (text: string) => void process.stderr.write(`${text}\n`)
    const seed = flags.seed ?? seedOfNow()
    const { minutes, clients } = flags
    const shape = { clients, lastRoomClients: LAST_ROOM_CLIENTS, pace: 1, holdSecondsMax: 20 }
    say(`seed ${seed}, ${minutes} minutes, ${clients} clients`)
    const report = await runBookers({ seconds: minutes * 60, seed, ...shape, say })
    for (const line of linesOf(report)) process.stdout.write(`${line}\n`)
    for (const violation of report.violations.slice(0, SHOWN)) process.stdout.write(`violation: ${violation}\n`)
    if (flags.json) writeFileSync(flags.json, `${JSON.stringify(report, null, 2)}\n`)
    const hasPassed = report.violations.length === 0
    if (flags.write && hasPassed) writeRun('bookers', runOf(report, minutes, clients))
    return hasPassed ? 0 : 1
  },
})

const of = (count: number) => count.toLocaleString('en')

function linesOf(report: BookersReport): string[] {
  const { lastRoom: last, atEnd, violations, longestGapMs } = report
  return [
    `${of(last.clients)} connections want the last room at once: ${of(last.booked)} booked, ${of(last.soldOut)} sold out.`,
    `${of(report.leadersKilled)} leaders killed, all nodes ${of(report.allKilled)} time${report.allKilled === 1 ? '' : 's'}. Longest time without a stay ${(longestGapMs / 1000).toFixed(1)} s.`,
    `${of(report.taken)} stays taken, ${of(report.refused)} refused, ${of(report.replaced)} replaced, ${of(report.voided)} given up as void; ${of(report.repeats)} calls repeated after an unknown outcome, ${of(report.sentTwice)} sent twice.`,
    `Holds: ${of(report.confirmed)} confirmed, ${of(report.abandoned)} abandoned, ${of(report.late)} too late, ${of(report.retaken)} of them taken again.`,
    `The clocks of nodes are up to 6 s apart and pass ${report.dates}. A backup was restored ${of(report.restored)} time${report.restored === 1 ? '' : 's'}, a property deleted and set again below its stays ${of(report.refreshed)} times, the beginning of the day moved ${of(report.dayBegins)} times. ${of(report.reinstated)} stays reinstated, ${of(report.lateRepeats)} late repeats refused.`,
    `At the end ${of(atEnd.booked)} booked, ${of(atEnd.released)} released, ${of(atEnd.expired)} expired, ${of(atEnd.voided)} void. The rooms left in ${of(atEnd.compared)} replies are those of a replay in log order; ${of(atEnd.unplaced)} stays have no index for it.`,
    `${of(violations.length)} violations: ${violations.length === 0 ? 'no night oversold, no stay partly taken, one fate for every hold, equal digests' : 'see below'}.`,
  ]
}

function runOf(report: BookersReport, minutes: number, clients: number): RecordedRun {
  const flags = clients === CLIENTS ? '' : ` --clients ${clients}`
  return {
    title: `${clients} bookers, ${minutes} minutes with kills`,
    command: `npm run proofs -- bookers --minutes ${minutes}${flags} --seed ${report.seed}`,
    date: new Date().toISOString().slice(0, 10),
    commit: commitOf(ROOT),
    lines: linesOf(report),
  }
}
