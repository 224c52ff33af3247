/** HTTP requests of commands to nodes, with the token and the authorities that a user names. */

import { readFileSync } from 'node:fs'
import { errorBody } from '../contract/index.ts'
import { VacancyError } from '../errors.ts'
import { VERSION } from './cli.ts'
import { requestHttp } from './http-request.ts'

/** A node gives up after 6 s (http/cluster.ts); its caller waits a little longer. */
const ANSWER_MS = 10_000
const ANSWER_BYTES_MAX = 4 << 20

export type Access = {
  /** `HOST:PORT` each; the first reachable one is used. */
  readonly nodes: readonly string[]
  readonly token: string | undefined
  /** CA certificates for the nodes, PEM: selects TLS. */
  readonly ca: string | undefined
  /** Instead of 10 s. */
  readonly answerMs?: number
  /** Largest reply, instead of 4 MiB. */
  readonly answerBytesMax?: number
}

/** The reply of a node. */
export type Reply = { readonly status: number; readonly body: string; readonly atMs: number }

export const schemeOf = ({ ca }: Access) => (ca === undefined ? 'http:' : 'https:')

export type Schema<T> = { readonly safeParse: (value: unknown) => { readonly data?: T | undefined } }

/** @throws VacancyError connection_failed, connection_lost; failure for any reply except 200 with the schema */
export async function fetchDocument<T>(access: Access, url: string, schema: Schema<T>): Promise<T> {
  return parseReply(url, await send(access, 'GET', url), schema)
}

/** @throws VacancyError failure for any reply except 200 with the schema */
export function parseReply<T>(url: string, reply: Reply, schema: Schema<T>): T {
  if (reply.status !== 200) throw refusal(url, reply)
  const { data } = schema.safeParse(jsonOf(reply.body))
  if (data === undefined) {
    throw new VacancyError('failure', { reason: `${url} does not respond like a node of version ${VERSION}` })
  }
  return data
}

/** @returns undefined for what is no JSON */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The caller reports it with the expected form.
    return undefined
  }
}

const HINTS: { readonly [status: number]: string } = {
  401: ' (give a token of its auth file with --token-file; without an auth file a node accepts no changes here)',
  403: ' (the role of the token is below admin)',
}

/** A refusal with its reason, and what to do about it. */
export function refusal(url: string, { status, body }: Reply): VacancyError {
  const { host } = new URL(url)
  return new VacancyError('failure', { reason: `${host} answered ${status}: ${errorText(body)}${HINTS[status] ?? ''}` })
}

function errorText(body: string): string {
  // A proxy before the node may have replied with its own text.
  return errorBody.safeParse(jsonOf(body)).data?.error ?? body.slice(0, 200)
}

/** @returns undefined for 404 */
export async function fetchBytes(access: Access, url: string, bytesMax: number): Promise<Uint8Array | undefined> {
  const reply = await sendFor(access, 'GET', url, '', bytesMax)
  if (reply.status === 404) return undefined
  if (reply.status !== 200) throw refusal(url, { ...reply, body: reply.bytes.toString() })
  return reply.bytes
}

/** @throws VacancyError failure for a status that is not among `expected` */
export async function post(access: Access, url: string, expected: readonly number[]): Promise<void> {
  const reply = await send(access, 'POST', url, '{}')
  if (!expected.includes(reply.status)) throw refusal(url, reply)
}

/** @throws VacancyError connection_failed, connection_lost */
export async function send(access: Access, method: 'GET' | 'POST', url: string, body = ''): Promise<Reply> {
  const { bytes, ...reply } = await sendFor(access, method, url, body, access.answerBytesMax ?? ANSWER_BYTES_MAX)
  return { ...reply, body: bytes.toString() }
}

function sendFor(
  { token, ca, answerMs = ANSWER_MS }: Access,
  method: 'GET' | 'POST',
  url: string,
  body: string,
  bytesMax: number,
): Promise<Omit<Reply, 'body'> & { readonly bytes: Buffer }> {
  const headers: { readonly [name: string]: string } = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const sent = method === 'POST' ? body : undefined
  return new Promise((resolve, reject) => {
    const options = { method, headers, body: sent, agent: false, ca, idleMs: answerMs, bytesMax } as const
    requestHttp(url, options, (result) => {
      if (!('error' in result)) {
        const atMs = Date.parse(result.headers.date ?? '')
        resolve({ status: result.status, bytes: result.body, atMs: atMs || 0 })
        return
      }
      const { error, isConnected } = result
      const code = isConnected ? 'connection_lost' : 'connection_failed'
      const reason = 'errors' in error ? error.message : (error.code ?? error.message)
      reject(new VacancyError(code, { address: new URL(url).host, reason }, { cause: error }))
    })
  })
}

/**
 * The token in a file: its first line.
 *
 * @throws VacancyError usage_error
 */
export function readToken(file: string | undefined): string | undefined {
  if (file === undefined) return undefined
  const [token = ''] = readText(file, '--token-file').split('\n')
  // Never printed, not even when it is invalid.
  if (!/^[\x21-\x7e]+$/.test(token.trim())) throw usage(`--token-file ${file}: its first line is not a token`)
  return token.trim()
}

/** @throws VacancyError usage_error */
export function readAuthorities(file: string | undefined): string | undefined {
  return file === undefined ? undefined : readText(file, '--tls-ca')
}

function readText(file: string, flag: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw usage(`${flag} ${file}: cannot be read: ${(cause as Error).message}`, cause)
  }
}

export function usage(reason: string, cause?: unknown): VacancyError {
  return new VacancyError('usage_error', { reason }, { cause })
}
