import { createRandom, type Random, tries } from '@vacancy/testkit/random'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { packageHash } from '../store/digest.ts'
import { createSnapshotReference } from '../testing/snapshot-reference.ts'
import { BYTE_PLANES, loadSnapshotKernel, type SnapshotKernel } from './codec.ts'

const PLANES = 4096
const DAYS = PLANES + 4096
const AVAILABLE = DAYS + 4096
const NIGHT_STATS = AVAILABLE + 4096
const CURSORS = NIGHT_STATS + 4096
const STATS = CURSORS + 32
const KEYS_LOW = 24_576
const KEYS_HIGH = KEYS_LOW + 4096
const MASKS = KEYS_HIGH + 4096
const BYTES = MASKS + 1024
const FIRST_DAY = 20_000

/** Rows and nights of words in one fresh memory: where they lie, and room for what they become. */
function lay(rows: number, nights: number) {
  const planeBytes = 16 + rows * 8 + 128
  const words = Math.ceil((BYTES + BYTE_PLANES * rows * nights) / 16) * 16
  const memory = new WebAssembly.Memory({ initial: 64, maximum: 64, shared: true })
  const u32 = new Uint32Array(memory.buffer)
  expect(words + nights * (planeBytes + 16)).toBeLessThan(memory.buffer.byteLength)
  for (let night = 0; night < nights; night++) {
    const at = Math.ceil((words + night * planeBytes) / 8) * 8 + 16
    u32[PLANES / 4 + night] = at
    u32[DAYS / 4 + night] = FIRST_DAY + night
    u32[AVAILABLE / 4 + night] = at + rows * 8
    u32[NIGHT_STATS / 4 + night] = at - 12
  }
  for (let row = 0; row < rows; row++) {
    u32[KEYS_LOW / 4 + row] = Math.imul(row + 1, 0x9e3779b1)
    u32[KEYS_HIGH / 4 + row] = Math.imul(row + 7, 0x85ebca77)
  }
  const wordAt = (night: number, row: number) => (u32[PLANES / 4 + night] + row * 8) / 4
  return { memory, u32, u8: new Uint8Array(memory.buffer), rows, nights, wordAt }
}

type Laid = ReturnType<typeof lay>

function startCursors({ u32, rows, nights }: Laid): void {
  for (let plane = 0; plane < BYTE_PLANES; plane++) u32[CURSORS / 4 + plane] = BYTES + plane * rows * nights
}

function encode(kernel: SnapshotKernel, laid: Laid): void {
  startCursors(laid)
  kernel.encode(PLANES, laid.nights, laid.rows, DAYS, KEYS_LOW, KEYS_HIGH, MASKS, CURSORS, STATS)
}

function decode(kernel: SnapshotKernel, laid: Laid): void {
  startCursors(laid)
  kernel.decode(
    PLANES,
    laid.nights,
    laid.rows,
    DAYS,
    KEYS_LOW,
    KEYS_HIGH,
    MASKS,
    CURSORS,
    STATS,
    AVAILABLE,
    NIGHT_STATS,
  )
}

/** What an encoder leaves: masks, the used bytes of each plane, packages and digest. */
function encoded({ u8, u32, rows, nights }: Laid) {
  const planes: Buffer[] = []
  for (let plane = 0; plane < BYTE_PLANES; plane++) {
    planes.push(Buffer.from(u8.slice(BYTES + plane * rows * nights, u32[CURSORS / 4 + plane])))
  }
  const masks = Buffer.from(u8.slice(MASKS, MASKS + nights))
  return { masks, planes, stats: [...u32.subarray(STATS / 4, STATS / 4 + 3)] }
}

/** Fills with words that stay, change a little, vanish and reappear, and some random ones. */
function fill(laid: Laid, random: Random, stays: number, absent: number): void {
  const { u32, rows, nights, wordAt } = laid
  for (let night = 0; night < nights; night++) {
    for (let row = 0; row < rows; row++) {
      const at = wordAt(night, row)
      const old = night === 0 ? -1 : wordAt(night - 1, row)
      if (old >= 0 && random.below(100) < stays) {
        u32[at] = u32[old]
        u32[at + 1] = u32[old + 1]
      } else if (random.below(100) < absent) {
        u32[at] = 0
        u32[at + 1] = 0
      } else {
        u32[at] = random.below(5) === 0 ? random.next() : random.below(12) | (random.below(8) << 8)
        u32[at + 1] = random.below(5) === 0 ? random.next() : ~random.below(30_000)
      }
    }
  }
}

function wordsOf({ u32, rows, nights, wordAt }: Laid): Buffer {
  const words: Uint8Array[] = []
  for (let night = 0; night < nights; night++) {
    const at = wordAt(night, 0)
    words.push(new Uint8Array(u32.slice(at, at + rows * 2).buffer))
  }
  return Buffer.concat(words)
}

const kernels: [string, (memory: WebAssembly.Memory) => SnapshotKernel][] = [
  ['the kernel', loadSnapshotKernel],
  ['its reference', createSnapshotReference],
]

const tables = fc.record({
  rows: fc.oneof(fc.integer({ min: 1, max: 70 }), fc.constantFrom(16, 32, 128, 129, 500)),
  nights: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.constantFrom(365, 366)),
  seed: fc.integer(),
  stays: fc.constantFrom(0, 50, 95, 100),
  absent: fc.constantFrom(0, 30, 90, 100),
})

function laidOf({
  rows,
  nights,
  seed,
  stays,
  absent,
}: { [K in 'rows' | 'nights' | 'seed' | 'stays' | 'absent']: number }): Laid {
  const laid = lay(Math.min(rows, nights > 300 ? 150 : rows), nights)
  fill(laid, createRandom(seed), stays, absent)
  return laid
}

test('the kernel and its reference encode the same bytes, counts and digests', () => {
  fc.assert(
    fc.property(tables, (shape) => {
      const plain = laidOf(shape)
      const compiled = laidOf(shape)

      encode(createSnapshotReference(plain.memory), plain)
      encode(loadSnapshotKernel(compiled.memory), compiled)

      const [a, b] = [encoded(compiled), encoded(plain)]
      expect(a.stats).toEqual(b.stats)
      expect(a.masks.equals(b.masks)).toBe(true)
      expect(a.planes.map((plane, i) => plane.equals(b.planes[i] as Buffer))).toEqual(new Array(BYTE_PLANES).fill(true))
    }),
    { numRuns: tries(150) },
  )
})

for (const [name, kernelOf] of kernels) {
  test(`${name} decodes what it encoded: words, bits of rows with rooms, counts and digests`, () => {
    fc.assert(
      fc.property(tables, (shape) => {
        const laid = laidOf(shape)
        const { u8, u32, rows, nights, wordAt } = laid
        const words = wordsOf(laid)
        encode(kernelOf(laid.memory), laid)
        const { stats } = encoded(laid)
        for (let night = 0; night < nights; night++) u32.fill(0, wordAt(night, 0) - 4, wordAt(night, rows))
        u32.fill(0, STATS / 4, STATS / 4 + 3)

        decode(kernelOf(laid.memory), laid)

        expect(wordsOf(laid).equals(words)).toBe(true)
        expect([...u32.subarray(STATS / 4, STATS / 4 + 3)]).toEqual(stats)
        const sums = [0, 0, 0]
        let wrongBits = 0
        for (let night = 0; night < nights; night++) {
          const at = u32[NIGHT_STATS / 4 + night] / 4
          for (let cell = 0; cell < 3; cell++) sums[cell] = (sums[cell] + u32[at + cell]) >>> 0
          for (let row = 0; row < rows; row++) {
            const bit = (u8[u32[AVAILABLE / 4 + night] + (row >>> 3)] >>> (row & 7)) & 1
            if (bit !== ((u32[wordAt(night, row)] & 0xff) === 0 ? 0 : 1)) wrongBits++
          }
        }
        expect(sums).toEqual(stats)
        expect(wrongBits).toBe(0)
      }),
      { numRuns: tries(60) },
    )
  })

  test(`${name} stores only masks for nights that equal the night before, empty ones included`, () => {
    const laid = lay(40, 30)
    const { u32, wordAt } = laid
    for (let night = 0; night < 30; night++) {
      for (let row = 0; row < 20; row++) {
        u32[wordAt(night, row)] = 3 | (5 << 8)
        u32[wordAt(night, row) + 1] = ~12_000
      }
    }

    encode(kernelOf(laid.memory), laid)

    // Availability 3, features 5, price 12000 = 0x2ee0 coded against -1: 12001 * 2 = 0x5dc2. Then nothing.
    const { masks, planes } = encoded(laid)
    expect([...masks]).toEqual([0b00110011, ...new Array(29).fill(0)])
    const column = (byte: number) => [...new Array(20).fill(byte), ...new Array(20).fill(0)]
    expect(planes.map((plane) => [...plane])).toEqual([
      column(3),
      column(5),
      [],
      [],
      column(0xc2),
      column(0x5d),
      [],
      [],
    ])
  })

  test(`${name} counts and hashes each package once and no empty word`, () => {
    const laid = lay(19, 2)
    const { u32, wordAt } = laid
    // One word in what goes by sixteen, one in the rest; the second night only the rest.
    const words: [number, number, number, number][] = [
      [0, 4, 0x0102, 0xfffffff0],
      [0, 17, 0x00ff, 1],
      [1, 17, 0x00ff, 1],
    ]
    for (const [night, row, lo, hi] of words) {
      u32[wordAt(night, row)] = lo
      u32[wordAt(night, row) + 1] = hi
    }

    encode(kernelOf(laid.memory), laid)

    const digest = (lane: 0 | 1, keys: number) =>
      words.reduce((sum, [night, row, lo, hi]) => {
        return (sum + packageHash(lane, u32[keys / 4 + row], FIRST_DAY + night, lo, hi)) >>> 0
      }, 0)
    expect(encoded(laid).stats).toEqual([3, digest(0, KEYS_LOW), digest(1, KEYS_HIGH)])
  })
}
