/** What a write would change, from reads at one node. The node is a stub. */

import type { AnswerSeen, VacancyClient } from '@vacancy/client'
import type { QueryCommand } from '@vacancy/shared/contract'
import type { RequestFields } from '@vacancy/shared/wire'
import { beforeEach, expect, test, vi } from 'vitest'
import type { Cluster, NodeAddress } from '../cluster/cluster.ts'
import { ProblemError } from '../http/route.ts'
import { statusOf } from '../testing/observed-nodes.ts'
import type { Reach } from './ask.ts'
import { confirmationOf, preview } from './preview.ts'

const PROPERTY = {
  ...{ id: 'h1', segment: 'city', area: 'old', type: 'hotel', category: 'family', stars: 3, latitude: 1, longitude: 2 },
  ...{ amenities: ['spa', 'pool'], room_types: ['double', 'suite'] },
}
const DATE = '2026-12-01'

type Night = { availability: number; finalPrice: number; rateFeatures: string[] }
/** What the node has, and the requests that it gets. */
const node = vi.hoisted(() => ({
  hasProperty: true,
  /** Nights of DATE by room type. */
  nights: {} as { [room: string]: Night },
  stay: undefined as string | undefined,
  status: { status: 200, body: '' },
  requests: [] as unknown[],
  refusal: 'wire-not-found',
}))
const missing = () => new ProblemError(404, node.refusal, 'refused')
const REPLIES: { [command: string]: (fields: RequestFields) => object } = {
  GETPROPROOMDAY(fields) {
    const night = node.nights[String(fields['roomType'])]
    if (!night || fields['date'] !== DATE) throw missing()
    return { date: DATE, ...night }
  },
  PROPROOMLIST() {
    if (!node.hasProperty) throw missing()
    return { roomTypes: Object.keys(node.nights) }
  },
  PROPROOMDATELIST(fields) {
    if (!node.nights[String(fields['roomType'])]) throw missing()
    return { dates: fields['roomType'] === 'suite' ? [DATE] : [DATE, '2026-12-02', '2026-12-03'] }
  },
  PROPEXIST: () => ({ exists: node.hasProperty }),
  GETSTAY() {
    if (node.stay === undefined) throw missing()
    return { state: node.stay }
  },
}
vi.mock('./node-clients.ts', () => ({
  clientOf: async (_: unknown, [one]: readonly NodeAddress[]) =>
    ({
      send: async (command: string, fields: RequestFields, { watch }: { watch: (seen: AnswerSeen) => void }) => {
        node.requests.push([one?.id, command, fields])
        watch({ address: 'a', request: new Uint8Array(9), answer: new Uint8Array(), milliseconds: 1 })
        return REPLIES[command]?.(fields)
      },
    }) as unknown as VacancyClient,
}))
beforeEach(() => {
  Object.assign(node, { hasProperty: true, stay: undefined, requests: [], refusal: 'wire-not-found' })
  node.nights = { double: { availability: 3, finalPrice: 120, rateFeatures: ['late', 'breakfast'] } }
  const segments = [
    { name: 'coast', properties: 1, packages: 1 },
    { name: 'city', properties: 4, packages: 50 },
  ]
  node.status = { status: 200, body: JSON.stringify(statusOf({ segments })) }
})

const address = (id: string) => ({ id, shard: 's1', zone: 'z1', apiUrl: '', tcp: { host: id, port: 1 } })
async function shown(command: QueryCommand, fields: object, roles: { [node: string]: string } = { n1: 'leader' }) {
  const cluster = {
    shards: () => [{ id: 's1' }],
    addresses: () => Object.keys(roles).map(address),
    node: (_: string, id: string) => ({ role: roles[id], state: 'healthy', freshness: 'live' }),
    request: async ({ id }: NodeAddress, path: string, options: object) => {
      node.requests.push([id, path, options])
      if (path === '/status') return { milliseconds: 1, ...node.status }
      const properties = node.hasProperty ? [PROPERTY] : []
      return { status: 200, body: JSON.stringify({ properties, missing: [] }), milliseconds: 1 }
    },
  } as unknown as Cluster
  const reach = { cluster, clients: {} } as unknown as Reach
  const signal = new AbortController().signal
  return await preview(reach, { body: { command, fields, shard: 's1' }, signal } as never)
}
const OF_NIGHT = { propertyId: 'h1', roomType: 'double', date: DATE }
const change = (what: string, before: string | null, after: string | null) => ({ what, before, after })

test('only writes have a preview', async () => {
  await expect(shown('PROPEXIST', { propertyId: 'h1' })).rejects.toMatchObject({
    ...{ code: 'no-write', message: 'PROPEXIST changes nothing.', field: 'command' },
  })
  await expect(shown('SETROOMAVL', { propertyId: 5 })).rejects.toMatchObject({ code: 'invalid-fields' })
})

test.each<[{ [node: string]: string }, string]>([
  [{ n1: 'follower', n2: 'leader' }, 'n2'],
  [{ n1: 'learner', n2: 'follower' }, 'n1'],
])('of the nodes %j, %s is read', async (roles, expected) => {
  expect(await shown('SETROOMAVL', { ...OF_NIGHT, amount: 1 }, roles)).toMatchObject({ shard: 's1', node: expected })
  expect(node.requests).toEqual([[expected, 'GETPROPROOMDAY', OF_NIGHT]])
})

test.each<[QueryCommand, RequestFields, string]>([
  ['DELPROP', { propertyId: 'h1' }, 'h1'],
  ['DELROOMDAY', { propertyId: 'h1', roomType: 'double' }, 'h1'],
  ['DELSEGMENT', { segment: 'city' }, 'city'],
  ['SETPROP', { propertyId: 'h1', segment: 'city' }, ''],
])('%s of %j is confirmed with %j', (command, fields, expected) => {
  expect(confirmationOf(command, fields)).toBe(expected)
})

// Properties and packages

const ATTRIBUTES = {
  ...{ propertyId: 'h1', segment: 'city', area: 'old', propertyType: 'hotel', category: 'family', stars: 3 },
  ...{ latitude: 1, longitude: 2, amenities: ['pool', 'spa'] },
}

test.each<[object, object[]]>([
  [{}, []],
  [{ area: 'new' }, [change('area', 'old', 'new')]],
  [
    { amenities: ['spa'], stars: 5, longitude: 2.5 },
    [change('stars', '3', '5'), change('longitude', '2', '2.5'), change('amenities', 'pool, spa', 'spa')],
  ],
  [
    { segment: 'coast', propertyType: 'hostel', category: 'youth', latitude: -1 },
    [
      ...[change('segment', 'city', 'coast'), change('propertyType', 'hotel', 'hostel')],
      ...[change('category', 'family', 'youth'), change('latitude', '1', '-1')],
    ],
  ],
])('a property with the changes %j', async (fields, changes) => {
  expect(await shown('SETPROP', { ...ATTRIBUTES, ...fields })).toEqual({
    ...{ shard: 's1', node: 'n1', changes, removes: null, confirm: '' },
  })
})

test('a new property has only new values', async () => {
  node.hasProperty = false

  const { changes } = await shown('SETPROP', ATTRIBUTES)

  expect(changes).toContainEqual(change('amenities', null, 'pool, spa'))
  expect(changes.map(({ before }) => before)).toEqual(Array(8).fill(null))
})

test.each<[object, object[]]>([
  [{ availability: 3, finalPrice: 120, rateFeatures: ['breakfast', 'late'] }, []],
  [{}, []],
  [{ availability: 4 }, [change('availability', '3', '4')]],
  [
    { finalPrice: 99, rateFeatures: [] },
    [change('finalPrice', '120', '99'), change('rateFeatures', 'breakfast, late', '')],
  ],
])('a package with the fields %j', async (fields, changes) => {
  expect(await shown('SETROOMPKG', { ...OF_NIGHT, ...fields })).toMatchObject({ changes, removes: null })
})

test.each<[object, [string, string, string]]>([
  [{}, ['0', '0', '']],
  [{ availability: 2, rateFeatures: ['late'] }, ['2', '0', 'late']],
])('a new package with the fields %j', async (fields, [availability, price, features]) => {
  node.nights = {}

  expect((await shown('SETROOMPKG', { ...OF_NIGHT, ...fields })).changes).toEqual([
    change('availability', null, availability),
    change('finalPrice', null, price),
    change('rateFeatures', null, features),
  ])
})

test.each<[QueryCommand, left: number, amount: number, after: string | null]>([
  ['SETROOMAVL', 3, 7, '7'],
  ['SETROOMAVL', 3, 0, '0'],
  ['INCROOMAVL', 3, 2, '5'],
  ['INCROOMAVL', 250, 5, '255'],
  ['INCROOMAVL', 250, 6, null],
  ['DECROOMAVL', 3, 2, '1'],
  ['DECROOMAVL', 3, 3, '0'],
  ['DECROOMAVL', 3, 4, null],
])('%s of %d rooms with %d leaves %s', async (command, left, amount, after) => {
  node.nights = { double: { availability: left, finalPrice: 1, rateFeatures: [] } }

  expect(await shown(command, { ...OF_NIGHT, amount })).toMatchObject({
    ...{ changes: [change('availability', String(left), after)], removes: null },
  })
})

test('rooms of a night without a package cannot be counted', async () => {
  node.nights = {}

  expect((await shown('SETROOMAVL', { ...OF_NIGHT, amount: 1 })).changes).toEqual([change('availability', null, null)])
})

test('a refusal of the node is not taken for a missing package', async () => {
  node.nights = {}
  node.refusal = 'wire-auth-error'

  await expect(shown('SETROOMAVL', { ...OF_NIGHT, amount: 1 })).rejects.toMatchObject({ code: 'wire-auth-error' })
})

// Deletes

test('a deleted night of a room type has a price and rooms', async () => {
  expect(await shown('DELROOMDAY', OF_NIGHT)).toEqual({
    ...{ shard: 's1', node: 'n1', confirm: 'h1', removes: { properties: 0, packages: 1 } },
    changes: [change(`double, ${DATE}`, '3 left, 120', null)],
  })
  node.nights = {}
  expect(await shown('DELROOMDAY', OF_NIGHT)).toMatchObject({ changes: [], removes: { properties: 0, packages: 0 } })
})

test('a deleted night of a property has those of its room types', async () => {
  node.nights['suite'] = { availability: 1, finalPrice: 300, rateFeatures: [] }

  expect(await shown('DELPROPDAY', { propertyId: 'h1', date: DATE })).toMatchObject({
    changes: [change(`double, ${DATE}`, '3 left, 120', null), change(`suite, ${DATE}`, '1 left, 300', null)],
    removes: { properties: 0, packages: 2 },
  })
  node.hasProperty = false
  expect(await shown('DELPROPDAY', { propertyId: 'h1', date: DATE })).toMatchObject({ changes: [] })
})

test('a deleted room type has its packages; the property stays', async () => {
  expect(await shown('DELPROPROOM', { propertyId: 'h1', roomType: 'double' })).toMatchObject({
    changes: [change('double', '3 packages', null)],
    removes: { properties: 0, packages: 3 },
  })
  expect(await shown('DELPROPROOM', { propertyId: 'h1', roomType: 'other' })).toMatchObject({
    ...{ changes: [], removes: { properties: 0, packages: 0 } },
  })
})

test('a deleted property has the packages of all room types', async () => {
  node.nights['suite'] = { availability: 1, finalPrice: 300, rateFeatures: [] }

  expect(await shown('DELPROP', { propertyId: 'h1' })).toMatchObject({
    changes: [change('double', '3 packages', null), change('suite', '1 packages', null)],
    ...{ removes: { properties: 1, packages: 4 }, confirm: 'h1' },
  })
  node.hasProperty = false
  expect(await shown('DELPROP', { propertyId: 'h1' })).toMatchObject({
    ...{ changes: [], removes: { properties: 0, packages: 0 } },
  })
})

test.each([
  ['city', '4 properties, 50 packages', { properties: 4, packages: 50 }],
  ['none', null, { properties: 0, packages: 0 }],
])('the deleted segment %s has %s', async (segment, before, removes) => {
  expect(await shown('DELSEGMENT', { segment })).toEqual({
    ...{ shard: 's1', node: 'n1', changes: [change(segment, before, null)], removes, confirm: segment },
  })
  expect(node.requests).toMatchObject([['n1', '/status', { as: 'monitoring' }]])
})

test.each([
  { status: 500, body: JSON.stringify(statusOf({})) },
  { status: 200, body: '{}' },
])('without the status of the node a segment has no preview: %j', async (status) => {
  node.status = status

  await expect(shown('DELSEGMENT', { segment: 'city' })).rejects.toMatchObject({ code: 'node-answer' })
})

// Stays

const STAY_ID = '0123456789abcdef0123456789abcdef'
const LINE = { propertyId: 'h1', roomType: 'double', arrival: DATE, nights: 1, rooms: 1 }
test.each<[QueryCommand, object, string]>([
  ['BOOKSTAY', { lines: [LINE] }, 'booked'],
  ['HOLDSTAY', { lines: [LINE] }, 'held'],
  ['CONFIRMSTAY', {}, 'booked'],
  ['RELEASESTAY', {}, 'released'],
  ['RELEASESTAY', { void: 0 }, 'released'],
  ['RELEASESTAY', { void: 1 }, 'void'],
])('after %s with %j a stay is %s', async (command, fields, after) => {
  const given = { stayId: STAY_ID, ...fields }

  expect((await shown(command, given)).changes).toEqual([change('state', null, after)])
  node.stay = 'held'
  expect(await shown(command, given)).toMatchObject({ changes: [change('state', 'held', after)], removes: null })
})
