import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createFrameScanner, errorText, scanFrames } from './frame-scanner.ts'

type Reply = { id: number; error?: string; bytes: number }

function frameOf({ id, error, bytes }: Reply): Buffer {
  const text = Buffer.from(error ?? '')
  const payload = error
    ? Buffer.concat([Buffer.from('\x05ERROR\x01\0\x01\0\x01'), Buffer.of(text.length, 0, 0, 0), text])
    : Buffer.concat([Buffer.from('\x07SUCCESS'), Buffer.alloc(bytes, 0xff)])
  const frame = Buffer.alloc(9 + payload.length)
  frame[0] = 0xff
  frame.writeUInt32LE(id, 1)
  frame.writeUInt32LE(payload.length, 5)
  payload.copy(frame, 9)
  return frame
}

function scanAll(chunks: readonly Uint8Array[]) {
  const scanner = createFrameScanner()
  const seen: { id: number; error?: string }[] = []
  const good = chunks.every((chunk) =>
    scanFrames(scanner, chunk, chunk.length, (id, isError) => {
      seen.push(isError ? { id, error: errorText(scanner) } : { id })
    }),
  )
  return { seen, good }
}

const replies = fc.array(
  fc.record({
    id: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
    bytes: fc.nat(300),
    error: fc.option(fc.constantFrom('429', 'NOT_FOUND: property'), { nil: undefined }),
  }),
  { maxLength: 12 },
)

test('any cut of a stream gives the same frames', () => {
  fc.assert(
    fc.property(replies, fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 60 }), (wanted, sizes) => {
      const stream = Buffer.concat(wanted.map((reply) => frameOf(reply as Reply)))
      const chunks: Buffer[] = []
      let at = 0
      for (const size of sizes) {
        chunks.push(stream.subarray(at, at + size))
        at += size
      }
      chunks.push(stream.subarray(at))

      const { seen, good } = scanAll(chunks)

      expect(good).toBe(true)
      expect(seen).toEqual(wanted.map(({ id, error }) => (error ? { id, error } : { id })))
    }),
  )
})

test('one byte at a time is enough', () => {
  const stream = Buffer.concat([frameOf({ id: 7, bytes: 3 }), frameOf({ id: 8, bytes: 0, error: '503' })])
  const { seen } = scanAll([...stream].map((byte) => Uint8Array.of(byte)))

  expect(seen).toEqual([{ id: 7 }, { id: 8, error: '503' }])
})

test('a frame counts only when its last byte is here', () => {
  const frame = frameOf({ id: 1, bytes: 50 })

  expect(scanAll([frame.subarray(0, -1)]).seen).toEqual([])
})

test('a byte that begins no frame ends the scan', () => {
  expect(scanAll([Buffer.from('LOGIN OK, and more than ten bytes')]).good).toBe(false)
})

test('an empty payload ends the scan: no reply is empty', () => {
  expect(scanAll([Buffer.from('ff0100000000000000ff', 'hex')]).good).toBe(false)
})
