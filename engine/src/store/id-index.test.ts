import { createRandom } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import { createIdIndex, findId, putId, removeId } from './id-index.ts'

const RECORD_BYTES = 16
const SEED = Number(process.env['VACANCY_SEED'] ?? 1)

test('records are found by their ids, while others come and go', () => {
  const random = createRandom(SEED)
  const records = 400
  const u8 = new Uint8Array((records + 1) * RECORD_BYTES)
  for (let n = 1; n <= records; n++) new DataView(u8.buffer).setUint32(n * RECORD_BYTES + random.below(3) * 4, n)
  const index = createIdIndex()
  const there = new Set<number>()
  for (let step = 0; step < 5_000; step++) {
    const address = (1 + random.below(records)) * RECORD_BYTES
    if (there.delete(address)) removeId(index, u8, address)
    else {
      putId(index, u8, address)
      there.add(address)
    }
    const other = (1 + random.below(records)) * RECORD_BYTES
    expect(findId(index, u8, u8, other), `VACANCY_SEED=${SEED}`).toBe(there.has(other) ? other : 0)
  }
  expect(index.count).toBe(there.size)
})
