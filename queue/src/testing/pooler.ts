/**
 * A pooler for one client that breaks session locks, as transaction pooling does: after each transaction the next server
 * process takes over. Messages of PostgreSQL are passed on whole.
 */
import { connect, createServer, type Socket } from 'node:net'
import { listen } from '@vacancy/testkit/listen'

type Server = { readonly host: string; readonly port: number }
export type Pooler = { readonly port: number; readonly close: () => Promise<void> }

const SYNC = 'S'
const QUERY = 'Q'
const READY = 'Z'
const IDLE = 'I'
/** Type of a message, and its length, which counts itself but not the type. */
const TYPE_BYTES = 1
const HEADER_BYTES = 5
const SERVERS = 2

/** Opens a pooler on a free port of 127.0.0.1 in front of a server that asks for no password. */
export function openPooler(server: Server): Promise<Pooler> {
  return listen(createServer((client) => serve(client, server)))
}

function serve(client: Socket, server: Server): void {
  const servers = Array.from({ length: SERVERS }, () => connect(server))
  for (const socket of [client, ...servers]) {
    // Its end is passed on.
    socket.on('error', () => undefined)
    socket.on('close', () => {
      for (const other of [client, ...servers]) other.destroy()
    })
  }
  let current = 0
  let started = 0
  let isBusy = true
  const queue: Buffer[] = []
  const next = () => {
    while (!isBusy) {
      const message = queue.shift()
      if (message === undefined) return
      isBusy = [SYNC, QUERY].includes(String.fromCharCode(message[0] as number))
      servers[current]?.write(message)
    }
  }
  for (const [n, each] of servers.entries())
    each.on(
      'data',
      splitter((message) => {
        const isReady = String.fromCharCode(message[0] as number) === READY
        if (started < SERVERS) {
          // The client sees one server that starts.
          if (isReady) started++
          if (n === 0 && !isReady) client.write(message)
          if (started === SERVERS) {
            client.write(Buffer.from([READY.charCodeAt(0), 0, 0, 0, 5, IDLE.charCodeAt(0)]))
            isBusy = false
          }
          return
        }
        client.write(message)
        if (!isReady) return
        if (String.fromCharCode(message[HEADER_BYTES] as number) === IDLE) current = (current + 1) % SERVERS
        isBusy = false
        next()
      }),
    )
  let isFirst = true
  const later = splitter((message) => {
    queue.push(message)
    next()
  })
  client.on('data', (bytes: Buffer) => {
    if (!isFirst) return later(bytes)
    // The start message is small and alone.
    isFirst = false
    for (const each of servers) each.write(bytes)
  })
}

/** Calls back with each whole message. */
function splitter(take: (message: Buffer) => void): (bytes: Buffer) => void {
  let rest = Buffer.alloc(0)
  return (bytes) => {
    rest = Buffer.concat([rest, bytes])
    while (rest.length >= HEADER_BYTES) {
      const length = TYPE_BYTES + rest.readInt32BE(TYPE_BYTES)
      if (rest.length < length) return
      const message = rest.subarray(0, length)
      rest = rest.subarray(length)
      take(message)
    }
  }
}
