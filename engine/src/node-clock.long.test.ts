/** Wrong clocks of a standalone node: real processes under libfaketime, whose monotonic time stays true. */

import {
  ask,
  dateIn,
  getText,
  type NodeProcess,
  post,
  runVacancy,
  somewhere,
  statusOf,
  succeed,
  type WireClient,
} from '@vacancy/testkit/node'
import { until } from '@vacancy/testkit/until'
import { expect, test } from 'vitest'
import { createFakeClock } from './testing/faketime.ts'
import { nodesOfTest } from './testing/nodes-of-test.ts'

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000

const { folderOfTest, start, connectTo } = nodesOfTest()

/** A night `days` from true today. */
const place = (days: number) => ({ propertyId: 'hotel_1', roomType: 'double', date: dateIn(days) })

type Ready = {
  readonly ready: boolean
  readonly reasons: readonly { readonly reason: string; readonly type: string }[]
}

async function readyOf(node: NodeProcess): Promise<Ready> {
  const [, text] = await getText(node, '/ready')
  return JSON.parse(text) as Ready
}

const clockOf = async (node: NodeProcess) => (await statusOf(node)).clock

/** Shard time minus true time, in hours. */
async function hoursAhead(node: NodeProcess): Promise<number> {
  const clock = await clockOf(node)
  return Math.round((Date.parse(clock?.shard_time ?? '') - Date.now()) / HOUR_MS) + 0
}

const writes = async (client: WireClient, days: number) =>
  (await ask(client, 'SETROOMPKG', { ...place(days), availability: 3 })).ok

const setTime = (node: NodeProcess, ...flags: string[]) =>
  runVacancy(['cluster', 'set-time', '--node', `127.0.0.1:${node.apiPort}`, ...flags])

test('a log written under a clock two days ahead refused today for two days; set-time corrects it for good', async () => {
  const folder = folderOfTest()
  const clock = createFakeClock(folder, 'node', 2 * DAY_MS)
  const config = { maintenance_hour: 0 }
  const ahead = await start({ folder, config, environment: clock.environment })
  const first = await connectTo(ahead)
  await succeed(first, 'SETPROP', somewhere('hotel_1'))
  await succeed(first, 'SETROOMPKG', { ...place(5), availability: 2 })
  await until('maintenance has dropped the wrong days', async () => {
    const { maintenance } = await statusOf(ahead)
    return (maintenance?.last_day ?? 0) > 0 || undefined
  })
  await ahead.stop()

  clock.set(0)
  const node = await start({ folder, config, environment: clock.environment })
  const client = await connectTo(node)
  const ready = await until('it is not ready', async () => {
    const answer = await readyOf(node)
    return answer.ready ? undefined : answer
  })
  expect(ready.reasons.map(({ reason }) => reason)).toEqual(['clock'])
  expect(ready.reasons[0]?.type).toContain('vacancy cluster set-time')
  expect(await writes(client, 0)).toBe(false)
  expect(await writes(client, 5)).toBe(true)

  const shown = await setTime(node)
  expect([shown.code, shown.output]).toEqual([0, expect.stringContaining('Nothing was changed')])
  expect(shown.output).toContain(`${dateIn(0)} to ${dateIn(1)}: maintenance dropped`)
  expect((await clockOf(node))?.state).toBe('suspect')
  const done = await setTime(node, '--yes')
  expect([done.code, done.output]).toEqual([0, expect.stringContaining('The time is set.')])

  await until('it is ready', async () => (await readyOf(node)).ready || undefined)
  expect(await writes(client, 0)).toBe(true)
  expect(await writes(client, 365)).toBe(true)
  const last = (await clockOf(node))?.last_set
  expect(last?.import_nights).toEqual({ from: dateIn(0), to: dateIn(1) })
  expect(await post(node, '/save-snapshot')).toBe(202)
  await until('it is in a snapshot', async () => (await statusOf(node)).snapshot?.origin === 'requested' || undefined)
  await node.kill()

  const again = await start({ folder, config, environment: clock.environment })
  const reader = await connectTo(again)
  expect((await readyOf(again)).ready).toBe(true)
  expect((await succeed(reader, 'GETPROPROOMDAY', place(0))).availability).toBe(3)
  expect(await writes(reader, 0)).toBe(true)
  expect((await clockOf(again))?.last_set).toEqual(last)
  const nothing = await setTime(again, '--yes')
  expect([nothing.code, nothing.output]).toEqual([1, expect.stringContaining('agrees with the clock')])
}, 240_000)

test('a standalone node that was off for twenty-nine days serves at once, with a warning', async () => {
  const folder = folderOfTest()
  const clock = createFakeClock(folder, 'node', -29 * DAY_MS)
  const old = await start({ folder, environment: clock.environment })
  await succeed(await connectTo(old), 'SETPROP', somewhere('hotel_1'))
  await old.stop()

  clock.set(0)
  const node = await start({ folder, environment: clock.environment })
  expect(node.output()).toContain('clock jumped forward')
  expect((await readyOf(node)).ready).toBe(true)
  expect(await hoursAhead(node)).toBe(0)
  const client = await connectTo(node)
  // Both edges of the window.
  expect([await writes(client, 0), await writes(client, 365)]).toEqual([true, true])
  expect([await writes(client, -1), await writes(client, 368)]).toEqual([false, false])
})

test('where the day begins at 8 UTC, tonight is sold until then, and a hold of last night is retaken', async () => {
  const folder = folderOfTest()
  const midnight = Math.floor(Date.now() / DAY_MS) * DAY_MS + DAY_MS
  const clock = createFakeClock(folder, 'node', midnight + HOUR_MS - Date.now())
  const node = await start({ folder, environment: clock.environment })
  const client = await connectTo(node)
  await succeed(client, 'SETPROP', somewhere('hotel_1'))
  expect([await writes(client, 0), await writes(client, 1)]).toEqual([false, true])

  expect(await post(node, '/admin/settings', { name: 'day_begins_minutes', value: 1_201 })).toBe(400)
  expect(await post(node, '/admin/settings', { name: 'day_begins_minutes', value: 480 })).toBe(202)
  await until('tonight can be written', async () => (await writes(client, 0)) || undefined)
  expect(await writes(client, -1)).toBe(false)
  const tonight = { propertyId: 'hotel_1', roomType: 'double', arrival: dateIn(0), nights: 1, rooms: 1 }
  const search = { segment: somewhere('hotel_1')['segment'] as string, roomType: 'double', dates: [dateIn(0)] }
  expect(await ask(client, 'SEARCHAVAIL', search)).toMatchObject({
    result: { properties: [{ propertyId: 'hotel_1' }] },
  })
  await succeed(client, 'HOLDSTAY', { stayId: 'late', seconds: 10, lines: [tonight] })
  await until('the hold has expired', async () => {
    const reply = await ask(client, 'GETSTAY', { stayId: 'late' })
    return (reply.ok && reply.result.state === 'expired') || undefined
  })
  expect(await succeed(client, 'CONFIRMSTAY', { stayId: 'late', retake: 1 })).toMatchObject({
    state: 'booked',
    lines: [{ days: [{ date: dateIn(0), availability: 2 }] }],
  })
  await succeed(client, 'HOLDSTAY', { stayId: 'later', seconds: 10, lines: [tonight] })
  expect((await statusOf(node)).clock).toMatchObject({ state: 'following' })

  await node.stop()
  clock.set(midnight + 9 * HOUR_MS - Date.now())
  const morning = await start({ folder, environment: clock.environment })
  const next = await connectTo(morning)
  expect(await writes(next, 0)).toBe(false)
  // A confirmation names no dates: what is too late is the stay.
  expect(await ask(next, 'CONFIRMSTAY', { stayId: 'later', retake: 1 })).toMatchObject({
    code: 'EXPIRED',
    message: `state=expired line=0 date=${dateIn(0)}`,
  })
})

test('a running node follows a step forward, and is not ready after one far back', async () => {
  const folder = folderOfTest()
  const clock = createFakeClock(folder, 'node', 0)
  const node = await start({ folder, environment: clock.environment })
  const client = await connectTo(node)
  await succeed(client, 'SETPROP', somewhere('hotel_1'))

  clock.set(3 * HOUR_MS)
  expect(await writes(client, 2)).toBe(true)
  await until('shard time follows', async () => (await hoursAhead(node)) === 3 || undefined)
  expect((await readyOf(node)).ready).toBe(true)

  clock.set(0)
  const ready = await until('it is not ready', async () => {
    const answer = await readyOf(node)
    return answer.ready ? undefined : answer
  })
  expect(ready.reasons.map(({ reason }) => reason)).toEqual(['clock'])
  expect(await hoursAhead(node)).toBe(3)
  expect(await writes(client, 2)).toBe(true)

  clock.set(3 * HOUR_MS)
  await until('a clock that is right again ends it', async () => (await readyOf(node)).ready || undefined)
})
