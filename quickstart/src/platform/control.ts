/** The control interface of a running platform, on a port of 127.0.0.1 with a token that is in the folder. */

import { timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { VacancyError } from '@vacancy/shared'
import type { Running } from './files.ts'
import type { Plan } from './plan.ts'

const HOST = '127.0.0.1'
/** A restart waits for the end and for readiness. */
const ANSWER_MS_MAX = 120_000

export type ComponentStatus = {
  readonly name: string
  readonly kind: string
  /** null while it does not run. */
  readonly pid: number | null
  readonly isReady: boolean
  /** Why it is not ready; of a node its role. */
  readonly text: string
  readonly residentBytes: number | null
  readonly address: string
}

export type PlatformStatus = {
  readonly plan: Plan
  /** First day on sale, day number. */
  readonly day: number
  readonly components: readonly ComponentStatus[]
}

/** What the running platform does on request. Texts are shown to the user. */
export type Control = {
  readonly status: () => Promise<PlatformStatus>
  readonly kill: (name: string) => Promise<string>
  readonly restart: (name: string) => Promise<string>
  /** Begins to stop. */
  readonly stop: () => void
}

/** @returns the server, and its port */
export async function serveControl(control: Control, token: string): Promise<{ server: Server; port: number }> {
  const server = createServer(async (request, response) => {
    const end = (status: number, body: unknown) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    }
    if (!isAllowed(request, token)) return end(401, { error: 'wrong token' })
    try {
      end(200, await run(control, request))
    } catch (error) {
      end(409, { error: (error as Error).message })
    }
  })
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', reject).listen(0, HOST, resolve)
  await promise
  return { server, port: (server.address() as AddressInfo).port }
}

function isAllowed({ headers }: IncomingMessage, token: string): boolean {
  const [given, wanted] = [headers.authorization ?? '', `Bearer ${token}`].map((text) => Buffer.from(text))
  return given !== undefined && wanted !== undefined && given.length === wanted.length && timingSafeEqual(given, wanted)
}

async function run(control: Control, { method, url = '' }: IncomingMessage): Promise<unknown> {
  const [action = '', name = ''] = url.slice(1).split('/').map(decodeURIComponent)
  if (method === 'GET' && action === 'status') return await control.status()
  if (method === 'POST' && action === 'kill') return { text: await control.kill(name) }
  if (method === 'POST' && action === 'restart') return { text: await control.restart(name) }
  if (method === 'POST' && action === 'stop') return { text: String(control.stop() ?? '') }
  throw new VacancyError('usage_error', { reason: `unknown request ${method} ${url}` })
}

/**
 * @throws VacancyError failure with the answer's reason
 */
export async function request<T>(running: Running, method: 'GET' | 'POST', path: string): Promise<T> {
  const { port, token, pid } = running
  let response: Response
  try {
    response = await fetch(`http://${HOST}:${port}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    })
  } catch (cause) {
    const reason = `the platform, process ${pid}, does not answer: it is starting or stopping`
    throw new VacancyError('failure', { reason }, { cause })
  }
  const body = (await response.json()) as { error?: string }
  if (!response.ok) throw new VacancyError('failure', { reason: body.error ?? `HTTP ${response.status}` })
  return body as T
}
