import fc from 'fast-check'
import { expect, test } from 'vitest'
import { law } from './testing/law.ts'
import { parseTraceparent, TRACEPARENT_CHARS, traceparentOf } from './trace-context.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const SPAN = 'b7ad6b7169203331'

test('a traceparent names the trace, the span of the caller, and whether it is recorded', () => {
  expect(parseTraceparent(`00-${TRACE}-${SPAN}-01`)).toEqual({
    traceId: TRACE,
    spanId: SPAN,
    isSampled: true,
    isRandom: false,
  })
  expect(parseTraceparent(`00-${TRACE}-${SPAN}-00`)?.isSampled).toBe(false)
  expect(parseTraceparent(`00-${TRACE}-${SPAN}-03`)?.isRandom).toBe(true)
})

test.each([
  ['empty', ''],
  ['an invalid version', `ff-${TRACE}-${SPAN}-01`],
  ['a version of one digit', `0-${TRACE}-${SPAN}-01`],
  ['a trace of zeros', `00-${'0'.repeat(32)}-${SPAN}-01`],
  ['a span of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
  ['upper case', `00-${TRACE.toUpperCase()}-${SPAN}-01`],
  ['a trace that is too short', `00-${TRACE.slice(1)}-${SPAN}-01`],
  ['a trace that is too long', `00-${TRACE}0-${SPAN}-01`],
  ['a span that is too short', `00-${TRACE}-${SPAN.slice(1)}-01`],
  ['no flags', `00-${TRACE}-${SPAN}`],
  ['flags that are not hexadecimal', `00-${TRACE}-${SPAN}-0g`],
  ['something behind version 00', `00-${TRACE}-${SPAN}-01-extra`],
  ['a blank in front', ` 00-${TRACE}-${SPAN}-01`],
  ['a line break behind', `00-${TRACE}-${SPAN}-01\n`],
  ['two values in one', `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`],
  ['another separator', `00_${TRACE}_${SPAN}_01`],
])('a traceparent with %s is ignored', (_, text) => {
  expect(parseTraceparent(text)).toBeUndefined()
})

test('of a later version the known part counts, whatever follows it', () => {
  const known = parseTraceparent(`00-${TRACE}-${SPAN}-01`)

  expect(parseTraceparent(`01-${TRACE}-${SPAN}-01`)).toEqual(known)
  expect(parseTraceparent(`cc-${TRACE}-${SPAN}-01-what-the-future-will-be-like`)).toEqual(known)
  expect(parseTraceparent(`cc-${TRACE}-${SPAN}-01.what`)).toBeUndefined()
})

test('what is written is read again, and unknown flags are not passed on', () => {
  const hex = (digits: number) =>
    fc
      .array(fc.constantFrom(...'0123456789abcdef'), { minLength: digits, maxLength: digits })
      .map((each) => each.join(''))
      .filter((text) => /[^0]/.test(text))
  law([hex(32), hex(16), fc.boolean(), fc.boolean()], (traceId, spanId, isSampled, isRandom) => {
    const text = traceparentOf({ traceId, spanId, isSampled, isRandom })

    expect(text).toHaveLength(TRACEPARENT_CHARS)
    expect(parseTraceparent(text)).toEqual({ traceId, spanId, isSampled, isRandom })
  })
  const given = parseTraceparent(`00-${TRACE}-${SPAN}-ff`)
  expect(given && traceparentOf(given)).toBe(`00-${TRACE}-${SPAN}-03`)
})
