/** Random requests over every command of the table. */

import fc from 'fast-check'
import { COMMAND_LIST, type FieldSpec, type FieldValue, type RequestFields } from '../wire/commands.ts'

const entry = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
  .filter((text) => !text.includes(',') && text.replace(/^ +| +$/g, '') === text)

function anyValue({ width, required }: FieldSpec): fc.Arbitrary<FieldValue> {
  switch (width) {
    case 'text':
      return fc.string({ unit: 'grapheme', minLength: required ? 0 : 1, maxLength: 300 })
    case 'list':
      return fc.uniqueArray(entry, { maxLength: 5 })
    case 'u8':
      return fc.integer({ min: 0, max: 255 })
    case 'u32':
      return fc.integer({ min: 0, max: 0xffff_ffff })
    case 'u64':
      return fc.oneof(fc.maxSafeNat(), fc.bigInt({ min: 1n << 53n, max: (1n << 64n) - 1n }))
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
