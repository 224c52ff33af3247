import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createCodecList } from '../codecs.ts'
import { formatDay, parseDay } from '../dates.ts'
import { VacancyError } from '../errors.ts'
import { law } from '../testing/law.ts'
import { bytesOfHex, replyVectors } from '../testing/vectors.ts'
import type { CommandName } from './commands.ts'
import { decodeReply, encodeError, encodeReply, type ReplyContext, type ReplyResult } from './reply.ts'
import { FRAME_HEADER_BYTES } from './routing.ts'

const codecs = createCodecList(replyVectors.codecLists['codecs24'] ?? [])
const context: ReplyContext = { baseYear: 2026, codecs }
const FIRST_DAY = parseDay('2026-01-01') as number

const text = fc.string({ unit: 'grapheme', maxLength: 40 })
const u8 = fc.integer({ min: 0, max: 255 })
const u32 = fc.integer({ min: 0, max: 0xffff_ffff })
const u64 = fc.oneof(fc.maxSafeNat(), fc.bigInt({ min: 1n << 53n, max: (1n << 64n) - 1n }))
const id = fc.oneof(fc.constantFrom('p', 'hotel_123', 'abcdefghijklmn'), fc.uuid({ version: [1, 2, 3, 4, 5, 7] }))
const date = fc.nat(730).map((offset) => formatDay(FIRST_DAY + offset))
const features = fc.subarray([...codecs.names])
const night = fc.record({ date, availability: u8, finalPrice: u32, rateFeatures: features })
const explain = fc.record({ rowsExamined: u32, waitingMicros: u32, searchingMicros: u32, appliedIndex: u64 })
const stays = fc.integer({ min: 1, max: 4 }).chain((numDays) => {
  const days = fc.array(night, { minLength: numDays, maxLength: numDays })
  const properties = fc.array(fc.record({ propertyId: id, days }), { maxLength: 5 })
  return fc.record({ numDays: fc.constant(numDays), properties, explain }, { requiredKeys: ['numDays', 'properties'] })
})

const RESULTS: { readonly [name in CommandName]?: fc.Arbitrary<ReplyResult> } = {
  GETCODECS: fc.constant({ rateFeatures: [...codecs.names] }),
  GETSEGMENTS: fc.record({ segments: fc.array(fc.record({ segment: text, propertyCount: u32 }), { maxLength: 5 }) }),
  SETPROP: fc.record({ index: u64 }, { requiredKeys: [] }),
  SEARCHPROP: fc.record({ propertyIds: fc.array(id, { maxLength: 5 }), explain }, { requiredKeys: ['propertyIds'] }),
  SEARCHAVAIL: stays,
  DECROOMAVL: fc.record({ availability: u8, index: u64 }, { requiredKeys: ['availability'] }),
  PROPEXIST: fc.record({ exists: fc.boolean() }),
  PROPROOMLIST: fc.record({ roomTypes: fc.array(text, { maxLength: 5 }) }),
  PROPROOMDATELIST: fc.record({ dates: fc.array(date, { maxLength: 5 }) }),
  GETPROPROOMDAY: fc.tuple(id, night).map(([propertyId, day]) => ({ propertyId, ...day })),
}

function payloadOf(command: CommandName, result: ReplyResult): Uint8Array {
  return encodeReply(command, 1, result as never, context).subarray(FRAME_HEADER_BYTES)
}

test.each(Object.entries(RESULTS) as [CommandName, fc.Arbitrary<ReplyResult>][])(
  'a reply to %s is decoded as it was encoded',
  (command, results) => {
    law([results], (result) => {
      expect(decodeReply(command, payloadOf(command, result), context)).toEqual({ ok: true, result })
    })
  },
)

test('any bytes decode, or fail as a malformed reply', () => {
  const commands = Object.keys(RESULTS) as CommandName[]
  const vector = fc.constantFrom(...replyVectors.cases.filter(({ unframed }) => !unframed))
  const edits = fc.array(fc.tuple(fc.nat(4000), u8), { maxLength: 3 })
  law(
    [vector, edits, fc.nat(4000), fc.constantFrom(...commands), fc.uint8Array({ maxLength: 60 })],
    ({ hex, json }, changes, cut, other, random) => {
      const payload = bytesOfHex(hex).slice(FRAME_HEADER_BYTES)
      for (const [place, byte] of changes) payload[place % payload.length] = byte
      const tries: [CommandName, Uint8Array][] = [
        [json.command, payload],
        [json.command, payload.subarray(0, cut % payload.length)],
        [other, payload],
        [other, random],
      ]
      for (const [command, bytes] of tries) {
        try {
          decodeReply(command, bytes, context)
        } catch (error) {
          if (!(error instanceof VacancyError) || error.code !== 'malformed_reply') throw error
        }
      }
    },
    2000,
  )
})

test.each<[string, CommandName, string]>([
  ['no payload', 'SETPROP', ''],
  ['an unknown status', 'SETPROP', '07534c434345535300 00'],
  ['no field count', 'SETPROP', '0753554343455353 00'],
  ['a field too many', 'SETPROP', '0753554343455353 0100 0100 02 01000000 01'],
  ['a byte too many', 'SETPROP', '0753554343455353 0000 00'],
  ['a field too few', 'DECROOMAVL', '0753554343455353 0000'],
  ['a wrong id', 'DECROOMAVL', '0753554343455353 0100 0200 02 01000000 01'],
  ['a wrong type', 'DECROOMAVL', '0753554343455353 0100 0100 03 01000000 01'],
  ['a wrong width', 'DECROOMAVL', '0753554343455353 0100 0100 02 02000000 0100'],
  ['a field past the end', 'DECROOMAVL', '0753554343455353 0100 0100 02 ffffffff 01'],
  ['an error without a text', 'SETPROP', '054552524f52 0000'],
  ['a text that is not UTF-8', 'PROPROOMLIST', '0753554343455353 0100 0100 01 02000000 c328'],
  ['a frame for LOGIN', 'LOGIN', '0753554343455353 0000'],
])('a reply with %s is malformed', (_, command, hex) => {
  expect(() => decodeReply(command, bytesOfHex(hex.replaceAll(' ', '')), context)).toThrow(
    expect.objectContaining({ code: 'malformed_reply', fields: expect.objectContaining({ command }) }),
  )
})

test('a date that does not exist makes a reply malformed', () => {
  const day = { date: '2026-03-01', availability: 1, finalPrice: 1, rateFeatures: [] }
  const payload = payloadOf('SEARCHAVAIL', { numDays: 1, properties: [{ propertyId: 'p', days: [day] }] })
  // 2026-02-30: month − 1 is 1, day − 1 is 29.
  payload[payload.length - 11] = (1 << 5) | 29

  expect(() => decodeReply('SEARCHAVAIL', payload, context)).toThrow('a date that does not exist')
})

test('a feature that the codec list does not name makes a reply malformed, not a wrong offer', () => {
  const payload = payloadOf('GETPROPROOMDAY', {
    propertyId: 'p',
    date: '2026-03-01',
    availability: 1,
    finalPrice: 1,
    rateFeatures: ['feature_24'],
  })

  for (const other of [createCodecList(['wifi']), undefined]) {
    expect(() => decodeReply('GETPROPROOMDAY', payload, { baseYear: 2026, codecs: other })).toThrow('codec list')
  }
})

test('a packed id in the reply to GETPROPROOMDAY is accepted as well', () => {
  const payload = bytesOfHex(
    '0753554343455353 0500 0100 01 10000000 73315f736567f0315f70310000000000 0200 01 0a000000 323032362d31322d3234 0300 02 01000000 0a 0400 03 04000000 c7000000 0500 03 04000000 00000000'.replaceAll(
      ' ',
      '',
    ),
  )

  expect(decodeReply('GETPROPROOMDAY', payload, context)).toMatchObject({
    ok: true,
    result: { propertyId: 's1_seg1_p1' },
  })
})

test('an error text is cut at its first colon', () => {
  const decode = (text: string) => decodeReply('SETPROP', encodeError(1, text).subarray(FRAME_HEADER_BYTES), context)

  expect(decode('NOT_FOUND: property not found')).toEqual({
    ok: false,
    code: 'NOT_FOUND',
    message: 'property not found',
  })
  expect(decode('429')).toEqual({ ok: false, code: '429', message: '' })
  expect(decode('NOT_FOUND: a:"b"\\')).toEqual({ ok: false, code: 'NOT_FOUND', message: 'a??b??' })
})

test('a search reply with as many properties as fit keeps the ids of its fields', () => {
  const propertyIds = Array.from({ length: 65_535 }, (_, i) => `p${i}`)
  const full = decodeReply('SEARCHPROP', payloadOf('SEARCHPROP', { propertyIds }), context)
  const reply = { propertyIds: propertyIds.slice(0, 65_279), explain: explained }
  const explainedReply = decodeReply('SEARCHPROP', payloadOf('SEARCHPROP', reply), context)

  expect(full.ok && full.result.propertyIds).toHaveLength(65_535)
  expect(explainedReply).toEqual({ ok: true, result: reply })
})

const explained = { rowsExamined: 7, waitingMicros: 1, searchingMicros: 2, appliedIndex: 3 }
