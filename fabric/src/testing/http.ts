/** HTTP servers and logs for tests. */

import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Log } from '@vacancy/shared/node'

export type LogLine = { readonly level: string; readonly text: string; readonly fields: object }

/** A log that keeps its lines. */
export function keepingLog(): Log & { readonly lines: LogLine[] } {
  const lines: LogLine[] = []
  const note = (level: string) => (fields: object, text: string) => {
    lines.push({ level, text, fields })
  }
  return { lines, debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') }
}

export type Stub = {
  readonly port: number
  /** `127.0.0.1:port`. */
  readonly addr: string
  /** Method and URL of each request, in order. */
  readonly requests: string[]
  stop(): Promise<void>
}

/** A server on a free port, or on a given one. */
export async function stub(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  port = 0,
): Promise<Stub> {
  const requests: string[] = []
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`)
    answer(request, response)
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const bound = (server.address() as AddressInfo).port
  let stopped: Promise<void> | undefined
  return {
    port: bound,
    addr: `127.0.0.1:${bound}`,
    requests,
    stop() {
      stopped ??= new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
      return stopped
    },
  }
}

export async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}
