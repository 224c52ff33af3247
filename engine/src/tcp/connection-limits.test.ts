/** Limits, counters and the ends of connections, over sockets, a clock and a replica that are the test itself. */

import type { Socket } from 'node:net'
import { COMMANDS, type CommandName, encodeLogin, encodeReply } from '@vacancy/shared/wire'
import { expect, onTestFinished, test } from 'vitest'
import { READ_LIMITS } from '../cluster/reads.ts'
import { findName, NAMES } from '../store/dictionary.ts'
import { CONTROL, SEGMENT } from '../store/layout.ts'
import { segmentOf } from '../store/segment.ts'
import { field } from '../store/table-fields.ts'
import { mark, unmark } from '../store/version.ts'
import {
  type Client,
  CONTEXT,
  connect,
  counterOf,
  createSocket,
  exists,
  frame,
  node,
  PROPERTY,
  replies,
  SLABS,
  STAY,
  setRooms,
  WRITES_FROM,
} from '../testing/connections.ts'
import { ask } from '../testing/node-in-memory.ts'
import { REFUSED } from '../threads/writes.ts'
import {
  checkTimes,
  expireReads,
  openConnection,
  resumeFramesOf,
  sendAnswers,
  takeAnswer,
  takeConfirmation,
  takeStays,
} from './connection.ts'
import { type Connection, LIMITS_OF_THREAD } from './connection-state.ts'
import { COUNTER, commandCounts } from './counters.ts'
import { DEFERRED_LIMITS } from './deferred.ts'

function answer(client: Client, token: number, code = 0, index = 9, value = 5, detail = ''): void {
  const touched = takeAnswer(client.thread, token, code, value, index, detail, undefined)
  if (touched) sendAnswers(touched)
}

function confirm(client: Client, token: number, code = 0, index = 0): void {
  const touched = takeConfirmation(client.thread, token, code, index)
  if (touched) sendAnswers(touched)
}

const errorsOf = ({ thread }: Client, command: CommandName) =>
  commandCounts([thread.counters], COMMANDS[command].code).errors.reduce((all, each) => all + each, 0)

const stays = (id: number) => frame('GETSTAY', { stayId: 's1' }, id)
const REPLY_BYTES = encodeReply('PROPEXIST', 1, { exists: true }, CONTEXT).length

/** Properties beside the first one. */
let rows = 0

/** A thread whose searches end after 128 rows of a turn, and the table of its properties. */
function connectSliced() {
  const client = connect()
  const { searcher } = client.thread.dispatcher
  for (; rows < 300; rows++) ask(node, 'SETPROP', { ...PROPERTY, propertyId: `p${rows}` })
  Object.assign(searcher, { sliceWork: 1, workLeft: 1 })
  onTestFinished(() => {
    Object.assign(searcher, { sliceWork: Number.POSITIVE_INFINITY, workLeft: Number.POSITIVE_INFINITY })
  })
  const { memory } = node.store
  const bytes = new TextEncoder().encode('alpine')
  const segment = segmentOf(memory, findName(memory, NAMES.segment, bytes, 0, bytes.length))
  return { ...client, table: field(memory, segment + SEGMENT.propertyTable) }
}

const search = (id: number) => frame('SEARCHPROP', { segment: 'alpine', longitude: -120, latitude: -60 }, id)

// Ends

test('nothing after a failed login is answered, and what came before it is', () => {
  const client = connect({ requireLogin: true })
  client.send(exists(1), encodeLogin('wrong'), exists(2))
  expect(Buffer.concat(client.state.writes).toString()).toMatch(/login required.*LOGIN FAILED$/s)
  expect([client.state.writes.length, client.connection.closing, client.state.isEnded]).toEqual([2, true, true])
  expect(counterOf(client, COUNTER.commands)).toBe(1)
  client.send(exists(3))
  expect([client.state.writes.length, counterOf(client, COUNTER.loginFailures)]).toEqual([2, 1])
})

test('replies before bytes that are no frame are sent before the end', () => {
  const client = connect()
  client.send(exists(1), Uint8Array.of(1, 2, 3))
  expect([replies(client), client.state.isEnded, client.connection.closing]).toEqual([[[1, true]], true, true])
  expect(client.thread.slabs.free).toHaveLength(SLABS)
})

test('a destroyed socket gets no bytes, and its slab is free again', () => {
  const client = connect()
  client.send(setRooms(WRITES_FROM))
  client.socket.destroyed = true
  client.send(exists(1))
  answer(client, 1)
  expect([client.state.writes, client.thread.slabs.free.length, counterOf(client, COUNTER.bytesSent)]).toEqual([
    ...[[], SLABS],
    0,
  ])
})

test('a closed connection is not read from, resumed or answered', () => {
  const client = connect({ isInShard: true })
  client.send(exists(1, 'inn', { linearizable: 1 }), stays(2))
  client.connection.servedIndex = 1
  client.socket.emit('close')
  confirm(client, 1)
  expect(takeStays(client.thread, 2, 13, 40, undefined)).toBeUndefined()
  resumeFramesOf(client.connection)
  expect([client.state.writes, client.connection.pendingReads, client.connection.servedIndex]).toEqual([[], 0, 1])
  expect([client.thread.stayReads.size, client.thread.pendingReads.size]).toEqual([0, 0])
  expect(errorsOf(client, 'GETSTAY')).toBe(1)
})

test('a deferred read of a closed connection is given up', () => {
  const client = connectSliced()
  client.send(search(1))
  client.socket.emit('close')
  client.thread.deferred.runTurn()
  expect([client.state.writes, client.thread.deferred.ready.length]).toEqual([[], 0])
})

// Pauses

test.each([
  [0, false],
  [-1, true],
])('a client is not read from when more than the buffer waits for it: %i bytes of room, %s', (room, isPaused) => {
  const client = connect()
  Object.assign(client.thread, { sendBufferBytes: 3 * REPLY_BYTES + room })
  client.state.isFull = true
  client.send(exists(1), exists(2), exists(3))
  expect([client.state.isPaused, client.connection.paused]).toEqual([isPaused, isPaused])
  client.socket.writableLength = client.thread.sendBufferBytes + 1
  resumeFramesOf(client.connection)
  expect(client.state.isPaused).toBe(true)
  client.socket.writableLength -= 1
  resumeFramesOf(client.connection)
  expect(client.state.isPaused).toBe(false)
})

test('a connection with a held frame is read from again when it is answered', () => {
  const client = connect()
  client.send(setRooms(WRITES_FROM), exists(1))
  expect([client.state.isPaused, client.connection.halfSince]).toEqual([true, 0])
  client.send(exists(2).subarray(0, 4))
  expect(client.connection.halfSince).toBe(0)
  answer(client, 1)
  expect([client.state.isPaused, client.connection.halfSince, client.connection.held]).toEqual([
    ...[false, 1_000],
    undefined,
  ])
  client.send(exists(2).subarray(4))
  expect(replies(client).slice(1)).toEqual([
    [1, true],
    [2, true],
  ])
})

test('a held read waits for all writes before it', () => {
  const client = connect()
  client.send(setRooms(WRITES_FROM), setRooms(WRITES_FROM + 1), exists(1))
  answer(client, 2)
  expect(replies(client)).toHaveLength(1)
  answer(client, 1)
  expect(replies(client).at(-1)).toEqual([1, true])
})

test('a held write waits for reads of stays, confirmed reads and deferred ones', () => {
  const client = connect({ isInShard: true })
  client.send(stays(7), exists(1, 'inn', { linearizable: 1 }), setRooms(WRITES_FROM))
  confirm(client, 2)
  expect([client.thread.waiting.size, client.connection.pendingReads]).toEqual([0, 1])
  client.connection.deferred = 1
  const touched = takeStays(client.thread, 1, 13, 1, undefined)
  sendAnswers(touched as Connection)
  expect(client.thread.waiting.size).toBe(0)
  client.connection.deferred = 0
  resumeFramesOf(client.connection)
  expect([client.thread.waiting.size, client.connection.writes]).toEqual([1, 1])
})

test('a connection has at most 1,024 reads of stays that wait', () => {
  const client = connect()
  const max = LIMITS_OF_THREAD.readsPerConnection
  client.send(...Array.from({ length: max - 1 }, (_, n) => stays(n + 1)))
  expect(client.state.isPaused).toBe(false)
  client.send(stays(max), stays(max + 1))
  expect([client.connection.pendingReads, client.state.isPaused, client.thread.stayBatch.count]).toEqual([
    ...[max, true],
    max,
  ])
  sendAnswers(takeStays(client.thread, 1, 13, 1, undefined) as Connection)
  expect(client.connection.pendingReads).toBe(max)
  sendAnswers(takeStays(client.thread, 2, 13, 1, undefined) as Connection)
  expect([client.connection.pendingReads, client.state.isPaused]).toEqual([max - 1, false])
})

test('the last reads that a thread may hold are taken', () => {
  const client = connect({ isInShard: true })
  const fill = (waiting: Map<number, unknown>, count: number) => {
    for (let n = 0; n < count; n++) waiting.set(1e6 + n, {})
  }
  fill(client.thread.stayReads, READ_LIMITS.waiting - 1)
  fill(client.thread.pendingReads, READ_LIMITS.waiting - 1)
  client.send(stays(1), exists(2, 'inn', { linearizable: 1 }))
  expect([replies(client), client.connection.pendingReads, client.seen.batches]).toEqual([[], 2, 2])
  client.send(stays(3), exists(4, 'inn', { linearizable: 1 }))
  expect(replies(client)).toEqual([
    [3, '429'],
    [4, '429'],
  ])
  expect([errorsOf(client, 'GETSTAY'), errorsOf(client, 'PROPEXIST')]).toEqual([1, 1])
})

test('a thread has at most 1,024 deferred reads', () => {
  const client = connectSliced()
  const { deferred } = client.thread
  deferred.resting.push(...new Array(DEFERRED_LIMITS.waiting - 1).fill({ connection: { closing: true } }))
  client.send(search(1), search(2))
  expect([client.connection.deferred, replies(client)]).toEqual([1, [[2, '429']]])
})

test('a read that is not answered at once gives its slab back', () => {
  const client = connectSliced()
  mark(node.store, client.table)
  client.send(search(1))
  expect([client.thread.slabs.free.length, client.state.writes, client.seen.slow]).toEqual([SLABS, [], []])
  unmark(node.store, client.table)
  const { deferred } = client.thread
  deferred.ready.push(...deferred.resting.splice(0))
  for (let turn = 0; turn < 50 && client.connection.deferred > 0; turn++) deferred.runTurn()
  expect([client.state.writes.length, client.thread.slabs.free.length]).toEqual([1, SLABS])
})

test('no read begins while the state is being replaced, nor does a deferred one continue', () => {
  const client = connectSliced()
  const close = (isClosed: number) => Atomics.store(node.store.memory.i32, CONTROL.isClosed, isClosed)
  onTestFinished(() => void close(0))
  client.send(search(1))
  close(1)
  client.send(exists(2))
  client.thread.deferred.runTurn()
  expect(replies(client)).toEqual([
    [2, '503'],
    [1, '503'],
  ])
  expect([errorsOf(client, 'PROPEXIST'), errorsOf(client, 'SEARCHPROP')]).toEqual([1, 1])
})

// Replies

test('refused requests count as errors of their command', () => {
  const client = connect()
  client.thread.draining = true
  client.send(exists(1), exists(2), setRooms(WRITES_FROM))
  expect([errorsOf(client, 'PROPEXIST'), errorsOf(client, 'SETROOMAVL')]).toEqual([2, 1])
  expect(counterOf(client, COUNTER.commands)).toBe(3)
})

test('replies of later reads begin in an empty slab', () => {
  const client = connect()
  for (let id = 1; id <= 5; id++) client.send(exists(id))
  expect(client.state.writes.map(({ length }) => length)).toEqual(new Array(5).fill(REPLY_BYTES))
  expect(replies(client).map(([id]) => id)).toEqual([1, 2, 3, 4, 5])
})

test('the answers to many writes of one turn leave with one write', () => {
  const client = connect()
  const count = 600
  client.send(...Array.from({ length: count }, (_, n) => setRooms(WRITES_FROM + n)))
  const { thread } = client
  for (let token = 1; token <= count; token++) takeAnswer(thread, token, 0, 5, token, '', undefined)
  expect(client.state.writes).toEqual([])
  sendAnswers(client.connection)
  expect(client.state.writes).toHaveLength(1)
  expect(replies(client)).toEqual(Array.from({ length: count }, (_, n) => [WRITES_FROM + n, 5]))
  sendAnswers(client.connection)
  expect([client.state.writes.length, client.connection.smallAt]).toEqual([1, 0])
})

test('answers that the socket still holds are not overwritten by later ones', () => {
  const client = connect()
  const kept: Uint8Array[] = []
  const { write } = client.socket
  client.socket.write = (bytes, done) => {
    kept.push(bytes)
    write(bytes, done)
  }
  for (const id of [0, 1, 2]) {
    client.send(setRooms(WRITES_FROM + id))
    answer(client, id + 1)
  }
  expect(Buffer.concat(kept).equals(Buffer.concat(client.state.writes))).toBe(true)
  expect(replies(client)).toHaveLength(3)
})

test('long frames of the replica reach the client whole, one after the other', () => {
  const client = connect()
  const lines = Array.from({ length: 16 }, (_, n) => ({
    ...{ propertyId: `p${n}`, roomType: 'x'.repeat(250), arrival: '2026-12-01', nights: 1, rooms: 1 },
    uncounted: false,
  }))
  const stay = { ...STAY, lines } as never
  const reply = encodeReply('GETSTAY', 0, stay, CONTEXT).slice()
  expect(reply.length).toBeGreaterThan(4_096)
  client.send(stays(1), stays(2))
  for (const token of [1, 2]) takeStays(client.thread, token, 0, 40, reply)
  sendAnswers(client.connection)
  const expected = [1, 2].map((id) => encodeReply('GETSTAY', id, stay, CONTEXT).slice())
  expect(Buffer.concat(client.state.writes).equals(Buffer.concat(expected))).toBe(true)
})

test('the index that a connection was served at never decreases', () => {
  const client = connect()
  client.send(setRooms(WRITES_FROM), setRooms(WRITES_FROM + 1), setRooms(WRITES_FROM + 2))
  const indexes = [
    [2, 0, 9],
    [1, 0, 8],
    [3, 15, 12],
  ].map(([token, code, index]) => {
    answer(client, token as number, code, index)
    return client.connection.servedIndex
  })
  expect(indexes).toEqual([9, 9, 9])
  client.send(stays(1), stays(2))
  for (const [token, index] of [
    [4, 20],
    [5, 19],
  ] as const)
    takeStays(client.thread, token, 13, index, undefined)
  expect(client.connection.servedIndex).toBe(20)
})

test('reads of stays that the replica refuses count as errors', () => {
  const client = connect()
  client.send(stays(1), stays(2))
  sendAnswers(takeStays(client.thread, 1, REFUSED.noLeader, 0, undefined) as Connection)
  const reply = encodeReply('GETSTAY', 0, STAY, CONTEXT).slice()
  sendAnswers(takeStays(client.thread, 2, REFUSED.notServing, 0, reply) as Connection)
  const texts = replies(client)
  expect(texts.map(([id, text]) => [id, String(text).slice(0, 3)])).toEqual([
    [1, '503'],
    [2, '503'],
  ])
  expect(errorsOf(client, 'GETSTAY')).toBe(2)
})

test('reads that have timed out are answered once, each connection its own', () => {
  const client = connect({ isInShard: true })
  const link = createSocket()
  const other = openConnection(client.thread, link.socket as unknown as Socket)
  client.send(exists(1, 'inn', { linearizable: 1 }))
  link.socket.emit('data', Buffer.from(exists(2, 'inn', { linearizable: 1 })))
  expireReads(client.thread, 1_000 + READ_LIMITS.linearizableWaitMs)
  expireReads(client.thread, 1_000 + 2 * READ_LIMITS.linearizableWaitMs)
  expect([replies(client), replies({ ...client, state: link.state })]).toEqual([[[1, '503']], [[2, '503']]])
  expect([other.pendingReads, client.connection.pendingReads]).toEqual([0, 0])
  expect(errorsOf(client, 'PROPEXIST')).toBe(2)
})

test('a read that waits for an index longer than its time is answered by the timer alone', () => {
  const client = connect()
  client.send(exists(1, 'inn', { minIndex: node.index + 1 }))
  client.seen.nowMs = 1_000 + READ_LIMITS.minIndexWaitMs
  checkTimes(client.connection, client.seen.nowMs - 1, 0)
  expect(replies(client)).toEqual([])
  checkTimes(client.connection, client.seen.nowMs, 0)
  expect([replies(client), errorsOf(client, 'PROPEXIST'), client.connection.held]).toEqual([[[1, '308']], 1, undefined])
})
