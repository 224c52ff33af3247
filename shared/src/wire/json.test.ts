import fc from 'fast-check'
import { expect, test } from 'vitest'
import { law } from '../testing/law.ts'
import { anyRequest } from '../testing/requests.ts'
import { fieldsFromJson, fieldsToJson } from './json.ts'
import { outlineFrame } from './outline.ts'
import { decodeRequest, encodeRequest } from './request.ts'
import { FRAME_HEADER_BYTES } from './routing.ts'

test('fields survive JSON and the wire, for every command of the table', () => {
  law(
    [anyRequest],
    ({ command, correlationId, fields }) => {
      const text = JSON.stringify(fieldsToJson(command, fields))
      const again = fieldsFromJson(command, JSON.parse(text))
      const frame = encodeRequest({ command, correlationId, fields: again })

      // JSON has a single zero.
      const plain = Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, value === 0 ? 0 : value]))
      expect(frame).toEqual(encodeRequest({ command, correlationId, fields: plain }))
      const decoded = decodeRequest(frame.subarray(FRAME_HEADER_BYTES))
      expect(decoded.command).toBe(command)
      expect(JSON.stringify(fieldsToJson(command, decoded.fields))).toBe(text)
    },
    1000,
  )
})

test('any JSON is accepted, or refused with the invalid field', () => {
  law(
    [fc.constantFrom('SEARCHAVAIL', 'SETPROP', 'DELPROP', 'GETCODECS'), fc.jsonValue()],
    (command, value) => {
      try {
        fieldsFromJson(command as 'DELPROP', value)
      } catch (error) {
        expect((error as { code: unknown }).code).toBe('validation_error')
      }
    },
    500,
  )
})

test('numbers beyond 2^53 are decimal text, and only those of 64 bits', () => {
  expect(fieldsFromJson('SEARCHPROP', { segment: 's', limit: '18446744073709551615' })).toEqual({
    segment: 's',
    limit: 2n ** 64n - 1n,
  })
  expect(fieldsFromJson('SEARCHPROP', { segment: 's', limit: '7' })).toEqual({ segment: 's', limit: 7 })
  expect(fieldsToJson('SEARCHPROP', { segment: 's', limit: 2n ** 60n })).toEqual({
    segment: 's',
    limit: `${2n ** 60n}`,
  })
  expect(() => fieldsFromJson('SEARCHPROP', { segment: 's', limit: '18446744073709551616' })).toThrow(/limit/)
  expect(() => fieldsFromJson('SEARCHPROP', { segment: 's', stars: '3' })).toThrow(/stars must be a whole number/)
})

test('unknown, missing and null fields', () => {
  expect(() => fieldsFromJson('SEARCHPROP', { segment: 's', colour: 'red' })).toThrow(/SEARCHPROP has no field colour/)
  expect(() => fieldsFromJson('SEARCHPROP', { segment: 's', __proto__: null, toString: 'x' })).toThrow(/toString/)
  expect(() => fieldsFromJson('SEARCHPROP', {})).toThrow(/segment is required/)
  expect(fieldsFromJson('SEARCHPROP', { segment: 's', area: null })).toEqual({ segment: 's' })
  expect(() => fieldsFromJson('SEARCHPROP', [])).toThrow(/must be an object/)
})

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
