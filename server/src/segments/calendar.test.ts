/** The calendar of a property from one node, and compared between replicas. The nodes are stubs. */

import type { AnswerSeen, VacancyClient } from '@vacancy/client'
import { turnableClock } from '@vacancy/shared'
import type { RequestFields } from '@vacancy/shared/wire'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Cluster, NodeAddress } from '../cluster/cluster.ts'
import { problem } from '../http/errors.ts'
import { ProblemError } from '../http/route.ts'
import type { Reach } from '../playground/ask.ts'
import { createLimitsCache } from '../playground/query.ts'
import { calendarReplicas, propertyCalendar } from './calendar.ts'

const NOW = Date.parse('2026-11-22T12:00:00.000Z')
const SILENT_MS = 800
const DIFFERENCES_MAX = 500
const ROOMS_MAX = 64

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
vi.mock('../playground/node-clients.ts', async (original) => ({
  ...(await original<typeof import('../playground/node-clients.ts')>()),
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

// One node

test('a calendar has the nights of each room type that are in its range', async () => {
  const { calendar } = world({
    n1: {
      rooms: {
        double: {
          '2026-11-21': night(9),
          '2026-11-22': night(2, 120, ['late']),
          '2026-11-23': night(0),
          '2026-11-24': night(5),
        },
        suite: { '2026-12-30': night(1) },
        empty: {},
      },
      indexes: ['9', '12'],
    },
  })

  expect(await calendar({ nights: 2 })).toEqual({
    ...{ shard: 's1', node: 'n1', role: 'leader', from: '2026-11-22', nights: 2, more: false },
    property: { ...PROPERTY, room_types: ['double', 'suite', 'empty'] },
    window: { from: '2026-11-21', to: '2026-12-30' },
    rooms: [
      {
        room: 'double',
        nights: [
          { date: '2026-11-22', availability: 2, price: 120, features: ['late'] },
          { date: '2026-11-23', availability: 0, price: 100, features: [] },
        ],
      },
      { room: 'suite', nights: [] },
      { room: 'empty', nights: [] },
    ],
    ...{ index: { from: '9', to: '9' }, rateFeatures: ['breakfast', 'late'], at: '2026-11-22T12:00:00.000Z' },
  })
  const fields = { propertyId: 'h1', roomType: 'double', segment: 'city', availability: 0, explain: 1 }
  expect(searches()).toEqual([
    { node: 'n1', command: 'SEARCHAVAIL', fields: { ...fields, dates: ['2026-11-22', '2026-11-23'] } },
  ])
  expect(sent[0]?.fields).toEqual({ propertyId: 'h1', roomType: 'double' })
})

test('a calendar of another month begins at the given date, on the given node', async () => {
  const { calendar } = world({
    n1: {},
    n2: { rooms: { double: { '2027-01-01': night(1), '2027-02-01': night(2) } }, indexes: [null] },
  })

  expect(await calendar({ from: '2027-01-02', nights: 31, node: 'n2' })).toMatchObject({
    ...{ node: 'n2', role: 'unknown', from: '2027-01-02', nights: 31, index: null },
    rooms: [{ room: 'double', nights: [{ date: '2027-02-01' }] }],
  })
})

test('a property without packages has no window', async () => {
  const { calendar } = world({ n1: { rooms: { double: {} } } })

  expect(await calendar()).toMatchObject({ window: null, index: null, rooms: [{ room: 'double', nights: [] }] })
})

test.each<[datesMax: number | undefined, nights: number, sizes: number[]]>([
  [3, 7, [3, 3, 1]],
  [7, 7, [7]],
  [undefined, 15, [14, 1]],
])('with %s dates per search, %d nights need searches of %j', async (datesMax, count, sizes) => {
  const dates = Array.from({ length: count }, (_, at) => `2026-12-${String(at + 1).padStart(2, '0')}`)
  const rooms = { double: Object.fromEntries(dates.map((date) => [date, night(1)])) }
  const { calendar } = world(
    { n1: { rooms, indexes: ['100', '20', '9'] } },
    datesMax === undefined ? {} : { max_dates_in_query: datesMax },
  )

  const read = await calendar()

  expect(searches().map(({ fields }) => (fields['dates'] as string[]).length)).toEqual(sizes)
  expect(read.rooms[0]?.nights.map(({ date }) => date)).toEqual(dates)
  expect(read.index?.to).toBe('100')
  expect(read.index?.from).toBe(['100', '20', '9'][sizes.length - 1])
})

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

test('a read at an index waits for it before the packages are listed', async () => {
  const { calendar } = world({ n1: { rooms: { double: { '2026-12-01': night(4) } } } })

  await calendar({ atLeast: '44' })

  expect(sent.map(({ fields }) => fields['minIndex'])).toEqual([44n, undefined])
})

test.each([
  [64, 64, false],
  [65, 64, true],
])('of %d room types %d are read, more: %s', async (count, listed, more) => {
  const rooms = Object.fromEntries(Array.from({ length: count }, (_, at) => [`r${at}`, {}]))
  const { calendar } = world({ n1: { rooms } })

  const read = await calendar()

  expect([read.rooms.length, read.more]).toEqual([listed, more])
  expect(listed).toBe(ROOMS_MAX)
})

test.each([
  ['2026-11-31', { code: 'invalid-request', message: '2026-11-31 is not a date.', field: 'from' }],
  ['', { code: 'invalid-request' }],
])('the first night %j is refused', async (from, expected) => {
  const { calendar, replicas } = world({ n1: {} })

  await expect(calendar({ from })).rejects.toMatchObject(expected)
  await expect(replicas({ from })).rejects.toMatchObject(expected)
})

test.each([
  ['h1', false],
  ['x'.repeat(65), true],
])('a property that the node does not have is not found: %s', async (property, isInvalid) => {
  const { calendar, replicas, paths } = world({ n1: { has: false } })

  const expected = { code: 'property-not-found', message: `Shard s1 has no property ${property}.` }
  await expect(calendar({}, property)).rejects.toMatchObject(expected)
  await expect(replicas({}, property)).rejects.toMatchObject(expected)
  expect(paths.filter((path) => path !== '/config').length > 0).toBe(!isInvalid)
})

test('other refusals of a node are reported', async () => {
  const { calendar } = world({ n1: { rooms: { double: {} } } })
  wire.answer = async () => {
    throw new ProblemError(503, 'wire-503', 'busy')
  }

  await expect(calendar()).rejects.toMatchObject({ code: 'wire-503' })
})

// Replicas

const same = { double: { '2026-12-01': night(4), '2026-12-02': night(5) } }

test('equal replicas have the same nights at any index', async () => {
  const { replicas } = world({
    n1: { rooms: same, readMs: 3 },
    n2: { rooms: structuredClone(same), indexes: ['9'] },
  })

  expect(await replicas()).toEqual({
    ...{ shard: 's1', at: '2026-11-22T12:00:00.003Z', equal: true, answered: 2, reads: 1 },
    nodes: [
      { node: 'n1', role: 'leader', index: { from: '7', to: '7' }, micros: 3_000, packages: 2, error: '' },
      { node: 'n2', role: 'unknown', index: { from: '9', to: '9' }, micros: 3_000, packages: 2, error: '' },
    ].map((row) => ({ ...row, micros: expect.any(Number) })),
    ...{ differences: [], differencesCut: false },
  })
})

test('the time of a node is in microseconds', async () => {
  const { replicas } = world({ n1: { rooms: same, readMs: 3 } })

  expect(await replicas()).toMatchObject({ nodes: [{ micros: 3_000 }], equal: true, answered: 1 })
})

test('cells that differ at one index are listed by room and date', async () => {
  const { replicas } = world({
    n1: { rooms: { suite: { '2026-12-09': night(1) }, double: { '2026-12-01': night(4), '2026-12-02': night(5) } } },
    n2: { rooms: { double: { '2026-12-01': night(4, 100, ['late']), '2026-12-02': night(5) } } },
    n3: { fails: problem('node-timeout', { detail: 'silent' }) },
  })

  const found = await replicas()

  const cell = { date: '2026-12-01', availability: 4, price: 100 }
  expect(found).toMatchObject({ equal: false, answered: 2, reads: 1, differencesCut: false })
  expect(found.differences).toEqual([
    { room: 'double', date: '2026-12-01', values: [{ ...cell, features: [] }, { ...cell, features: ['late'] }, null] },
    {
      ...{ room: 'suite', date: '2026-12-09' },
      values: [{ date: '2026-12-09', availability: 1, price: 100, features: [] }, null, null],
    },
  ])
  expect(found.nodes[2]).toEqual({
    ...{ node: 'n3', role: 'unknown', index: null, micros: null, packages: null, error: 'silent' },
  })
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

test('without a response nothing is equal', async () => {
  const { replicas } = world({ n1: { fails: problem('node-timeout', { detail: 'silent' }) } })

  expect(await replicas()).toMatchObject({ equal: false, answered: 0, reads: 1, differences: [] })
})

test('a node without the property differs from those that have it', async () => {
  const { replicas } = world({ n1: { rooms: same }, n2: { has: false } })

  const found = await replicas()

  expect(found.nodes[1]).toMatchObject({ index: null, packages: 0, error: '' })
  expect(found.differences).toHaveLength(2)
})

test('a defect while a node is read is not hidden', async () => {
  const { replicas } = world({ n1: { fails: new TypeError('defect') } })

  await expect(replicas()).rejects.toThrow('defect')
})

test.each([
  [500, false],
  [501, true],
])('of %d differences at most 500 are listed', async (count, isCut) => {
  const rooms = Object.fromEntries(
    Array.from({ length: Math.ceil(count / 50) }, (_, room) => [
      `r${String(room).padStart(2, '0')}`,
      Object.fromEntries(
        Array.from({ length: Math.min(50, count - room * 50) }, (_, at) => [
          new Date(NOW + at * 86_400_000).toISOString().slice(0, 10),
          night(1),
        ]),
      ),
    ]),
  )
  const { replicas } = world({ n1: { rooms }, n2: { rooms: {} } })

  const found = await replicas()

  expect([found.differences.length, found.differencesCut]).toEqual([DIFFERENCES_MAX, isCut])
})
