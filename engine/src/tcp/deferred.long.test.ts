import { encodeRequest, type RequestFields } from '@vacancy/shared/wire'
import {
  answerTo,
  ask,
  closeClient,
  dateIn,
  openClient,
  readAnswer,
  somewhere,
  succeed,
  type WireClient,
} from '@vacancy/testkit/node'
import { until } from '@vacancy/testkit/until'
import { afterEach, expect, test } from 'vitest'
import { findName, NAMES } from '../store/dictionary.ts'
import { SEGMENT, TABLE } from '../store/layout.ts'
import { segmentOf, tableOf } from '../store/segment.ts'
import { field } from '../store/table-fields.ts'
import { mark, unmark } from '../store/version.ts'
import { ask as askInMemory, SAMPLE_CODECS } from '../testing/node-in-memory.ts'
import { startServingThread, type TestedThread } from '../testing/serving-thread.ts'

const cleanUp: (() => unknown)[] = []
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step()
})

const ROWS = 6_000
/** Slices as small as they can be: 128 rows, so that a search of all rows takes 47. */
const SLICE_WORK = 1
/** Finds no property after checking every row. */
const BROAD = { segment: 'alpine', longitude: -120, latitude: -60 }
const SELECTIVE = { segment: 'coast' }
const FOUND = { propertyIds: ['inn'] }

/** A thread over a segment of many rows, `alpine`, and one of a single row, `coast`. */
async function start(rows = ROWS): Promise<[TestedThread, WireClient]> {
  const thread = await startServingThread({ isStandalone: true, searchSliceWork: SLICE_WORK })
  cleanUp.push(() => thread.stop())
  for (let i = 0; i < rows; i++) askInMemory(thread.node, 'SETPROP', somewhere(`p_${i}`))
  askInMemory(thread.node, 'SETPROP', { ...somewhere('inn'), segment: 'coast' })
  return [thread, await connectTo(thread)]
}

async function connectTo(thread: TestedThread): Promise<WireClient> {
  const client = await openClient(thread, { codecs: SAMPLE_CODECS })
  cleanUp.push(() => closeClient(client))
  return client
}

const encode = (correlationId: number, fields: RequestFields) =>
  encodeRequest({ command: 'SEARCHPROP', correlationId, fields })

function propertyTableOf({ node }: TestedThread, segment: string): number {
  const { memory } = node.store
  const bytes = new TextEncoder().encode(segment)
  const address = segmentOf(memory, findName(memory, NAMES.segment, bytes, 0, bytes.length))
  return field(memory, address + SEGMENT.propertyTable)
}

test('searches sent after a broad one on its connection do not wait for its end (they used to)', async () => {
  const [, client] = await start()
  const behind = Array.from({ length: 20 }, (_, i) => i + 2)

  const answers = [1, ...behind].map((id) => answerTo(client, id))
  client.socket.write(Buffer.concat([encode(1, BROAD), ...behind.map((id) => encode(id, SELECTIVE))]))
  const payloads = await Promise.all(answers)

  expect(client.frames.map(({ correlationId }) => correlationId)).toEqual([...behind, 1])
  expect(readAnswer(client, 'SEARCHPROP', payloads[0])).toEqual({ ok: true, result: { propertyIds: [] } })
  for (const payload of payloads.slice(1)) {
    expect(readAnswer(client, 'SEARCHPROP', payload)).toEqual({ ok: true, result: FOUND })
  }
})

test('a search on another connection of the thread does not wait for all earlier broad ones (it used to)', async () => {
  const [thread, crowded] = await start()
  const other = await connectTo(thread)
  await succeed(other, 'SEARCHPROP', SELECTIVE)
  const ids = Array.from({ length: 60 }, (_, i) => i + 1)

  const answers = ids.map((id) => answerTo(crowded, id))
  crowded.socket.write(Buffer.concat(ids.map((id) => encode(id, BROAD))))
  expect(await succeed(other, 'SEARCHPROP', SELECTIVE)).toEqual(FOUND)

  expect(crowded.frames.length).toBeLessThan(ids.length)
  for (const payload of await Promise.all(answers)) expect(readAnswer(crowded, 'SEARCHPROP', payload).ok).toBe(true)
  // First come, first served, except for the few that take turns.
  const order = crowded.frames.map(({ correlationId }) => correlationId)
  for (const [place, id] of order.entries()) expect(Math.abs(place + 1 - id)).toBeLessThanOrEqual(8)
})

test('a sliced search has the results of an unsliced one, up to its limit and explained', async () => {
  const [, client] = await start(1_000)
  const { longitude, latitude } = somewhere('p') as { longitude: number; latitude: number }
  const all = { segment: 'alpine', longitude, latitude }

  const { propertyIds } = await succeed(client, 'SEARCHPROP', all)
  expect(propertyIds).toEqual(Array.from({ length: 200 }, (_, i) => `p_${i}`))
  const explained = await succeed(client, 'SEARCHPROP', { ...BROAD, explain: 1 })

  expect(explained).toMatchObject({ propertyIds: [], explain: { rowsExamined: 1_000 } })
})

test('a request after a long list of segments does not wait for its end (it used to)', async () => {
  const [thread, client] = await start(0)
  const names = Array.from({ length: 1_500 }, (_, i) => `n${(i * 7919) % 1_500}`)
  for (const segment of names) askInMemory(thread.node, 'SETPROP', { ...somewhere(`in_${segment}`), segment })
  askInMemory(thread.node, 'DELSEGMENT', { segment: 'n7' })

  const answers = [1, 2].map((id) => answerTo(client, id))
  const list = encodeRequest({ command: 'GETSEGMENTS', correlationId: 1, fields: {} })
  client.socket.write(Buffer.concat([list, encode(2, SELECTIVE)]))
  const [payload] = await Promise.all(answers)

  expect(client.frames.map(({ correlationId }) => correlationId)).toEqual([2, 1])
  const expected = ['coast', ...names.filter((name) => name !== 'n7')].sort()
  expect(readAnswer(client, 'GETSEGMENTS', payload)).toEqual({
    ok: true,
    result: { segments: expected.map((segment) => ({ segment, propertyCount: 1 })) },
  })
})

test('a write after a broad search waits for its reply and is invisible to it', async () => {
  const [thread, client] = await start(1_000)
  const other = await connectTo(thread)
  const table = propertyTableOf(thread, 'alpine')

  // Under the mark the search cannot end, however slow this test is.
  mark(thread.node.store, table)
  const answers = [1, 2, 3].map((id) => answerTo(client, id))
  client.socket.write(
    Buffer.concat([
      encode(1, BROAD),
      encodeRequest({ command: 'DELPROP', correlationId: 2, fields: { propertyId: 'inn' } }),
      encode(3, SELECTIVE),
    ]),
  )
  await succeed(other, 'SEARCHPROP', SELECTIVE)
  expect(thread.writes).toEqual([])
  expect(client.frames).toEqual([])
  unmark(thread.node.store, table)

  expect(readAnswer(client, 'SEARCHPROP', await answers[0])).toEqual({ ok: true, result: { propertyIds: [] } })
  thread.apply(await until('the write is proposed', () => thread.writes.shift()))
  expect(readAnswer(client, 'DELPROP', await answers[1]).ok).toBe(true)
  expect(readAnswer(client, 'SEARCHPROP', await answers[2])).toEqual({ ok: true, result: { propertyIds: [] } })
})

test('a search of a table that is being changed does not block its thread (it used to)', async () => {
  const [thread, client] = await start(10)
  const table = propertyTableOf(thread, 'alpine')

  mark(thread.node.store, table)
  const changing = answerTo(client, 1)
  const behind = answerTo(client, 2)
  client.socket.write(Buffer.concat([encode(1, { segment: 'alpine' }), encode(2, SELECTIVE)]))
  expect(readAnswer(client, 'SEARCHPROP', await behind)).toEqual({ ok: true, result: FOUND })
  expect(client.frames).toHaveLength(1)
  unmark(thread.node.store, table)

  const answer = readAnswer(client, 'SEARCHPROP', await changing)
  expect(answer.ok && answer.result.propertyIds).toHaveLength(10)
})

test('reads of a table that keeps changing end with 429, and the thread serves other requests meanwhile', async () => {
  const [thread, client] = await start(10)
  const other = await connectTo(thread)
  const { store } = thread.node
  const room = { propertyId: 'p_1', roomType: 'double' }
  askInMemory(thread.node, 'SETROOMPKG', { ...room, date: dateIn(1), availability: 1 })
  const property = propertyTableOf(thread, 'alpine')
  const bytes = new TextEncoder().encode('double')
  const roomType = findName(store.memory, NAMES.roomType, bytes, 0, bytes.length)
  const nights = tableOf(store.memory, segmentOf(store.memory, field(store.memory, property + TABLE.segment)), roomType)

  for (const table of [property, nights]) mark(store, table)
  const reads = [ask(client, 'SEARCHPROP', { segment: 'alpine' }), ask(client, 'PROPROOMDATELIST', room)]
  expect(await succeed(other, 'SEARCHPROP', SELECTIVE)).toEqual(FOUND)

  for (const answer of await Promise.all(reads)) expect(answer).toEqual({ ok: false, code: '429', message: '' })
  for (const table of [property, nights]) unmark(store, table)
  expect((await succeed(client, 'SEARCHPROP', { segment: 'alpine' })).propertyIds).toHaveLength(10)
  expect(await succeed(client, 'PROPROOMDATELIST', room)).toEqual({ dates: [dateIn(1)] })
})

test('a client that closes its sending side after a broad search still gets the reply', async () => {
  const [, client] = await start()

  const answer = answerTo(client, 1)
  client.socket.end(encode(1, BROAD))

  expect(readAnswer(client, 'SEARCHPROP', await answer)).toEqual({ ok: true, result: { propertyIds: [] } })
  await until('the connection is closed', () => client.isClosed || undefined)
})

test('a malformed frame after a broad search closes the connection after its reply', async () => {
  const [, client] = await start()

  const answer = answerTo(client, 1)
  client.socket.write(Buffer.concat([encode(1, BROAD), Buffer.from('GET / HTTP/1.1\r\n\r\n')]))

  expect(readAnswer(client, 'SEARCHPROP', await answer)).toEqual({ ok: true, result: { propertyIds: [] } })
  await until('the connection is closed', () => client.isClosed || undefined)
})

test('the broad searches of a disconnected client are dropped', async () => {
  const [thread, client] = await start()
  const other = await connectTo(thread)

  client.socket.write(Buffer.concat(Array.from({ length: 60 }, (_, i) => encode(i + 1, BROAD))))
  await succeed(other, 'SEARCHPROP', SELECTIVE)
  client.socket.destroy()

  expect(await succeed(other, 'SEARCHPROP', BROAD)).toEqual({ propertyIds: [] })
  await until('one connection is left', () => thread.server.connectionsOpen() === 1 || undefined)
})
