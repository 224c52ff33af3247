import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect as connectTcp, createServer, type Server, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls'
import { type CertificateOptions, makeCertificate } from '@vacancy/shared/testing/certificates'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { createAuthority, createNodeCertificate, type Pair } from '../cli/certificates.ts'
import { createEnv } from '../env.ts'
import { frameParts } from './framing.ts'
import { decodeAnswer, encodeHello } from './handshake.ts'
import { openTlsTransport, type TlsTransport } from './tls-transport.ts'
import type { StreamKind } from './transport.ts'
import type { Address, TransportCounters, TransportLimits } from './transport-state.ts'

const DAY = { nowMs: Date.now(), days: 1 }

let authority: Pair
let foreignAuthority: Pair
const pairs: { [node: string]: Pair } = {}

beforeAll(async () => {
  authority = await createAuthority(DAY)
  foreignAuthority = await createAuthority(DAY)
  for (const node of ['a', 'b', 'c']) pairs[node] = await certificateOf(node)
})

const certificateOf = async (node: string, ca = authority) =>
  await createNodeCertificate(ca, { node, hosts: [], ...DAY })

const materialOf = (pair: Pair | undefined, ca = authority) => ({
  cert: pair?.cert ?? '',
  key: pair?.key ?? '',
  clientCa: ca.cert,
  notBeforeMs: 0,
  notAfterMs: 12_345,
  fingerprint: '',
})

type Event =
  | { readonly open: string; readonly stream: StreamKind }
  | { readonly closed: string; readonly stream: StreamKind; readonly isDead: boolean }

type Node = {
  readonly name: string
  readonly transport: TlsTransport
  readonly frames: { readonly peer: string; readonly stream: StreamKind; readonly frame: Uint8Array }[]
  readonly events: Event[]
  readonly logged: string[]
  readonly causes: string[]
  readonly duplicates: string[]
  readonly lookups: boolean[]
}

const cleanups: (() => unknown)[] = []
/** Addresses by node; tests move them. */
const book = new Map<string, Address>()

afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
  book.clear()
  waiting.clear()
})

/** Conditions that tests wait for, checked after each event. */
const waiting = new Set<() => void>()
const look = (): void => {
  for (const check of [...waiting]) check()
}
async function until(condition: () => boolean): Promise<void> {
  if (condition()) return
  await new Promise<void>((resolve) => {
    const check = (): void => {
      if (!condition()) return
      waiting.delete(check)
      clearInterval(timer)
      resolve()
    }
    // Counters change without an event.
    const timer = setInterval(check, 5)
    waiting.add(check)
  })
}

type Opening = {
  readonly insecure?: boolean
  readonly pair?: Pair
  readonly port?: number
  readonly limits?: Partial<TransportLimits>
  readonly requireNodeId?: boolean
}

/** Quick, but without a short loss deadline: the machine may be slow. */
const QUICK = { retryMsMin: 5, retryMsMax: 20, lossMs: 60_000 }

async function openNode(
  name: string,
  { insecure = false, pair = pairs[name], port = 0, limits, requireNodeId }: Opening = {},
) {
  const logged: string[] = []
  const causes: string[] = []
  const log = (fields: { readonly cause?: string }, message: string): void => {
    logged.push(message)
    if (fields.cause) causes.push(fields.cause)
  }
  const node = { name, frames: [], events: [], logged, causes, duplicates: [], lookups: [] } as unknown as Node & {
    transport: TlsTransport
  }
  const transport = await openTlsTransport({
    env: createEnv({ debug: log, info: log, warn: log, error: log }),
    node: name,
    host: '127.0.0.1',
    port,
    tls: insecure ? undefined : materialOf(pair),
    requireNodeId,
    addressOf: async (peer, wasUnreachable) => {
      node.lookups.push(wasUnreachable)
      return book.get(peer) ?? Promise.reject(new Error('unknown'))
    },
    onDuplicate: (peer) => {
      node.duplicates.push(peer)
      look()
    },
    limits: { ...QUICK, ...limits },
  })({
    onFrame: (peer, stream, frame) => {
      node.frames.push({ peer, stream, frame })
      look()
    },
    onOpen: (peer, stream) => {
      node.events.push({ open: peer, stream })
      look()
    },
    onClosed: (peer, stream, isDead) => {
      node.events.push({ closed: peer, stream, isDead })
      look()
    },
  })
  const opened = { ...node, transport }
  book.set(name, { host: '127.0.0.1', port: transport.port })
  cleanups.push(() => transport.close())
  return opened
}

/** Nodes that know each other and are connected on all streams. */
async function openNodes(names: readonly string[], opening: Opening = {}): Promise<Node[]> {
  const nodes: Node[] = []
  for (const name of names) nodes.push(await openNode(name, opening))
  for (const { transport } of nodes) transport.setPeers(names)
  await until(() => nodes.every((node) => isConnected(node, names.length - 1)))
  return nodes
}

const isConnected = ({ transport }: Node, peers: number): boolean => {
  const { outgoing, incoming } = transport.counters()
  return outgoing === 3 * peers && incoming === 3 * peers
}
const text = (frame: Uint8Array): string => new TextDecoder().decode(frame)
const bytes = (of: string): Uint8Array => new TextEncoder().encode(of)
const textsOf = (node: Node, stream: StreamKind): string[] =>
  node.frames.filter((frame) => frame.stream === stream).map(({ frame }) => text(frame))

for (const insecure of [false, true]) {
  const over = insecure ? 'over plain TCP' : 'over TLS'

  test(`three nodes reach each other on every stream ${over}`, async () => {
    const nodes = await openNodes(['a', 'b', 'c'], { insecure })

    for (const from of nodes) {
      for (const to of nodes) {
        if (from === to) continue
        for (const stream of ['control', 'append', 'bulk'] as const) {
          expect(from.transport.send(to.name, stream, bytes(`${from.name} ${stream}`))).toBe(true)
        }
      }
    }
    await until(() => nodes.every(({ frames }) => frames.length === 6))

    for (const node of nodes) {
      expect(node.frames.map(({ peer, stream, frame }) => `${peer} ${stream}` === text(frame))).not.toContain(false)
      const counted = Object.values(node.transport.counters().streams)
      expect(counted.map(({ framesIn, framesOut }) => [framesIn, framesOut])).toEqual(Array(3).fill([2, 2]))
    }
  })

  test(`frames of one stream arrive in order, whole, of any size ${over}`, async () => {
    const [a, b] = (await openNodes(['a', 'b'], { insecure })) as [Node, Node]
    const sizes = [1, 7, 16_384, 16_385, 1 << 20, 3, 500_000, 2]

    for (const [i, size] of sizes.entries()) a.transport.send('b', 'append', new Uint8Array(size).fill(i))
    await until(() => b.frames.length === sizes.length)

    expect(b.frames.map(({ frame }) => frame)).toEqual(sizes.map((size, i) => new Uint8Array(size).fill(i)))
  })

  test(`64 MiB of bulk do not delay control ${over}`, async () => {
    const [a, b] = (await openNodes(['a', 'b'], { insecure })) as [Node, Node]
    const piece = new Uint8Array(1 << 20)
    let [sent, controlSent] = [0, 0]
    let bulkSeen = 0
    /** Amount of bulk received when each control frame arrived. */
    const bulkAt: number[] = []

    while (bulkSeen < 64 || bulkAt.length < controlSent) {
      while (sent < 64 && a.transport.send('b', 'bulk', piece)) sent++
      // The next control frame is sent only after the previous one has arrived.
      if (controlSent === bulkAt.length && sent < 64) {
        expect(a.transport.send('b', 'control', bytes(`${controlSent++}`))).toBe(true)
      }
      await new Promise((resolve) => setImmediate(resolve))
      for (const { stream } of b.frames.splice(0)) {
        if (stream === 'bulk') bulkSeen++
        else bulkAt.push(bulkSeen)
      }
    }

    // Several control frames arrived during the bulk, each after at most another part of it.
    expect(bulkAt.length).toBeGreaterThan(3)
    expect(bulkAt[0]).toBeLessThan(16)
    expect(new Set(bulkAt).size).toBeGreaterThan(2)
  })

  test(`a dead peer is distinguished from a cut connection ${over}`, async () => {
    const [a, b] = (await openNodes(['a', 'b'], { insecure })) as [Node, Node]

    await b.transport.close()
    await until(() => a.events.filter((event) => 'closed' in event).length === 3)

    expect(a.events.filter((event) => 'closed' in event)).toEqual(
      expect.arrayContaining(
        (['control', 'append', 'bulk'] as const).map((stream) => ({ closed: 'b', stream, isDead: true })),
      ),
    )
  })

  test(`a peer that comes back is connected again ${over}`, async () => {
    const [a, b] = (await openNodes(['a', 'b'], { insecure })) as [Node, Node]
    await b.transport.close()
    await until(() => a.events.filter((event) => 'closed' in event).length === 3)

    const again = await openNode('b', { insecure, port: b.transport.port })
    again.transport.setPeers(['a'])
    await until(() => isConnected(a, 1) && isConnected(again, 1))

    expect(a.transport.send('b', 'control', bytes('hello again'))).toBe(true)
    await until(() => textsOf(again, 'control').length === 1)
    expect(a.transport.counters().reconnects).toBe(3)
  })

  test(`a connection that is cut in between is not a dead peer ${over}`, async () => {
    const b = await openNode('b', { insecure })
    const proxy = await openProxy(b.transport.port)
    book.set('b', { host: '127.0.0.1', port: proxy.port })
    const a = await openNode('a', { insecure })
    a.transport.setPeers(['b'])
    await until(() => a.transport.counters().outgoing === 3)

    proxy.cut()
    await until(() => a.events.filter((event) => 'open' in event).length === 6)

    const closed = a.events.flatMap((event) => ('closed' in event ? [event.isDead] : []))
    expect(closed).toEqual([false, false, false])
  })

  test(`a node that no other node dials gets replies on its own connections ${over}`, async () => {
    const [a, b] = [await openNode('a', { insecure }), await openNode('b', { insecure })]
    a.transport.setPeers(['b'])
    await until(() => b.transport.counters().incoming === 3)

    expect(b.transport.send('a', 'control', bytes('welcome'))).toBe(true)
    await until(() => a.frames.length === 1)

    expect(a.frames).toEqual([{ peer: 'b', stream: 'control', frame: bytes('welcome') }])
    expect(b.events).toHaveLength(3)
  })

  test(`of two nodes with one id the later one is refused and notified ${over}`, async () => {
    const [a, b] = (await openNodes(['a', 'b'], { insecure, limits: { silenceMs: 200, keepAliveMs: 20 } })) as [
      Node,
      Node,
    ]
    const second = await openNode('b', { insecure, limits: { silenceMs: 200, keepAliveMs: 20 } })

    second.transport.setPeers(['a'])
    await until(() => second.duplicates.length > 0)

    expect(second.duplicates).toEqual(['a'])
    expect(a.transport.counters().refused.duplicate).toBeGreaterThan(1)
    expect(second.transport.counters().outgoing).toBe(0)
    expect(isConnected(b, 1)).toBe(true)
    expect(b.duplicates).toEqual([])
  })
}

test('a peer whose process is killed is dead', async () => {
  const modules = ['./tls-transport.ts', '../env.ts'].map((file) => JSON.stringify(new URL(file, import.meta.url).href))
  const program = `
    const [{ openTlsTransport }, { createEnv }] = await Promise.all([import(${modules[0]}), import(${modules[1]})])
    const log = { debug() {}, info() {}, warn() {}, error() {} }
    const { tls, port } = JSON.parse(process.argv[1])
    const addressOf = async () => ({ host: '127.0.0.1', port })
    const open = openTlsTransport({ env: createEnv(log), node: 'b', host: '127.0.0.1', port: 0, tls, addressOf })
    const transport = await open({ onFrame() {}, onOpen() {}, onClosed() {} })
    transport.setPeers(['a'])
    console.log(transport.port)`
  const a = await openNode('a')
  const argument = JSON.stringify({ tls: materialOf(pairs['b']), port: a.transport.port })
  const child = spawn(process.execPath, ['--input-type=module', '-e', program, argument], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  cleanups.push(() => child.kill('SIGKILL'))
  const [port] = (await once(child.stdout, 'data')) as [Buffer]
  book.set('b', { host: '127.0.0.1', port: Number(String(port)) })
  a.transport.setPeers(['b'])
  await until(() => isConnected(a, 1))

  child.kill('SIGKILL')
  await until(() => a.events.filter((event) => 'closed' in event).length === 3)

  expect(a.events.filter((event) => 'closed' in event).map((event) => 'closed' in event && event.isDead)).toEqual([
    true,
    true,
    true,
  ])
})

/** Forwards bytes to a port until it is cut. */
async function openProxy(target: number) {
  const sockets = new Set<Socket>()
  const server: Server = createServer((incoming) => {
    const outgoing = connectTcp({ host: '127.0.0.1', port: target })
    for (const socket of [incoming, outgoing]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        incoming.destroy()
        outgoing.destroy()
      })
    }
    incoming.pipe(outgoing)
    outgoing.pipe(incoming)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cut = (): void => {
    for (const socket of sockets) socket.destroy()
  }
  cleanups.push(() => {
    server.close()
    cut()
  })
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const stall = (): void => {
    for (const socket of sockets) {
      socket.unpipe()
      socket.pause()
    }
  }
  return { port, cut, stall }
}

test('a silent connection counts as half open and is replaced', async () => {
  const limits = { silenceMs: 200, keepAliveMs: 20 }
  const b = await openNode('b', { limits })
  const proxy = await openProxy(b.transport.port)
  book.set('b', { host: '127.0.0.1', port: proxy.port })
  const a = await openNode('a', { limits })
  a.transport.setPeers(['b'])
  await until(() => a.transport.counters().outgoing === 3)

  proxy.stall()
  await until(() => a.transport.counters().lost.silent >= 3 && a.transport.counters().outgoing === 3)

  expect(a.transport.send('b', 'control', bytes('still here'))).toBe(true)
  await until(() => b.frames.length === 1)
  expect(b.transport.counters().incoming).toBe(3)
})

test('an idle connection stays', async () => {
  const [a, b] = (await openNodes(['a', 'b'], { limits: { silenceMs: 300, keepAliveMs: 20 } })) as [Node, Node]

  // Each keep-alive comes after 20 ms at the earliest, on two connections: four times the silence limit.
  await until(() => [a, b].every(({ transport }) => transport.counters().streams.control.keepAlivesIn > 2 * 60))

  expect([a, b].map((node) => node.events.filter((event) => 'closed' in event))).toEqual([[], []])
})

test('a frame without a connection, or beyond the queue, is dropped and counted', async () => {
  const [a, b] = (await openNodes(['a', 'b'], { limits: { bulkBytes: 300_000 } })) as [Node, Node]

  expect(a.transport.send('c', 'control', bytes('unsent'))).toBe(false)
  const taken = Array.from({ length: 5 }, () => a.transport.send('b', 'bulk', new Uint8Array(100_000)))

  expect(taken).toEqual([true, true, true, false, false])
  expect(a.transport.queuedBytes('b', 'bulk')).toBe(300_000)
  expect(a.transport.queuedBytes('b', 'control')).toBe(0)
  expect(a.transport.counters().streams.control.dropped).toBe(1)
  expect(a.transport.counters().streams.bulk.dropped).toBe(2)
  await until(() => b.frames.length === 3)
  await until(() => a.transport.queuedBytes('b', 'bulk') === 0)
})

test('a peer no longer in the list is disconnected, and a new one is dialled', async () => {
  const [a, b, c] = (await openNodes(['a', 'b', 'c'])) as [Node, Node, Node]

  a.transport.setPeers(['b'])
  await until(() => a.transport.counters().outgoing === 3 && c.transport.counters().incoming === 3)
  // What c dialled stays.
  expect(a.transport.counters().incoming).toBe(6)
  expect(a.transport.send('c', 'control', bytes('on what c dialled'))).toBe(true)
  a.transport.setPeers(['b', 'c'])
  await until(() => isConnected(a, 2))

  expect(isConnected(b, 2)).toBe(true)
})

// Admission

/** Connects like a peer, with any certificate. */
async function dialTls(node: Node, options: ConnectionOptions): Promise<TLSSocket> {
  const socket = connectTls({
    host: '127.0.0.1',
    port: node.transport.port,
    ca: authority.cert,
    ALPNProtocols: ['vacancy-peer/1'],
    checkServerIdentity: () => undefined,
    ...options,
  })
  cleanups.push(() => socket.destroy())
  socket.on('error', () => {})
  return socket
}

/** Also resolves when the socket ends with an error. Reads remaining data, since an unread socket never ends. */
const closed = (socket: Socket): Promise<void> =>
  new Promise((resolve) => socket.once('close', () => resolve()).resume())

const sealed = (body: Uint8Array): Uint8Array => frameParts(body)[0] as Uint8Array
const hello = (from: string, to: string, instance = '5a'.repeat(16)): Uint8Array =>
  sealed(encodeHello({ stream: 'control', instance, from, to }))
const refusals = (node: Node): Partial<TransportCounters['refused']> =>
  Object.fromEntries(Object.entries(node.transport.counters().refused).filter(([, count]) => count > 0))

test('a certificate of another authority is refused', async () => {
  const a = await openNode('a')
  const pair = await certificateOf('b', foreignAuthority)

  const socket = await dialTls(a, pair)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  await closed(socket)

  await until(() => a.transport.counters().unauthenticated === 0)
  expect(decodeAnswer(new Uint8Array(answer.subarray(8)))).toEqual({ refusal: 'certificate' })
  expect(refusals(a)).toEqual({ certificate: 1 })
  expect(a.events).toEqual([])
})

test('a caller without a certificate is refused', async () => {
  const a = await openNode('a')

  const socket = await dialTls(a, {})
  socket.write(hello('b', 'a'))
  await closed(socket)

  await until(() => a.transport.counters().unauthenticated === 0)
  expect(refusals(a)).toEqual({ certificate: 1 })
})

test('a resumed session is refused', async () => {
  const a = await openNode('a')
  const first = await dialTls(a, pairs['b'] ?? {})
  const session = new Promise<Buffer>((resolve) => first.once('session', resolve))
  first.write(hello('b', 'a'))
  await once(first, 'data')

  const second = await dialTls(a, { session: await session })
  const [answer] = (await once(second, 'data')) as [Buffer]
  const isReused = second.isSessionReused()
  await closed(second)

  expect(isReused).toBe(true)
  expect(decodeAnswer(new Uint8Array(answer.subarray(8)))).toEqual({ refusal: 'certificate' })
})

test('a caller that speaks TLS 1.2 is refused', async () => {
  const a = await openNode('a')

  const socket = await dialTls(a, { ...pairs['b'], maxVersion: 'TLSv1.2' })
  await closed(socket)

  await until(() => a.transport.counters().unauthenticated === 0)
  expect(refusals(a)).toEqual({ tls: 1 })
})

test('the certificate of one node is invalid for another', async () => {
  const a = await openNode('a')

  const socket = await dialTls(a, pairs['c'] ?? {})
  socket.write(hello('b', 'a'))
  await closed(socket)

  await until(() => a.transport.counters().unauthenticated === 0)
  expect(refusals(a)).toEqual({ identity: 1 })
})

test('a certificate of our authority that names no node is refused', async () => {
  const a = await openNode('a')
  // The certificate of an authority names no node.
  const socket = await dialTls(a, { cert: authority.cert, key: authority.key })
  await closed(socket)

  await until(() => a.transport.counters().unauthenticated === 0)
  const counted = refusals(a)
  expect(counted.identity ?? counted.certificate).toBe(1)
})

const UNNAMED = 'certificates that name hosts and no node are accepted'
const shared = async (hosts: readonly string[], more: Partial<CertificateOptions> = {}) =>
  makeCertificate({ issuer: authority, subject: 'shard', hosts, ...more })

test('nodes that share an ordinary certificate are accepted with one warning (they used to be refused)', async () => {
  const pair = await shared(['node.example', '127.0.0.1'])

  const nodes = await openNodes(['a', 'b', 'c'], { pair })

  for (const node of nodes) {
    expect(node.logged.filter((message) => message.startsWith(UNNAMED))).toHaveLength(1)
    expect(refusals(node as Node)).toEqual({})
  }
})

test('an ordinary certificate is matched with the name from the resolver', async () => {
  const pair = await shared(['localhost'])
  const a = await openNode('a', { pair })
  const b = await openNode('b', { pair })
  for (const { name, transport } of [a, b]) book.set(name, { host: 'localhost', port: transport.port })

  for (const { transport } of [a, b]) transport.setPeers(['a', 'b'])

  await until(() => [a, b].every((node) => isConnected(node, 1)))
})

test('an ordinary certificate of other hosts is refused', async () => {
  const a = await openNode('a', { pair: await shared(['127.0.0.1']) })
  book.set('b', { host: '127.0.0.1', port: 1 })

  const socket = await dialTls(a, await shared(['127.0.0.2', 'elsewhere.example']))
  socket.write(hello('b', 'a'))
  await closed(socket)

  await until(() => a.transport.counters().unauthenticated === 0)
  expect(refusals(a)).toEqual({ identity: 1 })
  expect(a.causes).toEqual([
    'expected urn:vacancy:node:b or the host 127.0.0.1, the certificate has IP Address:127.0.0.2, DNS:elsewhere.example',
  ])
})

test('an ordinary certificate is not accepted for a node that cannot be found', async () => {
  const pair = await shared(['127.0.0.1'])
  const a = await openNode('a', { pair })

  const socket = await dialTls(a, pair)
  socket.write(hello('unheard-of', 'a'))
  await closed(socket)

  expect(refusals(a)).toEqual({ identity: 1 })
})

test('a dialled node with an ordinary certificate of other hosts gets no frames', async () => {
  await openNode('b', { pair: await shared(['127.0.0.2']) })
  const a = await openNode('a', { pair: await shared(['127.0.0.1']) })

  a.transport.setPeers(['b'])
  await until(() => a.transport.counters().failed.identity > 2)

  expect(a.events).toEqual([])
})

test('a certificate with the id of another node is refused, even if it names the right host', async () => {
  const a = await openNode('a', { pair: await shared(['127.0.0.1']) })
  book.set('b', { host: '127.0.0.1', port: 1 })

  const socket = await dialTls(a, await shared(['127.0.0.1'], { uris: ['urn:vacancy:node:c'] }))
  socket.write(hello('b', 'a'))
  await closed(socket)

  expect(refusals(a)).toEqual({ identity: 1 })
})

test.for([
  ['a node whose own certificate has a node id', undefined],
  ['tls_require_node_id', true],
] as const)('%s refuses certificates without', async ([, requireNodeId]) => {
  const a = await openNode('a', requireNodeId === undefined ? {} : { requireNodeId })
  book.set('b', { host: '127.0.0.1', port: 1 })

  const socket = await dialTls(a, await shared(['127.0.0.1']))
  socket.write(hello('b', 'a'))
  await closed(socket)

  expect(refusals(a)).toEqual({ identity: 1 })
})

test('a dialled node with the certificate of another node gets no frames', async () => {
  const c = await openNode('c')
  const a = await openNode('a')
  book.set('b', { host: '127.0.0.1', port: c.transport.port })

  a.transport.setPeers(['b'])
  await until(() => a.transport.counters().failed.identity > 2)

  expect(a.events).toEqual([])
  expect(c.events).toEqual([])
})

test('a node with a certificate of another authority is refused', async () => {
  const server = await import('node:tls').then(({ createServer: createTls }) =>
    certificateOf('b', foreignAuthority).then((pair) => createTls({ ...pair, ALPNProtocols: ['vacancy-peer/1'] })),
  )
  server.on('tlsClientError', () => {})
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanups.push(() => server.close())
  const address = server.address()
  book.set('b', { host: '127.0.0.1', port: typeof address === 'object' && address ? address.port : 0 })
  const a = await openNode('a')

  a.transport.setPeers(['b'])
  await until(() => a.transport.counters().failed.certificate > 2)

  expect(a.events).toEqual([])
  expect(a.logged.filter((message) => message === 'cannot connect to a peer')).toHaveLength(1)
})

test('a dialler that means another node is notified', async () => {
  const a = await openNode('a')

  const socket = await dialTls(a, pairs['b'] ?? {})
  socket.write(hello('b', 'c'))
  const [answer] = (await once(socket, 'data')) as [Buffer]

  expect(decodeAnswer(new Uint8Array(answer.subarray(8)))).toEqual({ refusal: 'addressee' })
  expect(refusals(a)).toEqual({ addressee: 1 })
  await closed(socket)
  await until(() => a.transport.counters().unauthenticated === 0)
})

for (const [what, sent] of [
  ['random bytes', Buffer.from('8f1d0c7b5a99e1f3c2d4b6a8907f6e5d4c3b2a19', 'hex')],
  ['plain HTTP', Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n\r\n')],
] as const) {
  test(`${what} close the connection, are counted, and logged once`, async () => {
    const [a, plain] = [await openNode('a'), await openNode('b', { insecure: true })]

    for (const node of [a, plain]) {
      for (let i = 0; i < 3; i++) {
        const socket = connectTcp({ host: '127.0.0.1', port: node.transport.port })
        socket.on('error', () => {})
        socket.write(sent)
        await closed(socket)
      }
      await until(() => node.transport.counters().unauthenticated === 0)
    }

    expect(refusals(a)).toEqual({ tls: 3 })
    // Read as a frame stream, the first four bytes are a length beyond the bound.
    expect(refusals(plain)).toEqual({ length: 3 })
    expect(a.logged).toEqual(['connection to the cluster port refused'])
  })
}

test('a caller that sends nothing, or a byte at a time, is disconnected', async () => {
  const a = await openNode('a', { limits: { handshakeMs: 100 } })
  const silent = connectTcp({ host: '127.0.0.1', port: a.transport.port })
  const mute = await dialTls(a, pairs['b'] ?? {})
  const slow = await dialTls(a, pairs['c'] ?? {})
  const drip = setInterval(() => slow.write('x'), 5)
  cleanups.push(() => clearInterval(drip))

  await Promise.all([silent, mute, slow].map((socket) => closed(socket.on('error', () => {}))))

  await until(() => a.transport.counters().unauthenticated === 0)
  const { timeout = 0, length = 0 } = refusals(a)
  expect(timeout + length).toBe(3)
  expect(timeout).toBeGreaterThanOrEqual(2)
})

test('slow callers do not block others: the oldest is dropped', async () => {
  const limits = { unauthenticated: 4, handshakeMs: 60_000 }
  const a = await openNode('a', { limits })
  const crowd = Array.from({ length: 12 }, () => connectTcp({ host: '127.0.0.1', port: a.transport.port }))
  for (const socket of crowd) {
    socket.on('error', () => {})
    cleanups.push(() => socket.destroy())
  }
  await until(() => a.transport.counters().refused.crowded === 8)

  const b = await openNode('b')
  b.transport.setPeers(['a'])
  await until(() => b.transport.counters().outgoing === 3)

  expect(a.transport.counters().unauthenticated).toBeLessThanOrEqual(4)
})

/** A peer that passed the handshake and then misbehaves. */
async function openBadPeer(node: Node): Promise<TLSSocket> {
  const socket = await dialTls(node, pairs['b'] ?? {})
  socket.write(hello('b', node.name))
  const [answer] = (await once(socket, 'data')) as [Buffer]
  expect(decodeAnswer(new Uint8Array(answer.subarray(8)))).toEqual({ instance: expect.any(String), node: node.name })
  return socket
}

test('a giant length closes the connection', async () => {
  const a = await openNode('a')
  const socket = await openBadPeer(a)

  socket.write(Buffer.from([255, 255, 255, 127, 0, 0, 0, 0]))
  await closed(socket)

  await until(() => a.transport.counters().lost.length === 1)
  expect(a.events).toEqual([
    { open: 'b', stream: 'control' },
    { closed: 'b', stream: 'control', isDead: false },
  ])
})

test('a checksum that does not fit closes the connection, and the frame is dropped', async () => {
  const a = await openNode('a')
  const socket = await openBadPeer(a)
  const frame = Buffer.from(sealed(bytes('vote')))
  frame[9] = frame[9] ^ 1

  socket.write(frame)
  await closed(socket)

  await until(() => a.transport.counters().lost.checksum === 1)
  expect(a.frames).toEqual([])
})

test('a peer that dials a stream again replaces its connection', async () => {
  const a = await openNode('a')
  const first = await openBadPeer(a)
  const ending = closed(first)

  const second = await openBadPeer(a)
  await ending
  second.write(sealed(bytes('here')))
  await until(() => a.frames.length === 1)

  expect(a.transport.counters()).toMatchObject({ incoming: 1, lost: { replaced: 1 } })
  expect(a.events).toEqual([{ open: 'b', stream: 'control' }])
})

test('a malformed hello is refused', async () => {
  const a = await openNode('a')
  const socket = await dialTls(a, pairs['b'] ?? {})

  socket.write(sealed(bytes('good morning')))
  await closed(socket)

  await until(() => a.transport.counters().unauthenticated === 0)
  expect(refusals(a)).toEqual({ hello: 1 })
})

test('a new certificate is used for new connections, and open ones stay', async () => {
  const [a, b] = (await openNodes(['a', 'b'])) as [Node, Node]
  const pair = await certificateOf('a')

  a.transport.reload({ ...materialOf(pair), notAfterMs: 99_999 })

  const socket = await dialTls(a, pairs['c'] ?? {})
  await once(socket, 'secureConnect')
  const { X509Certificate } = await import('node:crypto')
  expect(socket.getPeerX509Certificate()?.fingerprint256).toBe(new X509Certificate(pair.cert).fingerprint256)
  expect(a.transport.counters().certificateNotAfterMs).toBe(99_999)
  expect([a, b].map((node) => node.events.filter((event) => 'closed' in event))).toEqual([[], []])
  expect(isConnected(a, 1)).toBe(true)
})

test('a certificate that is another node’s is not installed', async () => {
  const a = await openNode('a')

  expect(() => a.transport.reload(materialOf(pairs['b']))).toThrow('that of node b, not of a')
  await expect(openNode('a', { pair: pairs['b'] as Pair })).rejects.toThrow('that of node b, not of a')
  const foreign = await certificateOf('a', foreignAuthority)
  await expect(openNode('a', { pair: foreign })).rejects.toThrow('not issued by the cluster authority')
})

test('a port in use is reported', async () => {
  const a = await openNode('a')

  await expect(openNode('b', { port: a.transport.port })).rejects.toThrow('Cannot listen on 127.0.0.1')
})

test('an address that cannot be found is looked up again', async () => {
  const a = await openNode('a')
  a.transport.setPeers(['b'])
  await until(() => a.transport.counters().failed.address > 3)

  await openNode('b')
  await until(() => a.transport.counters().outgoing === 3)

  expect(a.events.map((event) => 'open' in event && event.open)).toEqual(['b', 'b', 'b'])
  expect(a.lookups.filter((wasUnreachable) => !wasUnreachable)).toHaveLength(3)
})
