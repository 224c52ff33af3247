import { expect, test } from 'vitest'
import { z } from 'zod'
import { unknownField, unknownFieldText } from './unknown-field.ts'

const STAY = z.object({ arrival: z.string(), nights: z.int().optional() })
const DATES = z.object({ dates: z.array(z.string()) })

test.each<[string, z.ZodType, unknown, string]>([
  ['of an object', STAY, { arrival: '', night: 1 }, 'night: is not a known field; did you mean nights?'],
  [
    'at any depth',
    z.object({ stays: z.array(STAY) }),
    { stays: [{ arival: '' }] },
    'stays.0.arival: is not a known field; did you mean arrival?',
  ],
  ['of the form that is meant', z.union([STAY, DATES]), { arrival: '', dats: [] }, 'dats: is not a known field'],
  ['of a value of no form', z.union([STAY, DATES]), { dats: [] }, 'dats: is not a known field; did you mean dates?'],
])('an unknown field %s is named, with the nearest known one', (_, schema, value, text) => {
  const found = unknownField(schema, value)
  expect(found && unknownFieldText(found)).toBe(text)
})

test.each<[string, z.ZodType, unknown]>([
  ['without unknown fields', STAY, { arrival: '' }],
  ['of no form, with known fields alone', z.union([STAY, DATES]), { nights: 1 }],
  ['of any fields', z.record(z.string(), z.int()), { any: 1 }],
])('nothing is unknown in a value %s', (_, schema, value) => {
  expect(unknownField(schema, value)).toBeUndefined()
})
