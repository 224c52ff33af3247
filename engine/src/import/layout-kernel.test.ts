/** The compiled kernel has its own constants, as AssemblyScript cannot import layout.ts: both must describe one memory. */

import { readFileSync } from 'node:fs'
import { LIMITS } from '@vacancy/shared'
import { expect, test } from 'vitest'
import {
  BLOCK_BYTES,
  CHUNK_BYTES,
  CODEC_BYTES,
  CONTEXT,
  FEATURE_ENTRIES,
  FEATURE_TEXT_AT,
  FEATURE_TEXT_BYTES,
  HEADER,
  RESULT_BYTES,
  ROOM_TEXT_AT,
  ROW,
  STOP,
} from './layout.ts'

/** Numbers by name: sums of products of numbers and earlier names. */
function constantsOf(source: string): ReadonlyMap<string, number> {
  const constants = new Map<string, number>()
  const factor = (text: string) => constants.get(text) ?? Number(text)
  const product = (text: string) => text.split('*').reduce((all, each) => all * factor(each.trim()), 1)
  for (const [, name, text] of source.matchAll(/^const ([A-Z_]+): (?:usize|[iu]32) = ([^\n/]+)/gm)) {
    const sum = (text as string).split('+').reduce((all, each) => all + product(each), 0)
    if (!Number.isNaN(sum)) constants.set(name as string, sum)
  }
  return constants
}

const kernel = constantsOf(readFileSync(new URL('./kernel.as.ts', import.meta.url), 'utf8'))
const snakeCase = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()

test('cells of the header that both use are at the same place', () => {
  const { failed, threads, growths, nextRange, nextTask, ...shared } = HEADER
  const found = Object.keys(shared).map((name) => [name, kernel.get(snakeCase(name))])

  expect(Object.fromEntries(found)).toEqual(
    Object.fromEntries(Object.entries(shared).map(([name, cell]) => [name, cell * 4])),
  )
})

test('so are the fields of a context', () => {
  const { bytesDone, room, ...shared } = CONTEXT
  const found = Object.keys(shared).map((name) => [name, kernel.get(snakeCase(name))])

  expect(Object.fromEntries(found)).toEqual(shared)
  expect(kernel.get('ROOM_NAME')).toBe(room)
})

test.each<[string, number]>([
  ['FEATURE_ENTRIES', FEATURE_ENTRIES],
  ['FEATURE_TEXT_AT', FEATURE_TEXT_AT],
  ['FEATURE_TEXT_BYTES', FEATURE_TEXT_BYTES],
  ['ROOM_TEXT_AT', ROOM_TEXT_AT],
  ['ROW_ROOM', ROW.room * 4],
  ['ROW_PROPERTY', ROW.property * 4],
  ['ROW_HASH', ROW.hash * 4],
  ['ROW_BASE', ROW.base * 4],
  ['ROW_CHUNKS', ROW.chunks * 4],
  ['CHUNK_BYTES', CHUNK_BYTES],
  ['CODEC_BYTES', CODEC_BYTES],
  ['BLOCK_BYTES', BLOCK_BYTES],
  ['RESULT_BYTES', RESULT_BYTES],
  ['ROOMS_PER_PROPERTY_MAX', LIMITS.roomTypesPerPropertyMax],
  ['ROOM_BYTES_MAX', LIMITS.nameBytesMax],
])('%s is %i in both', (name, value) => {
  expect(kernel.get(name)).toBe(value)
})

test('reasons to stop have the same numbers', () => {
  const found = Object.keys(STOP).map((name) => [name, kernel.get(snakeCase(name))])

  expect(Object.fromEntries(found)).toEqual(STOP)
})
