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
