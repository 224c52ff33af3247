import { EventEmitter } from 'node:events'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { ask, askAll, closeSession, failSession, openSession, type Session } from './postgres-session.ts'

type Answer = { rows: object[] } | Error | undefined
type FakeClient = EventEmitter & {
  readonly options: { readonly [name: string]: unknown }
  readonly queries: string[]
  /** How the next requests end; they wait while it is undefined. */
  answer: (text: string) => Answer
  readonly written: Buffer[]
  readonly settle: ((answer: Answer) => void)[]
  isEnded: boolean
}
const fake = vi.hoisted(() => ({ client: undefined as unknown, connect: async () => undefined as unknown }))
const SERVER = { version: 170_000, encoding: 'UTF8', read_only: 'off' }

vi.mock('pg', async (original) => {
  const { default: pg } = await original<{ default: typeof import('pg') }>()
  type Copy = {
    submit: (connection: unknown) => void
    readonly callback: (error: Error | undefined, result?: object) => void
  }
  const Client = function createClient(options: object) {
    const client = new EventEmitter() as FakeClient
    const query = (request: string | { text: string } | Copy) => {
      if (typeof request === 'object' && 'submit' in request) {
        const stream = { write: (bytes: Buffer) => client.written.push(bytes) }
        request.submit({ query: (text: string) => client.queries.push(text), stream })
        const answer = client.answer('copy')
        if (answer instanceof Error) request.callback(answer)
        else request.callback(undefined, answer)
        return undefined
      }
      const { text } = request as { text: string }
      client.queries.push(text)
      const answer = client.answer(text)
      if (answer instanceof Error) return Promise.reject(answer)
      if (answer !== undefined) return Promise.resolve(answer)
      return new Promise((resolve, reject) =>
        client.settle.push((later) => (later instanceof Error ? reject(later) : resolve(later))),
      )
    }
    fake.client = Object.assign(client, {
      ...{ options, queries: [], written: [], settle: [], isEnded: false, query, setTypeParser: () => undefined },
      answer: (text: string) => ({ rows: text.includes('server_version_num') ? [SERVER] : [] }),
      connect: () => fake.connect(),
      end: async () => {
        client.isEnded = true
      },
    })
    return client
  }
  return { default: { ...pg, types: pg.types, escapeLiteral: pg.escapeLiteral, Query: pg.Query, Client } }
})

const client = () => fake.client as FakeClient
let stopping: AbortController

beforeEach(() => {
  vi.useFakeTimers()
  stopping = new AbortController()
  fake.connect = async () => undefined
})
afterEach(() => {
  expect(vi.getTimerCount()).toBe(0)
  vi.useRealTimers()
})

const opened = (name = 'vacancy') => openSession('postgres://host/db', name, stopping.signal)
async function withAnswer(answer: (text: string) => Answer): Promise<{ session: Session; failures: string[] }> {
  const session = await opened()
  const failures: string[] = []
  session.onFailure = ({ message }) => failures.push(message)
  client().answer = answer
  client().queries.length = 0
  return { session, failures }
}
describe('requests', () => {
  it.each([
    [undefined, 4_999, 'PostgreSQL did not respond within 5 s'],
    [1_500, 1_499, 'PostgreSQL did not respond within 1.5 s'],
  ])('fail the session when they wait longer than %s', async (limitMs, beforeMs, message) => {
    const { session, failures } = await withAnswer(() => undefined)
    const other = askAll(session, [{ text: 'b' }], 60_000).catch((error: Error) => error.message)
    const waiting = ask(session, { text: 'a' }, limitMs).catch((error: Error) => error.message)
    await vi.advanceTimersByTimeAsync(beforeMs)
    expect(session.failure).toBeUndefined()
    // At the limit, and then the next turn of the event loop.
    await vi.advanceTimersByTimeAsync(1)
    await vi.advanceTimersByTimeAsync(1)
    expect(await waiting).toBe(message)
    expect(await other).toBe(message)
    expect(failures).toEqual([message])
    expect(session.socket.destroyed).toBe(true)
    for (const settle of client().settle) settle({ rows: [] })
    await vi.advanceTimersByTimeAsync(0)
  })
})

describe('a session that failed', () => {
  it('is never used again, and reports its first failure alone', async () => {
    const { session, failures } = await withAnswer(() => undefined)
    const waiting = ask(session, { text: 'a' }).catch((error: Error) => error.message)
    failSession(session, new Error('first'))
    failSession(session, new Error('second'))
    expect(await waiting).toBe('first')
    expect(failures).toEqual(['first'])
    await expect(ask(session, { text: 'b' })).rejects.toThrow('first')
    expect(client().queries).toEqual(['a'])
    expect(session.waiting.size).toBe(0)
    client().settle[0]?.({ rows: [] })
    await vi.advanceTimersByTimeAsync(0)
    await closeSession(session)
    expect(client().isEnded).toBe(false)
  })
})
