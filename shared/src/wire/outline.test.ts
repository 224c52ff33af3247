import fc from 'fast-check'
import { expect, test } from 'vitest'
import { law } from '../testing/law.ts'
import { anyRequest } from '../testing/requests.ts'
import { outlineFrame } from './outline.ts'
import { encodeRequest } from './request.ts'

test('the parts cover any bytes in order, without gaps', () => {
  const frame = anyRequest.map((request) => encodeRequest({ ...request, envelope: { segment: 's', write: false } }))
  const cut = fc.tuple(frame, fc.nat()).map(([bytes, n]) => bytes.subarray(0, n % (bytes.length + 1)))
  const bent = fc.tuple(frame, fc.nat(), fc.nat(255)).map(([bytes, n, to]) => bytes.with(n % bytes.length, to))

  law(
    [fc.oneof(frame, cut, bent, fc.uint8Array({ maxLength: 64 }))],
    (bytes) => {
      const parts = outlineFrame(bytes)
      let at = 0
      for (const part of parts) {
        expect(part.from).toBe(at)
        expect(part.to).toBeGreaterThan(part.from)
        at = part.to
      }
      expect(at).toBe(bytes.length)
    },
    500,
  )
})

test('a frame without a name has no part for it', () => {
  const bytes = Uint8Array.of(255, 7, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0)

  const descriptions = outlineFrame(bytes).map((part) => part.description)

  expect(descriptions).toEqual(['magic byte', 'correlation id', 'payload length', 'name length', 'number of fields'])
})

test('every field of a request is named, with its value', () => {
  const bytes = encodeRequest({ command: 'SEARCHPROP', correlationId: 7, fields: { segment: 'Graz', stars: 4 } })

  const parts = outlineFrame(bytes).map(({ description, value }) =>
    value === '' ? description : `${description} = ${value}`,
  )

  expect(parts).toEqual([
    'magic byte',
    'correlation id = 7',
    'payload length = 32',
    'name length = 10',
    'command = SEARCHPROP',
    'number of fields = 2',
    'segment: id = 0x0001',
    'segment: type = text',
    'segment: length = 4',
    'segment = Graz',
    'stars: id = 0x0004',
    'stars: type = small number',
    'stars: length = 1',
    'stars = 4',
  ])
})

/** The parts of a frame as `from–to description = value`. */
function partsOf(hex: string): string[] {
  const bytes = Uint8Array.from(hex.replaceAll(/\s/g, '').match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
  return outlineFrame(bytes).map(({ from, to, description, value }) => `${from}–${to} ${description} = ${value}`)
}

const HEAD = ['0–1 magic byte = ', '1–5 correlation id = 7', '5–9 payload length = 3']

test.each<[string, string, string[]]>([
  ['nothing', '', []],
  ['less than a header', 'ff070000000300', ['0–7 not a frame: shorter than a header = ']],
  ['a header of another byte', 'fd0700000003000000', ['0–9 not a frame: no magic byte = ']],
  ['a header alone', 'ff0700000003000000', HEAD],
  ['a name that is cut', 'ff0700000003000000 05 41', [...HEAD, '9–10 name length = 5', '10–11 truncated = ']],
  ['no field count', 'ff0700000003000000 01 41 00', [...HEAD, '9–10 name length = 1', '10–12 truncated = ']],
  ['half an envelope', 'fe0700000003000000', ['0–9 truncated envelope = ']],
  [
    'bytes after the last field',
    'ff0700000003000000 01 41 0000 0102',
    [
      ...HEAD,
      '9–10 name length = 1',
      '10–11 status = A',
      '11–13 number of fields = 0',
      '13–15 after the last field = ',
    ],
  ],
  [
    'a field header that is cut',
    'ff0700000003000000 00 0100 0100 01 000000',
    [...HEAD, '9–10 name length = 0', '10–12 number of fields = 1', '12–18 truncated = '],
  ],
  [
    'data that is cut',
    'ff0700000003000000 00 0100 0100 01 02000000 41',
    [
      ...HEAD,
      '9–10 name length = 0',
      '10–12 number of fields = 1',
      '12–14 field 1: id = 0x0001',
      '14–15 field 1: type = text',
      '15–19 field 1: length = 2',
      '19–20 truncated = ',
    ],
  ],
])('%s is described as far as it can be read', (_, hex, parts) => {
  expect(partsOf(hex)).toEqual(parts)
})

test.each([
  ['text', '0100 01 03000000 410042', 'text', 'A·B'],
  ['a number of one byte', '0100 02 01000000 ff', 'small number', '255'],
  ['a number of two bytes', '0100 02 02000000 0102', 'small number', '513'],
  ['a number of four bytes', '0100 03 04000000 010000ff', 'number', '4278190081'],
  ['a number of eight bytes', '0100 03 08000000 ffffffffffffffff', 'number', '18446744073709551615'],
  ['a number of three bytes', '0100 03 03000000 010203', 'number', ''],
  ['days', '0100 08 01000000 ff', 'days', ''],
  ['codecs', '0100 09 01000000 41', 'codecs', ''],
  ['records', '0100 0a 01000000 41', 'records', ''],
  ['another type', '0100 0b 01000000 41', '11', ''],
])('%s in a field has its type and value', (_, field, type, value) => {
  const parts = partsOf(`ff0700000003000000 00 0100 ${field}`)

  expect(parts[6]).toBe(`14–15 field 1: type = ${type}`)
  expect(parts.at(-1)?.replace(/^\S+ /, '')).toBe(`field 1 = ${value}`)
})

test('a position is a fraction, a line of a stay has the name of its field, and an envelope is one part', () => {
  const line = { propertyId: 'p', roomType: 'r', arrival: '2026-12-24', nights: 1, rooms: 1 }
  const search = encodeRequest({
    command: 'SEARCHPROP',
    correlationId: 1,
    fields: { segment: 's', latitude: -1.5 },
    envelope: { segment: 'Graz', write: false },
  })
  const book = encodeRequest({ command: 'BOOKSTAY', correlationId: 1, fields: { stayId: 's', lines: [line, line] } })

  const [envelope, ...parts] = outlineFrame(search)
  // FE, four bytes of length, one of the segment, the segment and the flag.
  expect(envelope).toMatchObject({ from: 0, to: 11, description: 'envelope for routers', field: '' })
  expect(parts.at(-1)).toMatchObject({ description: 'latitude', field: 'latitude', value: '-1.5' })
  expect(outlineFrame(book).filter(({ description }) => description === 'lines: id')).toHaveLength(2)
})

test('a value is shown to its 120th character', () => {
  const shownOf = (segment: string) =>
    outlineFrame(encodeRequest({ command: 'SEARCHPROP', correlationId: 1, fields: { segment } })).at(-1)?.value

  expect(shownOf('s'.repeat(120))).toBe('s'.repeat(120))
  expect(shownOf('s'.repeat(121))).toBe(`${'s'.repeat(120)}…`)
})
