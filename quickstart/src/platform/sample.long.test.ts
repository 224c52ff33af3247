import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { VacancyClient } from '@vacancy/client'
import { formatDay } from '@vacancy/shared'
import { afterAll, expect, test } from 'vitest'
import { createProcessGroup } from '../launch.ts'
import { filesOf, type State } from './files.ts'
import { planOf, type Spec } from './plan.ts'
import { missingDays, querySample, writeDays, writeSample } from './sample.ts'

const folder = mkdtempSync(join(tmpdir(), 'vacancy-sample-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const group = createProcessGroup()
const SPEC: Spec = {
  ...{ level: 'cluster', shards: 2, zones: 2, nodesPerShard: 1, ha: false, etcdEndpoints: [] },
  ...{ network: 77, portOffset: 0, isOneAddress: false },
}
const FIRST = 20_000
const plan = planOf(SPEC)
const stateOf = (packages: number | undefined): State => ({
  ...{ shards: 2, zones: 2, nodesPerShard: 1, packages, seed: 1, days: 10, lastDay: FIRST + 9 },
})

/** Writes the missing days of a folder. @returns the dates of each property */
async function datesWritten(dir: string, state: State, today: number): Promise<Map<string, Set<string>>> {
  const dates = new Map<string, Set<string>>()
  const client = {
    setPackage: async ({ propertyId, date }: { propertyId: string; date: string }) =>
      void dates.set(propertyId, (dates.get(propertyId) ?? new Set()).add(date)),
    close: async () => {},
  } as unknown as VacancyClient
  await writeDays({ group, files: filesOf(dir), plan, state }, today, async () => client)
  return dates
}

test('days that are missing are those between the last day and the end of the window, none before today', () => {
  const state = { days: 120, lastDay: 20_119 }
  const none = [20_000, 19_990].map((today) => missingDays(state, today))

  for (const { first, last } of none) expect(first).toBeGreaterThan(last)
  expect(missingDays(state, 20_003)).toEqual({ first: 20_120, last: 20_122 })
  expect(missingDays(state, 20_500)).toEqual({ first: 20_500, last: 20_619 })
})

test('each shard has segments of its own, and later days are those of the generator', async () => {
  const files = filesOf(join(folder, 'new'))
  mkdirSync(files.dir)
  const state = stateOf(3_200)
  await writeSample(group, files, plan, { state, today: FIRST, config: '' })
  const { shards } = await querySample(files, ['shard1', 'shard2'])
  const segments = shards.map(({ properties }) => [...new Set(properties.map(({ segment }) => segment))].toSorted())
  const dates = await datesWritten(files.dir, state, FIRST + 2)

  expect(segments).toEqual([
    ['allgaeu', 'carinthia', 'dolomites', 'engadin'],
    ['salzburg', 'savoy', 'tyrol', 'valais'],
  ])
  expect([...(dates.get('alp_000001') ?? [])]).toEqual([formatDay(FIRST + 10), formatDay(FIRST + 11)])
})

test('the sample of an earlier version repeats its first week on the same days of the week', async () => {
  const { dir } = filesOf(join(folder, 'earlier'))
  for (const shard of ['shard1', 'shard2']) {
    mkdirSync(join(dir, 'sample', shard), { recursive: true })
    const rows = Array.from({ length: 10 }, (_, day) => `${shard}_p,room1,${formatDay(FIRST + day)},3,90,free_wifi\n`)
    writeFileSync(join(dir, 'sample', shard, 'properties.csv'), 'PropertyID\n')
    const header = 'PropertyID,RoomType,Date,Availability,FinalPrice,RateFeature\n'
    writeFileSync(join(dir, 'sample', shard, 'packages.csv'), header + rows.join(''))
  }
  const dates = await datesWritten(dir, stateOf(undefined), FIRST + 30)

  expect([...(dates.get('shard2_p') ?? [])].toSorted()).toEqual(
    Array.from({ length: 10 }, (_, day) => formatDay(FIRST + 30 + day)),
  )
})
