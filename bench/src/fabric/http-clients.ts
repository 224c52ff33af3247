/**
 * HTTP clients of a server that is measured: `node http-clients.ts '{"port":…}'`. Requests are written by hand onto
 * sockets that are kept, one in flight on each, so that the clients take little of the shared cores.
 */
import { connect } from 'node:net'
import { quantile } from '../pauses.ts'

export type HttpPlan = {
  readonly port: number
  readonly connections: number
  readonly requests: number
  /** Body of each POST to `/api`. */
  readonly body: string
}

export type HttpResult = {
  readonly seconds: number
  /** Of a response. */
  readonly bodyBytes: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
}

const plan = JSON.parse(process.argv[2] ?? '{}') as HttpPlan
const REQUEST = Buffer.from(
  `POST /api HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(plan.body)}\r\n\r\n${plan.body}`,
)

let left = plan.requests
let toCome = plan.requests
let bodyBytes = 0
const latencies: number[] = []
const begun = performance.now()

function open(): void {
  const socket = connect({ host: '127.0.0.1', port: plan.port, noDelay: true })
  let sentMs = 0
  let head = ''
  /** Bytes of the response that are still to come, once its head was read. */
  let missing = 0
  const send = () => {
    if (left === 0) return
    left--
    sentMs = performance.now()
    socket.write(REQUEST)
  }
  socket.on('connect', send)
  socket.on('data', (chunk: Buffer) => {
    if (missing > 0) missing -= chunk.length
    else {
      head += chunk.toString('latin1')
      const end = head.indexOf('\r\n\r\n')
      if (end < 0) return
      const length = Number(/\r\ncontent-length: (\d+)\r\n/i.exec(head.slice(0, end + 2))?.[1] ?? Number.NaN)
      if (!head.startsWith('HTTP/1.1 200 ') || Number.isNaN(length)) throw new Error(`a wrong response: ${head}`)
      if (bodyBytes !== 0 && length !== bodyBytes) throw new Error(`a body of ${length} bytes after ${bodyBytes}`)
      bodyBytes = length
      missing = end + 4 + length - head.length
      head = ''
    }
    if (missing < 0) throw new Error('more bytes than the response has')
    if (missing > 0) return
    latencies.push(performance.now() - sentMs)
    if (--toCome === 0) finish()
    else send()
  })
  socket.on('close', () => {
    if (toCome > 0) throw new Error('the connection was closed')
  })
}

function finish(): void {
  const result: HttpResult = {
    seconds: (performance.now() - begun) / 1000,
    bodyBytes,
    p50: quantile(latencies, 0.5),
    p99: quantile(latencies, 0.99),
  }
  process.stdout.write(`${JSON.stringify(result)}\n`)
  process.exit(0)
}

for (let i = 0; i < plan.connections; i++) open()
