/**
 * Calls of etcd's v3 JSON gateway (`/v3/…`) with fetch. Keys and values are base64, 64-bit numbers are text; revisions
 * are far below 2^53 and become numbers here.
 */

export type EtcdOptions = {
  /** `http://host:port`, tried in turn; a call stays with the one that answers. */
  readonly endpoints: readonly string[]
  readonly user: { readonly name: string; readonly password: string } | undefined
}

/**
 * `unreachable`: no answer, and a call may have been executed. `refused`: etcd answered with an error, and executed
 * nothing; `code` is that of gRPC.
 */
export class EtcdError extends Error {
  override readonly name = 'EtcdError'
  readonly kind: 'unreachable' | 'refused'
  readonly code: number

  constructor(kind: 'unreachable' | 'refused', text: string, code = 0, cause?: unknown) {
    super(text, { cause })
    this.kind = kind
    this.code = code
  }
}

/** gRPC: no quorum, a leader is being elected, or the server stops. */
const UNAVAILABLE = 14
/** gRPC: what etcd answers without a valid token. */
const UNAUTHENTICATED = 16
const INVALID = 3

export type EtcdClient = {
  readonly options: EtcdOptions
  current: number
  token: string | undefined
}

export function createEtcdClient(options: EtcdOptions): EtcdClient {
  return { options, current: 0, token: undefined }
}

export type KeyValue = { readonly key: string; readonly value: Buffer; readonly modRevision: number }
export type Header = { readonly cluster: string; readonly revision: number }

export type Compare = { readonly key: string } & (
  | { readonly modRevision: number }
  /** 0: the key does not exist. */
  | { readonly createRevision: 0 }
)

export type Write =
  | { readonly put: string; readonly value: string | Buffer; readonly lease?: string }
  | { readonly remove: string; readonly isPrefix?: true }

type Json = { readonly [name: string]: unknown }

/** @throws EtcdError */
export async function range(
  client: EtcdClient,
  wanted: {
    readonly key: string
    readonly end?: string
    readonly limit?: number
    readonly revision?: number
    readonly keysOnly?: boolean
  },
  timeoutMs: number,
): Promise<{ readonly header: Header; readonly kvs: readonly KeyValue[]; readonly more: boolean }> {
  const answer = await call(
    client,
    '/v3/kv/range',
    {
      key: encode(wanted.key),
      ...(wanted.end !== undefined && { range_end: encode(wanted.end) }),
      ...(wanted.limit !== undefined && { limit: String(wanted.limit) }),
      ...(wanted.revision !== undefined && { revision: String(wanted.revision) }),
      ...(wanted.keysOnly && { keys_only: true }),
    },
    timeoutMs,
  )
  return { header: headerOf(answer), kvs: keyValuesOf(answer['kvs']), more: answer['more'] === true }
}

/**
 * One transaction: all writes if every comparison holds, else none.
 *
 * @param look a key that is read when a comparison fails
 * @throws EtcdError
 */
export async function transact(
  client: EtcdClient,
  {
    compare,
    writes,
    look,
  }: { readonly compare: readonly Compare[]; readonly writes: readonly Write[]; readonly look?: string },
  timeoutMs: number,
): Promise<{ readonly ok: boolean; readonly header: Header; readonly found: KeyValue | undefined }> {
  const answer = await call(
    client,
    '/v3/kv/txn',
    {
      compare: compare.map((each) => ({
        key: encode(each.key),
        result: 'EQUAL',
        ...('modRevision' in each
          ? { target: 'MOD', mod_revision: String(each.modRevision) }
          : { target: 'CREATE', create_revision: '0' }),
      })),
      success: writes.map((write) =>
        'put' in write
          ? {
              request_put: {
                key: encode(write.put),
                value: encode(write.value),
                ...(write.lease !== undefined && { lease: write.lease }),
              },
            }
          : {
              request_delete_range: {
                key: encode(write.remove),
                ...(write.isPrefix && { range_end: encode(endOf(write.remove)) }),
              },
            },
      ),
      failure: look === undefined ? [] : [{ request_range: { key: encode(look) } }],
    },
    timeoutMs,
  )
  const ok = answer['succeeded'] === true
  const [first] = ok ? [] : listOf(answer['responses'])
  return { ok, header: headerOf(answer), found: keyValuesOf(jsonOf(first?.['response_range'])['kvs'])[0] }
}

/** @returns the lease's id; its keys vanish when it is not kept alive for `seconds` */
export async function grantLease(client: EtcdClient, seconds: number, timeoutMs: number): Promise<string> {
  const answer = await call(client, '/v3/lease/grant', { TTL: String(seconds), ID: '0' }, timeoutMs)
  return String(answer['ID'])
}

/** @returns whether the lease still lives */
export async function keepLease(client: EtcdClient, lease: string, timeoutMs: number): Promise<boolean> {
  // The gateway answers a stream of one.
  const answer = await call(client, '/v3/lease/keepalive', { ID: lease }, timeoutMs)
  return Number(jsonOf(answer['result'])['TTL'] ?? 0) > 0
}

export async function revokeLease(client: EtcdClient, lease: string, timeoutMs: number): Promise<void> {
  await call(client, '/v3/lease/revoke', { ID: lease }, timeoutMs)
}

export type WatchEvent = { readonly key: string; readonly value: Buffer | undefined; readonly revision: number }

/**
 * Events of all keys with a prefix, in order; those of one revision are in one array. Ends by throwing.
 *
 * @throws EtcdError `unreachable` when the stream breaks, `refused` when etcd ends it, for example after a compaction
 */
export async function* watch(
  client: EtcdClient,
  { prefix, from }: { readonly prefix: string; readonly from: number },
  signal: AbortSignal,
): AsyncGenerator<readonly WatchEvent[], never> {
  const request = {
    create_request: { key: encode(prefix), range_end: encode(endOf(prefix)), start_revision: String(from) },
  }
  const response = await post(client, '/v3/watch', request, signal)
  if (!response.ok || response.body === null) throw await refusalOf(client, response)
  let rest = ''
  const text = new TextDecoder()
  try {
    for await (const bytes of response.body) {
      const lines = (rest + text.decode(bytes, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) if (line !== '') yield eventsOf(line)
    }
  } catch (error) {
    if (error instanceof EtcdError) throw error
    throw new EtcdError('unreachable', `the watch failed: ${causeOf(error)}`, 0, error)
  }
  throw new EtcdError('unreachable', 'the watch ended')
}

function eventsOf(line: string): WatchEvent[] {
  const document = parse(line)
  const result = jsonOf(document['result'])
  if (document['error'] !== undefined) throw refusal(jsonOf(document['error']))
  if (result['canceled'] === true) {
    const compacted = result['compact_revision']
    const reason =
      compacted === undefined ? String(result['cancel_reason'] ?? '') : `revisions before ${compacted} are gone`
    throw new EtcdError('refused', `the watch was cancelled: ${reason}`)
  }
  return listOf(result['events']).map((event) => {
    const kv = jsonOf(event['kv'])
    return {
      key: decode(kv['key']).toString(),
      value: event['type'] === 'DELETE' ? undefined : decode(kv['value']),
      revision: Number(kv['mod_revision']),
    }
  })
}

/** The end of the range of all keys with a prefix. */
export function endOf(prefix: string): string {
  return prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1)
}

// Calls.

async function call(client: EtcdClient, path: string, body: Json, timeoutMs: number): Promise<Json> {
  const signal = AbortSignal.timeout(timeoutMs)
  for (let tries = 1; ; tries++) {
    const response = await post(client, path, body, signal)
    if (response.ok) return parse(await textOf(client, response))
    const error = await refusalOf(client, response)
    const lacksToken =
      error.code === UNAUTHENTICATED || (error.code === INVALID && /user name is empty/.test(error.message))
    if (!lacksToken || client.options.user === undefined || tries > 1) throw error
    await logIn(client, client.options.user, signal)
  }
}

async function logIn(client: EtcdClient, { name, password }: NonNullable<EtcdOptions['user']>, signal: AbortSignal) {
  client.token = undefined
  const response = await post(client, '/v3/auth/authenticate', { name, password }, signal)
  if (!response.ok) throw await refusalOf(client, response)
  client.token = String(parse(await textOf(client, response))['token'])
}

/** Tries each endpoint once. Only a connection that was never opened is tried again elsewhere. */
async function post(client: EtcdClient, path: string, body: Json, signal: AbortSignal): Promise<Response> {
  const { endpoints } = client.options
  for (let tries = 1; ; tries++) {
    const endpoint = endpoints[client.current % endpoints.length] as string
    try {
      return await fetch(`${endpoint}${path}`, {
        method: 'POST',
        body: JSON.stringify(body),
        headers: {
          'Content-Type': 'application/json',
          ...(client.token !== undefined && { Authorization: client.token }),
        },
        redirect: 'error',
        signal,
      })
    } catch (error) {
      client.current += 1
      if (tries < endpoints.length && !signal.aborted && wasNeverSent(error)) continue
      throw new EtcdError('unreachable', `${endpoint} does not answer: ${causeOf(error)}`, 0, error)
    }
  }
}

function wasNeverSent(error: unknown): boolean {
  const { code } = ((error as Error).cause ?? {}) as { readonly code?: string }
  return code === 'ECONNREFUSED' || code === 'ENOTFOUND' || code === 'EHOSTUNREACH' || code === 'EAI_AGAIN'
}

async function textOf(client: EtcdClient, response: Response): Promise<string> {
  try {
    return await response.text()
  } catch (error) {
    client.current += 1
    throw new EtcdError('unreachable', `the response ended early: ${causeOf(error)}`, 0, error)
  }
}

async function refusalOf(client: EtcdClient, response: Response): Promise<EtcdError> {
  const text = await textOf(client, response)
  const document = asJson(text)
  const error =
    document === undefined ? new EtcdError('refused', `${response.status}: ${text.slice(0, 200)}`) : refusal(document)
  // Another member may have a leader.
  if (error.code === UNAVAILABLE || response.status >= 500) client.current += 1
  return error
}

function refusal(body: Json): EtcdError {
  const text = String(body['message'] ?? body['error'] ?? 'no reason')
  const code = Number(body['code'] ?? body['grpc_code'] ?? 0)
  // What was proposed without a leader may be executed later.
  const isOpen = code === UNAVAILABLE || /timed out/.test(text)
  return new EtcdError(isOpen ? 'unreachable' : 'refused', text, code)
}

function causeOf(error: unknown): string {
  const { message, cause, name } = error as Error & { readonly cause?: Error }
  return name === 'TimeoutError' ? 'no answer in time' : (cause?.message ?? message)
}

// JSON.

function parse(text: string): Json {
  const document = asJson(text)
  if (document === undefined) throw new EtcdError('refused', `this is not etcd: ${text.slice(0, 100)}`)
  return document
}

function asJson(text: string): Json | undefined {
  try {
    return jsonOf(JSON.parse(text))
  } catch {
    // A proxy answered, or this is no etcd: the caller reports the text.
    return undefined
  }
}

function jsonOf(value: unknown): Json {
  return typeof value === 'object' && value !== null ? (value as Json) : {}
}

function listOf(value: unknown): Json[] {
  return Array.isArray(value) ? value.map(jsonOf) : []
}

function headerOf(answer: Json): Header {
  const header = jsonOf(answer['header'])
  return { cluster: String(header['cluster_id'] ?? ''), revision: Number(header['revision'] ?? 0) }
}

function keyValuesOf(kvs: unknown): KeyValue[] {
  return listOf(kvs).map((kv) => ({
    key: decode(kv['key']).toString(),
    value: decode(kv['value']),
    modRevision: Number(kv['mod_revision']),
  }))
}

function encode(value: string | Buffer): string {
  return Buffer.from(value as string).toString('base64')
}

function decode(value: unknown): Buffer {
  return Buffer.from(typeof value === 'string' ? value : '', 'base64')
}
