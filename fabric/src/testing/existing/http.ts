/** HTTP of the stand-ins for existing components: a plain server, and calls without conditions, tokens or TLS. */

import { createServer } from 'node:http'
import { listen } from '@vacancy/testkit/listen'

export type PlainAnswer = { readonly status: number; readonly body?: string; readonly type?: string }

export type PlainRequest = {
  readonly method: string
  /** Without the query; existing services read none. */
  readonly path: string
  readonly body: string
  readonly type: string
}

export type PlainServer = {
  readonly url: string
  readonly port: number
  /** Method and URL of each request, in order. */
  readonly requests: readonly string[]
  readonly close: () => Promise<void>
}

export async function servePlain(
  host: string,
  port: number,
  answer: (request: PlainRequest) => PlainAnswer,
): Promise<PlainServer> {
  const requests: string[] = []
  const server = createServer((received, response) => {
    requests.push(`${received.method} ${received.url}`)
    const chunks: Buffer[] = []
    received.on('data', (chunk: Buffer) => chunks.push(chunk))
    received.on('end', () => {
      const request = {
        method: received.method ?? '',
        path: (received.url ?? '').split('?', 1)[0] as string,
        body: Buffer.concat(chunks).toString(),
        type: received.headers['content-type'] ?? '',
      }
      const { status, body = '', type = 'text/plain' } = answer(request)
      response.writeHead(status, body === '' ? {} : { 'content-type': type }).end(body)
    })
  })
  const listening = await listen(server, port, host)
  return { url: `http://${host}:${listening.port}`, requests, ...listening }
}

export function asJson(body: object, status = 200): PlainAnswer {
  return { status, body: JSON.stringify(body), type: 'application/json' }
}

/** Existing components try twice more, after 100 and 200 ms, where they ask a resolver. */
export async function callPlain(
  url: string,
  { method = 'GET', body, timeoutMs = 2_000 }: { method?: string; body?: object; timeoutMs?: number } = {},
): Promise<{ readonly status: number; readonly text: string }> {
  const response = await fetch(url, {
    method,
    signal: AbortSignal.timeout(timeoutMs),
    headers: { connection: 'close', ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })
  return { status: response.status, text: await response.text() }
}

/** The JSON of a 200; undefined for anything else. */
export async function readPlain<T>(url: string, timeoutMs?: number): Promise<T | undefined> {
  try {
    const { status, text } = await callPlain(url, timeoutMs === undefined ? {} : { timeoutMs })
    return status === 200 ? (JSON.parse(text) as T) : undefined
  } catch {
    // Not reachable, too slow or not JSON: existing components go on with what they have.
    return undefined
  }
}

/** The host that a resolver names: the whole body, trimmed. A 404 ends the tries. */
export async function resolvePlain(resolver: string, path: string): Promise<string | undefined> {
  for (const waitMs of [0, 100, 200]) {
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs))
    try {
      const { status, text } = await callPlain(`${resolver}${path}`, { timeoutMs: 5_000 })
      if (status === 404) return undefined
      if (status === 200) return text.trim()
    } catch {
      // The next try.
    }
  }
  return undefined
}

/** Runs `work` now and each `ms` after its end, until stopped. */
export function repeat(ms: number, work: () => Promise<void>): { readonly stop: () => Promise<void> } {
  let isStopped = false
  let wake = () => {}
  const running = (async () => {
    while (!isStopped) {
      await work()
      if (isStopped) return
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms)
        wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  })()
  return {
    async stop() {
      isStopped = true
      wake()
      await running
    },
  }
}
