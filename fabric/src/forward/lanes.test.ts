import { expect, test } from 'vitest'
import {
  addWrite,
  createLane,
  type LaneEntry,
  nextWrite,
  pinnedVia,
  writeInDoubt,
  writeOver,
  writeRefused,
  writeSent,
} from './lanes.ts'

type Entry = LaneEntry<string, string>

/** A lane whose writes are all on their way over connection A. */
function sent(...names: string[]) {
  const lane = createLane<string, string>()
  const entries = names.map((name) => addWrite(lane, name))
  for (const entry of entries) writeSent(lane, entry, 'A')
  return { lane, entries: entries as [Entry, Entry, Entry] }
}

test('a refused write is sent again only when no later one is on its way', () => {
  const { lane, entries } = sent('one', 'two')
  const [one, two] = entries
  const three = addWrite(lane, 'three')

  writeRefused(lane, one)
  expect([nextWrite(lane), pinnedVia(lane)]).toEqual([undefined, 'A'])
  writeRefused(lane, two)

  expect(nextWrite(lane)).toBe(one)
  writeSent(lane, one, 'B')
  expect(nextWrite(lane)).toBe(two)
  writeSent(lane, two, 'B')
  expect(nextWrite(lane)).toBe(three)
})

test('a refused write before one that got through is overtaken and not sent again', () => {
  const { lane, entries } = sent('one', 'two')
  const [one, two] = entries
  writeRefused(lane, one)

  expect(writeOver(lane, two, true)).toEqual(['one'])
  expect(lane).toMatchObject({ entries: [], held: 0, refused: 0 })
})

test('a write that is refused after a later one got through is overtaken as well', () => {
  const { lane, entries } = sent('one', 'two')
  const [one, two] = entries

  expect(writeOver(lane, two, true)).toEqual([])
  expect(one.isOvertaken).toBe(true)
})

test('a write that was not executed lets those before it be sent again', () => {
  const { lane, entries } = sent('one', 'two')
  const [one, two] = entries
  writeRefused(lane, one)

  expect(writeOver(lane, two, false)).toEqual([])
  expect(nextWrite(lane)).toBe(one)
})

test('before a write in doubt is sent again, refused ones are overtaken, and others in doubt are not', () => {
  const { lane, entries } = sent('refused', 'in doubt', 'keyed')
  const [refused, inDoubt, keyed] = entries
  writeRefused(lane, refused)
  writeRefused(lane, inDoubt)

  expect(writeInDoubt(lane, keyed, (name) => name !== 'in doubt')).toEqual(['refused'])
  writeRefused(lane, keyed)

  expect(nextWrite(lane)).toBe(inDoubt)
  expect(lane.entries.map(({ item }) => item)).toEqual(['in doubt', 'keyed'])
})
