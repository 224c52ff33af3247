import { createCodecList, LIMITS, packPropertyId, parseDay } from '@vacancy/shared'
import { COMMANDS, type CommandName, encodeRequest, scanRequest } from '@vacancy/shared/wire'
import { expect, test } from 'vitest'
import { createValues, setToday, type Values } from '../protocol/values.ts'
import { createCommandWriter } from '../store/command.ts'
import { ANY_DAY } from '../store/stay-reads.ts'
import { FEATURE_LEVEL } from '../store/store.ts'
import { writeStay, writeStayRead } from './stay-requests.ts'

type Fields = { readonly [name: string]: unknown }

const FRAME_HEADER = 9
const TODAY = parseDay('2026-11-20') as number
const CODECS = createCodecList(['free_cancellation', 'breakfast', 'wifi'])
const TOKEN = new TextEncoder().encode('front desk')
const LINE = { propertyId: 'inn', roomType: 'double', arrival: '2026-11-21', nights: 2, rooms: 3 }
const CURSOR_ID = '00112233445566778899aabbccddeeff'

// The logged form, part by part (docs/design/consensus.md#log-commands).
const u8 = (value: number) => Uint8Array.of(value)
const u32 = (value: number) => new Uint8Array(Uint32Array.of(value).buffer)
const f64 = (value: number) => new Uint8Array(Float64Array.of(value).buffer)
const id = (text: string) => packPropertyId(text) as Uint8Array
const name = (text: string) => Buffer.concat([u8(Buffer.byteLength(text)), Buffer.from(text)])
const NO_ID = new Uint8Array(16)
const day = (text: string) => u32(parseDay(text) as number)

type Edit = (payload: Uint8Array) => void

function scanned(command: CommandName, fields: Fields, edit?: Edit): Values {
  const values = createValues(CODECS)
  setToday(values, TODAY)
  const payload = encodeRequest({ command, correlationId: 1, fields: fields as never }).slice(FRAME_HEADER)
  edit?.(payload)
  expect(scanRequest(values.scan, payload, 0, payload.length)).toBe('')
  return values
}

function written(command: CommandName, fields: Fields, edit?: Edit) {
  const values = scanned(command, fields, edit)
  const writer = createCommandWriter(16)
  if (COMMANDS[command].access === 'read') writeStayRead(values, COMMANDS[command], writer)
  else writeStay(values, COMMANDS[command], writer, TOKEN, FEATURE_LEVEL)
  return { fault: values.fault, hex: Buffer.from(writer.bytes.subarray(0, writer.at)).toString('hex') }
}

const hexOf = (parts: readonly Uint8Array[]) => Buffer.concat(parts).toString('hex')
const faultOf = (command: CommandName, fields: Fields, edit?: Edit) => written(command, fields, edit).fault

type Stay = {
  readonly flags?: number
  readonly seconds?: number
  readonly total?: number
  readonly features?: number
  readonly replaced?: Uint8Array
  readonly source?: string
  readonly lines?: readonly Uint8Array[]
  readonly index?: number
}

/** The logged form of the stay `s1`. */
function stay({ flags = 0, seconds = 0, total = 0, features = 0, replaced = NO_ID, ...rest }: Stay): string {
  const { source = 'front desk', lines = [], index } = rest
  const parts = [id('s1'), u8(flags), u32(seconds), f64(total), u32(features), replaced, name(source)]
  return hexOf([...parts, u8(lines.length), ...lines, ...(index === undefined ? [] : [f64(index)])])
}

function line({ propertyId, roomType, arrival, nights, rooms }: typeof LINE, flags = 0): Uint8Array {
  return Buffer.concat([id(propertyId), name(roomType), day(arrival), u8(nights), u8(rooms), u8(flags)])
}

test.each<[string, CommandName, Fields, Stay]>([
  ['a booking', 'BOOKSTAY', { lines: [LINE] }, { lines: [line(LINE)] }],
  [
    'the total at most',
    'BOOKSTAY',
    { lines: [LINE], maxTotal: 90_000 },
    { flags: 1, total: 90_000, lines: [line(LINE)] },
  ],
  ['a total of 0 at most', 'BOOKSTAY', { lines: [LINE], maxTotal: 0 }, { flags: 1, lines: [line(LINE)] }],
  [
    'the stay that is replaced',
    'BOOKSTAY',
    { lines: [LINE], replaces: 's0' },
    { flags: 2, replaced: id('s0'), lines: [line(LINE)] },
  ],
  [
    'rate features',
    'BOOKSTAY',
    { lines: [LINE], rateFeatures: ['wifi', 'breakfast'] },
    { features: 6, lines: [line(LINE)] },
  ],
  ['a source of its own', 'BOOKSTAY', { lines: [LINE], source: 'web' }, { source: 'web', lines: [line(LINE)] }],
  [
    'a source of 32 bytes',
    'BOOKSTAY',
    { lines: [LINE], source: 'x'.repeat(32) },
    { source: 'x'.repeat(32), lines: [line(LINE)] },
  ],
  ['a line that is not counted', 'BOOKSTAY', { lines: [{ ...LINE, uncounted: true }] }, { lines: [line(LINE, 1)] }],
  ['a hold of 900 s without seconds', 'HOLDSTAY', { lines: [LINE] }, { seconds: 900, lines: [line(LINE)] }],
  ['a hold of 10 s', 'HOLDSTAY', { lines: [LINE], seconds: 10 }, { seconds: 10, lines: [line(LINE)] }],
  ['a hold of a day', 'HOLDSTAY', { lines: [LINE], seconds: 86_400 }, { seconds: 86_400, lines: [line(LINE)] }],
  ['a confirmation', 'CONFIRMSTAY', {}, {}],
  ['a confirmation that takes rooms again', 'CONFIRMSTAY', { retake: 1, maxTotal: 5 }, { flags: 5, total: 5 }],
  ['a confirmation that does not', 'CONFIRMSTAY', { retake: 0 }, {}],
  ['a release', 'RELEASESTAY', {}, {}],
  ['a release with lines', 'RELEASESTAY', { lines: [LINE] }, { lines: [line(LINE)] }],
  ['a release that marks an unknown stay', 'RELEASESTAY', { void: 1 }, { flags: 8 }],
  [
    'a booking under a released id',
    'BOOKSTAY',
    { lines: [LINE], reinstate: 1 },
    { flags: 16, lines: [line(LINE)], index: 1 },
  ],
  [
    'a hold under an id that was released at an index',
    'HOLDSTAY',
    { lines: [LINE], reinstate: 1, releasedAt: 2 ** 40 },
    { flags: 16, seconds: 900, lines: [line(LINE)], index: 2 ** 40 },
  ],
  ['a booking under no released id', 'BOOKSTAY', { lines: [LINE], reinstate: 0 }, { lines: [line(LINE)] }],
  ['a release without a record', 'RELEASESTAY', { lines: [LINE], unrecorded: 1 }, { flags: 32, lines: [line(LINE)] }],
  ['a release of one booking', 'RELEASESTAY', { bookedAt: 2 ** 40 }, { flags: 64, index: 2 ** 40 }],
  ['a release that marks none, with lines', 'RELEASESTAY', { void: 0, lines: [LINE] }, { lines: [line(LINE)] }],
])('the log has %s', (_, command, fields, expected) => {
  expect(written(command, { stayId: 's1', ...fields })).toEqual({ fault: '', hex: stay(expected) })
})

test('the log has all 16 lines of a stay in their order', () => {
  const lines = Array.from({ length: LIMITS.stayLinesMax }, (_, n) => ({
    ...LINE,
    propertyId: `p${n}`,
    rooms: 255 - n,
  }))
  const expected = stay({ lines: lines.map((each) => line(each)) })
  expect(written('BOOKSTAY', { stayId: 's1', lines })).toEqual({ fault: '', hex: expected })
})

const ID_REASON = 'must be a UUID of version 1 to 5 or 7, or 1 to 14 printable ASCII characters'
const nights = (...of: number[]) => of.map((each) => ({ ...LINE, nights: each }))

test.each<[string, CommandName, Fields, string]>([
  ['an id of 15 characters', 'GETSTAY', { stayId: 'x'.repeat(15) }, `stayId ${ID_REASON}`],
  ['a replaced id of 15 characters', 'BOOKSTAY', { replaces: 'x'.repeat(15) }, `replaces ${ID_REASON}`],
  ['a stay that replaces itself', 'BOOKSTAY', { replaces: 's1' }, 'a stay cannot replace itself'],
  ['a hold of 9 s', 'HOLDSTAY', { seconds: 9 }, 'seconds must be 10 to 86400, got 9'],
  ['a hold longer than a day', 'HOLDSTAY', { seconds: 86_401 }, 'seconds must be 10 to 86400, got 86401'],
  ['a switch of 2', 'CONFIRMSTAY', { retake: 2 }, 'retake must be 0 or 1'],
  ['another switch of 2', 'RELEASESTAY', { void: 2 }, 'void must be 0 or 1'],
  ['an index without reinstate', 'BOOKSTAY', { lines: [LINE], releasedAt: 9 }, 'releasedAt needs reinstate'],
  ['an index of 1', 'HOLDSTAY', { lines: [LINE], reinstate: 1, releasedAt: 1 }, 'releasedAt must be above 1'],
  ['a booking at 0', 'RELEASESTAY', { bookedAt: 0 }, 'bookedAt must be above 0'],
  ['a booking of an unknown stay', 'RELEASESTAY', { void: 1, bookedAt: 9 }, 'void and bookedAt exclude each other'],
  ['no lines without a record', 'RELEASESTAY', { unrecorded: 1 }, 'unrecorded needs lines'],
  ['a total without retake', 'CONFIRMSTAY', { maxTotal: 1 }, 'maxTotal needs retake'],
  ['a total with retake 0', 'CONFIRMSTAY', { maxTotal: 1, retake: 0 }, 'maxTotal needs retake'],
  ['lines of an unknown stay', 'RELEASESTAY', { void: 1, lines: [LINE] }, 'void and lines exclude each other'],
  ['a source of 33 bytes', 'BOOKSTAY', { source: 'x'.repeat(33) }, 'source must be 1 to 32 bytes, got 33'],
  ['a blank source', 'BOOKSTAY', { source: '  ' }, 'source must not be blank'],
  ['no nights', 'BOOKSTAY', { lines: nights(0) }, 'line 0 must have 1 to 30 nights, got 0'],
  ['31 nights in a later line', 'BOOKSTAY', { lines: nights(30, 31) }, 'line 1 must have 1 to 30 nights, got 31'],
  [
    '257 nights',
    'BOOKSTAY',
    { lines: nights(...Array<number>(8).fill(30), 17) },
    'the lines have 257 nights; the maximum is 256',
  ],
  ['no rooms', 'BOOKSTAY', { lines: [{ ...LINE, rooms: 0 }] }, 'line 0 must have 1 to 255 rooms, got 0'],
  [
    'a line without a property',
    'BOOKSTAY',
    { lines: [LINE, { ...LINE, propertyId: '' }] },
    'line 1 has no valid property id',
  ],
  [
    'a line without a room type',
    'BOOKSTAY',
    { lines: [{ ...LINE, roomType: '' }] },
    'line 0 has a room type that must be 1 to 255 bytes, got 0',
  ],
  ['a limit of 0', 'LISTSTAYS', { limit: 0 }, 'limit must be 1 to 200, got 0'],
  ['a limit of 201', 'LISTSTAYS', { limit: 201 }, 'limit must be 1 to 200, got 201'],
  ['a cursor of another form', 'LISTSTAYS', { cursor: '17' }, 'Invalid cursor.'],
  ['a cursor with a short id', 'LISTSTAYS', { cursor: `17-${CURSOR_ID.slice(1)}` }, 'Invalid cursor.'],
  ['a cursor with something behind', 'LISTSTAYS', { cursor: `17-${CURSOR_ID}0` }, 'Invalid cursor.'],
  ['a cursor with something before', 'LISTSTAYS', { cursor: ` 17-${CURSOR_ID}` }, 'Invalid cursor.'],
])('refused: %s', (_, command, fields, reason) => {
  const needed = command === 'LISTSTAYS' ? { propertyId: 'inn' } : { stayId: 's1' }
  const lines = command === 'BOOKSTAY' || command === 'HOLDSTAY' ? { lines: [LINE] } : {}
  expect(faultOf(command, { ...needed, ...lines, ...fields })).toBe(`VALIDATION_ERROR: ${reason}`)
})

/** Changes one byte of the last line, counted from its end. */
const fromEnd =
  (back: number, value: number): Edit =>
  (payload) => {
    payload[payload.length - back] = value
  }

test.each<[string, Edit, string]>([
  ['unknown flags', fromEnd(1, 2), 'line 0 has unknown flags 2'],
  ['no date', fromEnd(4, 0x78), 'line 0 has an arrival that is not a date of the form YYYY-MM-DD'],
  ['a room type longer than the line', fromEnd(20, 7), 'line 0 is not one line'],
  ['a room type shorter than the line', fromEnd(20, 5), 'line 0 is not one line'],
])('a line with %s is refused', (_, edit, reason) => {
  expect(faultOf('BOOKSTAY', { stayId: 's1', lines: [LINE] }, edit)).toBe(`VALIDATION_ERROR: ${reason}`)
})

const list = (roomType: string, date: Uint8Array, limit: number, index: number, cursorId: string) =>
  hexOf([u8(2), id('inn'), name(roomType), date, u8(limit), f64(index), Buffer.from(cursorId, 'hex')])

const NO_CURSOR = '00'.repeat(16)

test.each<[string, Fields, string]>([
  ['of a property', {}, list('', u32(ANY_DAY), 200, 0, NO_CURSOR)],
  ['of a room type', { roomType: 'double' }, list('double', u32(ANY_DAY), 200, 0, NO_CURSOR)],
  ['of a night', { date: '2026-12-24' }, list('', day('2026-12-24'), 200, 0, NO_CURSOR)],
  ['of one', { limit: 1 }, list('', u32(ANY_DAY), 1, 0, NO_CURSOR)],
  ['of 200', { limit: 200 }, list('', u32(ANY_DAY), 200, 0, NO_CURSOR)],
  ['behind a cursor', { cursor: `17-${CURSOR_ID}` }, list('', u32(ANY_DAY), 200, 17, CURSOR_ID)],
  [
    'behind a cursor with an index of 16 digits',
    { cursor: `9007199254740991-${CURSOR_ID}` },
    list('', u32(ANY_DAY), 200, 9_007_199_254_740_991, CURSOR_ID),
  ],
])('the replica receives the request for a list %s', (_, fields, hex) => {
  expect(written('LISTSTAYS', { propertyId: 'inn', ...fields })).toEqual({ fault: '', hex })
})
