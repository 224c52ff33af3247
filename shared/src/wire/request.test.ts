import { expect, test } from 'vitest'
import { law } from '../testing/law.ts'
import { anyRequest } from '../testing/requests.ts'
import { bytesOfHex } from '../testing/vectors.ts'
import type { CommandName, RequestFields } from './commands.ts'
import { decodeRequest, encodeRequest } from './request.ts'
import { FRAME_HEADER_BYTES } from './routing.ts'

test('a request is decoded as it was encoded', () => {
  law(
    [anyRequest],
    ({ command, correlationId, fields }) => {
      const frame = encodeRequest({ command, correlationId, fields })

      expect(new DataView(frame.buffer, frame.byteOffset).getUint32(1, true)).toBe(correlationId)
      expect(decodeRequest(frame.subarray(FRAME_HEADER_BYTES))).toEqual({ command, fields: { ...fields } })
    },
    1000,
  )
})

test('a field that is undefined is left out', () => {
  const lean = encodeRequest({ command: 'SEARCHPROP', correlationId: 1, fields: { segment: 's' } })

  expect(
    encodeRequest({
      command: 'SEARCHPROP',
      correlationId: 1,
      fields: { segment: 's', area: undefined, limit: undefined },
    }),
  ).toEqual(lean)
})

const STAY = { segment: 's', roomType: 'suite', dates: ['2026-12-24'] }
const LINE = { propertyId: 'p', roomType: 'suite', arrival: '2026-12-24', nights: 1, rooms: 1 }
const lines = (count: number) => Array.from({ length: count }, () => LINE)
const NIGHT = { propertyId: 'p', roomType: 'suite', date: '2026-12-24' }

test.each<[string, CommandName, RequestFields, string]>([
  ['a missing field', 'SEARCHPROP', {}, 'segment is required'],
  ['an unknown field', 'SEARCHPROP', { segment: 's', colour: 'red' }, 'SEARCHPROP has no field colour'],
  ['a number for text', 'SEARCHPROP', { segment: 7 }, 'segment must be text'],
  ['text for a list', 'SEARCHAVAIL', { ...STAY, dates: '2026-12-24' }, 'dates must be a list'],
  ['a comma in an entry', 'SEARCHAVAIL', { ...STAY, amenities: ['a,b'] }, 'must not be empty or contain a comma'],
  ['an empty entry', 'SEARCHAVAIL', { ...STAY, amenities: [''] }, 'must not be empty or contain a comma'],
  ['a u8 above 255', 'SETROOMAVL', { ...NIGHT, amount: 256 }, 'amount must be a whole number, 0 to 255'],
  ['a negative u8', 'SETROOMAVL', { ...NIGHT, amount: -1 }, 'amount must be a whole number, 0 to 255'],
  ['half a room', 'SETROOMAVL', { ...NIGHT, amount: 0.5 }, 'amount must be a whole number'],
  ['a price above u32', 'SETROOMPKG', { ...NIGHT, finalPrice: 2 ** 32 }, 'finalPrice must be a whole number'],
  ['an inexact u64', 'SEARCHAVAIL', { ...STAY, limit: 2 ** 53 }, 'limit must be a whole number'],
  ['a negative u64', 'SEARCHAVAIL', { ...STAY, limit: -1n }, 'limit must be a whole number'],
  ['a u64 of 65 bits', 'SEARCHAVAIL', { ...STAY, limit: 1n << 64n }, 'limit must be a whole number'],
  ['a position that is no number', 'SEARCHPROP', { segment: 's', latitude: Number.NaN }, 'must be a finite number'],
  [
    'an endless position',
    'SEARCHPROP',
    { segment: 's', latitude: Number.POSITIVE_INFINITY },
    'must be a finite number',
  ],
  ['a position as text', 'SEARCHPROP', { segment: 's', latitude: '1' }, 'latitude must be a finite number'],
  ['a number in a list', 'SEARCHAVAIL', { ...STAY, amenities: ['a', 1] } as never, 'must be a list of texts'],
  // Name, field count and field header take 20 bytes.
  ['more than 64 KiB', 'SEARCHPROP', { segment: 's'.repeat(65_517) }, 'frame of 65537 bytes exceeds 65536'],
  ['a 17th line', 'BOOKSTAY', { stayId: 's', lines: lines(17) }, 'lines must be a list of 1 to 16 lines'],
  ['no line', 'BOOKSTAY', { stayId: 's', lines: [] }, 'lines must be a list of 1 to 16 lines'],
  ['17 lines to release', 'RELEASESTAY', { stayId: 's', lines: lines(17) }, 'lines must be a list of 0 to 16 lines'],
  [
    'a line that is no list',
    'BOOKSTAY',
    { stayId: 's', lines: LINE } as never,
    'lines must be a list of 1 to 16 lines',
  ],
  [
    'a second line of 256 nights',
    'BOOKSTAY',
    { stayId: 's', lines: [LINE, { ...LINE, nights: 256 }] },
    'line 1 nights',
  ],
])('%s is refused before it is sent', (_, command, fields, message) => {
  expect(() => encodeRequest({ command, correlationId: 1, fields })).toThrow(
    expect.objectContaining({ code: 'validation_error', message: expect.stringContaining(message) }),
  )
})

/** A request of one or more fields: id, type, data in hex. */
function payloadOf(name: string, ...fields: readonly (readonly [number, number, string])[]): Uint8Array {
  const parts = fields.map(([id, type, hex]) => [id & 0xff, id >> 8, type, hex.length / 2, 0, 0, 0, ...bytesOfHex(hex)])
  return Uint8Array.of(name.length, ...Buffer.from(name), fields.length, 0, ...parts.flat())
}

const RECORD = '01700172323032362d31322d3234010100'

test.each([
  ['nothing', new Uint8Array(), 'parse_error', 'the payload is empty'],
  ['an unknown command', payloadOf('X'), 'validation_error', 'unknown command X'],
  ['a missing field', payloadOf('PROPEXIST'), 'validation_error', 'propertyId is required'],
  ['text that is not UTF-8', payloadOf('PROPEXIST', [1, 1, 'ff']), 'validation_error', 'propertyId is not valid UTF-8'],
  [
    'a position that is no number',
    payloadOf('SEARCHPROP', [1, 1, '73'], [8, 3, '000000000000f87f']),
    'validation_error',
    'latitude must be a finite number',
  ],
  [
    'two lines in one field',
    payloadOf('BOOKSTAY', [1, 1, '73'], [16, 10, RECORD], [17, 10, RECORD + RECORD]),
    'validation_error',
    'lines 1 is not one line',
  ],
  ['an empty line', payloadOf('BOOKSTAY', [1, 1, '73'], [16, 10, '']), 'validation_error', 'lines 0 is not one line'],
])('a request of %s is refused as the engine does it', (_, payload, code, reason) => {
  expect(() => decodeRequest(payload)).toThrow(expect.objectContaining({ code, fields: { reason } }))
})

test('a refused request leaves no trace in the next', () => {
  const before = encodeRequest({ command: 'PROPEXIST', correlationId: 1, fields: { propertyId: 'p' } })
  expect(() => encodeRequest({ command: 'SETROOMAVL', correlationId: 2, fields: { ...NIGHT, amount: 999 } })).toThrow()

  expect(encodeRequest({ command: 'PROPEXIST', correlationId: 1, fields: { propertyId: 'p' } })).toEqual(before)
})

test('entries of a list lose blanks around them, empty ones and repeats', () => {
  const frame = encodeRequest({
    command: 'SEARCHPROP',
    correlationId: 1,
    fields: { segment: 's', area: ' a ,,b,  ,a, b' },
  })
  // Field 2, the area, becomes field 6, the amenities: the same bytes are a list there.
  frame[frame.length - 7 - 14] = 6

  expect(decodeRequest(frame.subarray(FRAME_HEADER_BYTES)).fields).toEqual({ segment: 's', amenities: ['a', 'b'] })
})

test('a byte order mark is a character like any other', () => {
  const frame = encodeRequest({ command: 'SEARCHPROP', correlationId: 1, fields: { segment: '\ufeffs' } })

  expect(decodeRequest(frame.subarray(FRAME_HEADER_BYTES)).fields).toEqual({ segment: '\ufeffs' })
})
