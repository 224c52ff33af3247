import { type ClientOptions, type VacancyClient, VacancyRequestError, VacancyRetryError } from '@vacancy/client'
import type { Clock } from '@vacancy/shared'
import { expect, test } from 'vitest'
import { closeProbeClients, createProbeClients, forgetWay, probe } from './probe.ts'
import type { Way } from './ways.ts'

const clock = { monotonicMs: () => 0, wallMs: () => Date.parse('2026-11-22T12:00:00Z') } as Clock
const NOT_FOUND = new VacancyRequestError('NOT_FOUND', 'HOLDSTAY', 'property of line 0 not found')
const wayOf = (change: Partial<Way> = {}): Way => ({
  ...{ key: 's1 node n1', shard: 's1', through: 'node', id: 'n1', segment: 'tyrol' },
  ...{ address: { host: '10.0.0.1', port: 7777 }, ...change },
})

/** Clients whose calls end as the test says. */
function clientsOf(ends: { readonly connect?: Error; readonly search?: Error; readonly hold?: Error | null } = {}) {
  const calls: [string, object, object | undefined][] = []
  const connected: ClientOptions[] = []
  let closed = 0
  const { hold = NOT_FOUND } = ends
  const client = {
    async searchAvailability(fields: object) {
      calls.push(['search', fields, undefined])
      if (ends.search) throw ends.search
      return []
    },
    async holdStay(fields: object, options: object) {
      calls.push(['hold', fields, options])
      if (hold) throw hold
      return {}
    },
    async releaseStay(_: string, fields: object, options: object) {
      calls.push(['release', fields, options])
      throw NOT_FOUND
    },
    close: async () => void closed++,
  } as unknown as VacancyClient
  const clients = createProbeClients({
    clock,
    token: 'secret',
    connect: async (options = {}) => {
      connected.push(options)
      if (ends.connect) throw ends.connect
      return client
    },
  })
  return { clients, calls, connected, closed: () => closed }
}

test('a probe searches, then holds one room of a property that does not exist, and releases it', async () => {
  const { clients, calls, connected } = clientsOf()
  const result = await probe(clients, wayOf())
  await probe(clients, wayOf())

  expect(result).toEqual({ search: { kind: 'answered', ms: 0 }, hold: { kind: 'answered', ms: 0 } })
  expect(calls.map(([name]) => name)).toEqual(['search', 'hold', 'release', 'search', 'hold', 'release'])
  expect(calls[0]?.[1]).toEqual({ segment: 'tyrol', anyRoomType: true, dates: ['2026-11-23'], limit: 1 })
  expect(calls[1]?.slice(1)).toMatchObject([{ lines: [{ nights: 1, rooms: 1 }] }, { segment: 'tyrol' }])
  // Drawn anew each time, so no property can have it.
  const ids = calls.flatMap(([name, fields]) =>
    name === 'hold' ? [(fields as { lines: { propertyId: string }[] }).lines[0]?.propertyId] : [],
  )
  expect(new Set(ids).size).toBe(2)
  expect(connected).toMatchObject([
    { host: '10.0.0.1', port: 7777, token: 'secret', retry: false, connectDeadlineMs: 2_000 },
  ])
})

const refusal = (code: string) => new VacancyRetryError(code, 'HOLDSTAY', `because of ${code}`)
test.each<[string, Parameters<typeof clientsOf>[0], Way, string, string]>([
  ['no connection: the hold is not sent', { connect: refusal('connection_failed') }, wayOf(), 'failed', 'undefined'],
  ['no answer: the hold is not sent', { search: refusal('deadline_exceeded') }, wayOf(), 'failed', 'undefined'],
  ['a read that is refused: the hold is sent', { search: refusal('503') }, wayOf(), 'failed', 'answered'],
  ['a node that does not lead', { hold: refusal('308') }, wayOf(), 'answered', 'elsewhere'],
  ['a router must find the leader', { hold: refusal('308') }, wayOf({ through: 'edge' }), 'answered', 'failed'],
  ['no leader', { hold: refusal('503') }, wayOf(), 'answered', 'failed'],
  ['a shard without stays', { hold: refusal('VALIDATION_ERROR') }, wayOf(), 'answered', 'impossible'],
  ['a token that may only read', { hold: refusal('FORBIDDEN') }, wayOf(), 'answered', 'impossible'],
])('%s', async (_, ends, way, search, hold) => {
  const { clients } = clientsOf(ends)
  const result = await probe(clients, way)
  expect([result.search.kind, String(result.hold?.kind)]).toEqual([search, hold])
})

test('holds go to the leader where it is known, through a router always', async () => {
  const calledWith = async (way: Way, leader: string | undefined) => {
    const { clients, calls } = clientsOf()
    const { hold } = await probe(clients, way, leader)
    return [calls.length, hold?.kind]
  }
  expect(await calledWith(wayOf(), 'n1')).toEqual([3, 'answered'])
  expect(await calledWith(wayOf(), 'n2')).toEqual([1, 'elsewhere'])
  expect(await calledWith(wayOf(), undefined)).toEqual([3, 'answered'])
  expect(await calledWith(wayOf({ through: 'edge', id: 'e1' }), 'n2')).toEqual([3, 'answered'])
})

test('shards share the connection to an edge router, which is closed with its last way', async () => {
  const { clients, connected, closed } = clientsOf()
  const ways = ['s1', 's2'].map((shard) => wayOf({ key: `${shard} edge e1`, shard, through: 'edge', id: 'e1' }))
  for (const way of ways) await probe(clients, way)
  expect(connected).toMatchObject([{ routers: [{ host: '10.0.0.1', port: 7777 }], retry: true }])

  forgetWay(clients, ways[0] as Way)
  await new Promise(setImmediate)
  expect(closed()).toBe(0)
  forgetWay(clients, ways[1] as Way)
  await new Promise(setImmediate)
  expect(closed()).toBe(1)

  await probe(clients, wayOf())
  await closeProbeClients(clients)
  expect(closed()).toBe(2)
})
