/**
 * Stand-ins for the existing nodes of a shard: only the observed endpoints, `leader_url` beside `leader_id`, writes
 * refused by followers (`308`) and reads by the leader (`405`). A request is answered with its own payload, so that a
 * test sees what arrived.
 */

import { createServer, type Socket } from 'node:net'
import { COMMANDS, isCommandName } from '@vacancy/shared/wire'
import { listen } from '@vacancy/testkit/listen'
import { asJson, callPlain, type PlainServer, readPlain, repeat, servePlain } from './http.ts'
import { bareFrame, successFrame } from './serial.ts'

type Received = { readonly node: string; readonly command: string; readonly payload: Buffer }

export type ExistingShard = {
  /** Requests that were executed, in order of arrival. */
  readonly received: Received[]
  leader: () => string
  readonly close: () => Promise<void>
}

export type ExistingShardOptions = {
  readonly shard: string
  readonly zone: string
  /** Node id → host; the first one leads. */
  readonly nodes: ReadonlyMap<string, string>
  readonly registry: string
  readonly codecs: readonly string[]
  readonly segments: readonly string[]
  readonly heartbeatMs: number
  /** The reply to a request that is executed, instead of its own payload. */
  readonly answer?: (payload: Buffer, id: number) => Uint8Array
}

type State = {
  readonly options: ExistingShardOptions
  readonly leader: string
  readonly received: Received[]
}

const PORTS = { tcp: 7777, api: 8080 }

export async function startExistingShard(options: ExistingShardOptions): Promise<ExistingShard> {
  const [leader = ''] = options.nodes.keys()
  const state: State = { options, leader, received: [] }
  const nodes = await Promise.all([...options.nodes].map(([id, host]) => startNode(state, id, host)))
  return {
    received: state.received,
    leader: () => leader,
    close: async () => void (await Promise.all(nodes.map((close) => close()))),
  }
}

/** @returns ends it: connections, listeners, heartbeats */
async function startNode(state: State, node: string, host: string): Promise<() => Promise<unknown>> {
  const api = await serveApi(state, node, host)
  const server = await listen(
    createServer((socket) => serve(state, node, socket)),
    PORTS.tcp,
    host,
  )
  const beats = repeat(state.options.heartbeatMs, () => beat(state, node))
  return () => Promise.all([api.close(), beats.stop(), server.close()])
}

function serveApi(state: State, node: string, host: string): Promise<PlainServer> {
  const { shard, zone, nodes } = state.options
  return servePlain(host, PORTS.api, ({ method, path }) => {
    if (method !== 'GET') return { status: 405 }
    switch (path) {
      case '/healthz':
        return { status: 200, body: state.leader === node ? 'active_leader' : 'active_follower' }
      case '/node-info':
        return asJson({
          leader_id: state.leader,
          leader_url: `http://${nodes.get(state.leader)}:${PORTS.api}`,
          shard_id: shard,
          zone_id: zone,
          node_id: node,
        })
      case '/peers':
        return asJson([...nodes.keys()])
      default:
        return { status: 404 }
    }
  })
}

/** Registers, and, as the leader, publishes the segments where the registry has other ones. */
async function beat(state: State, node: string): Promise<void> {
  const { registry, shard, zone } = state.options
  const body = { kind: 'node', id: node, zone, shard }
  await callPlain(`${registry}/register`, { method: 'POST', body }).catch(() => undefined)
  if (state.leader !== node) return
  const url = `${registry}/shards/${encodeURIComponent(shard)}/segments`
  const known = await readPlain<{ zone: string; segments: string[] }>(url)
  const list = [...state.options.segments].sort()
  if (known?.zone === zone && known.segments.join('\n') === list.join('\n')) return
  await callPlain(url, { method: 'POST', body: { zone, segments: list } }).catch(() => undefined)
}

function serve(state: State, node: string, socket: Socket): void {
  socket.setNoDelay(true)
  let bytes = Buffer.alloc(0)
  socket.on('error', () => {})
  socket.on('data', (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk])
    while (bytes.length >= 9 && !socket.destroyed) {
      const end = 9 + bytes.readUInt32LE(5)
      // Existing nodes know bare frames only.
      if (bytes[0] !== 0xff) return void socket.destroy()
      if (bytes.length < end) return
      const reply = execute(state, node, bytes.readUInt32LE(1), Buffer.from(bytes.subarray(9, end)))
      if (reply !== undefined) socket.write(reply)
      bytes = bytes.subarray(end)
    }
  })
}

function execute(state: State, node: string, id: number, payload: Buffer): Buffer | undefined {
  if (payload.length === 0) return undefined
  const command = payload.toString('latin1', 1, 1 + (payload[0] as number))
  if (command === 'LOGIN') return Buffer.from('LOGIN OK')
  if (command === 'GETCODECS') return successFrame(id, [[9, Buffer.from(state.options.codecs.join(','))]])
  const isWrite = isCommandName(command) && COMMANDS[command].access === 'write'
  const isLeader = state.leader === node
  if (isWrite !== isLeader) {
    const refusal = Buffer.from('05 4552524f52 0100 0100 01 03000000'.replaceAll(' ', ''), 'hex')
    return bareFrame(id, Buffer.concat([refusal, Buffer.from(isWrite ? '308' : '405')]))
  }
  state.received.push({ node, command, payload })
  if (state.options.answer) return Buffer.from(state.options.answer(payload, id))
  return successFrame(id, [
    [1, Buffer.from(node)],
    [9, payload],
  ])
}
