import { createRandom } from '@vacancy/testkit/random'
import { describe, expect, it } from 'vitest'
import {
  addBytes,
  addInt4,
  addInt8,
  addRow,
  addText,
  beginCopy,
  endCopy,
  int4Array,
  int8Array,
  textArray,
} from './postgres-binary.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)

/** Bytes of 32-bit numbers, and of texts. */
function bytesOf(...parts: readonly (number | string | readonly number[])[]): number[] {
  return parts.flatMap((part) => {
    if (typeof part === 'string') return [...Buffer.from(part)]
    if (typeof part !== 'number') return part
    const word = Buffer.alloc(4)
    word.writeInt32BE(part)
    return [...word]
  })
}

// As PostgreSQL sends arrays: dimensions, whether there are nulls, the type of the items, their count, the first index.
const head = (oid: number, count: number) => [1, 1, oid, count, 1]

describe('an array', () => {
  it('of int4 has each item with its length', () => {
    expect([...int4Array([7, -1, 2 ** 31 - 1])]).toEqual(bytesOf(...head(23, 3), 4, 7, 4, -1, 4, 2 ** 31 - 1))
    expect([...int4Array([])]).toEqual(bytesOf(...head(23, 0)))
  })

  it('of int8 has exact integers', () => {
    expect([...int8Array([7, 2 ** 32 + 5, -1, 2 ** 53])]).toEqual(
      bytesOf(...head(20, 4), 8, 0, 7, 8, 1, 5, 8, -1, -1, 8, 2 ** 21, 0),
    )
    expect([...int8Array([])]).toEqual(bytesOf(...head(20, 0)))
  })

  it('of int8 has the numbers that BigInt reads', () => {
    const random = createRandom(SEED)
    for (let n = 0; n < 200; n++) {
      const value = random.next() * 2 ** random.below(22) * (random.below(2) === 0 ? 1 : -1)
      const read = int8Array([value]).readBigInt64BE(24)
      expect(read, `seed ${SEED}, number ${n}`).toBe(BigInt(value))
    }
  })

  it('of texts has their bytes in UTF-8, without the character 0', () => {
    expect([...textArray(['ab', '', 'ü', 'a\0b\0'])]).toEqual(
      bytesOf(...head(25, 4), 2, 'ab', 0, '', 2, 'ü', 8, 'a\ufffdb\ufffd'),
    )
  })
})

describe('rows for COPY', () => {
  const begin = [0x64, ...bytesOf(0), ...bytesOf('PGCOPY\n'), 0xff, 0x0d, 0x0a, 0, ...bytesOf(0, 0)]
  const done = [0x63, 0, 0, 0, 4]
  /** The length of a message is that of all after its type. */
  const message = (...rows: readonly number[]) => {
    const bytes = [...begin, ...rows, 0xff, 0xff]
    return [bytes[0] as number, ...bytesOf(bytes.length - 1), ...bytes.slice(5), ...done]
  }

  it('have a signature, each value with its length, and an end', () => {
    const rows = beginCopy(60)
    addRow(rows, 3)
    addInt4(rows, 5)
    addInt8(rows, 2 ** 32 * 3 + 9)
    addText(rows, 'ü\0')
    addRow(rows, 2)
    const at = addBytes(rows, 3)
    rows.buffer.set([7, 8, 9], at)
    addBytes(rows, -1)

    expect([...endCopy(rows)]).toEqual(
      message(...[0, 3, ...bytesOf(4, 5, 8, 3, 9, 5, 'ü\ufffd')], ...[0, 2, ...bytesOf(3, [7, 8, 9], -1)]),
    )
  })

  it('may be none, and may fill their room exactly', () => {
    expect([...endCopy(beginCopy(0))]).toEqual(message())
    const rows = beginCopy(10)
    addRow(rows, 1)
    addInt4(rows, -2)
    expect([...endCopy(rows)]).toEqual(message(0, 1, ...bytesOf(4, -2)))
  })
})
