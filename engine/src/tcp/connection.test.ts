import { COMMANDS, type CommandName, encodeLogin, encodeReply, encodeRequest } from '@vacancy/shared/wire'
import { expect, onTestFinished, test } from 'vitest'
import { READ_LIMITS } from '../cluster/reads.ts'
import { attachCells, createCells, ROLE, type RoleCode } from '../cluster/shared-status.ts'
import { findName, NAMES } from '../store/dictionary.ts'
import { SEGMENT } from '../store/layout.ts'
import { segmentOf } from '../store/segment.ts'
import { field } from '../store/table-fields.ts'
import { mark, unmark } from '../store/version.ts'
import {
  type Client,
  CONTEXT,
  connect,
  counterOf,
  exists,
  frame,
  NIGHT,
  node,
  PROPERTY,
  replies,
  SEND_BUFFER,
  SLAB_BYTES,
  SLABS,
  STAY,
  setRooms,
  WRITES_FROM,
} from '../testing/connections.ts'
import { ask } from '../testing/node-in-memory.ts'
import { REFUSED, takeProposals } from '../threads/writes.ts'
import { checkTimes, expireReads, resumeFramesOf, takeConfirmation } from './connection.ts'
import { type Connection, LIMITS_OF_THREAD } from './connection-state.ts'
import { COUNTER, commandCounts } from './counters.ts'
import { DEFERRED_LIMITS } from './deferred.ts'
import { expireUnanswered, sendAnswers, takeAnswer, takeStays } from './replies.ts'

const tokensOf = ({ thread }: Client) => [...thread.waiting.keys()]

function answer(client: Client, token: number, code = 0, index = 9, value = 5, detail = ''): void {
  const touched = takeAnswer(client.thread, { token, code, value, index, detail, frame: undefined })
  if (touched) sendAnswers(touched)
}

function confirm(client: Client, token: number, code = 0, index = 0): void {
  const touched = takeConfirmation(client.thread, token, code, index)
  if (touched) sendAnswers(touched)
}

// Replies

test('the replies to all frames of one chunk leave with one write, in order', () => {
  const client = connect()
  const frames = [exists(1), exists(2, 'other'), exists(3)]
  client.send(...frames)
  expect(client.state.writes).toHaveLength(1)
  expect(replies(client)).toEqual([
    [1, true],
    [2, false],
    [3, true],
  ])
  const bytes = (list: readonly Uint8Array[]) => list.reduce((sum, { length }) => sum + length, 0)
  expect(counterOf(client, COUNTER.bytesReceived)).toBe(bytes(frames))
  expect(counterOf(client, COUNTER.bytesSent)).toBe(bytes(client.state.writes))
  expect([COUNTER.connectionsOpened, COUNTER.commands, COUNTER.errors].map((each) => counterOf(client, each))).toEqual([
    1, 3, 0,
  ])
})

test('before a search begins, writes of its turn go to the replica, and what it has answered is sent', () => {
  const writer = connect()
  const reader = connect({}, writer)
  writer.send(setRooms(WRITES_FROM))
  reader.send(exists(1))
  expect(writer.seen.order).toEqual(['take', 'take'])
  reader.send(frame('SEARCHPROP', { segment: 'alpine', limit: 2 }, 2), frame('SEARCHPROP', { segment: 'alpine' }, 3))
  expect(writer.seen.order.slice(2)).toEqual(['take', 'send', 'send'])
})

test('a frame in two chunks has one reply, after its end', () => {
  const client = connect()
  const bytes = exists(1)
  client.send(bytes.subarray(0, 12))
  expect(client.state.writes).toEqual([])
  expect(client.connection.halfSince).toBe(1_000)
  client.seen.nowMs = 5_000
  client.send(bytes.subarray(12, 15))
  expect(client.connection.halfSince).toBe(1_000)
  client.send(bytes.subarray(15))
  expect(client.connection.halfSince).toBe(0)
  expect(replies(client)).toEqual([[1, true]])
})

test('a slab is free again when the kernel has taken its replies, and not before', () => {
  const client = connect()
  const { slabs } = client.thread
  client.send(exists(1))
  expect(slabs.free).toHaveLength(SLABS)
  client.state.isFull = true
  client.send(exists(2))
  expect(slabs.free).toHaveLength(SLABS - 1)
  client.send(exists(3))
  expect(slabs.free).toHaveLength(0)
  // Then replies are copied.
  client.send(exists(4))
  expect(counterOf(client, COUNTER.slabsMissing)).toBe(1)
  client.drain()
  expect(slabs.free).toHaveLength(SLABS)
  expect(replies(client)).toEqual([
    [1, true],
    [2, true],
    [3, true],
    [4, true],
  ])
})

test('replies larger than a slab are sent whole, after those before them', () => {
  const rooms = Array.from({ length: 200 }, (_, n) => `room-${String(n).padStart(3, '0')}-${'x'.repeat(20)}`)
  ask(node, 'SETPROP', { ...PROPERTY, propertyId: 'large' })
  for (const roomType of rooms) ask(node, 'SETROOMPKG', { ...NIGHT, propertyId: 'large', roomType })
  const client = connect()
  const list = frame('PROPROOMLIST', { propertyId: 'large' }, 2)
  client.send(exists(1), list, exists(3))
  const expected = [
    encodeReply('PROPEXIST', 1, { exists: true }, CONTEXT).slice(),
    encodeReply('PROPROOMLIST', 2, { roomTypes: rooms }, CONTEXT).slice(),
    encodeReply('PROPEXIST', 3, { exists: true }, CONTEXT).slice(),
  ]
  expect(expected[1]?.length).toBeGreaterThan(SLAB_BYTES)
  expect(Buffer.concat(client.state.writes).equals(Buffer.concat(expected))).toBe(true)
  expect(client.thread.slabs.free).toHaveLength(SLABS)
})

test('a client that does not read its replies is not read from until it does', () => {
  const client = connect()
  client.state.isFull = true
  const many = Array.from({ length: 600 }, (_, n) => exists(n + 1))
  client.send(...many)
  expect(client.state.isPaused).toBe(true)
  const sent = replies(client).length
  expect(client.socket.writableLength).toBeGreaterThan(SEND_BUFFER)
  // Not much more than the buffer: the rest waits.
  expect(client.socket.writableLength).toBeLessThanOrEqual(SEND_BUFFER + SLAB_BYTES)
  expect(sent).toBeLessThan(600)
  client.drain()
  expect(replies(client).map(([id]) => id)).toEqual(many.map((_, n) => n + 1))
  expect(client.state.isPaused).toBe(false)
})

test('a malformed request is answered, and bytes that are no frame end the connection', () => {
  const client = connect()
  client.send(Uint8Array.from([0xff, 1, 0, 0, 0, 1, 0, 0, 0, 0]), exists(2))
  expect(replies(client)).toEqual([
    [1, 'PARSE_ERROR: the command name is empty'],
    [2, true],
  ])
  expect([COUNTER.clientErrors, COUNTER.protocolErrors].map((each) => counterOf(client, each))).toEqual([1, 1])
  client.send(Uint8Array.of(1, 2, 3), exists(3))
  expect(client.state.isEnded).toBe(true)
  expect(counterOf(client, COUNTER.protocolErrors)).toBe(2)
  client.send(exists(4))
  expect(replies(client)).toHaveLength(2)
})

test('a frame over the limit is refused, and the connection continues', () => {
  const client = connect()
  const payload = new Uint8Array(65_537)
  const header = Uint8Array.of(0xff, 7, 0, 0, 0, 1, 0, 1, 0)
  client.send(header, payload, exists(2))
  const [[id, text], next] = replies(client) as [[number, string], unknown]
  expect([id, next]).toEqual([7, [2, true]])
  expect(text).toMatch(/65536|65537/)
  expect([COUNTER.clientErrors, COUNTER.protocolErrors].map((each) => counterOf(client, each))).toEqual([1, 1])
})

test('a closed connection gives its slab back and gets no replies', () => {
  const client = connect()
  client.send(setRooms(WRITES_FROM))
  client.socket.emit('close')
  expect(client.thread.connections.size).toBe(0)
  expect(
    takeAnswer(client.thread, {
      token: tokensOf(client)[0] as number,
      code: 0,
      value: 5,
      index: 9,
      detail: '',
      frame: undefined,
    }),
  ).toBeUndefined()
  client.send(exists(2))
  expect(client.state.writes).toEqual([])
  expect(counterOf(client, COUNTER.connectionsClosed)).toBe(1)
  client.socket.emit('error', new Error('reset'))
  expect(counterOf(client, COUNTER.clientDisconnects)).toBe(1)
})

// Writes, and reads after them

test('a write is proposed and answered with its outcome; a later read waits for it', () => {
  const client = connect()
  client.send(exists(1), setRooms(WRITES_FROM), exists(2, 'other'), exists(3))
  expect(replies(client)).toEqual([[1, true]])
  expect([client.connection.writes, client.seen.batches, client.thread.dispatcher.proposals.count]).toEqual([1, 1, 1])
  answer(client, 1)
  expect(replies(client).slice(1)).toEqual([
    [WRITES_FROM, 5],
    [2, false],
    [3, true],
  ])
  expect([client.connection.writes, client.connection.servedIndex]).toEqual([0, 9])
})

test('writes on one connection do not wait for each other, and are answered as the replica answers', () => {
  const client = connect()
  client.send(setRooms(WRITES_FROM), setRooms(WRITES_FROM + 1, 6, { wantIndex: 1 }), setRooms(WRITES_FROM + 2))
  expect(tokensOf(client)).toEqual([1, 2, 3])
  for (const [token, code, detail] of [
    [3, REFUSED.outcomeUnknown, ''],
    [2, 0, ''],
    [1, 15, 'süd'],
  ] as const)
    answer(client, token, code, 4, 6, detail)
  expect(replies(client)).toEqual([
    [WRITES_FROM + 2, '408'],
    [WRITES_FROM + 1, 6],
    [WRITES_FROM, 'SOLD_OUT: süd'],
  ])
  const expected = encodeReply('SETROOMAVL', WRITES_FROM + 1, { availability: 6, index: 4 }, CONTEXT)
  expect(client.state.writes[1]?.equals(expected)).toBe(true)
  expect(client.connection.servedIndex).toBe(4)
})

test('an invalid write is refused at once', () => {
  const client = connect()
  client.send(frame('INCROOMAVL', { ...NIGHT, amount: 0 }, WRITES_FROM))
  expect(replies(client)).toEqual([[WRITES_FROM, 'VALIDATION_ERROR: amount must be 1 to 255']])
  expect([client.thread.waiting.size, client.connection.writes, client.thread.dispatcher.proposals.count]).toEqual([
    0, 0, 0,
  ])
})

test('a stay without a source has that of its connection', () => {
  const client = connect()
  client.connection.source = new TextEncoder().encode('front desk')
  client.send(frame('CONFIRMSTAY', { stayId: 's1' }, WRITES_FROM))
  const batch = Buffer.from(takeProposals(client.thread.dispatcher.proposals))
  expect(batch.includes('front desk')).toBe(true)
})

test('a connection has at most 1,024 writes in flight; reading continues with the first answer', () => {
  const client = connect()
  const max = LIMITS_OF_THREAD.writesPerConnection
  client.send(...Array.from({ length: max - 1 }, (_, n) => setRooms(WRITES_FROM + n)))
  expect(client.state.isPaused).toBe(false)
  client.send(setRooms(WRITES_FROM + max - 1), setRooms(WRITES_FROM + max))
  expect([client.connection.writes, client.state.isPaused]).toEqual([max, true])
  answer(client, 1)
  expect([client.connection.writes, client.state.isPaused]).toEqual([max, true])
  answer(client, 2)
  expect([client.connection.writes, client.state.isPaused]).toEqual([max - 1, false])
  expect(tokensOf(client).at(-1)).toBe(max + 1)
})

test('the frame of the replica reaches the client of a stay with its own correlation id', () => {
  const client = connect()
  client.send(frame('CONFIRMSTAY', { stayId: 's1', wantIndex: 1 }, 77))
  const reply = encodeReply('CONFIRMSTAY', 0, STAY, CONTEXT).slice()
  const touched = takeAnswer(client.thread, { token: 1, code: 0, value: 0, index: 12, detail: '', frame: reply })
  sendAnswers(touched as Connection)
  const expected = encodeReply('CONFIRMSTAY', 77, { ...STAY, appliedIndex: 12 }, CONTEXT)
  expect(Buffer.concat(client.state.writes).equals(expected)).toBe(true)
})

// Admission

test('without a login no command runs; LOGIN names token, role and source', () => {
  const client = connect({ requireLogin: true })
  client.send(exists(1))
  expect(replies(client)).toEqual([[1, 'AUTH_ERROR: login required']])
  client.seen.principal = { role: 'monitoring', source: new TextEncoder().encode('probe') }
  client.send(encodeLogin('secret'))
  expect(client.seen.tokens).toEqual(['secret'])
  expect(client.state.writes.pop()?.toString()).toBe('LOGIN OK')
  expect(client.connection.source).toEqual(new TextEncoder().encode('probe'))
  client.send(exists(2))
  expect(replies(client).slice(1)).toEqual([[2, 'FORBIDDEN: the role monitoring may not run commands']])
  client.seen.principal = { role: 'client', source: new Uint8Array(0) }
  client.send(encodeLogin('other'))
  expect(client.state.writes.pop()?.toString()).toBe('LOGIN OK')
  client.send(exists(3))
  expect(replies(client).slice(2)).toEqual([[3, true]])
})

test('a failed login is answered and closes the connection; after too many there is no answer', () => {
  const client = connect({ requireLogin: true })
  client.send(encodeLogin('wrong'))
  expect(Buffer.concat(client.state.writes).toString()).toBe('LOGIN FAILED')
  expect([client.state.isEnded, counterOf(client, COUNTER.loginFailures)]).toEqual([true, 1])
  const again = connect({ requireLogin: true })
  again.seen.isTooOften = true
  again.send(encodeLogin('wrong'))
  expect([again.state.writes.length, again.state.isEnded]).toEqual([0, true])
})

test('a LOGIN without a token fails, and one in an envelope is refused', () => {
  const client = connect({ requireLogin: true })
  client.send(
    encodeRequest({
      command: 'LOGIN',
      correlationId: 5,
      fields: { token: 'secret' },
      envelope: { segment: 'alpine', write: false },
    }).slice(),
  )
  expect(replies(client).map(([, text]) => text)).toEqual(['VALIDATION_ERROR: LOGIN cannot travel in an envelope'])
  expect(client.state.isEnded).toBe(false)
  client.seen.principal = { role: 'client', source: new Uint8Array(0) }
  const name = [5, ...Buffer.from('LOGIN'), 0, 0]
  client.send(Uint8Array.from([0xff, 1, 0, 0, 0, name.length, 0, 0, 0, ...name]))
  expect(client.state.writes.at(-1)?.toString()).toBe('LOGIN FAILED')
  expect([client.seen.tokens, client.state.isEnded]).toEqual([[], true])
})

test('a draining thread, and one with too many requests in a turn, refuses more', () => {
  const client = connect()
  client.thread.requestsThisTick = LIMITS_OF_THREAD.requestsPerTick - 1
  client.send(exists(1), exists(2))
  client.thread.draining = true
  client.send(exists(3))
  expect(replies(client)).toEqual([
    [1, true],
    [2, '429'],
    [3, '503'],
  ])
})

test.each<[string, RoleCode, boolean, boolean, readonly unknown[]]>([
  ['a leader', ROLE.leader, true, true, [true, undefined]],
  ['a leader that serves no reads', ROLE.leader, true, false, ['405', undefined]],
  ['a follower', ROLE.follower, true, true, [true, '308']],
  ['a learner', ROLE.learner, true, false, [true, '308']],
  ['a follower without a leader', ROLE.follower, false, true, [true, '503']],
  ['a leader before its term has begun', ROLE.none, true, true, [true, '503']],
  ['a node that is not available', ROLE.unavailable, true, true, ['503', '503']],
])('%s answers reads and writes', (_, role, isLeaderKnown, leaderReads, [read, write]) => {
  const client = connect({ isInShard: true, leaderReads })
  client.setRole(role, { isLeaderKnown })
  client.send(exists(1), setRooms(WRITES_FROM))
  expect(replies(client)).toEqual([[1, read], ...(write === undefined ? [] : [[WRITES_FROM, write]])])
  expect(client.thread.waiting.size).toBe(write === undefined ? 1 : 0)
})

// Reads that wait

test('a standalone node waits 200 ms for the index of a read, and then refuses it', () => {
  const client = connect()
  const index = node.index + 1
  client.send(exists(1, 'inn', { minIndex: index - 1 }), exists(2, 'inn', { minIndex: index }), exists(3))
  expect(replies(client)).toEqual([[1, true]])
  checkTimes(client.connection, 1_199, 0)
  expect(replies(client)).toHaveLength(1)
  client.seen.nowMs = 1_200
  checkTimes(client.connection, 1_200, 0)
  expect(replies(client).slice(1)).toEqual([
    [2, `UNKNOWN_INDEX: newest=${index - 1}`],
    [3, true],
  ])
})

test('a read whose index is applied in time is served', () => {
  const client = connect()
  client.send(exists(1, 'inn', { minIndex: node.index + 1 }))
  resumeFramesOf(client.connection)
  expect(replies(client)).toEqual([])
  ask(node, 'SETPROP', PROPERTY)
  resumeFramesOf(client.connection)
  expect(replies(client)).toEqual([[1, true]])
})

test('a linearizable read waits for a confirmation, later reads do not, and a later write does', () => {
  const client = connect({ isInShard: true })
  client.send(exists(1, 'inn', { linearizable: 1, minIndex: 3 }), exists(2), setRooms(WRITES_FROM), exists(3))
  expect(replies(client)).toEqual([[2, true]])
  // Not below the index that the connection was served at: the second read came later.
  expect(client.thread.readBatch.cells).toEqual([1, 1, 3])
  expect([client.thread.waiting.size, client.connection.pendingReads]).toEqual([0, 1])
  confirm(client, 1)
  expect(client.connection.pendingReads).toBe(0)
  expect(tokensOf(client)).toEqual([2])
  answer(client, 2)
  expect(replies(client).slice(1)).toEqual([
    [1, true],
    [WRITES_FROM, 5],
    [3, true],
  ])
})

test('a read behind the index of an earlier one on its connection is confirmed', () => {
  const client = connect({ isInShard: true })
  client.connection.servedIndex = node.index + 5
  client.send(exists(1, 'inn', { minIndex: 2 }))
  expect(client.thread.readBatch.cells).toEqual([1, 0, node.index + 5])
  const next = connect({ isInShard: true })
  next.connection.servedIndex = node.index
  next.send(exists(1))
  expect(replies(next)).toEqual([[1, true]])
})

test.each([
  [REFUSED.noLeader, '503'],
  [REFUSED.notCaughtUp, '308'],
  [REFUSED.overloaded, '429'],
])('a read that the replica refuses with %d has the answer %s', (code, text) => {
  const client = connect({ isInShard: true })
  client.send(exists(1, 'inn', { linearizable: 1 }))
  confirm(client, 1, code)
  expect(replies(client)).toEqual([[1, text]])
})

test('a confirmed read is not served by a node that replaces its state meanwhile', () => {
  const client = connect({ isInShard: true })
  client.send(exists(1, 'inn', { linearizable: 1 }))
  client.setRole(ROLE.unavailable)
  confirm(client, 1)
  expect(replies(client)).toEqual([[1, '503']])
})

test('data older than a read accepts are not served', () => {
  const client = connect({ isInShard: true })
  client.setRole(ROLE.follower, { freshMs: 700 })
  client.send(exists(1, 'inn', { maxStalenessMs: 300 }), exists(2, 'inn', { maxStalenessMs: 299 }))
  expect(replies(client)).toEqual([
    [1, true],
    [2, '503'],
  ])
})

test('the time of a read does not include that since the read before it', () => {
  const client = connect({ isInShard: true })
  for (const id of [1, 2]) {
    client.send(exists(id, 'inn', { linearizable: 1 }))
    const [token] = [...client.thread.pendingReads.keys()]
    confirm(client, token as number, 0, node.index)
    client.seen.nowMs += 500
    client.send(exists(id + 10))
    client.seen.nowMs += 500
  }

  expect(client.seen.slow).toEqual(Array(4).fill(['PROPEXIST', 0, 0]))
})

test('reads without a confirmation end after 1.2 s when linearizable, and after 200 ms when they wait for an index', () => {
  const client = connect({ isInShard: true })
  const index = node.index + 1
  client.send(exists(1, 'inn', { linearizable: 1 }), exists(2, 'inn', { minIndex: index }))
  const at = (ms: number) => {
    client.seen.nowMs = 1_000 + ms
    expireReads(client.thread, 1_000 + ms)
    return replies(client).length
  }
  expect([at(199), at(200), at(1_199), at(1_200), at(5_000)]).toEqual([0, 1, 1, 2, 2])
  expect(replies(client)).toEqual([
    [2, '308'],
    [1, '503'],
  ])
  // Their confirmations come late, and no one waits.
  confirm(client, 1)
  confirm(client, 2)
  expect([replies(client).length, client.thread.pendingReads.size, client.connection.pendingReads]).toEqual([2, 0, 0])
})

test('a connection has at most 1,024 reads that wait, and a thread 10,000', () => {
  const client = connect({ isInShard: true })
  const max = LIMITS_OF_THREAD.readsPerConnection
  client.send(...Array.from({ length: max + 1 }, (_, n) => exists(n + 1, 'inn', { linearizable: 1 })))
  expect([client.connection.pendingReads, client.state.isPaused]).toEqual([max, true])
  confirm(client, 1)
  confirm(client, 2)
  expect([client.connection.pendingReads, client.state.isPaused]).toEqual([max - 1, false])
  const pending = [...client.thread.pendingReads.values()][0] as never
  for (let n = client.thread.pendingReads.size; n < READ_LIMITS.waiting; n++)
    client.thread.pendingReads.set(1e6 + n, pending)
  client.send(exists(5_000, 'inn', { linearizable: 1 }))
  expect(replies(client).at(-1)).toEqual([5_000, '429'])
})

// Reads of stays

test('a read of a stay goes to the replica, and a later write waits for its answer', () => {
  const client = connect()
  client.send(frame('GETSTAY', { stayId: 's1' }, 7), frame('GETSTAY', { stayId: 's2' }, 8), setRooms(WRITES_FROM))
  expect([client.thread.stayBatch.count, client.connection.pendingReads, client.thread.waiting.size]).toEqual([2, 2, 0])
  const take = (token: number, code: number, reply?: Uint8Array) =>
    sendAnswers(takeStays(client.thread, token, code, 40, reply) as Connection)
  take(2, 13)
  expect(replies(client)).toEqual([[8, 'NOT_FOUND: stay not found']])
  expect(client.connection.servedIndex).toBe(40)
  take(1, 0, encodeReply('GETSTAY', 0, STAY, CONTEXT).slice())
  expect(client.state.writes.at(-1)?.equals(encodeReply('GETSTAY', 7, STAY, CONTEXT))).toBe(true)
  expect([client.connection.pendingReads, client.thread.waiting.size]).toEqual([0, 1])
})

test('an invalid read of stays is refused, and one too many, too', () => {
  const client = connect()
  client.send(frame('LISTSTAYS', { propertyId: 'inn', limit: 0 }, 1))
  expect(replies(client)).toEqual([[1, 'VALIDATION_ERROR: limit must be 1 to 200, got 0']])
  for (let n = 0; n < READ_LIMITS.waiting; n++) client.thread.stayReads.set(n, {} as never)
  client.send(frame('GETSTAY', { stayId: 's1' }, 2))
  expect(replies(client).slice(1)).toEqual([[2, '429']])
})

// Searches in slices

const BROAD = { segment: 'alpine', longitude: -120, latitude: -60 }
const NOTHING_FOUND = encodeReply('SEARCHPROP', 1, { propertyIds: [] }, CONTEXT).slice()

/** A thread whose turns end after 128 rows, and the property table of its large segment. */
function connectSliced() {
  const client = connect()
  const { searcher } = client.thread.dispatcher
  for (let n = 0; n < 300; n++) ask(node, 'SETPROP', { ...PROPERTY, propertyId: `p${n}` })
  Object.assign(searcher, { sliceWork: 1, workLeft: 1 })
  onTestFinished(() => {
    Object.assign(searcher, { sliceWork: Number.POSITIVE_INFINITY, workLeft: Number.POSITIVE_INFINITY })
  })
  const { memory } = node.store
  const bytes = new TextEncoder().encode('alpine')
  const segment = segmentOf(memory, findName(memory, NAMES.segment, bytes, 0, bytes.length))
  return { ...client, table: field(memory, segment + SEGMENT.propertyTable) }
}

function runTurns({ thread, connection }: Client): void {
  for (let turn = 0; turn < 50 && connection.deferred > 0; turn++) thread.deferred.runTurn()
}

test('a search that takes several turns is answered after later reads, and before later writes', () => {
  const client = connectSliced()
  client.send(frame('SEARCHPROP', BROAD, 1), exists(2), setRooms(WRITES_FROM))
  expect(replies(client)).toEqual([[2, true]])
  expect([client.connection.deferred, client.socket.allowHalfOpen, client.thread.waiting.size]).toEqual([1, true, 0])
  client.seen.nowMs = 1_250
  runTurns(client)
  expect([client.socket.allowHalfOpen, client.thread.waiting.size]).toEqual([false, 1])
  expect(client.state.writes.at(-1)?.equals(NOTHING_FOUND)).toBe(true)
  expect(counterOf(client, COUNTER.bytesSent)).toBe(Buffer.concat(client.state.writes).length)
  const { queued, running } = commandCounts([client.thread.counters], COMMANDS.SEARCHPROP.code)
  expect([queued.sum, running.sum]).toEqual([0.25, 0])
  expect(client.seen.slow).toEqual([
    ['PROPEXIST', 0, 0],
    ['SEARCHPROP', 250, 0],
  ])
  expect(client.state.isEnded).toBe(false)
})

test.each<[string, (client: Client) => void]>([
  ['a client that sent its last request', ({ socket }) => Object.assign(socket, { readableEnded: true })],
  ['a client that sent bytes that are no frame', ({ send }) => send(Uint8Array.of(1, 2, 3))],
])('%s gets the replies to its earlier requests before the end', (_, change) => {
  const client = connectSliced()
  client.send(frame('SEARCHPROP', BROAD, 1))
  change(client)
  expect([client.state.isEnded, client.state.writes.length]).toEqual([false, 0])
  runTurns(client)
  expect(client.state.isEnded).toBe(true)
  expect(Buffer.concat(client.state.writes).equals(NOTHING_FOUND)).toBe(true)
})

test('a read of a table that is being changed rests until it is done, and is refused after 256 tries', () => {
  const client = connectSliced()
  const { deferred } = client.thread
  const retry = () => {
    deferred.ready.push(...deferred.resting.splice(0))
    deferred.runTurn()
  }
  mark(node.store, client.table)
  client.send(frame('SEARCHPROP', BROAD, 1), exists(2))
  expect(replies(client)).toEqual([[2, true]])
  const [read] = deferred.resting
  expect(read?.tries).toBe(1)
  retry()
  expect(deferred.resting).toEqual([read])
  expect(read?.tries).toBe(2)
  Object.assign(read as object, { tries: 255 })
  retry()
  expect(replies(client)).toHaveLength(1)
  retry()
  expect(replies(client).slice(1)).toEqual([[1, '429']])
  unmark(node.store, client.table)
  expect(client.connection.deferred).toBe(0)
})

test('a deferred read is refused by a node that became unavailable', () => {
  const client = connectSliced()
  Object.assign(client.thread, { cells: undefined })
  client.send(frame('SEARCHPROP', BROAD, 1))
  const cells = attachCells(createCells(), 0)
  Object.assign(client.thread, { cells })
  runTurns(client)
  expect(replies(client)).toEqual([[1, '503']])
})

test('a connection has at most 64 deferred reads', () => {
  const client = connectSliced()
  client.send(...Array.from({ length: 65 }, (_, n) => frame('SEARCHPROP', BROAD, n + 1)))
  expect([client.connection.deferred, client.state.isPaused]).toEqual([64, true])
  for (let turn = 0; turn < 500 && client.connection.deferred > 0; turn++) client.thread.deferred.runTurn()
  expect([client.connection.deferred, client.state.isPaused]).toEqual([0, false])
  expect(client.state.writes.length).toBe(65)
})

test('a thread has at most 1,024 deferred reads', () => {
  const client = connectSliced()
  const { deferred } = client.thread
  deferred.resting.push(...new Array(DEFERRED_LIMITS.waiting - 1).fill({ connection: { closing: true } }))
  client.send(frame('SEARCHPROP', BROAD, 1), frame('SEARCHPROP', BROAD, 2))
  expect([client.connection.deferred, replies(client)]).toEqual([1, [[2, '429']]])
})

// Figures

test('what the replica of a node alone leaves unanswered ends after 1.3 s, and after 2.5 s no more is sent to it', () => {
  const [writer, reader] = [connect(), connect()]
  writer.send(setRooms(1))
  reader.send(frame('GETSTAY', { stayId: 's1' }, 2))
  const at = (ms: number) => {
    for (const { seen, thread } of [writer, reader]) {
      seen.nowMs = 1_000 + ms
      expireUnanswered(thread, 1_000 + ms)
    }
    return [...replies(writer), ...replies(reader)]
  }
  const ended = [
    [1, '408'],
    [2, '503'],
  ]
  expect([at(1_299), at(1_300), at(2_500)]).toEqual([[], ended, ended])

  writer.send(setRooms(3), exists(4))
  reader.send(frame('GETSTAY', { stayId: 's1' }, 5))
  expect(replies(writer).slice(1)).toEqual([
    [3, '429'],
    [4, true],
  ])
  expect(replies(reader).slice(1)).toEqual([[5, '503']])

  // The replica answers at last, and no one waits.
  answer(writer, 1)
  takeStays(reader.thread, 1, 13, 1, undefined)
  expect([replies(writer).length, replies(reader).length]).toEqual([3, 2])
  at(2_550)
  writer.send(setRooms(6))
  expect([writer.connection.writes, writer.thread.waiting.size]).toEqual([1, 1])
})

test('waiting and running times of reads, writes and stays are counted apart', () => {
  const client = connect({ isInShard: true })
  const { thread, seen } = client
  const sums = (command: CommandName) => {
    const { queued, running, errors } = commandCounts([thread.counters], COMMANDS[command].code)
    return [queued.sum, running.sum, errors.reduce((all, each) => all + each, 0)]
  }
  client.send(exists(1, 'inn', { linearizable: 1 }), frame('GETSTAY', { stayId: 's1' }, 7))
  seen.nowMs += 300
  confirm(client, 1)
  takeStays(thread, 2, 13, 1, undefined)
  client.send(setRooms(WRITES_FROM))
  seen.nowMs += 40
  answer(client, 3, 15)
  expect(sums('PROPEXIST')).toEqual([0.3, 0, 0])
  expect(sums('GETSTAY')).toEqual([0, 0.3, 1])
  expect(sums('SETROOMAVL')).toEqual([0.04, 0, 1])
  expect(seen.slow).toEqual([['PROPEXIST', 300, 0]])
  expect([thread.stayReads.size, thread.waiting.size, thread.pendingReads.size]).toEqual([0, 0, 0])
  expect(counterOf(client, COUNTER.bytesSent)).toBe(Buffer.concat(client.state.writes).length)
})

test('a search counts the time it takes and the properties it finds', () => {
  const client = connect()
  client.seen.stepMs = 2
  client.send(
    frame('SEARCHPROP', { segment: 'alpine', limit: 2 }, 1),
    frame('SEARCHPROP', { segment: 'alpine', limit: 0 }, 2),
  )
  const { running, rows, total, errors } = commandCounts([client.thread.counters], COMMANDS.SEARCHPROP.code)
  expect(running.sum).toBeCloseTo(0.004, 9)
  expect([total, rows.sum, rows.counts.reduce((all, each) => all + each, 0)]).toEqual([2, 2, 1])
  expect(errors[0]).toBe(1)
  expect(client.seen.slow).toEqual([
    ['SEARCHPROP', 2, 2],
    ['SEARCHPROP', 2, expect.any(Number)],
  ])
})

test('a slow read shows the trace of its caller, unless its traceparent is malformed', () => {
  const client = connect()
  const trace = '0af7651916cd43dd8448eb211c80319c'
  const traced = (version: string) => ({ trace: `${version}-${trace}-b7ad6b7169203331-01` })
  client.send(exists(1), exists(2, 'inn', traced('00')), exists(3, 'inn', traced('ff')))
  // A slab of this test holds few hits.
  client.send(frame('SEARCHPROP', { segment: 'alpine', limit: 1, ...traced('00') }, 4))
  expect(client.seen.slow).toEqual([
    ['PROPEXIST', 0, 0],
    ['PROPEXIST', 0, 0, trace],
    ['PROPEXIST', 0, 0],
    ['SEARCHPROP', 0, expect.any(Number), trace],
  ])
})

// Time limits

test('a frame must be complete 20 s after its first byte', () => {
  const client = connect()
  client.send(exists(1).subarray(0, 5))
  checkTimes(client.connection, 21_000, 0)
  expect(client.state.isDestroyed).toBe(false)
  checkTimes(client.connection, 21_001, 0)
  expect([client.state.isDestroyed, counterOf(client, COUNTER.timeouts)]).toEqual([true, 1])
})

test('a client that takes nothing of its replies for the user timeout is disconnected', () => {
  const client = connect()
  const { socket, connection, state } = client
  client.state.isFull = true
  client.send(exists(1))
  const check = (nowMs: number, timeoutMs = 500) => {
    checkTimes(connection, nowMs, timeoutMs)
    return state.isDestroyed
  }
  expect([check(1_000), check(1_400)]).toEqual([false, false])
  // Part of a write counts as progress, as does a write that is taken.
  socket._handle.writeQueueSize -= 1
  expect([check(1_450), check(1_950)]).toEqual([false, false])
  socket.writableLength -= 1
  expect([check(1_951), check(2_451), check(2_452, 0)]).toEqual([false, false, false])
  expect(check(2_452)).toBe(true)
  expect(counterOf(client, COUNTER.timeouts)).toBe(1)
})

test('a client without unsent replies may be quiet for as long as it likes', () => {
  const client = connect()
  client.send(exists(1))
  for (const nowMs of [1_000, 100_000, 1e9]) checkTimes(client.connection, nowMs, 500)
  expect(client.state.isDestroyed).toBe(false)
})
