/** Connections of a serving thread over sockets, a clock and a replica that are the test itself. */

import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { parseDay } from '@vacancy/shared'
import { type CommandName, decodeReply, encodeRequest } from '@vacancy/shared/wire'
import { attachCells, createCells, publishCells, ROLE, type RoleCode } from '../cluster/shared-status.ts'
import { publish, scratchOf } from '../store/store.ts'
import { createDeferredReads, openConnection } from '../tcp/connection.ts'
import type { Principal, ServingThread } from '../tcp/connection-state.ts'
import { createCounters } from '../tcp/counters.ts'
import { createSlabs } from '../tcp/slabs.ts'
import { attachDirectReplies, createDirectReplies } from '../threads/direct-replies.ts'
import { createReadBatch } from '../threads/reads.ts'
import { createProposals, takeProposals } from '../threads/writes.ts'
import { ask, createNodeInMemory, raiseFeatureLevel } from './node-in-memory.ts'

type Fields = { readonly [name: string]: unknown }

const TODAY = parseDay('2026-11-20') as number
export const CONTEXT = { baseYear: 2026, codecs: undefined }
export const PROPERTY = {
  ...{ segment: 'alpine', area: 'valley', propertyId: 'inn', propertyType: 'hotel', category: 'standard' },
  ...{ stars: 3, latitude: 47.5, longitude: -11.25, amenities: [] },
}
export const NIGHT = { propertyId: 'inn', roomType: 'double', date: '2026-11-21' }
export const SLAB_BYTES = 4_096
export const SLABS = 2
export const SEND_BUFFER = 10_000
/** After the parameters of the search kernel. */
const SLABS_AT = 16_384

export const node = createNodeInMemory(TODAY)
raiseFeatureLevel(node)
ask(node, 'SETPROP', PROPERTY)
publish(node.store, node.index)

type Options = {
  isInShard?: boolean
  requireLogin?: boolean
  leaderReads?: boolean
  /** Of a file in place of the sockets' own: what the replica writes to it. */
  descriptor?: number
}

function createThread({ isInShard = false, requireLogin = false, leaderReads = true, descriptor }: Options = {}) {
  const { memory } = node.store
  const dispatcher = node.dispatchers[0] as (typeof node.dispatchers)[0]
  const { searcher } = dispatcher
  takeProposals(dispatcher.proposals)
  const cells = attachCells(createCells(), 0)
  const seen = {
    stepMs: 0,
    slow: [] as unknown[],
    batches: 0,
    /** What went to the replica and was taken from it. */
    order: [] as ('send' | 'take')[],
    nowMs: 1_000,
    principal: undefined as Principal | undefined,
    isTooOften: false,
    tokens: [] as string[],
  }
  const thread: ServingThread = {
    isReplicaSilent: false,
    direct: descriptor === undefined ? undefined : attachDirectReplies(createDirectReplies()),
    memory,
    dispatcher,
    counters: createCounters(),
    slabs: createSlabs(scratchOf(memory, 0) + SLABS_AT, SLAB_BYTES, SLABS),
    ...{ connections: new Set(), waiting: new Map(), pendingReads: new Map(), stayReads: new Map() },
    cells: isInShard ? cells : undefined,
    stayBatch: createProposals(),
    readBatch: createReadBatch(),
    deferred: createDeferredReads(searcher),
    ...{ requireLogin, leaderReads },
    authenticate: (token) => {
      seen.tokens.push(Buffer.from(token).toString())
      return seen.principal
    },
    noteLoginFailure: () => seen.isTooOften,
    ...{ sendBufferBytes: SEND_BUFFER, requestBytesMax: 65_536, skipBytesMax: 1 << 20 },
    monotonicMs: () => {
      seen.nowMs += seen.stepMs
      return seen.nowMs
    },
    scheduleBatches: () => void seen.batches++,
    sendBatches: () => void seen.order.push('send'),
    takeAnswers: () => void seen.order.push('take'),
    slowMs: 0,
    slow: ({ command, milliseconds, rows, traceId }) =>
      void seen.slow.push([command, milliseconds, rows, ...(traceId === null ? [] : [traceId])]),
    ...{ nextToken: 1, requestsThisTick: 0, readMs: 0, draining: false },
  }
  const setRole = (role: RoleCode, { isLeaderKnown = true, freshMs = seen.nowMs } = {}) =>
    publishCells(cells, { role, isLeaderKnown, applied: node.index, freshMs })
  setRole(ROLE.leader)
  return { thread, seen, setRole }
}

/** A socket whose kernel takes all bytes at once, or none until the test lets it. */
function createSocket(descriptor = -1) {
  const state = { isFull: false, isPaused: false, isEnded: false, isDestroyed: false, writes: [] as Buffer[] }
  const queue: { bytes: number; done: (() => void) | undefined }[] = []
  const socket = Object.assign(new EventEmitter(), {
    ...{
      writableLength: 0,
      bytesWritten: 0,
      remoteAddress: '192.0.2.1',
      destroyed: false,
      readableEnded: false,
      writable: true,
    },
    allowHalfOpen: false,
    _handle: { writeQueueSize: 0, fd: descriptor },
    write(bytes: Uint8Array, done?: () => void) {
      state.writes.push(Buffer.from(bytes))
      socket.bytesWritten += bytes.length
      if (state.isFull) {
        queue.push({ bytes: bytes.length, done })
        socket.writableLength += bytes.length
        socket._handle.writeQueueSize += bytes.length
      } else done?.()
    },
    pause: () => Object.assign(state, { isPaused: true }),
    resume: () => Object.assign(state, { isPaused: false }),
    end: () => Object.assign(state, { isEnded: true }),
    destroySoon: () => undefined,
    _destroy: () => Object.assign(state, { isDestroyed: true }),
    destroy: () => socket._destroy(),
  })
  return {
    socket,
    state,
    /** The kernel takes all bytes. */
    drain() {
      state.isFull = false
      socket.writableLength = 0
      socket._handle.writeQueueSize = 0
      for (const { done } of queue.splice(0)) done?.()
    },
  }
}

/** @param beside a client of the same thread */
export function connect(options: Options = {}, beside?: ReturnType<typeof createThread>) {
  const world = beside ?? createThread(options)
  const link = createSocket(options.descriptor)
  const connection = openConnection(world.thread, link.socket as unknown as Socket)
  return {
    ...world,
    ...link,
    connection,
    send: (...frames: Uint8Array[]) => void link.socket.emit('data', Buffer.concat(frames)),
  }
}

export type Client = ReturnType<typeof connect>

let nextId = 1
export const frame = (command: CommandName, fields: Fields, correlationId = nextId++) =>
  encodeRequest({ command, correlationId, fields: fields as never }).slice()
export const exists = (id: number, propertyId = 'inn', options: Fields = {}) =>
  frame('PROPEXIST', { propertyId, ...options }, id)
export const setRooms = (id: number, amount = 5, options: Fields = {}) =>
  frame('SETROOMAVL', { ...NIGHT, amount, ...options }, id)

/** All replies so far: the correlation id and the result, or the error. */
export function replies({ state }: Client): [number, unknown][] {
  const bytes = Buffer.concat(state.writes)
  const found: [number, unknown][] = []
  for (let at = 0; at < bytes.length; ) {
    const end = at + 9 + bytes.readUInt32LE(at + 5)
    const [id, payload] = [bytes.readUInt32LE(at + 1), bytes.subarray(at + 9, end)]
    // An availability and a truth have the same form.
    const command = id >= WRITES_FROM ? 'SETROOMAVL' : 'PROPEXIST'
    const reply = decodeReply(command, payload, CONTEXT)
    found.push([
      id,
      reply.ok ? Object.values(reply.result)[0] : `${reply.code}${reply.message ? `: ${reply.message}` : ''}`,
    ])
    at = end
  }
  return found
}

export const WRITES_FROM = 100_000
export const STAY = { state: 'booked' as const, total: 5, index: 9, lines: [] }
export const counterOf = ({ thread }: Client, counter: number) => thread.counters.cells[counter]
