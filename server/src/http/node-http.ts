/** HTTP requests to nodes, registry and resolver: keep-alive connections, bounded responses, errors with codes. */
import { Agent, type ClientRequest, type IncomingMessage, request as requestHttp } from 'node:http'
import { Agent as AgentTls, request as requestHttps } from 'node:https'

export const NODE_HTTP = {
  timeoutMs: 800,
  /** A node lists each of its segments; a registry lists those of all nodes. */
  answerBytesMax: 8 << 20,
  registryBytesMax: 64 << 20,
  connectionsPerNode: 4,
  keptMs: 30_000,
} as const

/** Why there is no response; `code` is stable, the message is for people. */
export class NodeHttpError extends Error {
  readonly code: string

  constructor(code: string, message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'NodeHttpError'
    this.code = code
  }
}

type HttpRequest = {
  readonly method?: 'GET' | 'POST'
  readonly body?: unknown
  readonly token?: string | undefined
  readonly timeoutMs?: number
  readonly bytesMax?: number
  readonly signal?: AbortSignal | undefined
}

export type HttpReply = {
  readonly status: number
  readonly type: string
  readonly body: string
  readonly milliseconds: number
  /** A registry that does not reach its etcd. */
  readonly isStale?: boolean
}

export type NodeHttp = {
  /** @throws NodeHttpError */
  request(url: string, ask?: HttpRequest): Promise<HttpReply>
  close(): void
}

/** @param ca certificate authorities of nodes over TLS, PEM; by default those of the system */
export function createNodeHttp(ca?: string): NodeHttp {
  const kept = {
    keepAlive: true,
    maxSockets: NODE_HTTP.connectionsPerNode,
    maxFreeSockets: 1,
    timeout: NODE_HTTP.keptMs,
  }
  const agent = new Agent(kept)
  const agentTls = new AgentTls({ ...kept, ...(ca !== undefined && { ca }) })
  return {
    async request(url, ask = {}) {
      const once = () => send(url, ask, url.startsWith('https:') ? agentTls : agent)
      try {
        return await once()
      } catch (error) {
        // The peer may have closed the keep-alive connection at that moment; the request was not processed.
        if (error instanceof NodeHttpError && error.code === 'stale' && ask.method !== 'POST') return await once()
        throw error
      }
    },
    close() {
      agent.destroy()
      agentTls.destroy()
    },
  }
}

function send(url: string, ask: HttpRequest, agent: Agent): Promise<HttpReply> {
  const { promise, resolve, reject } = Promise.withResolvers<HttpReply>()
  const { timeoutMs = NODE_HTTP.timeoutMs, bytesMax = NODE_HTTP.answerBytesMax } = ask
  const started = performance.now()
  const payload = ask.body === undefined ? undefined : JSON.stringify(ask.body)
  const headers = {
    ...(ask.token !== undefined && { authorization: `Bearer ${ask.token}` }),
    ...(payload !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload) }),
  }
  let request: ClientRequest
  try {
    const start = url.startsWith('https:') ? requestHttps : requestHttp
    request = start(url, { method: ask.method ?? 'GET', headers, agent })
  } catch (cause) {
    return Promise.reject(new NodeHttpError('address', `${url.slice(0, 200)} is not an address`, cause))
  }
  const end = (error: NodeHttpError) => {
    reject(error)
    request.destroy()
  }
  const timer = setTimeout(() => end(new NodeHttpError('timeout', `no response within ${timeoutMs} ms`)), timeoutMs)
  const abort = () => end(new NodeHttpError('aborted', 'the request was cancelled'))
  ask.signal?.addEventListener('abort', abort, { once: true })
  if (ask.signal?.aborted) abort()
  request.on('error', (error: NodeJS.ErrnoException) => reject(errorOf(error, request.reusedSocket)))
  request.on('response', (response: IncomingMessage) => {
    const chunks: Buffer[] = []
    let bytes = 0
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes <= bytesMax) chunks.push(chunk)
      else end(new NodeHttpError('too-large', `the response exceeds ${bytesMax} bytes`))
    })
    response.on('error', (error: NodeJS.ErrnoException) => reject(errorOf(error, false)))
    response.on('end', () =>
      resolve({
        status: response.statusCode ?? 0,
        type: response.headers['content-type'] ?? '',
        body: (chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)).toString(),
        milliseconds: performance.now() - started,
        isStale: response.headers['x-registry-stale'] !== undefined,
      }),
    )
  })
  request.end(payload)
  return promise.finally(() => {
    clearTimeout(timer)
    ask.signal?.removeEventListener('abort', abort)
  })
}

const CODES: { readonly [code: string]: readonly [code: string, message: string] } = {
  ECONNREFUSED: ['refused', 'connection refused'],
  ENOTFOUND: ['name-not-found', 'unknown host name'],
  EAI_AGAIN: ['name-not-found', 'host name lookup failed'],
  EHOSTUNREACH: ['unreachable', 'no route to host'],
  ENETUNREACH: ['unreachable', 'network unreachable'],
  ETIMEDOUT: ['timeout', 'connection timed out'],
  ECONNRESET: ['lost', 'connection lost'],
  EPIPE: ['lost', 'connection lost'],
}

function errorOf(error: NodeJS.ErrnoException, isReused: boolean): NodeHttpError {
  if (error instanceof NodeHttpError) return error
  const known = CODES[error.code ?? '']
  if (isReused && known?.[0] === 'lost') return new NodeHttpError('stale', known[1], error)
  return known
    ? new NodeHttpError(known[0], known[1], error)
    : new NodeHttpError('failed', `${error.code ?? 'error'}: ${error.message.slice(0, 200)}`, error)
}
