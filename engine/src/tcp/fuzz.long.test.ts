import { readFileSync } from 'node:fs'
import { type CommandName, encodeRequest, FRAME_HEADER_BYTES } from '@vacancy/shared/wire'
import {
  ask,
  closeClient,
  dateIn,
  digestOf,
  type NodeProcess,
  openClient,
  removeFolder,
  somewhere,
  startNodeProcess,
  statusOf,
  succeed,
  temporaryFolder,
  type WireClient,
} from '@vacancy/testkit/node'
import { createRandom, type Random } from '@vacancy/testkit/random'
import { until } from '@vacancy/testkit/until'
import { afterAll, beforeAll, expect, test } from 'vitest'

const SEED = Number(process.env['VACANCY_SEED'] ?? Date.now() % 1_000_000)
/** Connections of one run, each with its own stream. `VACANCY_FUZZ=100000` for half an hour. */
const STREAMS = Number(process.env['VACANCY_FUZZ'] ?? 600)
const FRAMES_A_STREAM = 12
const GROWTH_BYTES_MAX = 128 << 20

const { cases, malformed } = JSON.parse(
  readFileSync(new URL('../../../shared/vectors/requests.json', import.meta.url), 'utf8'),
) as { cases: { hex: string; json: { command: CommandName | null } }[]; malformed: { hex: string }[] }

/** Frames that change no data while they are intact: reads, and writes to unknown objects. */
const seeds = [...cases, ...malformed].map(({ hex }) => Buffer.from(hex, 'hex'))
for (const fields of [
  { segment: 'alpine', roomType: 'double', dates: [dateIn(1), dateIn(2)], rateFeatures: ['breakfast'], limit: 3 },
  { segment: 'alpine', roomType: 'double', dates: [dateIn(3)], latitude: 47, longitude: 11, amenities: ['wifi'] },
]) {
  seeds.push(Buffer.from(encodeRequest({ command: 'SEARCHAVAIL', correlationId: 5, fields })))
}

const folder = temporaryFolder()
let node: NodeProcess
let bystander: WireClient

beforeAll(async () => {
  node = await startNodeProcess({ folder })
  bystander = await openClient(node)
  await succeed(bystander, 'SETPROP', somewhere('hotel_1'))
  await succeed(bystander, 'SETROOMPKG', {
    propertyId: 'hotel_1',
    roomType: 'double',
    date: dateIn(1),
    availability: 3,
    finalPrice: 100,
  })
})

afterAll(async () => {
  closeClient(bystander)
  await node.kill()
  removeFolder(folder)
})

const LENGTHS = [0, 1, 65_536, 65_537, 1 << 20, (1 << 20) + 1, 0x7fffffff, 0xffffffff]

type Mutation = (random: Random, frame: Buffer) => Buffer

const MUTATIONS: readonly Mutation[] = [
  (_, frame) => frame,
  // A bit, a byte, several bytes.
  (random, frame) => changed(frame, random.below(frame.length), (byte) => byte ^ (1 << random.below(8))),
  (random, frame) => changed(frame, random.below(frame.length), () => random.below(256)),
  (random, frame) => {
    let result = frame
    for (let i = random.below(8); i >= 0; i--)
      result = changed(result, random.below(result.length), () => random.below(256))
    return result
  },
  // Cut, doubled in part, spliced with another.
  (random, frame) => frame.subarray(0, random.below(frame.length)),
  (random, frame) => {
    const from = random.below(frame.length)
    return Buffer.concat([frame.subarray(0, from), frame.subarray(random.below(from + 1))])
  },
  (random, frame) => {
    const other = pick(random, seeds)
    return Buffer.concat([frame.subarray(0, random.below(frame.length)), other.subarray(random.below(other.length))])
  },
  // Lengths: that of the frame, and any bytes that may be one.
  (random, frame) => withLength(frame, 5, frame.length - FRAME_HEADER_BYTES + (random.below(2) === 0 ? 1 : -1)),
  (random, frame) => withLength(frame, 5, pick(random, LENGTHS)),
  (random, frame) => withLength(frame, random.below(Math.max(1, frame.length - 4)), pick(random, LENGTHS)),
  // Random bytes.
  (random) => Buffer.from(Array.from({ length: 1 + random.below(200) }, () => random.below(256))),
]

function pick<T>(random: Random, list: readonly T[]): T {
  return list[random.below(list.length)] as T
}

function changed(frame: Buffer, at: number, change: (byte: number) => number): Buffer {
  const copy = Buffer.from(frame)
  if (copy.length > 0) copy[at] = change(copy[at]) & 255
  return copy
}

function withLength(frame: Buffer, at: number, length: number): Buffer {
  const copy = Buffer.from(frame)
  if (copy.length >= at + 4) copy.writeUInt32LE(length >>> 0, at)
  return copy
}

/** Whether bytes contain the name of a write at any position: such a stream may legitimately change the state. */
const WRITES = cases.flatMap(({ json }) =>
  json.command && /^(SET|INC|DEC|DEL)/.test(json.command) ? [json.command] : [],
)
const mayWrite = (bytes: Buffer) => WRITES.some((name) => bytes.includes(name))

async function sendStream(random: Random, bytes: Buffer): Promise<void> {
  const client = await openClient(node)
  const pieces = random.below(3)
  if (pieces === 0) client.socket.write(bytes)
  // One byte at a time, or in pieces of any length.
  for (let at = 0; pieces > 0 && at < bytes.length && !client.isClosed; ) {
    const end = pieces === 1 ? at + 1 : at + 1 + random.below(bytes.length - at)
    client.socket.write(bytes.subarray(at, end))
    at = end
    if (random.below(50) === 0) await new Promise(setImmediate)
  }
  // The node answers the end of the stream by closing the connection, whatever the stream contained.
  client.socket.end()
  await until('the node closes the connection', () => client.isClosed || undefined)
}

test(`${STREAMS} streams of broken frames do not affect node, state, memory and other clients`, async () => {
  const before = await digestOf(node)
  const { rss } = (await statusOf(node)).memory
  let hasWritten = false

  for (let stream = 0; stream < STREAMS; stream += 10) {
    await Promise.all(
      Array.from({ length: 10 }, async (_, i) => {
        // Each stream has its own random numbers, independent of the others.
        const random = createRandom(SEED * 2 + (stream + i) * 7919)
        const frames = Array.from({ length: 1 + random.below(FRAMES_A_STREAM) }, () =>
          pick(random, MUTATIONS)(random, pick(random, seeds)),
        )
        const bytes = Buffer.concat(frames)
        hasWritten ||= mayWrite(bytes)
        await sendStream(random, bytes)
      }),
    )
    const found = await succeed(bystander, 'SEARCHAVAIL', { segment: 'alpine', roomType: 'double', dates: [dateIn(1)] })
    expect(found.properties, `seed ${SEED}, stream ${stream}`).toHaveLength(1)
  }

  const { memory, connections } = await statusOf(node)
  expect(connections, `seed ${SEED}`).toBe(1)
  expect(memory.rss - rss, `seed ${SEED}`).toBeLessThan(GROWTH_BYTES_MAX)
  if (!hasWritten) expect(await digestOf(node), `seed ${SEED}`).toBe(before)
}, 3_600_000)

test('streams without the name of a write change no bit of the state', async () => {
  const before = await digestOf(node)

  for (let stream = 0; stream < STREAMS; stream += 10) {
    await Promise.all(
      Array.from({ length: 10 }, async (_, i) => {
        const random = createRandom(SEED * 2 + 1 + (stream + i) * 7919)
        const frames = Array.from({ length: FRAMES_A_STREAM }, () =>
          pick(random, MUTATIONS)(random, pick(random, seeds)),
        )
        const bytes = Buffer.concat(frames.filter((frame) => !mayWrite(frame)))
        if (!mayWrite(bytes)) await sendStream(random, bytes)
      }),
    )
  }

  expect(await digestOf(node), `seed ${SEED}`).toBe(before)
  expect((await ask(bystander, 'GETCODECS', {})).ok).toBe(true)
}, 3_600_000)
