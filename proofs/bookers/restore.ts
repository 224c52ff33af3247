/**
 * A restore of an older backup under clients that go on: what was booked before it is there, what was booked after it
 * is unknown, and indexes of the former life of the data are refused by name (docs/design/consensus.md#indexes).
 */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { connect, type VacancyClient } from '@vacancy/client'
import { formatDay } from '@vacancy/shared'
import { somewhere } from '@vacancy/testkit/node'
import { leaderOf, type Shard, seedNode } from '@vacancy/testkit/shard'
import { failure } from '../../bench/src/failure.ts'
import { answerOf, backUpInto, wrongAnswers } from '../restored.ts'
import type { Booker, Bookers } from './clients.ts'
import { insist } from './source.ts'

/** Clients that read what they wrote, at any node. */
const WATCHERS = 8
const PAUSE_MS = 20

type Backup = {
  readonly file: string
  readonly journals: Bookers['journals']
  readonly bookers: readonly Pick<Booker, 'booked' | 'pending'>[]
}

/** While no booker has a call on its way: so the backup has exactly what they were told. */
export async function backUp(shard: Shard, all: Bookers, bookers: readonly Booker[]): Promise<Backup> {
  const { code, output, file } = await backUpInto(join(shard.folder, 'backup'), shard, await leaderOf(shard))
  if (code !== 0) throw failure(`the backup ended with ${code}: ${output}`)
  const state = bookers.map(({ booked, pending }) => ({ booked, pending }))
  return { file, ...structuredClone({ journals: all.journals, bookers: state }) }
}

/** @param start starts a node again. @param nodes addresses for clients */
export async function restore(
  shard: Shard,
  all: Bookers,
  bookers: readonly Booker[],
  backup: Backup,
  { nodes, start }: { readonly nodes: readonly string[]; readonly start: (name: string) => void },
): Promise<void> {
  const lost = bookers.flatMap(({ booked }) => booked).find(({ id }) => isUnknownTo(backup, id))
  const kept = backup.bookers.flatMap(({ booked }) => booked)[0]
  const watchers = await Promise.all(
    Array.from({ length: WATCHERS }, () => connect({ nodes, readYourWrites: true, deadlineMs: 5_000 })),
  )
  try {
    const night = { propertyId: 'watched', roomType: 'single', date: formatDay(all.firstDay + 1) }
    await offer(watchers[0] as VacancyClient, night)
    const told = await Promise.all(watchers.map((watcher) => indexOf(watcher, night)))
    const reading = { isOver: false }
    const reads = Promise.all(watchers.map((watcher) => readOn(watcher, night, reading)))
    await Promise.all(shard.running().map((node) => node.kill()))
    for (const name of shard.nodes) {
      rmSync(shard.dataDir(name), { recursive: true })
      seedNode(shard, name, backup.file)
      start(name)
    }
    await leaderOf(shard)
    reading.isOver = true
    await reads
    await offer(watchers[0] as VacancyClient, night)
    for (const [n, watcher] of watchers.entries())
      all.violations.push(...(await afterwards(watcher, night, told[n] as number)))
    const [first] = watchers
    if (first && kept) await expectState(all, first, kept.id, 'booked')
    if (first && lost) await expectState(all, first, lost.id, 'NOT_FOUND')
  } finally {
    await Promise.all(watchers.map((watcher) => watcher.close()))
  }
  all.journals.splice(0, all.journals.length, ...backup.journals)
  for (const [n, { booked, pending }] of backup.bookers.entries())
    Object.assign(bookers[n] as Booker, { booked, pending })
  all.counts.restored++
}

function isUnknownTo({ journals }: Backup, id: string): boolean {
  return !journals.some((journal) => journal.id === id)
}

type Night = { readonly propertyId: string; readonly roomType: string; readonly date: string }

async function offer(client: VacancyClient, night: Night): Promise<void> {
  const property = somewhere(night.propertyId) as Parameters<VacancyClient['setProperty']>[0]
  await insist(() => client.setProperty(property))
  await insist(() => client.setPackage({ ...night, availability: 5, finalPrice: 100, rateFeatures: [] }))
}

async function indexOf(client: VacancyClient, night: Night): Promise<number> {
  let told = 0
  await insist(async () => {
    told = Number((await client.send('SETROOMAVL', { ...night, amount: 5, wantIndex: 1 })).index)
  })
  return told
}

/** Reads through the restore. Its outcomes are of both lives, or none. */
async function readOn(client: VacancyClient, night: Night, reading: { readonly isOver: boolean }): Promise<void> {
  while (!reading.isOver) {
    await client.getPackage(night).catch(() => undefined)
    await wait(PAUSE_MS)
  }
}

/** What a client meets that knows an index of the former life. */
async function afterwards(client: VacancyClient, night: Night, told: number): Promise<string[]> {
  const read = () => answerOf(() => client.getPackage(night).then(() => ''))
  // One refusal may tell a client that what it knows is of another life.
  const again = (await read()) && (await read())
  const found = again === '' ? [] : [`restored: a client that reads its own writes is refused with ${again}`]
  return [...found, ...(await wrongAnswers((asOf) => client.setAvailability({ ...night, amount: 5, asOf }), told))]
}

async function expectState({ violations }: Bookers, client: VacancyClient, stayId: string, wanted: string) {
  const found = await answerOf(async () => (await client.stay(stayId, { linearizable: true })).state)
  if (found !== wanted) violations.push(`restored: stay ${stayId} is ${found}, not ${wanted}`)
}
