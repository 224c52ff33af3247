/** Starts a proxy in this process, for tests. */

import { type ClientHttp2Session, connect } from 'node:http2'
import { systemClock } from '@vacancy/shared'
import { loadTls } from '@vacancy/shared/node'
import { openShardFinder } from '../cluster.ts'
import { loadProxyConfig } from '../config.ts'
import { startProxy } from '../proxy.ts'
import { type ApiTokens, parseApiTokens } from '../tokens.ts'

type Logged = { readonly level: string; readonly fields: object; readonly message: string }

/** @param keys configuration keys as in a file */
export async function startTestProxy(
  keys: { readonly [key: string]: string | number | boolean },
  more: { readonly auth?: string; readonly requestMs?: number } = {},
) {
  const given = new Map(
    Object.entries({
      listening_addr: '127.0.0.1',
      http_port: 0,
      https_port: 0,
      ...(keys['mode'] !== 'cluster' && { upstream_addr: '127.0.0.1' }),
      ...keys,
    }).map(([key, value]) => [key, { text: String(value), at: key, from: 'flag' as const }]),
  )
  const config = loadProxyConfig({ given, searched: [] })
  const logged: Logged[] = []
  const note = (level: string) => (fields: object, message: string) => void logged.push({ level, fields, message })
  let tokens: ApiTokens = parseApiTokens(more.auth ?? '', 'auth.yml')
  const log = { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') }
  const running = await startProxy({
    config,
    tokens: more.auth === undefined ? undefined : () => tokens,
    tls: config.httpsEnabled ? loadTls({ cert: config.tlsCertPath, key: config.tlsKeyPath }) : undefined,
    upstreamTls: undefined,
    version: '0.0.0',
    clock: systemClock,
    discovery: config.mode === 'cluster' ? openShardFinder(config, log) : undefined,
    log,
    drainMs: 2_000,
    ...(more.requestMs !== undefined && { requestMs: more.requestMs }),
  })
  const url = `http://127.0.0.1:${running.httpPort}`
  return {
    ...running,
    url,
    logged,
    setAuth(text: string) {
      tokens = parseApiTokens(text, 'auth.yml')
      running.tokensChanged(tokens)
    },
    /** Over HTTP/1.1. */
    async post(body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
      const text = typeof body === 'string' ? body : JSON.stringify(body)
      const response = await fetch(`${url}/api`, { method: 'POST', body: text, headers })
      return { status: response.status, headers: Object.fromEntries(response.headers), json: await response.json() }
    },
    async get(path: string, headers: Record<string, string> = {}) {
      const response = await fetch(url + path, { headers })
      return { status: response.status, headers: Object.fromEntries(response.headers), text: await response.text() }
    },
  }
}

export type TestProxy = Awaited<ReturnType<typeof startTestProxy>>
export type Answer = {
  readonly status: number
  readonly headers: { readonly [name: string]: unknown }
  // biome-ignore lint/suspicious/noExplicitAny: tests read what they expect.
  readonly json: any
}

export async function openHttp2(url: string, options: object = {}): Promise<ClientHttp2Session> {
  const session = connect(url, options)
  session.on('error', () => {})
  await new Promise<void>((resolve, reject) => {
    session.once('connect', () => resolve())
    session.once('error', reject)
  })
  return session
}

/** One request over HTTP/2. @returns status 0 when the stream was refused */
export function postHttp2(session: ClientHttp2Session, body: unknown, headers: object = {}): Promise<Answer> {
  return new Promise((resolve) => {
    const stream = session.request({ ':method': 'POST', ':path': '/api', ...headers })
    let head: { readonly [name: string]: unknown } = { ':status': 0 }
    let text = ''
    stream.setEncoding('utf8')
    stream.on('response', (given) => {
      head = given
    })
    stream.on('data', (piece: string) => {
      text += piece
    })
    stream.on('error', () => {})
    stream.on('close', () => {
      resolve({ status: Number(head[':status']), headers: head, json: text === '' ? undefined : JSON.parse(text) })
    })
    stream.end(typeof body === 'string' ? body : JSON.stringify(body))
  })
}
