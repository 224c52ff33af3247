import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import {
  type Client,
  connect,
  counterOf,
  exists,
  frame,
  NIGHT,
  replies,
  setRooms,
  WRITES_FROM,
} from '../testing/connections.ts'
import { closeOffers, type DirectReplies, takeOffers, writeReplies } from '../threads/direct-replies.ts'
import { ANSWER_BYTES, ATTACHED, REFUSED } from '../threads/writes.ts'
import { COUNTER } from './counters.ts'
import { expireUnanswered, sendAnswers, takeAnswer } from './replies.ts'

const ROOMS = 5
const INDEX = 9
const ID = WRITES_FROM

/** A client whose socket, for the replica, is a file. With the flag `r` it takes no bytes. */
function connectTo(flag: 'r' | 'w' = 'w') {
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-'))
  const path = join(folder, 'socket')
  writeFileSync(path, '')
  const descriptor = openSync(path, flag)
  onTestFinished(() => {
    closeSync(descriptor)
    rmSync(folder, { recursive: true })
  })
  const client = connect({ descriptor })
  const written = () => replies({ ...client, state: { ...client.state, writes: [readFileSync(path)] } })
  return { client, path, written }
}

const directOf = ({ thread }: Client) => thread.direct as DirectReplies
const tokensOf = ({ thread }: Client) => [...thread.waiting.keys()]
const onlyToken = (client: Client) => tokensOf(client)[0] as number

/** What the replica does when it has an outcome. @returns whether the serving thread need not be woken */
function conclude(client: Client, token: number, code = 0, attached: number = ATTACHED.none): boolean {
  const answer = new DataView(new ArrayBuffer(ANSWER_BYTES + (attached === ATTACHED.none ? 0 : 4)))
  answer.setUint32(0, token, true)
  answer.setUint8(4, code)
  answer.setUint8(5, ROOMS)
  answer.setUint16(6, attached, true)
  answer.setFloat64(8, INDEX, true)
  const taken = takeOffers(directOf(client), answer.buffer)
  writeReplies(directOf(client), taken)
  return taken.areAll
}

function takeAnswerOf(client: Client, token: number, code = 0): void {
  const outcome = { token, code, value: ROOMS, index: INDEX, detail: '', frame: undefined }
  const touched = takeAnswer(client.thread, outcome)
  if (touched) sendAnswers(touched)
}

/** The reply as the serving thread writes it itself. */
function ownReply(options: Parameters<typeof setRooms>[2]): Buffer {
  const client = connect()
  client.send(setRooms(ID, ROOMS, options))
  takeAnswerOf(client, onlyToken(client))
  return Buffer.concat(client.state.writes)
}

test.each([{}, { wantIndex: 1 }])('the reply of a lone write has the same bytes from the replica: %j', (options) => {
  const { client, path } = connectTo()
  client.send(setRooms(ID, ROOMS, options))
  expect(conclude(client, onlyToken(client))).toBe(true)
  expect(readFileSync(path)).toEqual(ownReply(options))
})

test('the serving thread counts it with the next write, and as fast as it was', () => {
  const { client, written } = connectTo()
  for (const id of [ID, ID + 1]) {
    client.send(setRooms(id))
    const token = onlyToken(client)
    conclude(client, token)
    client.seen.nowMs += 5_000
    takeAnswerOf(client, token)
  }
  expect(written()).toEqual([
    [ID, ROOMS],
    [ID + 1, ROOMS],
  ])
  expect([client.state.writes, client.connection.writes]).toEqual([[], 0])
  expect(counterOf(client, COUNTER.bytesSent)).toBe(2 * ownReply({}).length)
})

test.each<[string, (client: Client) => void]>([
  [
    'the thread replies to something else',
    (client) => client.send(frame('SETROOMAVL', { ...NIGHT, date: '1999-01-01', amount: 1 }, 1)),
  ],
  ['a second write is in flight', (client) => client.send(setRooms(ID + 1))],
  ['the connection closes', (client) => client.socket.destroy()],
  ['the thread ends', (client) => closeOffers(directOf(client).cells.buffer as SharedArrayBuffer)],
])('the replica does not reply once %s', (_, happens) => {
  const { client, path } = connectTo()
  client.send(setRooms(ID))
  const [token = 0] = tokensOf(client)
  happens(client)
  expect(conclude(client, token)).toBe(false)
  expect(readFileSync(path)).toHaveLength(0)
})

test.each([
  ['a refusal', REFUSED.diskFull, ATTACHED.none],
  ['an answer with a text or a frame', 0, ATTACHED.frame],
])('the replica leaves %s to the serving thread', (_, code, attached) => {
  const { client, path } = connectTo()
  client.send(setRooms(ID))
  const token = onlyToken(client)
  expect(conclude(client, token, code, attached)).toBe(false)
  takeAnswerOf(client, token, code)
  expect(readFileSync(path)).toHaveLength(0)
  expect(replies(client)).toHaveLength(1)
})

test('a read behind the write has its reply after it, without the thread being woken', async () => {
  const { client, written } = connectTo()
  client.send(setRooms(ID))
  const token = onlyToken(client)
  conclude(client, token)
  client.send(exists(1))
  expect([replies(client), client.seen.order.at(-1)]).toEqual([[], 'take'])
  const takes = client.seen.order.length
  await turn()
  expect(client.seen.order).toHaveLength(takes + 1)
  takeAnswerOf(client, token)
  expect([written(), replies(client)]).toEqual([[[ID, ROOMS]], [[1, true]]])
})

test('the serving thread sends what the kernel did not take from the replica', () => {
  const { client, path } = connectTo('r')
  client.send(setRooms(ID))
  const token = onlyToken(client)
  conclude(client, token)
  takeAnswerOf(client, token)
  expect([readFileSync(path).length, replies(client)]).toEqual([0, [[ID, ROOMS]]])
})

test('a write that the replica has answered does not expire as well', () => {
  const { client, written } = connectTo()
  client.send(setRooms(ID))
  const token = onlyToken(client)
  conclude(client, token)
  expireUnanswered(client.thread, client.seen.nowMs + 60_000)
  takeAnswerOf(client, token)
  expect([written(), replies(client), client.connection.writes]).toEqual([[[ID, ROOMS]], [], 0])
})
