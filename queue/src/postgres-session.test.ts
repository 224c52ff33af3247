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
const messagesOf = (settled: PromiseSettledResult<{ rows: object[] }>[]) =>
  settled.map((each) => (each.status === 'fulfilled' ? each.value.rows : (each.reason as Error).message))

describe('opening', () => {
  it('connects with limits, and names the session', async () => {
    const session = await opened("it's")
    expect(client().options).toMatchObject({
      ...{ connectionString: 'postgres://host/db', connectionTimeoutMillis: 10_000, keepAlive: true, pipeline: true },
      keepAliveInitialDelayMillis: 5_000,
    })
    expect((client().options['stream'] as () => unknown)()).toBe(session.socket)
    const [, settings = '', last] = client().queries
    expect(settings.split('; ')).toEqual([
      "set application_name = 'it''s'",
      'set idle_session_timeout = 8000',
      'set statement_timeout = 40000',
      'set idle_in_transaction_session_timeout = 8000',
      'set tcp_keepalives_idle = 5',
      'set tcp_keepalives_interval = 2',
      'set tcp_keepalives_count = 3',
      'set tcp_user_timeout = 11000',
    ])
    expect(last).toBe('set client_connection_check_interval = 2000')
    expect(session.failure).toBeUndefined()
  })

  it.each([
    [{ version: 139_999 }, 'PostgreSQL 14 or newer is needed'],
    [{ version: 140_000 }, undefined],
    [{ encoding: 'LATIN1' }, 'the database has the encoding LATIN1; create one with UTF8'],
    [{ read_only: 'on' }, 'the server is read-only, such as a replica; connect to the primary'],
  ])('of a server with %j is refused when it cannot be used', async (fields, message) => {
    fake.connect = async () => {
      client().answer = (text) => ({ rows: text.includes('version_num') ? [{ ...SERVER, ...fields }] : [] })
    }
    if (message === undefined) return void (await opened())
    await expect(opened()).rejects.toThrow(message)
  })

  it('continues when the server cannot check its connections, and not when it refuses a setting', async () => {
    const refusing = (part: string) => async () => {
      client().answer = (text) => (text.includes(part) ? new Error('refused') : { rows: [SERVER] })
    }
    fake.connect = refusing('client_connection_check')
    expect((await opened()).failure).toBeUndefined()
    fake.connect = refusing('statement_timeout')
    await expect(opened()).rejects.toThrow('refused')
  })

  it('ends when it is aborted, before or while it connects', async () => {
    const opening = Promise.withResolvers<undefined>()
    fake.connect = () => opening.promise
    const session = opened()
    stopping.abort()
    opening.resolve(undefined)
    await expect(session).rejects.toThrow('stopped')
    await expect(opened()).rejects.toThrow(/aborted/)
  })

  it('is not ended by an abort afterwards', async () => {
    const session = await opened()
    stopping.abort()
    expect(session.failure).toBeUndefined()
  })

  it('reports why the server is not reachable', async () => {
    fake.connect = async () => {
      throw new Error('ECONNREFUSED')
    }
    await expect(opened()).rejects.toThrow('ECONNREFUSED')
  })
})

describe('requests', () => {
  it('get their rows, or their own error', async () => {
    const { session, failures } = await withAnswer((text) =>
      text === 'bad' ? new Error('wrong') : { rows: [{ text }] },
    )
    expect((await ask(session, { text: 'a' })).rows).toEqual([{ text: 'a' }])
    await expect(ask(session, { text: 'bad' })).rejects.toThrow('wrong')
    const settled = await askAll(session, [{ text: 'a' }, { text: 'bad' }, { text: 'b' }])
    expect(messagesOf(settled)).toEqual([[{ text: 'a' }], 'wrong', [{ text: 'b' }]])
    expect([session.failure, failures, session.waiting.size]).toEqual([undefined, [], 0])
  })

  it('are sent together, before any response', async () => {
    const { session } = await withAnswer(() => undefined)
    const corks: string[] = []
    const { socket } = session
    socket.cork = () => void corks.push(`cork ${client().queries.length}`)
    socket.uncork = () => void corks.push(`uncork ${client().queries.length}`)
    const all = askAll(session, [{ text: 'a' }, { text: 'b' }])
    expect(corks).toEqual(['cork 0', 'uncork 2'])
    for (const settle of client().settle) settle({ rows: [] })
    await all
  })

  it('with rows to copy send these behind the statement', async () => {
    const { session } = await withAnswer(() => ({ rows: [] }))
    const copied = Buffer.from('rows')
    const settled = await askAll(session, [{ text: 'copy jobs', copied }, { text: 'b' }])
    expect(client().queries).toEqual(['copy jobs', 'b'])
    expect(client().written).toEqual([copied])
    expect(messagesOf(settled)).toEqual([[], []])
    client().answer = () => new Error('duplicate key')
    expect(messagesOf(await askAll(session, [{ text: 'copy jobs', copied }]))).toEqual(['duplicate key'])
  })

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

  it('may be late when their response is there, unread', async () => {
    const { session } = await withAnswer(() => undefined)
    const waiting = ask(session, { text: 'a' }, 100)
    vi.advanceTimersByTime(99)
    // The limit is over, and the response is read in the same turn of the event loop.
    setTimeout(() => client().settle[0]?.({ rows: [{ late: true }] }), 1)
    await vi.advanceTimersToNextTimerAsync()
    await vi.advanceTimersByTimeAsync(10)
    expect((await waiting).rows).toEqual([{ late: true }])
    expect(session.failure).toBeUndefined()
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

  it.each([
    ['error', new Error('reset'), 'reset'],
    ['end', undefined, 'PostgreSQL closed the connection'],
  ])('is one whose connection reports: %s', async (event, value, message) => {
    const { session, failures } = await withAnswer(() => undefined)
    client().emit(event, value)
    expect(failures).toEqual([message])
    await expect(askAll(session, [])).rejects.toThrow(message)
  })
})

describe('closing', () => {
  it('ends the connection, and refuses what comes later', async () => {
    const { session, failures } = await withAnswer(() => ({ rows: [] }))
    await closeSession(session)
    expect(client().isEnded).toBe(true)
    client().emit('end')
    expect(failures).toEqual([])
    await expect(ask(session, { text: 'a' })).rejects.toThrow('the session is closed')
  })

  it('takes no longer than two seconds', async () => {
    const { session } = await withAnswer(() => ({ rows: [] }))
    const ended = Promise.withResolvers<void>()
    Object.assign(client(), { end: () => ended.promise })
    const closing = closeSession(session)
    await vi.advanceTimersByTimeAsync(1_999)
    expect(session.socket.destroyed).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(session.socket.destroyed).toBe(true)
    ended.resolve()
    await closing
  })
})
