import { formatDay, packPropertyId, parseDay } from '@vacancy/shared'
import { COMMANDS, type CommandName, decodeReply, encodeError, encodeReply, encodeRequest } from '@vacancy/shared/wire'
import { beforeAll, expect, test } from 'vitest'
import { createReplyWriter } from '../search/reply.ts'
import { GIVEN, KIND } from '../store/command.ts'
import { FEATURE_LEVEL, noteShardDay, publish, STAYS_LEVEL, scratchOf } from '../store/store.ts'
import {
  ask,
  createNodeInMemory,
  type NodeInMemory,
  raiseFeatureLevel,
  SAMPLE_CODECS,
} from '../testing/node-in-memory.ts'
import { createProposals } from '../threads/writes.ts'
import {
  answerFrame,
  answerRead,
  answerWrite,
  continueSegments,
  createListing,
  type Dispatcher,
  hasApplied,
  isBelowLevel,
  isSearch,
  minIndexOf,
  NO_ROOM,
  needsMemory,
  openRequest,
  proposeStayRead,
  proposeWrite,
  readModeOf,
  UNFINISHED,
  wantsIndex,
} from './dispatch.ts'

type Fields = { readonly [name: string]: unknown }

const FRAME_HEADER = 9
const TODAY = parseDay('2026-11-20') as number
const DATE = '2026-11-21'
const ID = 'inn'
const PROPERTY = {
  ...{ segment: 'alpine', area: 'valley', propertyId: ID, propertyType: 'hotel', category: 'standard' },
  ...{ stars: 3, latitude: 47.5, longitude: -11.25, amenities: ['pool', 'sauna'] },
}
const NIGHT = { propertyId: ID, roomType: 'double', date: DATE }
const SESSION = '00112233445566778899aabbccddeeff'
const KEY = { session: SESSION, requestNumber: 258 }
const CONTEXT = { baseYear: 2026, codecs: undefined }

/** Unchanged by the tests: a store at feature level 0, and one at the newest. */
let old: NodeInMemory
let node: NodeInMemory

beforeAll(() => {
  old = createNodeInMemory(TODAY)
  node = createNodeInMemory(TODAY)
  raiseFeatureLevel(node)
  ask(node, 'SETPROP', PROPERTY)
  ask(node, 'SETPROP', { ...PROPERTY, propertyId: 'empty', segment: 'coast' })
  for (const date of ['2026-11-20', DATE])
    ask(node, 'SETROOMPKG', { ...NIGHT, date, availability: 7, finalPrice: 9_900 })
  ask(node, 'SETROOMPKG', { ...NIGHT, roomType: 'suite', rateFeatures: ['wifi'] })
})

const dispatcherOf = ({ dispatchers }: NodeInMemory): Dispatcher => dispatchers[0] as Dispatcher

function open(of: NodeInMemory, command: CommandName, fields: Fields): Dispatcher {
  const dispatcher = dispatcherOf(of)
  const payload = encodeRequest({ command, correlationId: 1, fields: fields as never }).slice(FRAME_HEADER)
  expect(openRequest(dispatcher, payload, 0, payload.length)).toBe(COMMANDS[command])
  return dispatcher
}

/** The logged form of a write, or why it was refused. */
function logged(of: NodeInMemory, command: CommandName, fields: Fields): string {
  const dispatcher = open(of, command, fields)
  const { writer } = dispatcher.proposals
  writer.at = 0
  const error = proposeWrite(dispatcher, COMMANDS[command])
  // Nothing is left of a refused write.
  if (error !== '') expect(writer.at).toBe(0)
  return error === '' ? Buffer.from(writer.bytes.subarray(8, writer.at)).toString('hex') : error
}

// The logged form, part by part (docs/design/consensus.md#log-commands).
const u8 = (value: number) => Uint8Array.of(value)
const u32 = (value: number) => new Uint8Array(Uint32Array.of(value).buffer)
const f64 = (value: number) => new Uint8Array(Float64Array.of(value).buffer)
const id = (text: string) => packPropertyId(text) as Uint8Array
const name = (text: string) => Buffer.concat([u8(Buffer.byteLength(text)), Buffer.from(text)])
const day = (text: string) => u32(parseDay(text) as number)

function form(kind: number, body: readonly Uint8Array[], key: Uint8Array = new Uint8Array(0)): string {
  const header = [Uint8Array.of(kind & 0xff, kind >>> 8), new Uint8Array(12), u8(key.length > 0 ? 1 : 0)]
  return Buffer.concat([...header, key, ...body]).toString('hex')
}

const KEY_BYTES = Buffer.concat([Buffer.from(SESSION, 'hex'), Uint8Array.of(2, 1, 0, 0, 0, 0, 0, 0)])
const ATTRIBUTES = [u8(3), f64(47.5), f64(-11.25), ...['alpine', 'valley', 'hotel', 'standard'].map(name)]
const SET_PROPERTY = [id(ID), ...ATTRIBUTES, u8(2), name('pool'), name('sauna')]
const amountOf = (amount: number) => [id(ID), day(DATE), u8(amount), name('double')]
const packageOf = (given: number, availability: number, price: number, features: number) => [
  ...[id(ID), day(DATE), u8(given), u8(availability), u32(price), u32(features), name('double')],
]

test.each<[CommandName, Fields, string]>([
  ['SETPROP', PROPERTY, form(KIND.setProperty, SET_PROPERTY)],
  ['SETPROP', { ...PROPERTY, amenities: [] }, form(KIND.setProperty, [id(ID), ...ATTRIBUTES, u8(0)])],
  ['SETPROP', { ...PROPERTY, ...KEY }, form(KIND.setProperty, SET_PROPERTY, KEY_BYTES)],
  ['SETROOMPKG', NIGHT, form(KIND.setPackage, packageOf(0, 0, 0, 0))],
  ['SETROOMPKG', { ...NIGHT, availability: 5 }, form(KIND.setPackage, packageOf(GIVEN.availability, 5, 0, 0))],
  ['SETROOMPKG', { ...NIGHT, availability: 0 }, form(KIND.setPackage, packageOf(GIVEN.availability, 0, 0, 0))],
  ['SETROOMPKG', { ...NIGHT, finalPrice: 12_345 }, form(KIND.setPackage, packageOf(GIVEN.price, 0, 12_345, 0))],
  ['SETROOMPKG', { ...NIGHT, rateFeatures: ['wifi'] }, form(KIND.setPackage, packageOf(GIVEN.features, 0, 0, 4))],
  ['SETROOMPKG', { ...NIGHT, rateFeatures: [] }, form(KIND.setPackage, packageOf(GIVEN.features, 0, 0, 0))],
  [
    'SETROOMPKG',
    { ...NIGHT, availability: 255, finalPrice: 1, rateFeatures: ['breakfast', 'half_board'] },
    form(KIND.setPackage, packageOf(7, 255, 1, 18)),
  ],
  ['SETROOMAVL', { ...NIGHT, amount: 0 }, form(KIND.setAvailability, amountOf(0))],
  ['SETROOMAVL', { ...NIGHT, amount: 9, ...KEY }, form(KIND.setAvailability, amountOf(9), KEY_BYTES)],
  ['INCROOMAVL', { ...NIGHT, amount: 1 }, form(KIND.increaseAvailability, amountOf(1))],
  ['DECROOMAVL', { ...NIGHT, amount: 255 }, form(KIND.decreaseAvailability, amountOf(255))],
  ['DELPROP', { propertyId: ID }, form(KIND.deleteProperty, [id(ID)])],
  ['DELSEGMENT', { segment: 'alpine' }, form(KIND.deleteSegment, [name('alpine')])],
  ['DELPROPDAY', { propertyId: ID, date: DATE }, form(KIND.deleteDay, [id(ID), day(DATE)])],
  ['DELPROPROOM', { propertyId: ID, roomType: 'double' }, form(KIND.deleteRoom, [id(ID), name('double')])],
  ['DELROOMDAY', NIGHT, form(KIND.deletePackage, [id(ID), day(DATE), name('double')])],
])('the log has %s %o', (command, fields, expected) => {
  expect(logged(old, command, fields)).toBe(expected)
})

test('an update that knows bookings up to an index has a kind of its own and the index in front', () => {
  const known = { ...NIGHT, asOf: 4_294_967_296 }
  const index = f64(4_294_967_296)
  const sets = form(KIND.setAvailabilityAsOf, [index, ...amountOf(9)])
  expect(logged(node, 'SETROOMAVL', { ...known, amount: 9 })).toBe(sets)
  const both = form(KIND.setPackageAsOf, [index, ...packageOf(1, 3, 0, 0)], KEY_BYTES)
  expect(logged(node, 'SETROOMPKG', { ...known, availability: 3, ...KEY })).toBe(both)
})

test.each<[string, CommandName, Fields, string]>([
  ['a reserved segment', 'SETPROP', { ...PROPERTY, segment: '__codecs__' }, '__codecs__ is a reserved name'],
  ['a blank area', 'SETPROP', { ...PROPERTY, area: ' ' }, 'area must not be blank'],
  ['a blank type', 'SETPROP', { ...PROPERTY, propertyType: ' ' }, 'propertyType must not be blank'],
  ['a blank category', 'SETPROP', { ...PROPERTY, category: ' ' }, 'category must not be blank'],
  ['no stars', 'SETPROP', { ...PROPERTY, stars: 0 }, 'stars must be 1 to 5, got 0'],
  ['a latitude past the pole', 'SETPROP', { ...PROPERTY, latitude: 90.5 }, 'latitude must be -90 to 90 degrees'],
  ['a longitude past 180', 'SETPROP', { ...PROPERTY, longitude: 180.5 }, 'longitude must be -180 to 180 degrees'],
  ['a blank room type', 'SETROOMPKG', { ...NIGHT, roomType: ' ' }, 'roomType must not be blank'],
  ['a blank room type', 'DELPROPROOM', { propertyId: ID, roomType: ' ' }, 'roomType must not be blank'],
  ['a blank room type', 'DELROOMDAY', { ...NIGHT, roomType: ' ' }, 'roomType must not be blank'],
  ['a blank room type', 'DECROOMAVL', { ...NIGHT, roomType: ' ', amount: 1 }, 'roomType must not be blank'],
  ['a reserved segment', 'DELSEGMENT', { segment: 'GETSEGMENTS' }, 'GETSEGMENTS is a reserved name'],
  ['0 rooms back', 'INCROOMAVL', { ...NIGHT, amount: 0 }, 'amount must be 1 to 255'],
  ['0 rooms off', 'DECROOMAVL', { ...NIGHT, amount: 0 }, 'amount must be 1 to 255'],
  [
    'yesterday',
    'DELPROPDAY',
    { propertyId: ID, date: '2026-11-19' },
    'date 2026-11-19 is in the past, today is 2026-11-20',
  ],
  ['half a key', 'DELPROP', { propertyId: ID, session: SESSION }, 'a request key has both session and requestNumber'],
  [
    'the other half',
    'DELPROP',
    { propertyId: ID, requestNumber: 1 },
    'a request key has both session and requestNumber',
  ],
  [
    '0 as the number of a key',
    'DELPROP',
    { propertyId: ID, ...KEY, requestNumber: 0 },
    'requestNumber must be 1 or more',
  ],
  ['an index without availability', 'SETROOMPKG', { ...NIGHT, asOf: 5 }, 'asOf needs availability'],
])('refused: %s', (_, command, fields, reason) => {
  expect(logged(node, command, fields)).toBe(`VALIDATION_ERROR: ${reason}`)
})

test('faults are reported in the order of the fields, that of the key last', () => {
  const wrong = { propertyId: ' ', roomType: ' ', date: '2020-01-01', amount: 0, session: SESSION }
  expect(logged(old, 'INCROOMAVL', wrong)).toMatch(/^VALIDATION_ERROR: propertyId/)
  expect(logged(old, 'INCROOMAVL', { ...wrong, propertyId: ID })).toMatch(/roomType/)
  expect(logged(old, 'INCROOMAVL', { ...wrong, propertyId: ID, roomType: 'r' })).toMatch(/in the past/)
  expect(logged(old, 'INCROOMAVL', { ...wrong, ...NIGHT })).toMatch(/amount/)
  expect(logged(old, 'INCROOMAVL', { ...wrong, ...NIGHT, amount: 1 })).toMatch(/request key/)
})

test('a shard with members of an older level refuses the index as a field that does not exist', () => {
  const reason = 'VALIDATION_ERROR: SETROOMAVL has no field 32816'
  expect(logged(old, 'SETROOMAVL', { ...NIGHT, amount: 1, asOf: 5 })).toBe(reason)
})

test('the request key of a stay is checked, and not logged', () => {
  const plain = logged(node, 'CONFIRMSTAY', { stayId: 's1' })
  expect(plain).toBe(form(KIND.confirmStay, [id('s1'), new Uint8Array(1 + 4 + 8 + 4 + 16 + 1 + 1)]))
  expect(logged(node, 'CONFIRMSTAY', { stayId: 's1', ...KEY })).toBe(plain)
  expect(logged(node, 'CONFIRMSTAY', { stayId: 's1', session: SESSION })).toMatch(/both session and requestNumber/)
})

test('the source of a stay that names none is the one of the connection', () => {
  const dispatcher = dispatcherOf(node)
  dispatcher.source = new TextEncoder().encode('web')
  const parts = [id('s1'), new Uint8Array(1 + 4 + 8 + 4 + 16), name('web'), u8(0)]
  const formOf = (kind: number) => form(kind, parts)
  expect(logged(node, 'CONFIRMSTAY', { stayId: 's1' })).toBe(formOf(KIND.confirmStay))
  expect(logged(node, 'RELEASESTAY', { stayId: 's1' })).toBe(formOf(KIND.releaseStay))
  dispatcher.source = new Uint8Array(0)
})

test.each<[CommandName, number]>([
  ['BOOKSTAY', KIND.bookStay],
  ['HOLDSTAY', KIND.holdStay],
])('%s has its kind', (command, kind) => {
  const lines = [{ propertyId: ID, roomType: 'double', arrival: DATE, nights: 1, rooms: 1 }]
  expect(logged(node, command, { stayId: 's1', lines }).slice(0, 4)).toBe(form(kind, []).slice(0, 4))
})

// Reads

/** The whole reply of a read, with so many bytes of room. */
function reply(command: CommandName, fields: Fields, room = 4_096): { stop: number; frame: Uint8Array; error: string } {
  const dispatcher = open(node, command, fields)
  const target = new Uint8Array(room + 10).fill(0xee)
  const stop = answerRead(dispatcher, COMMANDS[command], 77, target, 3, 3 + room, 0)
  expect([...target.subarray(0, 3), ...target.subarray(3 + room)].every((byte) => byte === 0xee)).toBe(true)
  return { stop, frame: target.slice(3, Math.max(3, stop)), error: dispatcher.error }
}

const PAST = formatDay(TODAY - 1)

test.each<[CommandName, Fields, unknown]>([
  ['PROPEXIST', { propertyId: ID }, { exists: true }],
  ['PROPEXIST', { propertyId: 'other' }, { exists: false }],
  ['PROPROOMEXIST', { propertyId: ID, roomType: 'double' }, { exists: true }],
  ['PROPROOMEXIST', { propertyId: ID, roomType: 'single' }, { exists: false }],
  ['PROPROOMEXIST', { propertyId: 'other', roomType: 'double' }, { exists: false }],
  ['PROPROOMLIST', { propertyId: ID }, { roomTypes: ['double', 'suite'] }],
  ['PROPROOMLIST', { propertyId: 'empty' }, { roomTypes: [] }],
  ['PROPROOMDATELIST', { propertyId: ID, roomType: 'double' }, { dates: ['2026-11-20', DATE] }],
  [
    'GETSEGMENTS',
    {},
    {
      segments: [
        { segment: 'alpine', propertyCount: 1 },
        { segment: 'coast', propertyCount: 1 },
      ],
    },
  ],
  ['GETCODECS', {}, { rateFeatures: SAMPLE_CODECS }],
  ['GETPROPROOMDAY', NIGHT, { propertyId: ID, date: DATE, availability: 7, finalPrice: 9_900, rateFeatures: [] }],
  [
    'GETPROPROOMDAY',
    { ...NIGHT, roomType: 'suite' },
    { propertyId: ID, date: DATE, availability: 0, finalPrice: 0, rateFeatures: ['wifi'] },
  ],
])('%s %o has the reply %o', (command, fields, result) => {
  const { frame, stop, error } = reply(command, fields)
  const context = { ...CONTEXT, codecs: node.codecs }
  expect(decodeReply(command, frame.subarray(FRAME_HEADER), context)).toEqual({ ok: true, result })
  // Exactly the frame of the encoder that clients use, and NO_ROOM with a byte less.
  expect(Buffer.from(frame).equals(encodeReply(command, 77, result as never, context))).toBe(true)
  expect(error).toBe('')
  expect(reply(command, fields, frame.length).stop).toBe(stop)
  expect(reply(command, fields, frame.length - 1).stop).toBe(NO_ROOM)
})

test.each<[CommandName, Fields, string]>([
  ['PROPROOMLIST', { propertyId: 'other' }, 'NOT_FOUND: property not found'],
  ['PROPROOMDATELIST', { propertyId: 'other', roomType: 'double' }, 'NOT_FOUND: property not found'],
  ['PROPROOMDATELIST', { propertyId: ID, roomType: 'single' }, 'NOT_FOUND: room type not found'],
  ['GETPROPROOMDAY', { ...NIGHT, propertyId: 'other' }, 'NOT_FOUND: property not found'],
  ['GETPROPROOMDAY', { ...NIGHT, roomType: 'single' }, 'NOT_FOUND: room type not found'],
  ['GETPROPROOMDAY', { ...NIGHT, date: '2026-11-22' }, 'NOT_FOUND: package not found'],
  ['GETPROPROOMDAY', { ...NIGHT, date: PAST }, `VALIDATION_ERROR: date ${PAST} is in the past, today is 2026-11-20`],
  ['GETPROPROOMDAY', { ...NIGHT, roomType: ' ' }, 'VALIDATION_ERROR: roomType must not be blank'],
  ['PROPROOMEXIST', { propertyId: ID, roomType: ' ' }, 'VALIDATION_ERROR: roomType must not be blank'],
  ['PROPROOMDATELIST', { propertyId: ID, roomType: ' ' }, 'VALIDATION_ERROR: roomType must not be blank'],
])('%s %o is refused', (command, fields, text) => {
  const { frame, error } = reply(command, fields)
  expect(error).toBe(text)
  expect(Buffer.from(frame).equals(encodeError(77, text))).toBe(true)
  expect(reply(command, fields, frame.length - 1).stop).toBe(NO_ROOM)
})

test.each<CommandName>(['PROPEXIST', 'PROPROOMEXIST', 'PROPROOMLIST'])(
  '%s refuses an invalid property id',
  (command) => {
    const fields = command === 'PROPROOMEXIST' ? { propertyId: '\t', roomType: 'double' } : { propertyId: '\t' }
    expect(reply(command, fields).error).toMatch(/^VALIDATION_ERROR: propertyId .* must be a UUID/)
  },
)

test('a malformed request is refused before anything is read', () => {
  const dispatcher = dispatcherOf(node)
  expect(openRequest(dispatcher, new Uint8Array(4), 2, 2)).toBeUndefined()
  expect(dispatcher.error).toBe('PARSE_ERROR: the payload is empty')
})

test('the clock decides what today is until the shard has a time of its own', () => {
  const later = createNodeInMemory(TODAY)
  expect(open(later, 'GETCODECS', {}).values.today).toBe(TODAY)
  noteShardDay(later.store.memory, TODAY - 2)
  expect(open(later, 'GETCODECS', {}).values.today).toBe(TODAY - 2)
})

// Options

test.each<[CommandName, Fields, unknown]>([
  ['PROPEXIST', { propertyId: ID }, { maxStalenessMs: undefined, minIndex: 0, isLinearizable: false }],
  ['PROPEXIST', { propertyId: ID, maxStalenessMs: 0 }, { maxStalenessMs: 0, minIndex: 0, isLinearizable: false }],
  [
    'SEARCHPROP',
    { segment: 'alpine', maxStalenessMs: 250, minIndex: 9, linearizable: 1 },
    { maxStalenessMs: 250, minIndex: 9, isLinearizable: true },
  ],
  ['GETSEGMENTS', { linearizable: 0 }, { maxStalenessMs: undefined, minIndex: 0, isLinearizable: false }],
  ['GETCODECS', {}, { maxStalenessMs: Number.POSITIVE_INFINITY, minIndex: 0, isLinearizable: false }],
  ['GETCODECS', { maxStalenessMs: 5 }, { maxStalenessMs: 5, minIndex: 0, isLinearizable: false }],
])('%s %o has the options %o', (command, fields, mode) => {
  expect(readModeOf(open(node, command, fields), COMMANDS[command])).toEqual(mode)
})

test('a write has no options of a read', () => {
  const dispatcher = open(node, 'DELPROP', { propertyId: ID })
  expect(minIndexOf(dispatcher, COMMANDS.DELPROP)).toBe(0)
  const mode = { maxStalenessMs: undefined, minIndex: 0, isLinearizable: false }
  expect(readModeOf(dispatcher, COMMANDS.DELPROP)).toEqual(mode)
})

test.each<[CommandName, Fields, boolean]>([
  ['DELPROP', { propertyId: ID }, false],
  ['DELPROP', { propertyId: ID, wantIndex: 0 }, false],
  ['DELPROP', { propertyId: ID, wantIndex: 1 }, true],
  ['PROPEXIST', { propertyId: ID }, false],
])('%s %o wants the index: %s', (command, fields, wanted) => {
  expect(wantsIndex(open(node, command, fields), COMMANDS[command])).toBe(wanted)
})

test('a read at an index is served from that index on', () => {
  const dispatcher = dispatcherOf(node)
  publish(node.store, node.index)
  const served = [0, node.index - 1, node.index, node.index + 1].map((index) => hasApplied(dispatcher, index))
  expect(served).toEqual([true, true, true, false])
  expect([0, 1].map((index) => hasApplied(dispatcherOf(old), index))).toEqual([true, false])
})

test('searches, commands that need memory, and commands of stays are known', () => {
  const all = Object.values(COMMANDS)
  const names = (of: (command: (typeof all)[number]) => boolean) => all.filter(of).map((command) => command.name)
  expect(names(isSearch)).toEqual(['SEARCHPROP', 'SEARCHAVAIL'])
  expect(names(needsMemory)).toEqual(['SETPROP', 'SETROOMPKG'])
  const stays = ['BOOKSTAY', 'HOLDSTAY', 'CONFIRMSTAY', 'RELEASESTAY', 'GETSTAY', 'LISTSTAYS']
  expect(names((command) => isBelowLevel(old.store.memory, command))).toEqual(stays)
  expect(names((command) => isBelowLevel(node.store.memory, command))).toEqual([])
})

test('stays begin with their feature level', () => {
  const rising = createNodeInMemory(TODAY)
  const below = [0, 1, 2].map((level) => {
    if (level > 0) raiseFeatureLevel(rising, level)
    return isBelowLevel(rising.store.memory, COMMANDS.GETSTAY)
  })
  expect(below).toEqual([true, true, false])
  expect([STAYS_LEVEL, FEATURE_LEVEL]).toEqual([2, 3])
})

// Replies of writes

const EXTRA = 15

test.each<[CommandName, number, unknown]>([
  ['SETPROP', 0, {}],
  ['SETROOMPKG', 1, { index: 1 }],
  ['SETROOMAVL', 0, { availability: 200 }],
  ['INCROOMAVL', 4_294_967_297, { availability: 200, index: 4_294_967_297 }],
  ['DECROOMAVL', 3, { availability: 200, index: 3 }],
  ['DELPROP', 0, {}],
])('the reply of %s at index %d is %o', (command, index, result) => {
  const frame = encodeReply(command, 5, result as never, CONTEXT)
  const target = new Uint8Array(frame.length + 4)
  const write = (end: number) => answerWrite(createReplyWriter(), COMMANDS[command], 5, 200, index, target, 4, end)
  expect(write(target.length)).toBe(target.length)
  expect(Buffer.from(target.subarray(4)).toString('hex')).toBe(Buffer.from(frame).toString('hex'))
  expect(write(target.length - 1)).toBe(NO_ROOM)
})

test.each([0, 1, 4_294_967_297])(
  'a frame of the replica gets the correlation id and, requested, the index %d',
  (index) => {
    const frame = encodeReply('SETROOMAVL', 0, { availability: 9 }, CONTEXT)
    const expected = encodeReply('SETROOMAVL', 70_000, { availability: 9, ...(index > 0 && { index }) }, CONTEXT)
    const target = new Uint8Array(100)
    const end = 4 + frame.length + (index > 0 ? EXTRA : 0)
    expect(answerFrame(frame, 70_000, index, target, 4, end)).toBe(end)
    expect(Buffer.from(target.subarray(4, end)).toString('hex')).toBe(Buffer.from(expected).toString('hex'))
    expect(target.subarray(end).every((byte) => byte === 0)).toBe(true)
    expect(answerFrame(frame, 70_000, index, target, 4, end - 1)).toBe(NO_ROOM)
  },
)

test('a read of stays is added to its own batch, and nothing of a refused one stays', () => {
  const batch = createProposals()
  const dispatcher = open(node, 'GETSTAY', { stayId: 's1' })
  expect(proposeStayRead(dispatcher, COMMANDS.GETSTAY, batch)).toBe('')
  expect(Buffer.from(batch.writer.bytes.subarray(8, batch.writer.at)).equals(Buffer.concat([u8(1), id('s1')]))).toBe(
    true,
  )
  const before = batch.writer.at
  open(node, 'LISTSTAYS', { propertyId: ID, limit: 0 })
  expect(proposeStayRead(dispatcher, COMMANDS.LISTSTAYS, batch)).toMatch(/limit must be/)
  expect(batch.writer.at).toBe(before)
})

// Long lists of segments

const SEGMENTS = 1_100
const SLICE_WORK = 1_000

test('a long list of segments takes several turns of at most 512 names each', () => {
  const large = createNodeInMemory(TODAY)
  const names = Array.from({ length: SEGMENTS }, (_, n) => `s${String(n).padStart(5, '0')}`)
  for (const [n, segment] of names.entries()) ask(large, 'SETPROP', { ...PROPERTY, propertyId: `p${n}`, segment })
  const dispatcher = open(large, 'GETSEGMENTS', {})
  const { searcher } = dispatcher
  const at = scratchOf(large.store.memory, 0)
  const read = () => answerRead(dispatcher, COMMANDS.GETSEGMENTS, 8, large.store.memory.u8, at, at + (1 << 20), 0)
  Object.assign(searcher, { sliceWork: Number.POSITIVE_INFINITY })
  const whole = read()
  Object.assign(searcher, { sliceWork: SLICE_WORK, workLeft: 0 })
  expect(read()).toBe(UNFINISHED)

  const listing = createListing(dispatcher)
  let turns = 0
  let stop: number
  do {
    turns++
    stop = continueSegments(dispatcher, 8, listing)
  } while (stop === UNFINISHED)

  const segments = names.map((segment) => ({ segment, propertyCount: 1 }))
  const expected = encodeReply('GETSEGMENTS', 8, { segments }, CONTEXT)
  expect(Buffer.from(listing.reply.bytes.subarray(0, stop)).equals(expected)).toBe(true)
  expect(whole - at).toBe(expected.length)
  // Names of deleted segments are examined, too. Each turn is half of the work of a turn of the thread.
  expect(turns).toBe(Math.ceil(listing.segments.next / 512) + Math.ceil(SEGMENTS / 512))
  expect(searcher.workLeft).toBe((-turns * SLICE_WORK) / 2)
})
