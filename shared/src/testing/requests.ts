/** Random requests over every command of the table. */

import fc from 'fast-check'
import { formatDay } from '../dates.ts'
import { COMMAND_LIST, type FieldSpec, type FieldValue, type RequestFields } from '../wire/commands.ts'
import type { StayLine } from '../wire/stay.ts'

const entry = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
  .filter((text) => !text.includes(',') && text.replace(/^ +| +$/g, '') === text)

const line: fc.Arbitrary<StayLine> = fc
  .record({
    propertyId: fc.string({ unit: 'grapheme', maxLength: 30 }),
    roomType: fc.string({ unit: 'grapheme', maxLength: 30 }),
    arrival: fc.integer({ min: 0, max: 40_000 }).map(formatDay),
    nights: fc.integer({ min: 0, max: 255 }),
    rooms: fc.integer({ min: 0, max: 255 }),
    uncounted: fc.boolean(),
  })
  .map(({ uncounted, ...rest }) => (uncounted ? { ...rest, uncounted } : rest))

function anyValue({ width, required }: FieldSpec): fc.Arbitrary<FieldValue> {
  switch (width) {
    case 'text':
      return fc.string({ unit: 'grapheme', minLength: required ? 0 : 1, maxLength: 300 })
    case 'list':
      return fc.uniqueArray(entry, { maxLength: 5 })
    case 'names':
      return fc.array(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }), { minLength: 1, maxLength: 16 })
    case 'u8s':
      return fc.array(fc.integer({ min: 0, max: 255 }), { minLength: 1, maxLength: 4 })
    case 'u64s':
      return fc.array(fc.maxSafeNat(), { minLength: 1, maxLength: 32 })
    case 'u8':
      return fc.integer({ min: 0, max: 255 })
    case 'u32':
      return fc.integer({ min: 0, max: 0xffff_ffff })
    case 'u64':
      return fc.oneof(fc.maxSafeNat(), fc.bigInt({ min: 1n << 53n, max: (1n << 64n) - 1n }))
    case 'lines':
      return fc.array(line, { minLength: 1, maxLength: 16 })
    case 'f64':
      return fc.double({ noNaN: true, noDefaultInfinity: true })
  }
}

export const anyRequest = fc.constantFrom(...COMMAND_LIST).chain((command) => {
  const values = Object.fromEntries(command.fields.map((field) => [field.name, anyValue(field)]))
  const requiredKeys = command.fields.filter(({ required }) => required).map(({ name }) => name)
  return fc.record({
    command: fc.constant(command.name),
    correlationId: fc.integer({ min: 0, max: 0xffff_ffff }),
    fields: fc.record(values, { requiredKeys }) as fc.Arbitrary<RequestFields>,
  })
})
