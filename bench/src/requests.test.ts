import { createCodecList, formatDay } from '@vacancy/shared'
import { decodeRequest, encodeReply } from '@vacancy/shared/wire'
import { expect, test } from 'vitest'
import type { Search, Update } from './queries.ts'
import { searchReplyBytes, searchRequests, updateRequests } from './requests.ts'

const search: Search = {
  fields: { segment: 's', roomType: 'suite', propertyType: 'hotel', dates: ['2026-03-01'], finalPrice: 90, limit: 300 },
  hits: 2,
}
const updates: Update[] = [
  { command: 'SETROOMAVL', fields: { propertyId: 'p_1', roomType: 'suite', date: '2026-03-01', amount: 3 } },
  { command: 'SETROOMPKG', fields: { propertyId: 'p_1', roomType: 'suite', date: '2026-03-01', finalPrice: 80 } },
]
const context = { baseYear: 2026, codecs: createCodecList(['wifi']) }

test('a frame holds the request it was made from', () => {
  const [frame = new Uint8Array()] = searchRequests([search]).frames
  const messages = updateRequests(updates).frames.map((frame) => decodeRequest(frame.subarray(9)))

  expect(decodeRequest(frame.subarray(9))).toMatchObject({ command: 'SEARCHAVAIL', fields: search.fields })
  expect(messages).toMatchObject(updates)
})

test.each([
  [0, 1],
  [1, 3],
  [300, 3],
  [7, 14],
])('the answer to a search with %i hits and %i nights is as long as the codec makes it', (hits, nights) => {
  const days = Array.from({ length: nights }, (_, night) => {
    return { date: formatDay(20_500 + night), availability: 1, finalPrice: 90, rateFeatures: [] }
  })
  const properties = Array.from({ length: hits }, (_, i) => ({ propertyId: `p_${i}`, days }))
  const frame = encodeReply('SEARCHAVAIL', 1, { numDays: nights, properties }, context)

  expect(searchReplyBytes(hits, nights)).toBe(frame.length)
})

test('the answers to updates are as long as the codec makes them', () => {
  const frames = [encodeReply('SETROOMAVL', 1, { availability: 3 }, context), encodeReply('SETROOMPKG', 1, {}, context)]

  expect(updateRequests(updates).replyBytes).toEqual(frames.map((frame) => frame.length))
})
