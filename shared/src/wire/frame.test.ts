import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { LIMITS } from '../domain.ts'
import { law } from '../testing/law.ts'
import { bytesOfHex, hexOf, requestVectors } from '../testing/vectors.ts'
import { createFrameSplitter, type FrameSplitter, resumeFrames, splitFrames } from './frame.ts'
import { encodeLogin, LOGIN_FAILED, LOGIN_OK, readLoginAnswer } from './login.ts'
import { decodeEnvelope, encodeEnvelope, encodeKeepalive } from './routing.ts'

const ENGINE = { payloadBytesMax: LIMITS.requestPayloadBytesMax, skipBytesMax: LIMITS.skippedPayloadBytesMax }
/** Small limits, so that random streams reach them. An envelope may have 300 bytes more. */
const SMALL = { payloadBytesMax: 40, skipBytesMax: 2000 }

type Event = string

/** Records every call of a sink as text. */
function collector(events: Event[]) {
  return {
    frame: (bytes: Uint8Array, start: number, end: number, id: number, inEnvelope: boolean) => {
      events.push(`${inEnvelope ? 'envelope' : 'frame'} ${id} ${bytes.subarray(start, end).join(',')}`)
    },
    refuse: (id: number, text: string) => events.push(`refuse ${id} ${text}`),
    fatal: (reason: string) => events.push(`fatal ${reason}`),
  }
}

function split(chunks: readonly Uint8Array[], limits = SMALL): Event[] {
  const events: Event[] = []
  const splitter = createFrameSplitter(limits)
  for (const chunk of chunks) {
    // Passes each chunk as a temporary copy, so that kept bytes must have been copied.
    const copy = chunk.slice()
    splitFrames(splitter, copy, collector(events))
    copy.fill(0xee)
  }
  return events
}

function frame(id: number, payload: Uint8Array, claimed = payload.length): Uint8Array {
  const bytes = new Uint8Array(9 + payload.length)
  const view = new DataView(bytes.buffer)
  bytes[0] = 0xff
  view.setUint32(1, id, true)
  view.setUint32(5, claimed, true)
  bytes.set(payload, 9)
  return bytes
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(parts.flatMap((part) => [...part]))
}

function cutAt(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const cuts = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b)
  return [0, ...cuts].map((from, i) => bytes.subarray(from, cuts[i] ?? bytes.length))
}

const id = fc.integer({ min: 0, max: 0xffff_ffff })
const payload = (maxLength: number) => fc.uint8Array({ maxLength })
const bare = fc.tuple(id, payload(60)).map(([number, bytes]) => frame(number, bytes))
const segment = fc.constantFrom('s', 'Zürich', '', '__keepalive__', '__codecs__', 'x'.repeat(255))
const enveloped = fc
  .tuple(segment, fc.boolean(), id, payload(60))
  .map(([name, write, number, bytes]) => encodeEnvelope({ segment: name, write }, frame(number, bytes)))
const large = fc
  .tuple(segment, id, fc.integer({ min: 300, max: 2100 }), fc.boolean())
  .map(([name, number, bytes, inside]) => {
    const inner = frame(number, new Uint8Array(bytes).fill(7))
    return inside ? encodeEnvelope({ segment: name, write: false }, inner) : inner
  })
const broken = fc.oneof(
  fc.constant(bytesOfHex('fe0c00000001ff00ff0700000000000000')),
  fc.constant(bytesOfHex('fe0c0000000000ff070000000000000000')),
  fc.uint8Array({ minLength: 1, maxLength: 20 }),
)
const stream = fc
  .array(fc.oneof({ weight: 5, arbitrary: bare }, { weight: 5, arbitrary: enveloped }, large, broken), {
    maxLength: 12,
  })
  .map(concat)
const cuts = fc.array(fc.nat(10_000), { maxLength: 12 })

test('a stream split at any offsets gives the same frames', () => {
  law(
    [stream, cuts],
    (bytes, places) => {
      const whole = split([bytes])

      expect(split(cutAt(bytes, places))).toEqual(whole)
      expect(split(Array.from(bytes, (byte) => Uint8Array.of(byte)))).toEqual(whole)
    },
    1000,
  )
})

test('stopping after every frame and resuming gives the same frames', () => {
  law(
    [stream, cuts],
    (bytes, places) => {
      const events: Event[] = []
      const splitter = createFrameSplitter(SMALL)
      const plain = collector(events)
      const stopping = {
        ...plain,
        frame: (...args: Parameters<typeof plain.frame>) => {
          plain.frame(...args)
          splitter.stopped = true
        },
      }
      for (const [i, chunk] of cutAt(bytes, places).entries()) {
        const copy = chunk.slice()
        splitFrames(splitter, copy, stopping)
        copy.fill(0xee)
        // Some chunks arrive while the splitter is still stopped.
        if (i % 3 !== 0) resumeFrames(splitter, stopping)
      }
      while (splitter.stopped) resumeFrames(splitter, stopping)

      expect(events).toEqual(split([bytes]))
    },
    1000,
  )
})

test('the splitter never throws, and is silent after a fatal error', () => {
  const junk = fc.array(fc.oneof(fc.constantFrom(0xff, 0xfe, 0, 1, 9), fc.integer({ min: 0, max: 255 })), {
    maxLength: 200,
  })
  law(
    [junk, cuts],
    (bytes, places) => {
      const events = split(cutAt(Uint8Array.from(bytes), places))
      const fatal = events.findIndex((event) => event.startsWith('fatal'))

      if (fatal >= 0) expect(fatal).toBe(events.length - 1)
    },
    2000,
  )
})

test('a damaged vector never throws', () => {
  const hex = fc.constantFrom(...requestVectors.cases.map((vector) => vector.hex))
  law(
    [hex, fc.nat(2000), fc.integer({ min: 0, max: 255 }), cuts],
    (text, place, byte, places) => {
      const bytes = bytesOfHex(text)
      bytes[place % bytes.length] = byte

      expect(split(cutAt(bytes, places), ENGINE)).toEqual(split([bytes], ENGINE))
    },
    1000,
  )
})

test('a frame that is whole in its chunk is passed on without a copy', () => {
  const chunk = concat([frame(1, Uint8Array.of(65)), frame(2, Uint8Array.of(66, 67))])
  const seen: [Uint8Array, number, number][] = []
  splitFrames(createFrameSplitter(ENGINE), chunk, {
    frame: (bytes, start, end) => seen.push([bytes, start, end]),
    refuse: () => {},
    fatal: () => {},
  })

  expect(seen.map(([, start, end]) => [start, end])).toEqual([
    [9, 10],
    [19, 21],
  ])
  for (const [bytes] of seen) expect(bytes).toBe(chunk)
})

test('an empty payload and a keepalive get no reply', () => {
  const keepalive = encodeEnvelope({ segment: '__keepalive__', write: false }, frame(5, new Uint8Array()))
  const talkative = encodeEnvelope({ segment: '__keepalive__', write: false }, frame(6, Uint8Array.of(1)))

  expect(split([concat([frame(4, new Uint8Array()), keepalive, talkative])])).toEqual([])
})

test('an engine treats the reserved segments of routers like any other', () => {
  const codecs = encodeEnvelope({ segment: '__codecs__', write: false }, frame(1, Uint8Array.of(9)))

  expect(split([codecs])).toEqual(['envelope 1 9'])
})

test('a payload at the limit is accepted, one byte more is skipped and refused, and the next frame is read', () => {
  const next = frame(3, Uint8Array.of(1))
  const fits = frame(1, new Uint8Array(65_536))
  const large = frame(2, new Uint8Array(65_537))

  expect(split([concat([large, next])], ENGINE)).toEqual([
    'refuse 2 VALIDATION_ERROR: frame of 65537 bytes exceeds 65536',
    'frame 3 1',
  ])
  expect(split([fits], ENGINE)[0]).toMatch(/^frame 1 0,0/)
})

test('a frame is refused after it was skipped, not before', () => {
  const events: Event[] = []
  const splitter = createFrameSplitter(ENGINE)
  const large = frame(2, new Uint8Array(70_000))

  splitFrames(splitter, large.subarray(0, 70_008), collector(events))
  expect(events).toEqual([])
  expect(splitter.pendingBytes).toBe(70_008)
  splitFrames(splitter, large.subarray(70_008), collector(events))
  expect(events).toHaveLength(1)
  expect(splitter.pendingBytes).toBe(0)
})

test('a frame of 1 MiB is skipped, a larger one closes the connection at its header', () => {
  const header = (bytes: number) => frame(9, new Uint8Array(), bytes)

  expect(split([header(1_048_576), new Uint8Array(1_048_576)], ENGINE)).toHaveLength(1)
  expect(split([header(1_048_577)], ENGINE)).toEqual(['fatal a frame of 1048577 bytes'])
})

test('an envelope may hold 300 bytes more than a payload, counted from its length', () => {
  const name = 'x'.repeat(255)
  const inside = (bytes: number) => encodeEnvelope({ segment: name, write: true }, frame(8, new Uint8Array(bytes)))

  expect(split([inside(65_536)], ENGINE)[0]).toMatch(/^envelope 8 /)
  expect(split([inside(65_537)], ENGINE)).toEqual(['refuse 8 VALIDATION_ERROR: frame of 65537 bytes exceeds 65536'])
  expect(split([inside(65_600)], ENGINE)).toEqual(['refuse 8 VALIDATION_ERROR: frame of 65866 bytes exceeds 65836'])
})

/** An envelope by its parts: the claimed length, the segment, and what follows the write flag. */
function envelope(claimed: number, segment: string, rest: string): Uint8Array {
  const length = new Uint8Array(4)
  new DataView(length.buffer).setUint32(0, claimed, true)
  const bytes = bytesOfHex(segment)
  return Uint8Array.of(0xfe, ...length, bytes.length, ...bytes, 0, ...bytesOfHex(rest.replaceAll(' ', '')))
}

const EMPTY = 'ff 07000000 00000000'

test.each([
  ['the least length', envelope(11, '', EMPTY), []],
  ['one byte less', envelope(10, '', EMPTY), ['fatal an envelope of 10 bytes']],
  ['the greatest length, so far', envelope(2_000, '', EMPTY), []],
  ['one byte more', envelope(2_001, '', EMPTY), ['fatal an envelope of 2001 bytes']],
  ['a segment to its end', envelope(12, '73', EMPTY), []],
  ['a segment past its end', envelope(11, '73', EMPTY), ['fatal the segment of an envelope runs past its end']],
  ['no frame', envelope(11, '', 'fe 07000000 00000000'), ['fatal an envelope holds no frame']],
  ['a payload', envelope(12, '', 'ff 07000000 01000000 05'), ['envelope 7 5']],
  [
    'a frame that is too long',
    envelope(12, '', 'ff 07000000 02000000 05'),
    ['refuse 7 PARSE_ERROR: the lengths of envelope and frame do not add up'],
  ],
  [
    'a frame that is too short',
    envelope(12, '', 'ff 07000000 00000000 05'),
    ['refuse 7 PARSE_ERROR: the lengths of envelope and frame do not add up'],
  ],
  [
    'a segment that is not UTF-8',
    envelope(13, 'ff', 'ff 07000000 01000000 05'),
    ['refuse 7 PARSE_ERROR: the segment of the envelope is not valid UTF-8'],
  ],
  // '__keepalive__', and the same with another last letter.
  ['a keepalive', envelope(25, '5f5f6b656570616c6976655f5f', 'ff 07000000 01000000 05'), []],
  ['a similar segment', envelope(25, '5f5f6b656570616c6976655f60', 'ff 07000000 01000000 05'), ['envelope 7 5']],
  ['a shorter segment', envelope(24, '5f5f6b656570616c6976655f', 'ff 07000000 01000000 05'), ['envelope 7 5']],
])('an envelope with %s, in one chunk or byte by byte', (_, bytes, events) => {
  expect(split([bytes])).toEqual(events)
  expect(split(Array.from(bytes, (byte) => Uint8Array.of(byte)))).toEqual(events)
})

test('an envelope that is too large is pending while it is skipped, then refused with the id of its frame', () => {
  const events: Event[] = []
  const splitter = createFrameSplitter(SMALL)
  // 40 bytes of payload and 300 of overhead are allowed. The skipped part begins after the header of the frame.
  const bytes = envelope(341, '73', `ff 07000000 4a010000 ${'05'.repeat(329)}`)
  const next = frame(8, Uint8Array.of(6))

  const pending = [10, 100, 345, 346, 356].map((end, i, ends) => {
    splitFrames(splitter, concat([bytes, next]).subarray(ends[i - 1] ?? 0, end), collector(events))
    return splitter.pendingBytes
  })

  expect(bytes).toHaveLength(346)
  expect(pending).toEqual([10, 100, 345, 0, 0])
  expect(events).toEqual(['refuse 7 VALIDATION_ERROR: frame of 341 bytes exceeds 340', 'frame 8 6'])
})

test('an unfinished frame is pending until its last byte', () => {
  const splitter = createFrameSplitter(ENGINE)
  const bytes = frame(1, Uint8Array.of(1, 2, 3))
  const pending = Array.from(bytes, (byte) => {
    splitFrames(splitter, Uint8Array.of(byte), collector([]))
    return splitter.pendingBytes
  })

  expect(pending).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0])
})

test('memory grows with the received bytes, not with the length in a header', () => {
  const splitter = createFrameSplitter(ENGINE)
  splitFrames(splitter, frame(1, Uint8Array.of(1), 65_000), collector([]))

  expect(splitter.kept.length).toBeLessThanOrEqual(1024)
})

test('the memory of a large frame is released afterwards', () => {
  const splitter = createFrameSplitter(ENGINE)
  const bytes = frame(1, new Uint8Array(60_000))
  splitFrames(splitter, bytes.subarray(0, 59_000), collector([]))
  expect(splitter.kept.length).toBeGreaterThanOrEqual(59_000)
  splitFrames(splitter, bytes.subarray(59_000), collector([]))

  expect(splitter.kept.length).toBe(0)
})

test('chunks that arrive while stopped are kept in order', () => {
  const events: Event[] = []
  const splitter: FrameSplitter = createFrameSplitter(ENGINE)
  const sink = collector(events)
  splitter.stopped = true
  splitFrames(splitter, concat([frame(1, Uint8Array.of(1)), frame(2, Uint8Array.of(2)).subarray(0, 5)]), sink)
  splitFrames(splitter, concat([frame(2, Uint8Array.of(2)).subarray(5), frame(3, Uint8Array.of(3))]), sink)
  expect(events).toEqual([])
  expect(splitter.pendingBytes).toBe(30)

  resumeFrames(splitter, sink)
  expect(events).toEqual(['frame 1 1', 'frame 2 2', 'frame 3 3'])
  expect(splitter.pendingBytes).toBe(0)
})

test('a sink that splits frames itself fails an assertion', () => {
  const splitter = createFrameSplitter(ENGINE)
  const sink = { ...collector([]), frame: () => splitFrames(splitter, frame(2, Uint8Array.of(1)), sink) }

  expect(() => splitFrames(splitter, frame(1, Uint8Array.of(1)), sink)).toThrow('a sink does not split frames itself')
})

describe('routing', () => {
  const frame = bytesOfHex('ff0700000003000000616263')

  test('an envelope opens to its segment, its flag and its frame', () => {
    const segment = fc
      .string({ unit: 'grapheme', maxLength: 60 })
      .filter((text) => new TextEncoder().encode(text).length < 256)
    law([segment, fc.boolean(), fc.uint8Array({ maxLength: 50 })], (name, write, payload) => {
      const inner = Uint8Array.of(0xff, 1, 2, 3, 4, payload.length, 0, 0, 0, ...payload)
      const bytes = encodeEnvelope({ segment: name, write }, inner)
      const { frameStart, ...envelope } = decodeEnvelope(bytes)

      expect(envelope).toEqual({ segment: name, write })
      expect(bytes.subarray(frameStart)).toEqual(inner)
    })
  })

  test('the keepalive is the 29 bytes of the contract, with any id', () => {
    expect(hexOf(encodeKeepalive())).toBe('fe180000000d5f5f6b656570616c6976655f5f00ff0000000000000000')
    expect(hexOf(encodeKeepalive(0x01020304))).toBe('fe180000000d5f5f6b656570616c6976655f5f00ff0403020100000000')
  })

  test('a segment of more than 255 bytes does not fit its length byte', () => {
    expect(() => encodeEnvelope({ segment: 'é'.repeat(128), write: false }, frame)).toThrow('got 256')
  })

  test.each([
    ['too short', 'fe0a0000000000ff00000000000000'],
    ['a bare frame', hexOf(frame)],
    ['a segment past the end', 'fe0b000000ff00ff0000000000000000'],
    ['no frame inside', 'fe0b0000000000000000000000000000'],
    ['an inner frame that is too short', 'fe0c0000000000ff000000000000000000'],
    ['an outer length that is too long', 'fe0c0000000000ff0000000000000000'],
    ['a segment that is not UTF-8', 'fe0c00000001ff00ff0000000000000000'],
  ])('an envelope with %s is refused', (_, hex) => {
    expect(() => decodeEnvelope(bytesOfHex(hex))).toThrow(expect.objectContaining({ code: 'parse_error' }))
  })

  test('LOGIN is sent with correlation id 0', () => {
    expect(hexOf(encodeLogin('abc123'))).toBe('ff0000000015000000054c4f47494e010001000106000000616263313233')
  })

  const bytes = (text: string) => new TextEncoder().encode(text)

  test.each([
    ['', 'pending', 0],
    ['LOGIN', 'pending', 0],
    ['LOGIN FAILE', 'pending', 0],
    ['LOGIN OK', 'ok', 8],
    ['LOGIN FAILED', 'failed', 12],
    ['LOGIN OK\u00ff', 'ok', 8],
    ['LOGOUT', 'malformed', 0],
    ['\u00ff', 'malformed', 0],
    ['login ok', 'malformed', 0],
  ])('%j is %s', (text, answer, length) => {
    expect(readLoginAnswer(bytes(text))).toEqual({ answer, bytes: length })
  })

  test('the replies are 8 and 12 bytes, without a terminator', () => {
    expect([LOGIN_OK.length, LOGIN_FAILED.length]).toEqual([8, 12])
  })
})
