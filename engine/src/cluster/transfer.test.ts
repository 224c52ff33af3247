import { assert } from '@vacancy/shared'
import { createRandom } from '@vacancy/testkit/random'
import { beforeEach, expect, test } from 'vitest'
import { inlineExchange, type Newest } from '../snapshot/exchange.ts'
import { findSnapshots, retainSnapshots, verifySnapshot } from '../snapshot/snapshot.ts'
import { inlineEncoder, writeSnapshotDirAtOnce } from '../snapshot/write.ts'
import { fillDisk } from '../testing/disk.ts'
import { createSimulation, type Simulation } from '../testing/simulation.ts'
import { createTestSource } from '../testing/snapshot-source.ts'
import type { DriverFrame } from '../transport/frames.ts'
import {
  createReceiver,
  createSender,
  exchangeOverPort,
  forgetOutgoing,
  installStatusOf,
  keptFor,
  makeCurrent,
  offeredManifest,
  offerTo,
  onChunkData,
  onChunkMissing,
  onChunkRequest,
  onOffer,
  onOfferReply,
  onSourceLost,
  pinnedBy,
  type Received,
  type Receiver,
  replyInstalled,
  type Sender,
  TRANSFER_LIMITS,
  tickReceiver,
  tickSender,
} from './transfer.ts'

const source = createTestSource({ segments: 3, propertiesPerSegment: 2_000, roomTypes: 2, nights: 40 })
// Prices that do not compress, so that a chunk takes several ranges.
const prices = createRandom(1)
let plane = 0
for (const { rows, days } of source.tables) {
  for (let night = 0; night < days.length; night++, plane++) {
    const words = source.planes.planeMap.words[plane] / 4
    for (let row = 0; row < rows.length; row++) source.planes.u32[words + row * 2 + 1] = prices.below(2 ** 32)
  }
}
const encoder = inlineEncoder(source, source.planes.scratch[0])

/** A shard in one thread: each node has a sender, a receiver and a folder of its own. */
type World = {
  readonly simulation: Simulation
  readonly nodes: Map<string, Node>
  /** Pairs that cannot reach each other, as `a>b`. */
  readonly cut: Set<string>
  /** Intercepts frames; false drops one. */
  filter: (from: string, to: string, frame: DriverFrame) => DriverFrame | undefined
  readonly frames: { from: string; to: string; frame: DriverFrame }[]
}

type Node = {
  readonly name: string
  readonly id: number
  readonly dataDir: string
  sender: Sender
  receiver: Receiver
  readonly ready: Received[]
  readonly failures: string[]
  readonly delays: string[]
  readonly reports: { peer: number; isReceived: boolean }[]
  current: string
}

let world: World
beforeEach(() => {
  const simulation = createSimulation()
  simulation.disk.syncDirectory('/')
  world = { simulation, nodes: new Map(), cut: new Set(), filter: (_from, _to, frame) => frame, frames: [] }
})

function write(dataDir: string, index: number): void {
  source.planes.u32[source.planes.planeMap.words[0] / 4 + 1] = ~index
  writeSnapshotDirAtOnce(world.simulation.env, dataDir, { ...source, index }, { encoder, origin: 'test' })
}

function add(name: string): Node {
  const dataDir = `/${name}`
  if (!world.simulation.disk.stat(dataDir)) world.simulation.disk.makeDirectory(dataDir)
  const node = {
    name,
    id: world.nodes.size + 1,
    dataDir,
    ready: [],
    failures: [],
    delays: [],
    reports: [],
    current: '',
  } as unknown as Node
  world.nodes.set(name, node)
  start(node)
  return node
}

/** A process start: all memory of the node is lost. */
function start(node: Node): void {
  const { env } = world.simulation
  const { name, dataDir } = node
  const exchange = inlineExchange(env, dataDir)
  const nowMs = () => env.clock.monotonicMs()
  node.receiver = createReceiver(
    {
      send: (to, frame) => send(name, to, frame),
      exchange,
      sources: () => [...world.nodes.keys()].filter((other) => other !== name && reaches(name, other)),
      nowMs,
      log: env.log,
      onReady: (received) => node.ready.push(received),
      onFailed: (reason, detail) => node.failures.push(`${reason}: ${detail}`),
      onDelayed: (reason, detail) => node.delays.push(`${reason}: ${detail}`),
    },
    { shardId: 's1', codecsOrderedHash: source.codecs.orderedHash },
  )
  node.sender = createSender({
    send: (to, frame) => send(name, to, frame),
    exchange,
    nowMs,
    after: (delayMs, run) => void env.schedule.after(delayMs, run),
    log: env.log,
    sendOffer: (peer, newest, manifest) => offer(node, peer, newest, manifest),
    reportSnapshot: (peer, isReceived) => node.reports.push({ peer, isReceived }),
  })
}

const reaches = (from: string, to: string) => !world.cut.has(`${from}>${to}`) && !world.cut.has(`${to}>${from}`)

function offer(from: Node, peer: number, { index, term }: Newest, manifest: Uint8Array): boolean {
  const to = [...world.nodes.values()].find(({ id }) => id === peer) as Node
  if (!reaches(from.name, to.name)) return false
  world.simulation.env.schedule.after(1, () => onOffer(to.receiver, { node: from.name, index, term, manifest }))
  return true
}

function send(from: string, to: string, sent: DriverFrame): boolean {
  if (!reaches(from, to)) return false
  const frame = world.filter(from, to, sent)
  if (!frame) return true
  world.frames.push({ from, to, frame })
  world.simulation.env.schedule.after(1, () => {
    const target = world.nodes.get(to)
    if (!target) return
    if (frame.type === 'chunkRequest') onChunkRequest(target.sender, from, frame)
    if (frame.type === 'chunkData') onChunkData(target.receiver, from, frame)
    if (frame.type === 'chunkMissing') onChunkMissing(target.receiver, from, frame)
    if (frame.type === 'offerReply') onOfferReply(target.sender, (world.nodes.get(from) as Node).id, frame)
  })
  return true
}

/** Advances time; all nodes tick ten times a second. */
function pass(ms: number): void {
  for (let at = 0; at < ms; at += 100) {
    world.simulation.advance(100)
    for (const { receiver, sender } of world.nodes.values()) {
      tickReceiver(receiver)
      tickSender(sender)
    }
  }
}

function install(node: Node): void {
  makeCurrent(node.receiver, (path) => {
    node.current = path
  })
  world.simulation.settle()
}

/** Deletes the chunks, as if the snapshot that holds them were retired. */
function dropChunks({ dataDir }: Node): void {
  const { disk } = world.simulation
  const folder = `${dataDir}/incoming`
  for (const name of disk.list(folder)) disk.unlink(`${folder}/${name}`)
}

function expectWhole(node: Node, index: number): void {
  const [found] = findSnapshots(world.simulation.disk, node.dataDir)
  assert(found?.state === 'readable', 'the snapshot is found')
  expect(found.index).toBe(index)
  verifySnapshot(world.simulation.disk, found.head)
}

const requests = (to?: string) =>
  world.frames.filter(({ frame, to: at }) => frame.type === 'chunkRequest' && (to === undefined || at === to)).length

test('a snapshot is pulled in ranges, at most a window at a time, and made current', () => {
  const [a, b] = [add('a'), add('b')]
  write(a.dataDir, 7)
  let most = 0
  world.filter = (_from, _to, frame) => {
    most = Math.max(most, b.receiver.incoming?.requests.size ?? 0)
    if (frame.type === 'chunkRequest') expect(frame.length).toBeLessThanOrEqual(TRANSFER_LIMITS.rangeBytes)
    return frame
  }

  offerTo(a.sender, b.id, 'b')
  pass(1_000)
  expect(b.ready).toMatchObject([{ index: 7, term: 1 }])
  install(b)
  replyInstalled(b.receiver, 'a', 7)
  pass(100)

  expectWhole(b, 7)
  expect(b.current).toBe('/b/snapshots/snap-7-1')
  expect(requests()).toBeGreaterThan(4)
  expect(most).toBeLessThanOrEqual(TRANSFER_LIMITS.window)
  expect(a.reports).toEqual([{ peer: b.id, isReceived: true }])
  expect(a.sender).toMatchObject({ sent: 1, failed: 0 })
})

test('verified chunks are not pulled again after a restart or from another leader', () => {
  const [a, b] = [add('a'), add('b')]
  write(a.dataDir, 7)
  let left = 4
  world.filter = (_from, _to, frame) => (frame.type !== 'chunkData' || left-- > 0 ? frame : undefined)
  offerTo(a.sender, b.id, 'b')
  pass(2_000)
  const kept = world.simulation.disk.list('/b/incoming').length
  expect(kept).toBeGreaterThan(0)

  start(b)
  world.filter = (_from, _to, frame) => frame
  world.nodes.delete('a')
  const c = add('c')
  write(c.dataDir, 7)
  const before = requests()
  offerTo(c.sender, b.id, 'b')
  pass(1_000)

  expect(b.ready).toHaveLength(1)
  expect(requests() - before).toBeLessThan(before)
  install(b)
  expectWhole(b, 7)
})

test('a second snapshot costs the chunks that changed', () => {
  const [a, b] = [add('a'), add('b')]
  write(a.dataDir, 7)
  offerTo(a.sender, b.id, 'b')
  pass(1_000)
  install(b)
  const first = requests()
  forgetOutgoing(a.sender)

  write(a.dataDir, 8)
  offerTo(a.sender, b.id, 'b')
  pass(1_000)
  install(b)

  expectWhole(b, 8)
  expect(requests() - first).toBeLessThan(first / 2)
})

test('a node that installs a snapshot on a full disk waits for room (it used to end, seed 7589140)', () => {
  const [a, b] = [add('a'), add('b')]
  const { disk } = world.simulation
  write(a.dataDir, 7)
  offerTo(a.sender, b.id, 'b')
  pass(1_000)
  expect(b.ready).toHaveLength(1)

  fillDisk(disk)
  for (let tries = 1; tries <= 3; tries++) {
    install(b)
    expect(b.delays).toEqual(Array.from({ length: tries }, () => 'no-space: the disk is full'))
    pass(TRANSFER_LIMITS.progressMs * 2)
  }
  expect(b.failures).toEqual([])
  expect(b.current).toBe('')

  disk.capacityBytes = 2 ** 40
  install(b)
  expect(b.current).toBe('/b/snapshots/snap-7-1')
  expectWhole(b, 7)
})

test('a node that lost chunks during an install pulls them when a peer is there (it used to end after 10 s)', () => {
  const [a, b] = [add('a'), add('b')]
  write(a.dataDir, 7)
  offerTo(a.sender, b.id, 'b')
  pass(1_000)
  dropChunks(b)
  world.cut.add('a>b')

  install(b)
  pass(TRANSFER_LIMITS.progressMs * 2)
  expect(b.delays).toEqual(['failed: no progress'])
  install(b)
  expect(b.failures).toEqual([])
  world.cut.clear()
  pass(1_000)
  expect(b.ready).toHaveLength(2)
  install(b)

  expectWhole(b, 7)
})

test('a snapshot that no node has any more fails after a minute, even if the core waits for it', () => {
  const [a, b] = [add('a'), add('b')]
  write(a.dataDir, 7)
  offerTo(a.sender, b.id, 'b')
  pass(1_000)
  dropChunks(b)
  world.filter = (_from, _to, frame) => (frame.type === 'chunkRequest' ? { ...frame, digest: '00'.repeat(32) } : frame)

  install(b)
  for (let waitedMs = 0; b.failures.length === 0; waitedMs += 5_000) {
    expect(waitedMs).toBeLessThanOrEqual(TRANSFER_LIMITS.missingMs + 10_000)
    pass(5_000)
    if (b.receiver.incoming?.phase === 'ready') install(b)
  }
  expect(b.delays.length).toBeGreaterThan(3)
  expect(b.failures[0]).toMatch(/^failed: no node has chunk /)
})

test('chunks come from any node that has them, and from others when a node is gone', () => {
  const [a, b, c] = [add('a'), add('b'), add('c')]
  write(a.dataDir, 7)
  write(c.dataDir, 7)
  world.filter = (_from, to, frame) => {
    // The offering node dies after its first requests.
    if (to === 'a' && frame.type === 'chunkRequest' && requests('a') >= 2) {
      world.cut.add('a>b')
      world.simulation.env.schedule.after(0, () => onSourceLost(b.receiver, 'a'))
      return undefined
    }
    return frame
  }

  offerTo(a.sender, b.id, 'b')
  pass(2_000)

  expect(b.ready).toHaveLength(1)
  expect(requests('c')).toBeGreaterThan(0)
  install(b)
  expectWhole(b, 7)
})

test('nodes report missing chunks, and a node that does not reply is skipped', () => {
  const [a, b] = [add('a'), add('b')]
  add('empty')
  add('mute')
  write(a.dataDir, 7)
  world.filter = (from, _to, frame) => (from === 'mute' ? undefined : frame)

  offerTo(a.sender, b.id, 'b')
  pass(15_000)

  expect(world.frames.some(({ from, frame }) => from === 'empty' && frame.type === 'chunkMissing')).toBe(true)
  expect(b.failures).toEqual([])
  expect(b.ready).toHaveLength(1)
})

test('a damaged chunk is pulled again from another node', () => {
  const [a, b, liar] = [add('a'), add('b'), add('liar')]
  write(a.dataDir, 7)
  write(liar.dataDir, 7)
  world.filter = (from, _to, frame) =>
    from === 'liar' && frame.type === 'chunkData' ? { ...frame, bytes: new Uint8Array(frame.bytes.length) } : frame

  offerTo(a.sender, b.id, 'b')
  pass(5_000)

  expect(b.ready).toHaveLength(1)
  install(b)
  expectWhole(b, 7)
  expect(world.simulation.lines.some(({ message }) => message === 'damaged chunk received')).toBe(true)
  // A node that sent all of a chunk gets no second request for it; of one that several sent, each may have damaged a part.
  const requests = world.frames.flatMap(({ to, frame }) => (frame.type === 'chunkRequest' ? [{ to, ...frame }] : []))
  const whole = (digest: string) => requests.every((one) => one.digest !== digest || one.offset === 0)
  const fromLiar = requests.filter(({ to, digest }) => to === 'liar' && whole(digest)).map(({ digest }) => digest)
  expect(fromLiar.length).toBeGreaterThan(0)
  expect(new Set(fromLiar).size).toBe(fromLiar.length)
})

test('a transfer without progress fails on both sides after ten seconds, and the next one waits longer each time', () => {
  const [a, b] = [add('a'), add('b')]
  write(a.dataDir, 7)
  world.filter = (_from, _to, frame) => (frame.type === 'chunkData' ? undefined : frame)

  offerTo(a.sender, b.id, 'b')
  pass(TRANSFER_LIMITS.progressMs + 500)
  expect(b.failures).toEqual(['failed: no progress'])
  expect(a.reports).toEqual([{ peer: b.id, isReceived: false }])

  const frames = world.frames.length
  offerTo(a.sender, b.id, 'b')
  world.simulation.settle()
  expect(a.reports).toHaveLength(2)
  expect(world.frames).toHaveLength(frames)
  pass(1_000)
  offerTo(a.sender, b.id, 'b')
  pass(TRANSFER_LIMITS.progressMs + 500)
  expect(a.reports).toHaveLength(3)
  const delays = world.simulation.lines
    .filter(({ message }) => message === 'snapshot not sent')
    .map(({ fields }) => (fields as { retryMs: number }).retryMs)
  expect(delays).toEqual([1_000, 2_000])
})

test('a receiver without room reports that and gets another offer after half a minute', () => {
  const [a, b] = [add('a'), add('b')]
  write(a.dataDir, 7)
  const { disk } = world.simulation
  const { space } = disk
  disk.space = (path) => ({ ...space(path), freeBytes: path === '/b' ? 1_000 : space(path).freeBytes })

  offerTo(a.sender, b.id, 'b')
  pass(500)

  expect(b.failures[0]).toMatch(/^no-space/)
  expect(a.sender.backoff.get(b.id)).toMatchObject({ delayMs: 30_000 })
  expect(requests()).toBe(0)
})

test('a snapshot of another shard or of another codec list is refused', () => {
  const [a, b] = [add('a'), add('b')]
  write(a.dataDir, 7)
  b.receiver = { ...b.receiver, shardId: 's2' }
  offerTo(a.sender, b.id, 'b')
  pass(500)
  expect(b.failures[0]).toMatch(/^foreign/)

  forgetOutgoing(a.sender)
  b.receiver = { ...b.receiver, shardId: 's1', codecsOrderedHash: '00'.repeat(32) }
  offerTo(a.sender, b.id, 'b')
  pass(500)
  expect(b.failures[1]).toMatch(/^foreign/)
})

test('at most two transfers run at once, and the log behind them is kept for ten minutes', () => {
  const [a, b, c, d] = [add('a'), add('b'), add('c'), add('d')]
  write(a.dataDir, 7)
  world.filter = () => undefined

  for (const peer of [b, c, d]) offerTo(a.sender, peer.id, peer.name)
  world.simulation.settle()

  expect(a.reports).toEqual([{ peer: d.id, isReceived: false }])
  expect(keptFor(a.sender)).toBe(7)
  expect(pinnedBy(a.sender)).toEqual([7])
  // Replies arrive but chunks do not: both sides continue, but the log is not kept forever.
  for (const outgoing of a.sender.outgoing.values()) outgoing.progressMs = 600_000
  world.simulation.advance(TRANSFER_LIMITS.keepLogMs)
  expect(keptFor(a.sender)).toBe(Number.POSITIVE_INFINITY)
})

test('all peers together are sent no more than 100 MB a second', () => {
  const [a, b] = [add('a'), add('b')]
  write(a.dataDir, 7)
  const sentAt: number[] = []
  world.filter = (_from, _to, frame) => {
    if (frame.type === 'chunkData') sentAt.push(world.simulation.env.clock.monotonicMs())
    return frame
  }

  const [found] = findSnapshots(world.simulation.disk, a.dataDir)
  assert(found?.state === 'readable', 'there is a snapshot')
  const parts = found.head.manifest.blocks.flatMap((block) => block.parts)
  const largest = parts.sort((x, y) => y.bytes - x.bytes)[0]
  assert(largest !== undefined && largest.bytes > TRANSFER_LIMITS.rangeBytes, 'a chunk takes several ranges')
  for (let id = 0; id < 32; id++) {
    const length = TRANSFER_LIMITS.rangeBytes
    const name = Buffer.from(largest.digest).toString('hex')
    onChunkRequest(a.sender, b.name, { type: 'chunkRequest', id, digest: name, offset: 0, length })
  }
  pass(1_000)

  expect(sentAt).toHaveLength(32)
  expect(sentAt[31] - sentAt[0]).toBeGreaterThanOrEqual(((31 * TRANSFER_LIMITS.rangeBytes) / 100e6) * 1_000 - 1)
})

test('a new offer replaces an older one, and a repeated one continues', () => {
  const [a, b, c] = [add('a'), add('b'), add('c')]
  write(a.dataDir, 7)
  write(c.dataDir, 7)
  world.filter = (_from, _to, frame) => (frame.type === 'chunkData' ? undefined : frame)
  offerTo(a.sender, b.id, 'b')
  pass(300)
  const begun = b.receiver.incoming

  offerTo(c.sender, b.id, 'b')
  pass(300)
  expect(b.receiver.incoming).toBe(begun)
  expect(installStatusOf(b.receiver)).toMatchObject({ from: 'c', index: 7 })

  write(c.dataDir, 8)
  forgetOutgoing(c.sender)
  offerTo(c.sender, b.id, 'b')
  pass(300)
  expect(installStatusOf(b.receiver)).toMatchObject({ from: 'c', index: 8 })
  offerTo(a.sender, b.id, 'b')
  pass(300)
  expect(installStatusOf(b.receiver)).toMatchObject({ index: 8 })
})

test('chunks deleted between verification and making current are pulled again', () => {
  const [a, b] = [add('a'), add('b')]
  write(a.dataDir, 7)
  write(b.dataDir, 3)
  offerTo(a.sender, b.id, 'b')
  pass(1_000)
  expect(b.ready).toHaveLength(1)

  // The node takes newer snapshots of its own, and the shared chunks are deleted.
  const { disk } = world.simulation
  for (const name of disk.list('/b/snapshots/snap-3-1')) disk.unlink(`/b/snapshots/snap-3-1/${name}`)
  retainSnapshots(disk, '/b')
  install(b)
  expect(b.current).toBe('')
  pass(1_000)
  expect(b.ready).toHaveLength(2)
  install(b)

  expectWhole(b, 7)
})

test('a snapshot to load is kept beside, and yields to one to install', () => {
  const [a, b] = [add('a'), add('b')]
  write(a.dataDir, 7)
  const offerLoad = () =>
    a.sender.port.exchange({ kind: 'newest' }, (answer) => {
      assert(answer.state === 'newest' && answer.newest !== undefined, 'there is a snapshot')
      const { index, term, manifest } = answer.newest
      onOffer(b.receiver, { node: 'a', index, term, manifest, purpose: 'load' })
    })
  offerLoad()
  pass(1_000)
  expect(b.ready).toMatchObject([{ purpose: 'load', index: 7 }])
  install(b)
  expect(b.current).toMatch(/^[/]b[/]snapshots[/]load-[0-9a-f]{64}$/)
  expect(findSnapshots(world.simulation.disk, '/b')).toEqual([])

  write(a.dataDir, 8)
  world.filter = (_from, _to, frame) => (frame.type === 'chunkData' ? undefined : frame)
  offerLoad()
  pass(300)
  offerTo(a.sender, b.id, 'b')
  pass(300)
  expect(b.receiver.incoming?.offer.purpose).toBeUndefined()
  offerLoad()
  pass(300)
  expect(b.receiver.incoming?.offer.purpose).toBeUndefined()
})

test('a large manifest is named in the offer and pulled like a chunk', () => {
  const manifest = new Uint8Array(TRANSFER_LIMITS.offeredBytes + 1)
  const reference = offeredManifest({ manifest, manifestDigest: 'ab'.repeat(32) })
  expect(reference.length).toBe(40)
  const small = new Uint8Array(100)
  expect(offeredManifest({ manifest: small, manifestDigest: 'ab'.repeat(32) })).toBe(small)

  const [a, b] = [add('a'), add('b')]
  write(a.dataDir, 7)
  const { exchange } = a.sender.port
  exchange({ kind: 'newest' }, (answer) => {
    assert(answer.state === 'newest' && answer.newest !== undefined, 'there is a snapshot')
    const { newest } = answer
    const padded = { manifest: new Uint8Array(TRANSFER_LIMITS.offeredBytes + 1), manifestDigest: newest.manifestDigest }
    const field = offeredManifest(padded)
    new DataView(field.buffer).setUint32(4, newest.manifest.length, true)
    onOffer(b.receiver, { node: 'a', index: newest.index, term: newest.term, manifest: field })
  })
  pass(1_000)

  expect(b.ready).toHaveLength(1)
  install(b)
  expectWhole(b, 7)
})

test('replies of the other thread reach their request', () => {
  const posted: number[] = []
  const { exchange, onExchanged } = exchangeOverPort((id) => posted.push(id))
  const answers: string[] = []

  exchange({ kind: 'newest' }, (answer) => answers.push(`first ${answer.state}`))
  exchange({ kind: 'newest' }, (answer) => answers.push(`second ${answer.state}`))
  onExchanged(posted[1], { state: 'stored' })
  onExchanged(posted[0], { state: 'bad' })

  expect(answers).toEqual(['second stored', 'first bad'])
})

test('under loss, delay, duplication and cuts a snapshot completes, and only a whole one becomes current', () => {
  const runs = Number(process.env['TRANSFER_RUNS'] ?? 10)
  const first = Number(process.env['TRANSFER_SEED'] ?? 1)
  for (let run = 0; run < runs; run++) {
    const random = createRandom(first + run)
    world.nodes.clear()
    world.cut.clear()
    const names = ['a', 'b', 'c'].map((name) => `${name}${run}`)
    const [a, b, c] = names.map((name) => add(name)) as [Node, Node, Node]
    write(a.dataDir, 7)
    write(c.dataDir, 7)
    world.filter = (from, to, frame) => {
      if (frame.type === 'chunkData' && random.below(20) === 0) {
        const bytes = frame.bytes.slice()
        bytes[0] = bytes[0] ^ 1
        return { ...frame, bytes }
      }
      if (random.below(8) === 0) return undefined
      if (frame.type === 'chunkData' && random.below(8) === 0) {
        world.simulation.env.schedule.after(random.below(3_000), () => {
          const target = world.nodes.get(to)
          if (target) onChunkData(target.receiver, from, frame)
        })
      }
      return frame
    }
    for (let second = 0; second < 120 && b.current === ''; second++) {
      const cut = `${names[0]}>${names[1]}`
      if (random.below(5) === 0) world.cut.add(cut)
      if (random.below(3) === 0 && world.cut.delete(cut) === false) onSourceLost(b.receiver, a.name)
      if (random.below(15) === 0) start(b)
      const leader = second % 40 < 30 ? a : c
      if (!b.receiver.incoming) offerTo(leader.sender, b.id, b.name)
      pass(1_000)
      if (b.receiver.incoming?.phase === 'ready') install(b)
    }
    expect(b.current, `TRANSFER_SEED=${first + run}`).not.toBe('')
    expectWhole(b, 7)
  }
})
