/**
 * The baseline of every network figure: a bare Node server that answers each frame with a prepared reply.
 *
 * It does what a node cannot avoid (read, find the frames, one write a read event from a reused slab, see
 * docs/design/search.md#replies) and nothing else: no parsing, no search. What it reaches with a reply size is what
 * this machine and this Node can reach, measured with the same generator in the same run. With a journal it appends and
 * syncs what it has read before it replies, which a node cannot avoid for a write.
 *
 * Run as a program it prints one JSON line with its port and serves until it is ended.
 */
import { fork } from 'node:child_process'
import { fdatasyncSync, openSync, writeSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { failure } from './failure.ts'
import { createFrameScanner, scanFrames } from './frame-scanner.ts'

const SLAB_BYTES = 1 << 20
const BACKLOG = 4096
const READ_BYTES = 1 << 18

/** Some prepared replies, one after the other; only their correlation ids are rewritten. */
type Slab = { bytes: Buffer; replies: number }

/** Replies are `replyBytes` long in all, head included. */
function createSlab(replyBytes: number): Slab {
  const replies = Math.max(1, Math.floor(SLAB_BYTES / replyBytes))
  const bytes = Buffer.alloc(replies * replyBytes)
  for (let reply = 0; reply < replies; reply++) {
    const at = reply * replyBytes
    bytes[at] = 0xff
    bytes.writeUInt32LE(replyBytes - 9, at + 5)
    bytes.write('\x07SUCCESS', at + 9, 'latin1')
  }
  return { bytes, replies }
}

/** A file that has its full length, as a log file of a node; it is written from its start again at its end. */
type Journal = { fd: number; at: number }

const JOURNAL_BYTES = 64 << 20

function openJournal(path: string): Journal {
  const fd = openSync(path, 'w')
  const zeros = Buffer.alloc(1 << 20)
  for (let at = 0; at < JOURNAL_BYTES; at += zeros.length) writeSync(fd, zeros, 0, zeros.length, at)
  fdatasyncSync(fd)
  return { fd, at: 0 }
}

function appendToJournal(journal: Journal, chunk: Buffer): void {
  if (journal.at + chunk.length > JOURNAL_BYTES) journal.at = 0
  writeSync(journal.fd, chunk, 0, chunk.length, journal.at)
  fdatasyncSync(journal.fd)
  journal.at += chunk.length
}

/** The slab of a thread and those that came back from sockets. */
type Slabs = { replyBytes: number; present: Slab; spare: Slab[]; journal: Journal | undefined }

export type EchoOptions = { port: number; replyBytes: number; journal?: string | undefined }

/** Serves on `port` (0 = any) of the loopback address; several threads may serve on one. Answers with the port. */
export function serveEcho({ port, replyBytes, journal }: EchoOptions): Promise<number> {
  const opened = journal === undefined ? undefined : openJournal(journal)
  const slabs: Slabs = { replyBytes, present: createSlab(replyBytes), spare: [], journal: opened }
  const server = createServer({ noDelay: true, highWaterMark: READ_BYTES }, (socket) => answer(socket, slabs))
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port, host: '127.0.0.1', backlog: BACKLOG, reusePort: true }, () => {
      const address = server.address()
      if (address && typeof address === 'object') resolve(address.port)
    })
  })
}

function answer(socket: Socket, slabs: Slabs): void {
  const scanner = createFrameScanner()
  let replies = 0
  const onFrame = (correlationId: number) => {
    slabs.present.bytes.writeUInt32LE(correlationId, replies * slabs.replyBytes + 1)
    replies += 1
    if (replies === slabs.present.replies) flush()
  }
  const flush = () => {
    write(socket, slabs, replies)
    replies = 0
  }
  socket.on('data', (chunk: Buffer) => {
    if (slabs.journal) appendToJournal(slabs.journal, chunk)
    if (!scanFrames(scanner, chunk, chunk.length, onFrame)) socket.destroy()
    if (replies > 0) flush()
  })
  // A generator that is done just goes.
  socket.on('error', () => socket.destroy())
}

function write(socket: Socket, slabs: Slabs, replies: number): void {
  const slab = slabs.present
  let isKept = false
  socket.write(slab.bytes.subarray(0, replies * slabs.replyBytes), () => {
    if (isKept) slabs.spare.push(slab)
  })
  // What the kernel has not taken belongs to the socket until the callback: the next replies need another slab.
  if (socket.writableLength === 0) return
  isKept = true
  slabs.present = slabs.spare.pop() ?? createSlab(slabs.replyBytes)
}

/** An echo in a process of its own: a port for each length of reply, `port` being that of the first. */
export type Echo = {
  host: string
  port: number
  ports: readonly number[]
  cpuSeconds(): Promise<number>
  stop(): void
}

/**
 * Every thread serves all lengths, as one of a node serves searches and updates: what is slow about one of them holds
 * up the others.
 */
export async function startEcho({
  replyBytes,
  threads,
  journal,
}: {
  replyBytes: readonly number[]
  threads: number
  /** A file for what is read, with one thread and one length. */
  journal?: string
}): Promise<Echo> {
  const lengths = replyBytes.flatMap((bytes) => ['--reply-bytes', String(bytes)])
  const args = [...lengths, '--threads', String(threads), ...(journal === undefined ? [] : ['--journal', journal])]
  const child = fork(fileURLToPath(import.meta.url), args, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  const nextMessage = <T>() =>
    new Promise<T>((resolve, reject) => {
      child.once('message', (message) => resolve(message as T))
      child.once('exit', (code) => reject(failure(`the echo ended with exit code ${code}`)))
    })
  const ports = await nextMessage<number[]>()
  const cpuSeconds = () => {
    const answer = nextMessage<number>()
    child.send('cpu')
    return answer
  }
  return { host: '127.0.0.1', port: ports[0] ?? 0, ports, cpuSeconds, stop: () => child.kill() }
}

type ThreadOrder = EchoOptions[]

/** Starts the listeners of every thread and reports their ports. */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      'reply-bytes': { type: 'string', multiple: true, default: ['20000'] },
      threads: { type: 'string', default: '1' },
      journal: { type: 'string' },
    },
  })
  const { journal } = values
  let order: ThreadOrder = values['reply-bytes'].map((bytes) => ({ port: 0, replyBytes: Number(bytes), journal }))
  for (let thread = 0; thread < Number(values.threads); thread++) order = await startThread(order)
  const ports = order.map(({ port }) => port)
  process.stdout.write(`${JSON.stringify({ ports })}\n`)
  process.send?.(ports)
  process.on('message', () => {
    const { user, system } = process.cpuUsage()
    process.send?.((user + system) / 1e6)
  })
  process.on('disconnect', () => process.exit())
}

/** Answers with the same order on the ports that were found. */
function startThread(order: ThreadOrder): Promise<ThreadOrder> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: order })
    worker.once('message', resolve)
    worker.once('error', reject)
  })
}

async function serveAll(order: ThreadOrder): Promise<ThreadOrder> {
  const ports = await Promise.all(order.map(serveEcho))
  return order.map((each, i) => ({ ...each, port: ports[i] ?? 0 }))
}

if (!isMainThread && parentPort && workerData) parentPort.postMessage(await serveAll(workerData as ThreadOrder))
else if (import.meta.main) await main()
