import { formatDay, packPropertyId, parseDay } from '@vacancy/shared'
import { COMMANDS, type CommandName, decodeReply, encodeError, encodeReply, encodeRequest } from '@vacancy/shared/wire'
import { beforeAll, expect, test } from 'vitest'
import { GIVEN, KIND } from '../store/command.ts'
import {
  ask,
  createNodeInMemory,
  type NodeInMemory,
  raiseFeatureLevel,
  SAMPLE_CODECS,
} from '../testing/node-in-memory.ts'
import { answerRead, type Dispatcher, NO_ROOM, openRequest, proposeWrite } from './dispatch.ts'

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
