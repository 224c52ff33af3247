/**
 * What is behind a hop that is measured: answers every request with the same reply, as a node or as a bridge, and
 * nothing else. Also the registry and resolver of a system with one shard, so that the real components find it.
 *
 * `node upstream.ts '{"replyBytes":2000,...}'` prints its ports as a line of JSON.
 */
import { createServer as createHttp } from 'node:http'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { createFrameSplitter, FRAME_HEADER_BYTES, type FrameSink, MAGIC_FRAME, splitFrames } from '@vacancy/shared/wire'
import { BRIDGE, NODE, ROUTER, SEGMENT, SHARD, ZONE } from './names.ts'

export type UpstreamPlan = {
  /** Bytes of a reply's payload. */
  readonly replyBytes: number
  /** What `__status__` is answered with, as a bridge; undefined for a node. */
  readonly status: object | undefined
  /** The port that hosts are resolved to; undefined for its own. */
  readonly port: number | undefined
}

const plan = JSON.parse(process.argv[2] ?? '{}') as UpstreamPlan

const HEAD = Buffer.from('\x07SUCCESS', 'latin1')

function replyOf(payload: Buffer): Buffer {
  const frame = Buffer.alloc(FRAME_HEADER_BYTES + payload.length)
  frame[0] = MAGIC_FRAME
  frame.writeUInt32LE(payload.length, 5)
  payload.copy(frame, FRAME_HEADER_BYTES)
  return frame
}

/** SUCCESS with one field of type 1. */
function oneField(data: Buffer): Buffer {
  const header = Buffer.alloc(9)
  header.writeUInt16LE(1, 0)
  header.writeUInt16LE(1, 2)
  header[4] = 1
  header.writeUInt32LE(data.length, 5)
  return replyOf(Buffer.concat([HEAD, header, data]))
}

const reply = oneField(Buffer.alloc(Math.max(0, plan.replyBytes - HEAD.length - 9), 0x61))
const status = oneField(Buffer.from(JSON.stringify(plan.status ?? {})))
const GETCODECS = Buffer.from('\x09GETCODECS', 'latin1')

function serve(socket: Socket): void {
  socket.setNoDelay(true)
  const splitter = createFrameSplitter({ payloadBytesMax: 65_536, skipBytesMax: 65_536 })
  let out: Buffer[] = []
  const sink: FrameSink = {
    frame(bytes, start, end, id) {
      const isStatus = GETCODECS.compare(bytes, start, Math.min(end, start + GETCODECS.length)) === 0
      const frame = Buffer.from(isStatus ? status : reply)
      frame.writeUInt32LE(id, 1)
      out.push(frame)
    },
    refuse: () => socket.destroy(),
    fatal: () => socket.destroy(),
  }
  socket.on('data', (chunk: Buffer) => {
    splitFrames(splitter, chunk, sink)
    if (out.length > 0) socket.write(out.length === 1 ? (out[0] as Buffer) : Buffer.concat(out))
    out = []
  })
  socket.on('error', () => socket.destroy())
}

const tcp = createServer(serve)
const http = createHttp((request, response) => {
  const [path = ''] = (request.url ?? '').split('?')
  const json = (value: unknown) => {
    const body = JSON.stringify(value)
    response.setHeader('content-type', 'application/json')
    response.end(body)
  }
  switch (path) {
    case '/healthz':
      response.end('active_leader')
      return
    case '/node-info':
      return json({ node_id: NODE, shard_id: SHARD, zone_id: ZONE, leader_id: NODE, health: 'active_leader' })
    case '/peers':
      return json([])
    case `/shards/${SHARD}/nodes/${NODE}`:
      return json({ hostname: '127.0.0.1', port: portOf(tcp), api_port: portOf(http) })
    case `/bridges/${BRIDGE}`:
      return json({ hostname: '127.0.0.1', port: plan.port ?? portOf(tcp) })
    case `/routers/${ROUTER}`:
      return json({ hostname: '127.0.0.1', port: plan.port ?? portOf(tcp) })
    case `/zones/${ZONE}/routers`:
      return json({ version: 1, routers: [ROUTER] })
    case `/zones/${ZONE}/segments`:
      return json({ version: 1, segments: [SEGMENT] })
    case '/versions':
      return json({ global_version: 1, versions: VERSIONS })
    case '/codecs':
      return json({ rate_features: ['breakfast'], hash: 1 })
    case `/zones/${ZONE}/shards`:
      return json({ version: 1, shards: { [SHARD]: { bridges: [BRIDGE] } } })
    case `/shards/${SHARD}/segments`:
      return json({ version: 1, zone: ZONE, segments: [SEGMENT] })
    case `/shards/${SHARD}/nodes`:
      return json({ version: 1, nodes: [NODE] })
    case '/register':
      return json({})
    default:
      response.statusCode = 404
      response.end('{}')
  }
})

const VERSIONS = {
  [`zones/${ZONE}/shards`]: 1,
  [`zones/${ZONE}/segments`]: 1,
  [`zones/${ZONE}/routers`]: 1,
  [`shards/${SHARD}/segments`]: 1,
  [`shards/${SHARD}/nodes`]: 1,
}

function portOf(server: { address(): unknown }): number {
  return (server.address() as AddressInfo).port
}

tcp.listen({ host: '127.0.0.1', port: 0, backlog: 4_096 }, () => {
  http.listen(0, '127.0.0.1', () => {
    process.stdout.write(`${JSON.stringify({ tcp: portOf(tcp), http: portOf(http) })}\n`)
  })
})
