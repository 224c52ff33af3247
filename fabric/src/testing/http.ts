/** HTTP servers and logs for tests. */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Log } from '@vacancy/shared/node'
import { listen } from '@vacancy/testkit/listen'

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
  const bound = await listen(server, port)
  return { port: bound.port, addr: `127.0.0.1:${bound.port}`, requests, stop: bound.close }
}

export async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}
