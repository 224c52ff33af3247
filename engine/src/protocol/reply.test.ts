import { decodeReply, fitErrorText } from '@vacancy/shared/wire'
import { expect, test } from 'vitest'
import {
  addBytes,
  addExtra,
  addText,
  addU8,
  addU32,
  beginReply,
  createReplyWriter,
  finishReply,
  growReply,
  REPLY_HEADER_BYTES,
  writeError,
} from './reply.ts'

const AT = 3
const ID = 0x89abcdef
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
const HEADER = 'ffefcdab89'
const SUCCESS = '0753554343455353'

/** Writes fields of every kind into memory that ends at `end`. @returns end of the frame and the memory */
function writeFields(end: number): { readonly stop: number; readonly bytes: Uint8Array } {
  const writer = createReplyWriter()
  const bytes = new Uint8Array(200).fill(0xee)
  beginReply(writer, bytes, AT, end, ID)
  addU8(writer, 0x12)
  addU32(writer, 0xfedcba98)
  addText(writer, 'é')
  addBytes(writer, 6, Uint8Array.of(1, 2, 3))
  addExtra(writer, 9, Uint8Array.of(4))
  return { stop: finishReply(writer), bytes }
}

test('a reply holds its fields in order, counted and with their lengths', () => {
  const { stop, bytes } = writeFields(200)

  const fields = [
    '010002' + '01000000' + '12',
    '020003' + '04000000' + '98badcfe',
    '030001' + '02000000' + 'c3a9',
    '040006' + '03000000' + '010203',
    'ffff09' + '01000000' + '04',
  ].join('')
  const body = `${SUCCESS}0500${fields}`
  const length = body.length / 2
  expect(hex(bytes.subarray(AT, stop))).toBe(`${HEADER}${length.toString(16).padStart(2, '0')}000000${body}`)
  expect(hex(bytes.subarray(0, AT))).toBe('eeeeee')
  expect(bytes.subarray(stop).every((byte) => byte === 0xee)).toBe(true)
})

test('a reply that fits exactly is written, and one byte less writes nothing beyond the end', () => {
  const whole = writeFields(200)
  const exact = writeFields(whole.stop)
  expect(exact.stop).toBe(whole.stop)
  expect(exact.bytes).toEqual(whole.bytes)
  for (let end = AT; end < whole.stop; end++) {
    const { stop, bytes } = writeFields(end)
    expect(stop).toBe(-1)
    expect(bytes.subarray(end).every((byte) => byte === 0xee)).toBe(true)
  }
})

test('more than 255 fields and more than 65,535 bytes are counted', () => {
  const writer = createReplyWriter()
  growReply(writer, 100_000)
  beginReply(writer, writer.bytes, 0, writer.end, 1)
  for (let i = 0; i < 300; i++) addU8(writer, i)
  addBytes(writer, 6, new Uint8Array(70_000))
  const stop = finishReply(writer)

  expect(stop).toBe(REPLY_HEADER_BYTES + 300 * 8 + 7 + 70_000)
  const view = new DataView(writer.bytes.buffer)
  expect(view.getUint32(5, true)).toBe(stop - 9)
  expect(view.getUint16(REPLY_HEADER_BYTES - 2, true)).toBe(301)
  expect(view.getUint16(REPLY_HEADER_BYTES + 299 * 8, true)).toBe(300)
})

test('memory of a reply grows to at least twice its size, and keeps what was written', () => {
  const writer = createReplyWriter()
  growReply(writer, 10)
  expect([writer.bytes.length, writer.end]).toEqual([10, 10])
  writer.bytes[9] = 7
  growReply(writer, 10)
  expect(writer.bytes).toHaveLength(10)
  growReply(writer, 11)
  expect([writer.bytes.length, writer.end, writer.bytes[9]]).toEqual([20, 20, 7])
  growReply(writer, 41)
  expect([writer.bytes.length, writer.end]).toEqual([41, 41])
})

test('an error reply holds its text in one field, or does not fit', () => {
  const text = 'NOT_FOUND: no property p1'
  const bytes = new Uint8Array(200).fill(0xee)
  const stop = writeError(bytes, AT, 200, ID, text)

  const body = `054552524f520100010001${text.length.toString(16)}000000${hex(Buffer.from(text))}`
  expect(hex(bytes.subarray(AT, stop))).toBe(`${HEADER}${(body.length / 2).toString(16)}000000${body}`)
  expect(hex(bytes.subarray(0, AT))).toBe('eeeeee')
  expect(bytes[stop]).toBe(0xee)
  expect(writeError(bytes, AT, stop, ID, text)).toBe(stop)
  expect(writeError(bytes, AT, stop - 1, ID, text)).toBe(-1)
})

test('a long error text is shortened as the protocol requires', () => {
  const text = `PARSE_ERROR: ${'x'.repeat(100_000)}`
  const bytes = new Uint8Array(200_000)
  const stop = writeError(bytes, 0, bytes.length, 1, text)
  const reply = decodeReply('SETPROP', bytes.subarray(9, stop), { baseYear: 2026, codecs: { names: [] } as never })
  expect(reply).toMatchObject({ ok: false, code: 'PARSE_ERROR' })
  expect(stop).toBe(9 + 6 + 2 + 7 + Buffer.byteLength(fitErrorText(text)))
})
