/** A real serving thread with real sockets. The test acts as its replica and controls what may be served. */

import { dayOf } from '@vacancy/shared'
import { attachCells, createCells, publishCells, type RoleCode } from '../cluster/shared-status.ts'
import { createBell, createSender } from '../pipe.ts'
import { SLICE_WORK } from '../search/search.ts'
import { applyCommand } from '../store/apply.ts'
import { stampCommand } from '../store/command.ts'
import { publish } from '../store/store.ts'
import { countersOf, startServingThreads, startTcpServer, type TcpServer } from '../tcp/server.ts'
import { atRest, listen } from '../threads/attend.ts'
import { commonClockOffsetMs } from '../threads/clock.ts'
import { READ_CELLS } from '../threads/reads.ts'
import { ANSWERS, createServingPipes, REQUESTS } from '../threads/serving-pipe.ts'
import { ANSWER_BYTES } from '../threads/writes.ts'
import { createNodeInMemory, type NodeInMemory, SAMPLE_CODECS } from './node-in-memory.ts'

const SERVING_READER = 1

type ReadOfReplica = { readonly token: number; readonly isLinearizable: boolean; readonly minIndex: number }
type ProposedWrite = { readonly token: number; readonly command: Uint8Array }

export type TestedThread = {
  readonly node: NodeInMemory
  readonly server: TcpServer
  readonly tcpPort: number
  /** Received reads, in order, taken by the test. */
  readonly pendingReads: ReadOfReplica[]
  readonly writes: ProposedWrite[]
  /** Received messages, one per batch. */
  readonly batches: { reads: number; writes: number }
  /** @param ageMs age of the state: all writes acknowledged before that are applied here */
  setStatus(role: RoleCode, options?: { isLeaderKnown?: boolean; ageMs?: number }): void
  /** Responds to a read or a write with one code. */
  reply(token: number, code: number, index?: number, value?: number): void
  /** Applies a write, publishes it to readers and replies. @returns its index */
  apply(write: ProposedWrite): number
  stop(): Promise<void>
}

export type ServingThreadOptions = {
  /** Without shared status, like a standalone node. */
  readonly isStandalone?: boolean
  readonly leaderReads?: boolean
  readonly searchSliceWork?: number
  /** The store to serve; an empty one when absent. */
  readonly node?: NodeInMemory
}

export async function startServingThread(options: ServingThreadOptions = {}): Promise<TestedThread> {
  const node = options.node ?? createNodeInMemory(dayOf(Date.now()))
  const buffer = createCells()
  const cells = attachCells(buffer, commonClockOffsetMs())
  const [servingEnd, replicaEnd] = createServingPipes(createBell())
  const server = await startTcpServer(
    {
      threads: startServingThreads(1),
      host: '127.0.0.1',
      port: 0,
      firstReader: SERVING_READER,
      pipes: [servingEnd],
      cells: options.isStandalone ? undefined : buffer,
      memory: node.store.memory.wasm,
      codecs: SAMPLE_CODECS,
      datesMax: 14,
      calendarDays: 92,
      queryLimit: 200,
      connectionsMax: 100,
      userTimeoutMs: 0,
      keepaliveSeconds: 0,
      receiveBufferBytes: 1 << 20,
      sendBufferBytes: 1 << 20,
      requireLogin: false,
      leaderReads: options.leaderReads ?? true,
      tokens: undefined,
      tls: undefined,
      slabBytes: 1 << 20,
      slabs: 4,
      searchSliceWork: options.searchSliceWork ?? SLICE_WORK,
      clockOffsetMs: 0,
    },
    countersOf(1),
    () => undefined,
    () => undefined,
    (error) => {
      throw error
    },
  )
  const pendingReads: ReadOfReplica[] = []
  const writes: ProposedWrite[] = []
  const batches = { reads: 0, writes: 0 }
  const attention = atRest(replicaEnd.bell)
  listen(attention, replicaEnd, REQUESTS, (batch) => {
    batches[batch instanceof Float64Array ? 'reads' : 'writes']++
    if (batch instanceof Float64Array) pendingReads.push(...readsOf(batch))
    else if (batch instanceof ArrayBuffer) writes.push(...writesOf(batch))
  })
  const send = createSender(replicaEnd, ANSWERS)
  const reply = (token: number, code: number, index = 0, value = 0) => {
    const answer = new ArrayBuffer(ANSWER_BYTES)
    const view = new DataView(answer)
    view.setUint32(0, token, true)
    view.setUint8(4, code)
    view.setUint8(5, value)
    view.setFloat64(8, index, true)
    send(answer)
  }
  return {
    node,
    server,
    tcpPort: server.port,
    pendingReads,
    writes,
    batches,
    setStatus: (role, { isLeaderKnown = true, ageMs = 0 } = {}) =>
      publishCells(cells, { role, isLeaderKnown, applied: node.index, freshMs: performance.now() - ageMs }),
    reply,
    apply({ token, command }) {
      stampCommand(new DataView(command.buffer), 0, Date.now(), node.day)
      node.index++
      const { code, value } = applyCommand(node.context, node.index, command, 0, command.length)
      publish(node.store, node.index)
      reply(token, code, node.index, value)
      return node.index
    },
    async stop() {
      await server.stop()
      replicaEnd.port.close()
    },
  }
}

function readsOf(batch: Float64Array): ReadOfReplica[] {
  return Array.from({ length: batch.length / READ_CELLS }, (_, i) => {
    const [token = 0, linearizable = 0, minIndex = 0] = batch.subarray(i * READ_CELLS)
    return { token, isLinearizable: linearizable === 1, minIndex }
  })
}

function writesOf(batch: ArrayBuffer): ProposedWrite[] {
  const view = new DataView(batch)
  const found: ProposedWrite[] = []
  for (let at = 0; at < batch.byteLength; ) {
    const length = view.getUint32(at + 4, true)
    found.push({ token: view.getUint32(at, true), command: new Uint8Array(batch.slice(at + 8, at + 8 + length)) })
    at += 8 + length
  }
  return found
}
