/**
 * The baselines of the fabric: `relay PORT` passes bytes on, with one upstream socket for each client and nothing
 * parsed; `http` is `node:http` that reads a body and answers with the same bytes. Prints its port.
 */
import { createServer as createHttp } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { assert } from '@vacancy/shared'

const [kind, argument = ''] = process.argv.slice(2)
assert(kind === 'relay' || kind === 'http', 'the baseline is relay or http')

function relay(client: Socket): void {
  const upstream = connect({ host: '127.0.0.1', port: Number(argument), noDelay: true })
  client.setNoDelay(true)
  client.on('data', (chunk) => upstream.write(chunk))
  upstream.on('data', (chunk) => client.write(chunk))
  for (const [a, b] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    a.on('error', () => b.destroy())
    a.on('close', () => b.destroy())
  }
}

function answering(body: Buffer) {
  return createHttp({ keepAliveTimeout: 60_000 }, (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
      response.end(body)
    })
  })
}

const server = kind === 'relay' ? createServer(relay) : answering(Buffer.alloc(Number(argument), 0x61))
server.listen({ host: '127.0.0.1', port: 0, backlog: 4_096 }, () => {
  process.stdout.write(`${JSON.stringify({ tcp: (server.address() as AddressInfo).port })}\n`)
})
