/** Sender and receiver of snapshots one step at a time: the test answers for the other node and the disk (transfer.ts). */

import { expect, test } from 'vitest'
import type { DriverFrame } from '../transport/frames.ts'
import {
  createReceiver,
  createSender,
  forgetIncoming,
  forgetOutgoing,
  installStatusOf,
  isWhole,
  keptFor,
  loadBytesMissing,
  makeCurrent,
  manifestReference,
  type Offer,
  offeredManifest,
  offerTo,
  onChunkData,
  onChunkMissing,
  onChunkRequest,
  onOffer,
  onOfferReply,
  onSourceLost,
  pinnedBy,
  type ReceiverPort,
  refuseReceived,
  replyInstalled,
  type SenderPort,
  TRANSFER_LIMITS,
  tickReceiver,
  tickSender,
} from './transfer.ts'

const MIB = 1 << 20
const MANIFEST = Uint8Array.of(1, 2, 3)
const digestOf = (n: number): string => n.toString(16).padStart(64, '0')
const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

type Pending = { readonly request: { readonly kind: string } & { readonly [name: string]: unknown } }
type Disk = Pending & { readonly done: (answer: object) => void }
type Sent = { readonly node: string; readonly frame: DriverFrame }

type FrameOf<Type extends DriverFrame['type']> = Extract<DriverFrame, { readonly type: Type }>

const isOf = <Type extends DriverFrame['type']>(frame: DriverFrame, type: Type): frame is FrameOf<Type> =>
  frame.type === type

const typed = <Type extends DriverFrame['type']>(
  sent: readonly Sent[],
  type: Type,
): ({ readonly to: string } & FrameOf<Type>)[] =>
  sent.flatMap(({ node, frame }) => (isOf(frame, type) ? [{ to: node, ...frame }] : []))

// The sender

function sending() {
  const now = { ms: 5_000 }
  const [disk, sent, timers] = [[] as Disk[], [] as Sent[], [] as { delayMs: number; run: () => void }[]]
  const reports: [number, boolean][] = []
  const offers: { peer: number; manifest: Uint8Array }[] = []
  const lines: object[] = []
  const accepts = { offers: true }
  const sender = createSender({
    send: (node: string, frame: DriverFrame) => sent.push({ node, frame }) > 0,
    exchange: (request: Disk['request'], done: Disk['done']) => void disk.push({ request, done }),
    nowMs: () => now.ms,
    after: (delayMs: number, run: () => void) => void timers.push({ delayMs, run }),
    log: { ...silent, warn: (fields: object) => void lines.push(fields) },
    sendOffer: (peer: number, _newest: object, manifest: Uint8Array) => {
      offers.push({ peer, manifest })
      return accepts.offers
    },
    reportSnapshot: (peer: number, isReceived: boolean) => void reports.push([peer, isReceived]),
  } as unknown as SenderPort)
  const newest = (index: number) => ({
    state: 'newest',
    newest: { index, manifest: MANIFEST, manifestDigest: digestOf(9) },
  })
  /** Offers the snapshot at an index to a peer. */
  const begin = (peer: number, index: number) => {
    offerTo(sender, peer, `n${peer}`)
    disk.pop()?.done(newest(index))
  }
  const reply = (peer: number, index: number, reason: string, ok = reason === 'pulling' || reason === 'installed') =>
    onOfferReply(sender, peer, { type: 'offerReply', index, ok, reason })
  return { sender, now, disk, sent, timers, reports, offers, lines, accepts, begin, reply, newest }
}

const range = (offset: number, length: number, id = 1) =>
  ({ type: 'chunkRequest', id, digest: digestOf(1), offset, length }) as const

test('an installed snapshot is counted with its duration, and the peer may get the next one at once', () => {
  const { sender, now, reply, begin, reports } = sending()
  begin(2, 7)
  now.ms += 300
  reply(2, 8, 'installed')
  reply(3, 7, 'installed')
  expect([sender.sent, reports]).toEqual([0, []])
  reply(2, 7, 'pulling')
  expect([sender.outgoing.size, sender.sent]).toEqual([1, 0])
  reply(2, 7, 'installed')
  expect([sender.outgoing.size, sender.sent, sender.lastDurationMs, reports]).toEqual([0, 1, 300, [[2, true]]])
})

test.each<[string, readonly number[]]>([
  ['failed', [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]],
  ['no-space', [30_000, 30_000]],
  ['no-memory', [30_000]],
  ['foreign', [30_000]],
])('after %s the next offer waits', (reason, delays) => {
  const { sender, now, begin, reply, reports, lines } = sending()
  for (const [n, delayMs] of delays.entries()) {
    begin(2, 7)
    reply(2, 7, reason)
    expect([sender.failed, lines.at(-1)]).toEqual([n + 1, { node: 'n2', reason, retryMs: delayMs }])
    now.ms += delayMs - 1
    const before = reports.length
    offerTo(sender, 2, 'n2')
    expect([sender.outgoing.size, reports.length]).toEqual([0, before + 1])
    now.ms += 1
  }
  begin(2, 7)
  expect(sender.outgoing.size).toBe(1)
  reply(2, 7, 'installed')
  expect(sender.backoff.size).toBe(0)
})

test('an offer fails without a snapshot here, or when the core does not take it', () => {
  const { sender, disk, accepts, begin, lines, newest, offers } = sending()
  offerTo(sender, 2, 'n2')
  disk.pop()?.done({ state: 'newest', newest: undefined })
  accepts.offers = false
  begin(3, 7)
  expect(lines).toMatchObject([{ reason: 'no snapshot here' }, { reason: 'offer not sent' }])
  // The answer of the disk for a peer that has left, or got another offer, is void.
  offerTo(sender, 4, 'n4')
  forgetOutgoing(sender, 4)
  disk.pop()?.done(newest(7))
  expect([offers.map(({ peer }) => peer), sender.outgoing.size]).toEqual([[3], 0])
})

test('two peers get a snapshot at once, and a peer that asks again counts once', () => {
  const { sender, begin, reports } = sending()
  begin(2, 7)
  begin(3, 8)
  begin(2, 9)
  offerTo(sender, 4, 'n4')
  expect([[...sender.outgoing.keys()], reports]).toEqual([[2, 3], [[4, false]]])
  expect([pinnedBy(sender), keptFor(sender)]).toEqual([[9, 8], 8])
  forgetOutgoing(sender, 3)
  expect([[...sender.outgoing.keys()], keptFor(sender)]).toEqual([[2], 9])
  forgetOutgoing(sender)
  expect([sender.outgoing.size, keptFor(sender)]).toEqual([0, Number.POSITIVE_INFINITY])
})

test('a transfer ends ten seconds after the last sign of the peer, and its log is kept for ten minutes', () => {
  const { sender, now, begin, reply, reports } = sending()
  begin(2, 7)
  const passes = (ms: number) => {
    now.ms += ms
    tickSender(sender)
    return sender.outgoing.size
  }
  expect(passes(9_999)).toBe(1)
  reply(2, 7, 'pulling')
  expect(passes(9_999)).toBe(1)
  onChunkRequest(sender, 'n3', range(0, 1))
  onChunkRequest(sender, 'n2', range(0, 1))
  expect(passes(9_999)).toBe(1)
  onChunkRequest(sender, 'n3', range(0, 1))
  expect([passes(1), reports]).toEqual([0, [[2, false]]])
  begin(3, 7)
  const [running] = sender.outgoing.values()
  now.ms = (running?.startedMs ?? 0) + TRANSFER_LIMITS.keepLogMs - 1
  expect(keptFor(sender)).toBe(7)
  now.ms += 1
  expect(keptFor(sender)).toBe(Number.POSITIVE_INFINITY)
})

test('a range is read from disk and sent, or reported as missing', () => {
  const { sender, disk, sent } = sending()
  onChunkRequest(sender, 'n2', range(5, 10, 3))
  expect(disk[0]?.request).toEqual({ kind: 'read', digest: digestOf(1), offset: 5, length: 10 })
  expect(sender.waiting).toBe(1)
  disk[0]?.done({ state: 'read', bytes: MANIFEST })
  expect(sender.waiting).toBe(0)
  expect(typed(sent, 'chunkData')).toMatchObject([{ to: 'n2', id: 3, digest: digestOf(1), offset: 5, bytes: MANIFEST }])
})

test.each<[string, number, number, boolean]>([
  ['of no bytes', 0, 0, false],
  ['of 1 MiB', 0, MIB, true],
  ['of more than 1 MiB', 0, MIB + 1, false],
  ['that ends far behind any chunk', 2 ** 40, 1, false],
])('a range %s is served or missing', (_, offset, length, isServed) => {
  const { sender, disk, sent } = sending()
  onChunkRequest(sender, 'n2', range(offset, length, 6))
  expect([disk.length, sender.waiting]).toEqual(isServed ? [1, 1] : [0, 0])
  expect(sent).toEqual(isServed ? [] : [{ node: 'n2', frame: { type: 'chunkMissing', id: 6, digest: digestOf(1) } }])
})

test('ranges wait so that 100 MB a second are sent, 64 at most, and what is more is dropped', () => {
  const { sender, disk, timers, now, sent } = sending()
  for (let n = 0; n < 70; n++) onChunkRequest(sender, 'n2', range(0, 1_000_000, n))
  expect([disk.length, timers.length, sender.waiting]).toEqual([1, 63, 64])
  expect(timers.slice(0, 3).map(({ delayMs }) => Math.round(delayMs))).toEqual([10, 20, 30])
  timers[0]?.run()
  disk[1]?.done({ state: 'missing' })
  disk[0]?.done({ state: 'read', bytes: MANIFEST })
  expect([sender.waiting, sent.map(({ frame }) => frame.type)]).toEqual([62, ['chunkMissing', 'chunkData']])
  // What was not sent in a pause is not made up for.
  now.ms += 60_000
  onChunkRequest(sender, 'n2', range(0, 1_000_000))
  expect(disk).toHaveLength(3)
  onChunkRequest(sender, 'n2', range(0, 1_000_000))
  expect(Math.round(timers.at(-1)?.delayMs ?? 0)).toBe(10)
})

test('an offer has the manifest up to 512 KiB, and only names a larger one', () => {
  const offered = (bytes: number) =>
    offeredManifest({ manifest: new Uint8Array(bytes), manifestDigest: digestOf(0xab) }).length
  expect([512 * 1024, 512 * 1024 + 1].map(offered)).toEqual([512 * 1024, 40])
  const reference = manifestReference(digestOf(0xab), 600_000)
  expect([new DataView(reference.buffer).getUint32(4, true), reference.at(-1)]).toEqual([600_000, 0xab])
})

// The receiver

const CHUNKS = [{ digest: digestOf(1), bytes: 2 * MIB + 10 }] as const

function receiving(sources: readonly string[] = ['n2', 'n3']) {
  const now = { ms: 5_000 }
  const [disk, sent] = [[] as Disk[], [] as Sent[]]
  const events: string[] = []
  const connected = { nodes: sources }
  const receiver = createReceiver(
    {
      send: (node: string, frame: DriverFrame) => sent.push({ node, frame }) > 0,
      exchange: (request: Disk['request'], done: Disk['done']) => void disk.push({ request, done }),
      sources: () => connected.nodes,
      nowMs: () => now.ms,
      log: silent,
      onReady: ({ purpose, index }: { purpose: string; index: number }) =>
        void events.push(`ready ${purpose} ${index}`),
      onFailed: (reason: string, detail: string) => void events.push(`failed ${reason} ${detail}`),
      onDelayed: (reason: string, detail: string) => void events.push(`delayed ${reason} ${detail}`),
    } as unknown as ReceiverPort,
    { shardId: 's', codecsOrderedHash: 'cd' },
  )
  const offer = (change: Partial<Offer> = {}) =>
    onOffer(receiver, { node: 'n2', index: 7, term: 3, manifest: MANIFEST, ...change })
  const plan = (change: object = {}) =>
    disk.pop()?.done({
      ...{ state: 'planned', shardId: 's', codecsOrderedHash: 'cd', hasRoom: true, contentDigest: digestOf(5) },
      ...{ packages: 6, held: [], missing: CHUNKS, bytesTotal: 2 * MIB + 10 },
      ...change,
    })
  const requests = () => typed(sent, 'chunkRequest')
  const data = (id: number, node?: string) => {
    const request = requests().find((each) => each.id === id)
    if (!request) throw new Error(`request ${id} was sent`)
    const { to, digest, offset, length } = request
    onChunkData(receiver, node ?? to, { type: 'chunkData', id, digest, offset, bytes: new Uint8Array(length) })
  }
  return { receiver, now, disk, sent, events, connected, offer, plan, requests, data }
}

test('a chunk is requested in ranges from all nodes, stored when it is whole, and then the snapshot is ready', () => {
  const { receiver, disk, events, offer, plan, requests, data } = receiving()
  offer()
  plan()
  expect(requests().map(({ to, offset, length }) => [to, offset, length])).toEqual([
    ['n2', 0, MIB],
    ['n3', MIB, MIB],
    ['n2', 2 * MIB, 10],
  ])
  data(2)
  data(1)
  expect(disk).toEqual([])
  data(3)
  expect([disk[0]?.request.kind, events, isWhole(receiver)]).toEqual(['store', [], false])
  disk.pop()?.done({ state: 'stored' })
  expect([events, isWhole(receiver)]).toEqual([['ready install 7'], true])
  expect(installStatusOf(receiver)).toEqual({ from: 'n2', index: 7, bytesDone: 2 * MIB + 10, bytesTotal: 2 * MIB + 10 })
})

test.each<[string, object, string]>([
  ['of another shard', { shardId: 'x' }, 'failed foreign it belongs to shard x'],
  ['with other codecs', { codecsOrderedHash: 'x' }, 'failed foreign it has other codecs'],
  ['without room', { hasRoom: false, bytesTotal: 55 }, 'failed no-space no room for 55 bytes of chunks'],
  ['on a full disk', { state: 'full' }, 'failed no-space full'],
  ['whose manifest is refused', { state: 'refused', error: { code: 'bad', reason: 'odd' } }, 'failed failed odd'],
  ['whose manifest is refused with a code', { state: 'refused', error: { code: 'bad' } }, 'failed failed bad'],
])('a snapshot %s is not received, and its node is notified', (_, answer, event) => {
  const { receiver, events, offer, plan, sent } = receiving()
  offer()
  plan(answer)
  const reason = event.split(' ')[1]
  expect([events, typed(sent, 'offerReply')]).toMatchObject([[event], [{ to: 'n2', index: 7, ok: false, reason }]])
  expect([receiver.incoming, receiver.failed]).toEqual([undefined, 1])
})

test('chunks that are here are verified, four at a time, and pulled when they are damaged', () => {
  const { receiver, disk, events, offer, plan, requests } = receiving()
  const held = [1, 2, 3, 4, 5].map((n) => ({ digest: digestOf(n), bytes: 10 }))
  offer()
  plan({ held, missing: [], bytesTotal: 50 })
  expect(disk.map(({ request }) => request.kind)).toEqual(new Array(4).fill('verify'))
  disk[0]?.done({ state: 'verified' })
  expect([disk.length, installStatusOf(receiver)?.bytesDone]).toEqual([5, 10])
  disk[1]?.done({ state: 'damaged' })
  for (const n of [2, 3, 4]) disk[n]?.done({ state: 'verified' })
  expect([events, requests().map(({ digest }) => digest)]).toEqual([[], [digestOf(2)]])
  const full = receiving()
  full.offer()
  full.plan({ held, missing: [] })
  full.disk[0]?.done({ state: 'full' })
  expect(full.events).toEqual(['failed no-space the disk is full'])
})

test('data are taken only from the requested node, and only the requested range', () => {
  const { receiver, offer, plan, requests, data } = receiving()
  offer()
  plan()
  data(1, 'n3')
  onChunkMissing(receiver, 'n3', { type: 'chunkMissing', id: 1, digest: digestOf(1) })
  expect(receiver.incoming?.requests.size).toBe(3)
  const frame = { type: 'chunkData', id: 1, digest: digestOf(1), offset: 0, bytes: new Uint8Array(MIB - 1) } as const
  onChunkData(receiver, 'n2', frame)
  // The range goes to the other node.
  expect(requests().at(-1)).toMatchObject({ to: 'n3', offset: 0, length: MIB })
  onChunkData(receiver, 'n3', { ...frame, id: 2, offset: 1, bytes: new Uint8Array(MIB) })
  onChunkData(receiver, 'n2', { ...frame, id: 3, digest: digestOf(2), offset: 2 * MIB, bytes: new Uint8Array(10) })
  expect(receiver.incoming?.pulling[0]?.receivedBytes).toBe(0)
})

test('requests of a lost node, and those without an answer for 4 s, go to another node', () => {
  const { receiver, now, offer, plan, requests, connected } = receiving()
  offer()
  plan()
  connected.nodes = ['n3']
  onSourceLost(receiver, 'n2')
  expect(
    requests()
      .slice(3)
      .map(({ to, offset }) => [to, offset]),
  ).toEqual([
    ['n3', 0],
    ['n3', 2 * MIB],
  ])
  connected.nodes = ['n3', 'n4']
  now.ms += 3_999
  tickReceiver(receiver)
  expect(requests()).toHaveLength(5)
  now.ms += 1
  tickReceiver(receiver)
  expect(
    requests()
      .slice(5)
      .map(({ to }) => to),
  ).toEqual(['n4', 'n4', 'n4'])
  // The only node left gets the request again.
  connected.nodes = ['n4']
  now.ms += 4_000
  tickReceiver(receiver)
  expect(
    requests()
      .slice(8)
      .map(({ to }) => to),
  ).toEqual(['n4', 'n4', 'n4'])
})

test('a damaged chunk of several nodes comes from one node next, and from the other one after that', () => {
  const { disk, offer, plan, requests, data } = receiving()
  offer()
  plan()
  const sourcesOf = (ids: readonly number[]) => {
    for (const id of ids) data(id)
    const before = requests().length
    disk.pop()?.done({ state: 'damaged' })
    return requests()
      .slice(before)
      .map(({ to, offset }) => [to, offset])
  }
  const all = (node: string) => [0, MIB, 2 * MIB].map((offset) => [node, offset])
  expect(sourcesOf([1, 2, 3])).toEqual(all('n2'))
  expect(sourcesOf([4, 5, 6])).toEqual(all('n3'))
})

test('progress is reported at once on a repeated offer, and else once a second', () => {
  const { receiver, now, offer, plan, sent } = receiving()
  offer()
  plan()
  const replies = () => typed(sent, 'offerReply').map(({ to, reason }) => [to, reason])
  now.ms += 999
  tickReceiver(receiver)
  expect(replies()).toEqual([])
  now.ms += 1
  tickReceiver(receiver)
  expect(replies()).toEqual([['n2', 'pulling']])
  offer({ node: 'n3' })
  expect(replies().slice(1)).toEqual([['n3', 'pulling']])
  replyInstalled(receiver, 'n3', 7)
  expect(typed(sent, 'offerReply').at(-1)).toMatchObject({ to: 'n3', index: 7, ok: true, reason: 'installed' })
})

test.each<[string, Partial<Offer>, Partial<Offer>, boolean]>([
  ['a newer snapshot', {}, { index: 8 }, true],
  ['another one of the same index', {}, { term: 4 }, true],
  ['an older one', {}, { index: 6 }, false],
  ['one to load', {}, { index: 9, purpose: 'load' }, false],
  ['one to install in place of one to load', { purpose: 'load' }, { index: 1 }, true],
])('%s replaces the running transfer: %o %o', (_, first, second, isReplaced) => {
  const { receiver, offer } = receiving()
  offer(first)
  const before = receiver.incoming
  offer({ manifest: Uint8Array.of(9), ...second })
  expect(receiver.incoming !== before).toBe(isReplaced)
})

/** A receiver whose snapshot is complete. */
function complete(purpose?: 'load') {
  const world = receiving()
  world.offer(purpose && { purpose })
  world.plan({ missing: [], bytesTotal: 40 })
  const paths: string[] = []
  const answer = (given: object) => {
    makeCurrent(world.receiver, (path) => void paths.push(path))
    world.disk.pop()?.done(given)
  }
  return { ...world, paths, answer }
}

test('a complete snapshot is made current once, and one to load is kept beside', () => {
  const { receiver, events, paths, answer } = complete()
  answer({ state: 'current', path: '/snapshots/7' })
  expect([events, paths, receiver.incoming, receiver.received]).toEqual([
    ['ready install 7'],
    ['/snapshots/7'],
    undefined,
    1,
  ])
  const load = complete('load')
  expect([installStatusOf(load.receiver), loadBytesMissing(load.receiver), loadBytesMissing(receiver)]).toEqual([
    undefined,
    40,
    0,
  ])
  makeCurrent(load.receiver, (path) => void load.paths.push(path))
  expect(load.disk[0]?.request).toMatchObject({ kind: 'hold', origin: 'load' })
  load.disk.pop()?.done({ state: 'held', path: '/held' })
  expect([load.events, load.paths]).toEqual([['ready load 7'], ['/held']])
})

test('while the core waits, a full disk delays an installation, and another fault ends it', () => {
  const full = complete()
  full.answer({ state: 'full' })
  expect([full.events.slice(1), isWhole(full.receiver), full.receiver.failed]).toEqual([
    ['delayed no-space the disk is full'],
    true,
    0,
  ])
  const broken = complete()
  broken.answer({ state: 'refused', error: { code: 'bad' } })
  expect([broken.events.slice(1), broken.receiver.incoming]).toEqual([['failed failed bad'], undefined])
  // A load can be given up: the shard continues without it.
  const load = complete('load')
  load.answer({ state: 'full' })
  expect(load.events.slice(1)).toEqual(['failed no-space the disk is full'])
})

test('chunks that were deleted meanwhile are pulled again, for a minute if no node has them', () => {
  const { receiver, now, events, answer, requests, connected } = complete()
  answer({ state: 'lacking', missing: [{ digest: digestOf(4), bytes: 10 }] })
  const [request] = requests()
  onChunkMissing(receiver, 'n2', { type: 'chunkMissing', id: request?.id ?? 0, digest: digestOf(4) })
  connected.nodes = ['n2']
  now.ms += 4_000
  tickReceiver(receiver)
  expect(events.slice(1)).toEqual(['delayed failed no node has chunk 000000000000'])
  expect(isWhole(receiver)).toBe(true)
})

test('a snapshot that the node has no memory for is refused, and one that is obsolete is forgotten', () => {
  const { receiver, events, sent } = complete()
  refuseReceived(receiver, 'no-memory', 'too large')
  expect([events.slice(1), receiver.failed]).toEqual([['failed no-memory too large'], 1])
  expect(typed(sent, 'offerReply').at(-1)).toMatchObject({ ok: false, reason: 'no-memory' })
  refuseReceived(receiver, 'no-memory', 'again')
  expect(receiver.failed).toBe(1)
  const other = complete()
  forgetIncoming(other.receiver)
  expect([isWhole(other.receiver), other.receiver.failed]).toEqual([false, 0])
})

test.each<[string, Uint8Array, 'manifest' | 'planning']>([
  ['a reference', manifestReference(digestOf(1), 600_000), 'manifest'],
  ['a reference to nothing', manifestReference(digestOf(1), 0), 'planning'],
  ['a reference to too much', manifestReference(digestOf(1), 2 ** 31), 'planning'],
  ['a manifest of 40 bytes', new Uint8Array(40).fill(1), 'planning'],
  ['a longer one', new Uint8Array([...manifestReference(digestOf(1), 600_000), 0]), 'planning'],
])('an offer with %s', (_, manifest, phase) => {
  const { receiver, offer, requests } = receiving()
  offer({ manifest })
  expect([receiver.incoming?.phase, requests().length]).toEqual([phase, phase === 'manifest' ? 1 : 0])
})
