import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createFraming, FRAMING_BYTES, frameParts, takeChunk } from './framing.ts'
import {
  decodeAnswer,
  decodeHello,
  encodeHello,
  encodeRefusal,
  encodeWelcome,
  HELLO_BYTES_MAX,
  REFUSALS,
} from './handshake.ts'

const streamOf = (bodies: readonly Uint8Array[]): Buffer => Buffer.concat(bodies.flatMap(frameParts))

test('a stream cut anywhere yields the same frames', () => {
  const bodies = fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 8 })
  fc.assert(
    fc.property(bodies, fc.array(fc.nat(400), { maxLength: 12 }), (sent, cuts) => {
      const stream = streamOf(sent)
      const framing = createFraming(60)
      const taken: Uint8Array[] = []
      let at = 0

      for (const cut of [...cuts.sort((a, b) => a - b), stream.length]) {
        const end = Math.max(at, Math.min(cut, stream.length))
        expect(takeChunk(framing, stream.subarray(at, end), (body) => taken.push(body) > 0)).toBe('')
        at = end
      }

      expect(taken).toEqual(sent)
    }),
  )
})

test('a body too large for one write yields the same stream', () => {
  const body = new Uint8Array(100_000).fill(7)
  const taken: Uint8Array[] = []

  takeChunk(createFraming(100_000), streamOf([body]), (whole) => taken.push(whole) > 0)

  expect(taken).toEqual([body])
})

test('a length beyond the bound ends the stream before any byte is kept', () => {
  const framing = createFraming(59)

  expect(takeChunk(framing, streamOf([new Uint8Array(60)]), () => true)).toBe('length')
  expect(framing.body).toBe(undefined)
})

test('every flipped bit of a body or its checksum is detected', () => {
  const stream = streamOf([Uint8Array.of(1, 2, 3, 4, 5)])
  for (let bit = 32; bit < stream.length * 8; bit++) {
    const damaged = Buffer.from(stream)
    damaged[bit >> 3] = damaged[bit >> 3] ^ (1 << (bit & 7))

    expect(takeChunk(createFraming(60), damaged, () => true)).toBe('checksum')
  }
})

test('bytes after a frame that stops are not read', () => {
  let count = 0

  takeChunk(createFraming(10), streamOf([Uint8Array.of(1), Uint8Array.of(2)]), () => ++count < 1)

  expect(count).toBe(1)
})

test('a head has eight bytes', () => {
  expect(frameParts(Uint8Array.of(9))[0]).toHaveLength(FRAMING_BYTES + 1)
})

const ID = 'x'.repeat(128)
const HELLO = { stream: 'bulk', instance: 'ab'.repeat(16), from: ID, to: ID } as const
const WELCOME = { instance: 'cd'.repeat(16), node: 'b' }

test('handshakes survive encoding, and the largest is within the bound', () => {
  expect(decodeHello(encodeHello(HELLO))).toEqual(HELLO)
  expect(decodeAnswer(encodeWelcome(WELCOME))).toEqual(WELCOME)
  for (const refusal of REFUSALS) expect(decodeAnswer(encodeRefusal(refusal))).toEqual({ refusal })
  expect(encodeHello(HELLO).length).toBeLessThanOrEqual(HELLO_BYTES_MAX)
})

test('a hello that is cut, extended, of another protocol, or a reply is refused', () => {
  const bytes = encodeHello(HELLO)
  for (let length = 0; length < bytes.length; length++) {
    expect(decodeHello(bytes.subarray(0, length))).toBe(undefined)
  }
  expect(decodeHello(Uint8Array.of(...bytes, 0))).toBe(undefined)
  expect(decodeHello(bytes.map((byte, i) => (i === 4 ? 2 : byte)))).toBe(undefined)
  expect(decodeHello(encodeWelcome(WELCOME))).toBe(undefined)
  expect(decodeAnswer(bytes)).toBe(undefined)
})

test('random bytes are refused without harm', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: HELLO_BYTES_MAX }), (bytes) => {
      expect([decodeHello(bytes), decodeAnswer(bytes)]).toEqual([undefined, undefined])
    }),
  )
})
