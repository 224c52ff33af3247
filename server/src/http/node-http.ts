/** HTTP requests to nodes, registry and resolver: keep-alive connections, bounded responses, errors with codes. */
import { Agent } from 'node:http'
import { Agent as AgentTls } from 'node:https'
import { type HttpFailure, type HttpResponse, requestHttp } from '@vacancy/shared/node'

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
  /** The names of the reasons that a node has, beside its health. */
  readonly reasons?: string | undefined
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
  const { method = 'GET', token, signal, timeoutMs = NODE_HTTP.timeoutMs, bytesMax = NODE_HTTP.answerBytesMax } = ask
  const started = performance.now()
  const headers: { readonly [name: string]: string } = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const body = ask.body === undefined ? undefined : JSON.stringify(ask.body)
  const { promise, resolve, reject } = Promise.withResolvers<HttpReply>()
  let cancel: () => void
  try {
    cancel = requestHttp(url, { method, headers, body, agent, timeoutMs, bytesMax }, (result) => {
      if ('error' in result) reject(errorOf(result))
      else resolve(replyOf(result, started))
    })
  } catch (cause) {
    return Promise.reject(new NodeHttpError('address', `${url.slice(0, 200)} is not an address`, cause))
  }
  const abort = () => {
    cancel()
    reject(new NodeHttpError('aborted', 'the request was cancelled'))
  }
  signal?.addEventListener('abort', abort, { once: true })
  if (signal?.aborted) abort()
  return promise.finally(() => signal?.removeEventListener('abort', abort))
}

function replyOf({ status, headers, body }: HttpResponse, started: number): HttpReply {
  return {
    status,
    type: headers['content-type'] ?? '',
    body: body.toString(),
    milliseconds: performance.now() - started,
    isStale: headers['x-registry-stale'] !== undefined,
    reasons: headers['x-reasons']?.toString(),
  }
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

function errorOf({ why, error, isStale }: HttpFailure): NodeHttpError {
  if (why !== 'connection') return new NodeHttpError(why === 'size' ? 'too-large' : why, error.message, error)
  const [code, message] = CODES[error.code ?? ''] ?? [
    'failed',
    `${error.code ?? 'error'}: ${error.message.slice(0, 200)}`,
  ]
  return new NodeHttpError(isStale && code === 'lost' ? 'stale' : code, message, error)
}
