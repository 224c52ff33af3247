/** The HTTP API of a fake node on a free port, for tests over real sockets. */

import { turnableClock } from '@vacancy/shared'
import { errorBody } from '@vacancy/shared/contract'
import { type Given, type Log, parseTokens, type TlsMaterial, type TokenHash } from '@vacancy/shared/node'
import { expect } from 'vitest'
import { loadEngineConfig } from '../config.ts'
import type { NodeHandle } from '../http/handle.ts'
import { createHttpServer, type HttpServer } from '../http/node.ts'
import { fakeHandle, NOON } from './fake-handle.ts'

const open: HttpServer[] = []

/** For `afterEach`. */
export async function closeServers(): Promise<void> {
  await Promise.all(open.splice(0).map((server) => server.close()))
}

export const silent: Log = { debug() {}, info() {}, warn() {}, error() {} }

export const TOKENS = parseTokens(
  `tokens:
  - { token: the-admin, role: admin }
  - { token: a-client, role: client }
  - { token: a-monitor, role: monitoring }
  - { token: too-late, role: admin, expires: 2026-06-15T11:59:59Z }
`,
  'tokens.yml',
)

export type Setup = {
  handle?: Partial<NodeHandle>
  settings?: { [key: string]: string }
  tokens?: readonly TokenHash[]
  tls?: TlsMaterial
  log?: Log
}

export function configOf(settings: { [key: string]: string } = {}) {
  const given = new Map<string, Given>(
    Object.entries(settings).map(([key, text]) => [key, { text, at: `--${key}`, from: 'flag' }]),
  )
  return loadEngineConfig({ given, cores: 4 })
}

export async function serve({ handle, settings, tokens, tls, log = silent }: Setup = {}) {
  const clock = turnableClock(NOON)
  const server = createHttpServer({
    handle: fakeHandle(handle),
    config: configOf(settings),
    tokens,
    tls,
    clock,
    log,
    host: '127.0.0.1',
    port: 0,
  })
  open.push(server)
  const port = await server.listening
  const url = (path: string) => `http://127.0.0.1:${port}${path}`
  const as = (token?: string) => (token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } })
  const get = (path: string, token?: string) => fetch(url(path), as(token))
  const post = (path: string, body?: unknown, token?: string) =>
    fetch(url(path), {
      method: 'POST',
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      ...as(token),
    })
  return { server, port, url, get, post, clock }
}

/** Status and message of an error response. */
export async function refused(answer: Promise<Response>): Promise<[number, string]> {
  const response = await answer
  expect(response.headers.get('content-type')).toBe('application/json')
  const body = errorBody.strict().parse(await response.json())
  return [response.status, body.error]
}
