/**
 * Restores of a chaos run, from backups that were taken under faults: in its middle while all clients go on, whose
 * histories are judged with them, and at its end. Bookings that were acknowledged before the backup began are there,
 * stays that were first asked for after it are unknown, and an index of the former life of the data is refused by name
 * (docs/design/consensus.md#indexes).
 */

import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { connect, type VacancyClient } from '@vacancy/client'
import { seedNode } from '@vacancy/testkit/shard'
import { until } from '@vacancy/testkit/until'
import { answerOf, backUpInto, wrongAnswers } from '../restored.ts'
import type { Bookers, Fates } from './bookers.ts'
import { type Crowd, nodesOf } from './crowd.ts'
import { type Fleet, killNode, nodeOf, pollFleet, runningNodes, standings, startNode, wipeNode } from './fleet.ts'
import { machineMs } from './recorder.ts'

const PAUSE_MS = 2_000
const SERVES_MS = 240_000

export type Backup = {
  readonly file: string
  /** Booked for certain before it began and when it had ended. */
  readonly booked: ReadonlySet<string>
  /** Asked for before it had ended. */
  readonly asked: ReadonlySet<string>
  /** What stays may be in it. */
  readonly fates: Fates
  /** When it began and had ended, as moments of the crowd. */
  readonly from: number
  readonly to: number
}

/** Tries again until one succeeds that has all that was acknowledged before it: nodes are killed meanwhile. */
export async function backUpUnderFaults(fleet: Fleet, crowd: Crowd, bookers: Bookers, name: string): Promise<Backup> {
  for (let n = 0; ; n++) {
    const node = runningNodes(fleet)[n % Math.max(1, runningNodes(fleet).length)]
    const folder = join(fleet.shard.folder, `backup-${name}-${n}`)
    const from = crowd.moment()
    const before = bookers.stays()
    const endWatch = bookers.watch()
    const seen = await standings(fleet)
    const applied = Math.max(0, ...seen.map(({ index }) => index))
    // One from a node that stalls may not end in time. It is killed then.
    const made = await backUpInto(folder, fleet.shard, node?.process).catch(() => undefined)
    const after = bookers.stays()
    const fates = endWatch()
    const isLed = seen.some(({ health }) => health === 'active_leader')
    if (made?.code === 0 && isLed && indexIn(made.output) >= applied) {
      const booked = new Set([...before.booked].filter((id) => after.booked.has(id)))
      return { file: made.file, booked, asked: after.asked, fates, from, to: crowd.moment() }
    }
    if (fleet.isClosed) throw new Error('no backup was made')
    await wait(PAUSE_MS)
  }
}

/** Of a backup with `--json`, among lines of progress. */
function indexIn(output: string): number {
  return Number(/"index":(\d+)/.exec(output)?.[1] ?? 0)
}

/** All nodes are stopped, and are replaced by restored ones while clients, bookers and the source of record go on. */
export async function restoreUnderClients(
  fleet: Fleet,
  founders: readonly string[],
  backup: Backup,
  { crowd, bookers }: { readonly crowd: Crowd; readonly bookers: Bookers },
): Promise<void> {
  const told = bookers.toldIndex()
  const restore = crowd.restored(backup.from, backup.to)
  bookers.restored(backup.fates)
  for (const node of fleet.nodes.values()) wipeNode(fleet, node)
  for (const name of founders) {
    seedNode(fleet.shard, name, backup.file)
    await startNode(fleet, nodeOf(fleet, name))
  }
  await serving(fleet, founders.length, false)
  restore.servesMs = machineMs()
  const client = await connect({ nodes: nodesOf(fleet), deadlineMs: 20_000, connectDeadlineMs: 60_000 })
  try {
    await expectRefusals(fleet, client, bookers, told)
  } finally {
    await client.close()
  }
}

/** Reads under way at once. */
const ASKED_AT_ONCE = 64

/** All nodes are stopped. @returns how many stays were compared */
export async function restoreAndJudge(
  fleet: Fleet,
  founders: readonly string[],
  { file, booked, asked }: Backup,
  bookers: Bookers,
): Promise<{ restoredStays: number; forgottenStays: number }> {
  for (const name of founders) {
    wipeNode(fleet, nodeOf(fleet, name))
    seedNode(fleet.shard, name, file)
    await startNode(fleet, nodeOf(fleet, name))
  }
  await serving(fleet, founders.length, true)
  const client = await connect({
    nodes: nodesOf(fleet),
    deadlineMs: 60_000,
    connectDeadlineMs: 60_000,
    reads: 'leader',
  })
  try {
    const stateOf = async (id: string) =>
      await answerOf(async () => (await client.stay(id, { linearizable: true })).state)
    const wrong = (text: string) => void fleet.violations.push(`restored: ${text}`)
    // Thousands of them: one at a time takes longer than the run.
    const forEach = async (ids: readonly string[], check: (id: string) => Promise<void>) => {
      for (let at = 0; at < ids.length; at += ASKED_AT_ONCE)
        await Promise.all(ids.slice(at, at + ASKED_AT_ONCE).map(check))
    }
    await forEach([...booked], async (id) => {
      const state = await stateOf(id)
      if (state !== 'booked') wrong(`stay ${id} was booked before the backup and is ${state} (S3)`)
    })
    const later = [...bookers.stays().asked].filter((id) => !asked.has(id))
    await forEach(later, async (id) => {
      const state = await stateOf(id)
      if (state !== 'NOT_FOUND') wrong(`stay ${id} was asked for after the backup and is ${state}`)
    })
    await expectRefusals(fleet, client, bookers, bookers.toldIndex())
    return { restoredStays: booked.size, forgottenStays: later.length }
  } finally {
    await client.close()
    await Promise.all(runningNodes(fleet).map((node) => killNode(fleet, node)))
  }
}

async function expectRefusals(fleet: Fleet, client: VacancyClient, { night }: Bookers, told: number): Promise<void> {
  const found = await wrongAnswers((asOf) => client.setAvailability({ ...night, amount: 1, asOf }), told)
  fleet.violations.push(...found)
}

/** Waits until so many serve, under writes, or with one state. */
async function serving(fleet: Fleet, count: number, isAlike: boolean): Promise<void> {
  let last = ''
  const isThere = async () => {
    const seen = await standings(fleet)
    last = JSON.stringify(seen)
    const serve = seen.filter(({ health }) => health.startsWith('active'))
    const states = new Set(serve.map(({ index, digest }) => `${index} ${digest}`))
    return serve.length >= count && (!isAlike || states.size === 1)
  }
  const what = isAlike ? 'the restored nodes serve one state' : 'the nodes restored under clients serve'
  await until(what, isThere, SERVES_MS).catch(({ message }) => fleet.violations.push(`${message}: ${last}`))
  await pollFleet(fleet)
}
