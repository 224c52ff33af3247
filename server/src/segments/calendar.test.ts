/** The calendar of a property from one node, and compared between replicas. The nodes are stubs. */

import type { AnswerSeen, VacancyClient } from '@vacancy/client'
import { turnableClock } from '@vacancy/shared'
import { problem } from '@vacancy/shared/api/errors'
import { ProblemError } from '@vacancy/shared/api/route'
import type { RequestFields } from '@vacancy/shared/wire'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Cluster, NodeAddress } from '../cluster/cluster.ts'
import type { Reach } from '../nodes/ask.ts'
import { createLimitsCache } from '../nodes/query.ts'
import { calendarReplicas, propertyCalendar } from './calendar.ts'

const NOW = Date.parse('2026-11-22T12:00:00.000Z')
const SILENT_MS = 800
type Night = { availability: number; finalPrice: number; rateFeatures: string[] }
type StubNode = {
  /** Nights by room type and date. */
  rooms: { [room: string]: { [date: string]: Night } }
  /** Of each reply of a search; its last entry repeats. */
  indexes: (string | null)[]
  /** Searches find nothing, as after a removed package. */
  isCut?: boolean
  has?: boolean
  fails?: Error
  hangs?: boolean
  readMs?: number
}
const night = (availability: number, finalPrice = 100, rateFeatures: string[] = []): Night => ({
  ...{ availability, finalPrice, rateFeatures },
})

let nodes: { [id: string]: StubNode }
let sent: { node: string; command: string; fields: RequestFields }[]
let clock: ReturnType<typeof turnableClock>
const wire = vi.hoisted(() => ({ answer: undefined as unknown }))
vi.mock('../nodes/node-clients.ts', async (original) => ({
  ...(await original<typeof import('../nodes/node-clients.ts')>()),
  clientOf: async (_: unknown, [node]: readonly NodeAddress[]) =>
    ({
      rateFeatures: ['breakfast', 'late'],
      send: async (command: string, fields: RequestFields, { watch }: { watch: (seen: AnswerSeen) => void }) => {
        watch({ address: 'a', request: new Uint8Array(9), answer: new Uint8Array(), milliseconds: 1 })
        return await (wire.answer as typeof answer)(node?.id ?? '', command, fields)
      },
    }) as unknown as VacancyClient,
}))
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  sent = []
  wire.answer = answer
})
afterEach(() => {
  vi.useRealTimers()
})

/** The reply of a node to a command. */
async function answer(id: string, command: string, fields: RequestFields): Promise<unknown> {
  const node = nodes[id] as StubNode
  sent.push({ node: id, command, fields })
  const nights = node.rooms[String(fields['roomType'])] ?? {}
  if (command === 'PROPROOMDATELIST') {
    if (Object.keys(nights).length === 0) throw new ProblemError(404, 'wire-not-found', 'no package')
    return { dates: Object.keys(nights) }
  }
  const packageOf = (date: string) => ({ date, ...(nights[date] as Night) })
  if (command === 'SEARCHAVAIL') {
    const index = node.indexes.length > 1 ? node.indexes.shift() : node.indexes[0]
    const days = (fields['dates'] as string[]).map(packageOf)
    const properties = node.isCut ? [] : [{ propertyId: fields['propertyId'], days }]
    return { properties, ...(index && { explain: { appliedIndex: BigInt(index) } }) }
  }
  const date = String(fields['date'])
  if (!nights[date]) throw new ProblemError(404, 'wire-not-found', 'no package')
  return packageOf(date)
}

const PROPERTY = {
  ...{ id: 'h1', segment: 'city', area: 'old', type: 'hotel', category: 'family', stars: 3, latitude: 1, longitude: 2 },
  amenities: [],
}

function world(given: { [id: string]: Partial<StubNode> }, config: { [name: string]: number } = {}) {
  nodes = Object.fromEntries(
    Object.entries(given).map(([id, node]) => [id, { rooms: {}, indexes: ['7'], ...node }] as const),
  )
  clock = turnableClock(NOW - 1_000)
  clock.advance(1_000)
  const paths: string[] = []
  const cluster = {
    shards: () => [{ id: 's1' }],
    addresses: () =>
      Object.keys(nodes).map((id) => ({ id, shard: 's1', zone: 'z1', apiUrl: '', tcp: { host: id, port: 1 } })),
    node: (_: string, id: string) =>
      id === 'n1' ? { role: 'leader', state: 'healthy', freshness: 'live' } : undefined,
    request: async ({ id }: NodeAddress, path: string) => {
      paths.push(path)
      const node = nodes[id] as StubNode
      if (path === '/config') {
        const entries = Object.entries(config).map(([name, value]) => [name, { value, origin: 'default', at: '' }])
        return { status: 200, body: JSON.stringify(Object.fromEntries(entries)), milliseconds: 1 }
      }
      if (node.hangs) await new Promise(() => {})
      if (node.fails) throw node.fails
      clock.advance(node.readMs ?? 0)
      const properties = node.has === false ? [] : [{ ...PROPERTY, room_types: Object.keys(node.rooms) }]
      return { status: 200, body: JSON.stringify({ properties, missing: [] }), milliseconds: 1 }
    },
  } as unknown as Cluster
  const reach = { cluster, clients: { clock } } as unknown as Reach
  const signal = new AbortController().signal
  const limits = createLimitsCache(clock)
  return {
    paths,
    calendar: (query: { from?: string; nights?: number; node?: string; atLeast?: string } = {}, property = 'h1') => {
      const parts = { params: { shard: 's1', property }, query: { nights: 62, ...query }, signal }
      return settled(propertyCalendar(reach, limits, parts as never))
    },
    replicas: (query: { from?: string; nights?: number } = {}, property = 'h1') => {
      const parts = { params: { shard: 's1', property }, query: { nights: 62, ...query }, signal }
      return settled(calendarReplicas(reach, limits, parts as never))
    },
  }
}

/** Advances the fake timers until the request has ended. */
async function settled<T>(request: Promise<T>): Promise<T> {
  let isOver = false
  const end = () => {
    isOver = true
  }
  request.then(end, end)
  while (!isOver) await vi.advanceTimersByTimeAsync(10)
  return await request
}
const searches = () => sent.filter(({ command }) => command === 'SEARCHAVAIL')

test('nights are read one by one when a package was removed since they were listed', async () => {
  const double: { [date: string]: Night } = { '2026-12-01': night(4), '2026-12-02': night(5) }
  const rooms = { double }
  const { calendar } = world({ n1: { rooms, isCut: true } })
  wire.answer = async (id: string, command: string, fields: RequestFields) => {
    const found = await answer(id, command, fields)
    if (command === 'SEARCHAVAIL') delete rooms.double['2026-12-02']
    return found
  }

  expect((await calendar()).rooms).toEqual([
    { room: 'double', nights: [{ date: '2026-12-01', availability: 4, price: 100, features: [] }] },
  ])
})

test('replicas at different indexes are read again until they agree', async () => {
  const rooms = { double: { '2026-12-01': night(4) } }
  const { replicas } = world({ n1: { rooms }, n2: { rooms: structuredClone(rooms), indexes: ['6', '7'] } })
  let reads = 0
  wire.answer = async (id: string, command: string, fields: RequestFields) => {
    if (id === 'n2' && command === 'SEARCHAVAIL') {
      const cell = nodes['n2']?.rooms['double'] as { [date: string]: Night }
      cell['2026-12-01'] = night(++reads < 2 ? 3 : 4)
    }
    return await answer(id, command, fields)
  }

  expect(await replicas()).toMatchObject({ equal: true, reads: 2, differences: [] })
})

test('replicas that keep to differ are shown after four reads', async () => {
  const { replicas } = world({
    n1: { rooms: { double: { '2026-12-01': night(4) } } },
    n2: { rooms: { double: { '2026-12-01': night(3) } }, indexes: ['8'] },
    n3: { fails: problem('node-timeout', { detail: 'silent' }) },
  })

  expect(await replicas()).toMatchObject({ equal: false, reads: 4, differences: [{ date: '2026-12-01' }] })
  expect(searches()).toHaveLength(8)
})

test('a silent node is left out after 800 ms and not read again', async () => {
  const { replicas, paths } = world({
    n1: { rooms: { double: { '2026-12-01': night(4) } } },
    n2: { rooms: { double: { '2026-12-01': night(3) } }, indexes: ['8'] },
    n3: { hangs: true },
  })

  const found = await replicas()

  expect(found.nodes[2]).toMatchObject({ error: `no response within ${SILENT_MS} ms`, packages: null })
  expect([found.answered, found.reads]).toEqual([2, 4])
  expect(paths.filter((path) => path.startsWith('/properties'))).toHaveLength(9)
})
