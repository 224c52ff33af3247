import { JOB_LIMITS } from '@vacancy/shared/contract'
import { describe, expect, it } from 'vitest'
import { type DeliveryParts, deliveryParts, encodeFrames, parseMessage } from './consumer-messages.ts'
import { type Delivery, FLAG } from './job.ts'

/** A message whose text has so many bytes. */
function partsOf(size: number, payload = ''): DeliveryParts {
  const payloadSize = Buffer.byteLength(payload)
  const head = 'h'.repeat(Math.floor((size - payloadSize) / 2))
  const tail = 't'.repeat(size - payloadSize - head.length)
  return { head, headSize: head.length, payload, payloadSize, tail }
}

describe('frames to consumers', () => {
  // RFC 6455, section 5.2: the shortest form of the length.
  it.each([
    [1, [0x81, 1]],
    [125, [0x81, 125]],
    [126, [0x81, 126, 0, 126]],
    [127, [0x81, 126, 0, 127]],
    [65_535, [0x81, 126, 0xff, 0xff]],
    [65_536, [0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]],
    [70_001, [0x81, 127, 0, 0, 0, 0, 0, 1, 0x11, 0x71]],
  ])('a text of %i bytes has the header %j', (size, header) => {
    const frames = encodeFrames([partsOf(size)])

    expect([...frames.subarray(0, header.length)]).toEqual(header)
    expect(frames.length).toBe(header.length + size)
    expect(frames.toString('latin1', header.length)).toMatch(/^h*t*$/)
  })

  it('stand one after the other, whatever their lengths', () => {
    const burst = [partsOf(125), partsOf(126, 'Zürich — 東京'), partsOf(65_536, '{"a":1}'), partsOf(40)]

    const frames = encodeFrames(burst)

    const headers = [2, 4, 10, 2]
    let at = 0
    for (const [n, { head, payload, tail }] of burst.entries()) {
      const text = head + payload + tail
      at += headers[n] as number
      expect(frames.toString('utf8', at, at + Buffer.byteLength(text))).toBe(text)
      at += Buffer.byteLength(text)
    }
    expect(frames.length).toBe(at)
  })
})

describe('the text of a delivery', () => {
  const deliveryOf = (id: string, data: string | undefined, flags: number, bytes = 0) =>
    ({
      job: { id, data, flags, bytes, failures: 2, deliveries: 5, topic: { name: 'orders' } },
      seqId: 7,
      deadlineMs: 30_000,
    }) as unknown as Delivery
  const textOf = (delivery: Delivery) => {
    const parts = deliveryParts(delivery, 'l-9')
    expect(parts.headSize).toBe(Buffer.byteLength(parts.head))
    expect(parts.payloadSize).toBe(Buffer.byteLength(parts.payload))
    return JSON.parse(parts.head + parts.payload + parts.tail) as unknown
  }
  const common = {
    action: 'job',
    topic: 'orders',
    seqId: 7,
    attempt: 3,
    deliveries: 5,
    lease: 'l-9',
    ackDeadlineMs: 30_000,
  }

  it('has the payload as it was given', () => {
    expect(textOf(deliveryOf('a"ü', '{"rooms":2}', FLAG.json))).toEqual({ ...common, jobId: 'a"ü', data: { rooms: 2 } })
    const wide = '{"city":"Zürich"}'
    expect(textOf(deliveryOf('b', wide, FLAG.json | FLAG.wide, Buffer.byteLength(wide)))).toEqual({
      ...common,
      jobId: 'b',
      data: { city: 'Zürich' },
    })
  })

  it('names the encoding of bytes, and has null for no payload', () => {
    expect(textOf(deliveryOf('c', 'AAEC', 0))).toEqual({ ...common, jobId: 'c', data: 'AAEC', encoding: 'base64' })
    expect(textOf(deliveryOf('d', undefined, 0))).toEqual({ ...common, jobId: 'd', data: null })
  })
})

describe('limits of messages', () => {
  const references = (count: number) => Array.from({ length: count }, (_, n) => ({ seqId: n }))
  const name = (length: number) => 'c'.repeat(length)

  it.each([
    ['an acknowledgement', { action: 'ack', jobs: references(JOB_LIMITS.acksPerMessage) }],
    ['a delay', { action: 'nack', seqId: 1, delayMs: JOB_LIMITS.delayMsMax }],
    ['no delay', { action: 'nack', seqId: 0, delayMs: 0 }],
    ['an extension', { action: 'extend', seqId: 1, ms: 1 }],
    ['a credit', { action: 'credit', prefetch: 0 }],
    ['a name', { action: 'init', uuid: name(JOB_LIMITS.consumerNameMax), topic: 'orders', prefetch: 1 }],
  ])('%s at its limit is accepted', (_, message) => {
    expect(parseMessage(JSON.stringify(message))).toEqual(message)
  })

  it.each([
    ['no acknowledgement', { action: 'ack', jobs: [] }, 'jobs must list 1 to 1000 deliveries'],
    [
      'an acknowledgement',
      { action: 'ack', jobs: references(JOB_LIMITS.acksPerMessage + 1) },
      'jobs must list 1 to 1000 deliveries',
    ],
    [
      'a delay',
      { action: 'nack', seqId: 1, delayMs: JOB_LIMITS.delayMsMax + 1 },
      'delayMs must be a whole number up to 31536000000',
    ],
    ['a negative delay', { action: 'nack', seqId: 1, delayMs: -1 }, 'delayMs must be a whole number up to 31536000000'],
    ['an extension', { action: 'extend', seqId: 1, ms: 0 }, 'ms must be a whole number from 1'],
    ['a credit', { action: 'credit', prefetch: -1 }, 'credit needs prefetch, a whole number'],
    ['a name', { action: 'init', uuid: name(JOB_LIMITS.consumerNameMax + 1), topic: 'o' }, 'init needs uuid and topic'],
    ['no name', { action: 'init', uuid: '', topic: 'o' }, 'init needs uuid and topic'],
    ['a prefetch', { action: 'init', uuid: 'a', topic: 'o', prefetch: 0 }, 'prefetch must be at least 1'],
  ])('%s beyond its limit is refused', (_, message, error) => {
    expect(parseMessage(JSON.stringify(message))).toEqual({ fault: 'bad_message', error })
  })

  it('reads the acknowledgement of existing clients, with and without a topic', () => {
    expect(parseMessage('{"action":"ack","topic":"","last_id":7,"JobID":"a"}')).toEqual({
      action: 'ack',
      seqId: 7,
      jobId: 'a',
    })
    expect(parseMessage('{"action":"ack","topic":"orders","lastID":0,"jobId":"ü"}')).toEqual({
      action: 'ack',
      topic: 'orders',
      seqId: 0,
      jobId: 'ü',
    })
  })
})
