/**
 * The error table: code, wire code, HTTP status, exit code, whether a retry can help, and the message
 * (docs/design/protocol.md#errors, docs/design/http.md#process-rules). docs/errors.md is generated from it.
 */

import { cutToBytes, fitErrorText } from './text.ts'

/**
 * What a caller can do about an error.
 *
 * - `request`: the call is invalid, or a business rule refuses it. Change it.
 * - `client`: the connection lacks something, such as a login.
 * - `retry`: nothing was done. The same call may succeed later or on another node.
 * - `unknown_outcome`: a write may or may not have been executed. Read the state, or retry with its request key. A
 *   read can simply be retried.
 * - `internal`: a bug in a program or damaged data. Report it.
 */
export type ErrorKind = 'request' | 'client' | 'retry' | 'unknown_outcome' | 'internal'

/** Codes of ERROR replies. Numeric codes are sent alone, the others with a colon and an explanation. */
const KIND_OF_WIRE = {
  VALIDATION_ERROR: 'request',
  NOT_FOUND: 'request',
  OVERFLOW: 'request',
  UNDERFLOW: 'request',
  FORBIDDEN: 'request',
  SOLD_OUT: 'request',
  PRICE_CHANGED: 'request',
  RESTRICTED: 'request',
  EXPIRED: 'request',
  CONFLICT: 'request',
  TOO_OLD: 'request',
  UNKNOWN_INDEX: 'request',
  AUTH_ERROR: 'client',
  PARSE_ERROR: 'internal',
  '308': 'retry',
  '404': 'internal',
  '405': 'retry',
  '408': 'unknown_outcome',
  '429': 'retry',
  '500': 'unknown_outcome',
  '503': 'retry',
} as const satisfies { readonly [code: string]: ErrorKind }
export type WireCode = keyof typeof KIND_OF_WIRE

/** Exit codes of all programs (docs/design/http.md#process-rules). */
export const EXIT = {
  ok: 0,
  failure: 1,
  /** Wrong flags or configuration. */
  usage: 64,
  /** Data or identity conflict: wrong shard, snapshot or codec list, directory in use, bad data to import. */
  conflict: 65,
  /** Cannot listen on a port. */
  bind: 69,
  /** A write or a sync failed. */
  write: 70,
  corruption: 71,
  assertion: 72,
  digest: 73,
  /** The node's memory cannot hold the state that its shard committed. */
  memory: 74,
  coresChanged: 75,
} as const

export type ErrorRow = {
  /** Code of the ERROR reply; absent where the error never crosses the wire. */
  readonly wire?: WireCode
  /** HTTP status. */
  readonly http: number
  /** Whether the same call may succeed later. True only if it was certainly not executed. */
  readonly retry: boolean
  /** Exit code of a process that ends because of it. */
  readonly exit?: number
  /** What is wrong, where, and what to do. `{name}` is replaced by the field of that name. */
  readonly message: string
}

/** An ERROR reply. */
const reply = <const W extends WireCode>(wire: W, http: number) => ({ wire, http, retry: false })
/** One after which the same call may succeed: nothing was done. */
const again = <const W extends WireCode>(wire: W, http: number) => ({ wire, http, retry: true })
const local = (http: number) => ({ http, retry: false })
/** Ends its process. */
const ends = (http: number, exit: number) => ({ http, retry: false, exit })

export const ERRORS = {
  // Replies to requests.
  validation_error: { ...reply('VALIDATION_ERROR', 400), message: '{reason}' },
  parse_error: { ...reply('PARSE_ERROR', 400), message: '{reason}' },
  not_found: { ...reply('NOT_FOUND', 400), message: '{what} not found' },
  overflow: { ...reply('OVERFLOW', 400), message: 'availability would exceed 255, it is {left}' },
  underflow: { ...reply('UNDERFLOW', 400), message: 'availability would drop below 0, {left} left' },
  forbidden: { ...reply('FORBIDDEN', 403), message: 'role {role} may not run {command}' },
  sold_out: { ...reply('SOLD_OUT', 409), message: 'line={line} date={date} left={left} wanted={wanted}' },
  price_changed: { ...reply('PRICE_CHANGED', 409), message: 'total={total}' },
  restricted: { ...reply('RESTRICTED', 409), message: 'line={line} date={date} rule={rule}' },
  expired: { ...reply('EXPIRED', 409), message: 'state={state}' },
  conflict: { ...reply('CONFLICT', 409), message: 'state={state}' },
  update_too_old: { ...reply('TOO_OLD', 410), message: 'oldest={oldest}' },
  unknown_index: { ...reply('UNKNOWN_INDEX', 410), message: 'newest={newest}' },
  auth_error: { ...reply('AUTH_ERROR', 401), message: 'login required' },
  overloaded: {
    ...again('429', 429),
    message: 'Too many requests are in flight. Nothing was done. Wait a moment, then retry.',
  },
  not_serving: {
    ...again('503', 503),
    message: 'The node is not serving: it is starting, restoring or shutting down. Nothing was done. Retry later.',
  },
  no_leader: { ...again('503', 503), message: 'No leader is known. Nothing was done. Retry later.' },
  transferring: {
    ...again('503', 503),
    message: 'Leadership is being transferred to another node. Nothing was done. Retry now, on this node or the other.',
  },
  not_leader: {
    ...again('308', 503),
    message: 'This node is not the leader. Nothing was done. Send writes to the leader.',
  },
  leader_reads_off: {
    ...again('405', 503),
    message: 'The leader does not serve reads (leader_reads: false). Read from another node.',
  },
  not_caught_up: {
    ...again('308', 503),
    message: 'This node has not applied the index that the read requires. Retry, or read from another node.',
  },
  stale: {
    ...again('503', 503),
    message: 'This node may be staler than the read accepts. Retry, or read from another node.',
  },
  disk_full: {
    ...again('503', 503),
    message: 'The disk is full. Nothing was written; reads continue. Free disk space: writes resume automatically.',
  },
  memory_full: {
    ...again('503', 503),
    message:
      'The memory for data is full. Nothing was written; reads, updates and deletes continue. Delete data, or restart with more memory.',
  },
  unknown_route: { ...reply('404', 404), message: 'No shard is known for the segment. Check its name.' },
  outcome_unknown: {
    ...reply('408', 504),
    message: 'The outcome of the write is unknown. Read the state, or retry with the same request key.',
  },
  too_old: {
    ...reply('408', 504),
    message:
      'The request number is below the window of its session, so its outcome is no longer known. Read the state.',
  },
  session_expired: {
    ...reply('408', 504),
    message:
      'The session of the request key has expired, and with it the outcome of its earlier writes. Open a new session and read the state.',
  },
  internal: {
    ...reply('500', 500),
    exit: EXIT.failure,
    message: 'Internal error: {reason}. The outcome of a write is unknown.',
  },

  // Errors detected by the client library.
  malformed_reply: { ...local(502), message: 'The reply to {command} cannot be read: {reason}.' },
  connection_failed: { ...local(503), retry: true, message: 'No connection to {address}: {reason}. Nothing was sent.' },
  connection_lost: {
    ...local(504),
    message: 'The connection to {address} was lost before the reply arrived: {reason}.',
  },
  deadline_exceeded: { ...local(504), message: 'No reply to {command} within {milliseconds} ms.' },
  cancelled: { ...local(499), message: '{command} was cancelled by the caller.' },
  login_failed: { ...local(401), message: '{address} refused the token.' },
  client_closed: { ...local(503), message: 'The client was closed.' },
  backpressure: {
    ...local(429),
    retry: true,
    message: '{count} requests are already waiting for replies. Nothing was sent. Slow down, or raise the limit.',
  },

  // Errors that prevent a process from starting, or end it.
  failure: { ...ends(500, EXIT.failure), message: '{reason}' },
  usage_error: { ...ends(400, EXIT.usage), message: '{reason}' },
  invalid_config: { ...ends(400, EXIT.usage), message: '{reason}' },
  invalid_codecs: { ...ends(400, EXIT.usage), message: 'Codec list: {entry} {reason}.' },
  invalid_tokens: { ...ends(400, EXIT.usage), message: '{reason}' },
  invalid_tls: { ...ends(400, EXIT.usage), message: '{reason}' },
  kernel_unavailable: {
    ...ends(500, EXIT.usage),
    message:
      '{file} cannot be loaded: {reason}. Build it with `npm run build -w engine`, and use the Node that npm installs.',
  },
  data_conflict: { ...ends(409, EXIT.conflict), message: '{reason}' },
  codecs_changed: {
    ...ends(409, EXIT.conflict),
    message: 'The codec list in {file} differs from the one in {directory}: {reason}.',
  },
  wrong_shard: {
    ...ends(409, EXIT.conflict),
    message: '{directory} belongs to shard {found}, not {wanted}. Use the directory of {wanted}.',
  },
  directory_in_use: {
    ...ends(409, EXIT.conflict),
    message:
      '{directory} is in use by another process, which calls itself process {pid}. Stop it, or choose another directory.',
  },
  lock_lost: {
    ...ends(409, EXIT.conflict),
    message:
      '{file} was deleted or replaced while the node ran: another process may use the folder. Nothing more is written. Check that no other process uses it, then start again.',
  },
  no_snapshot: { ...ends(409, EXIT.conflict), message: '{directory} contains no snapshot of shard {shard}.' },
  invalid_csv: { ...ends(400, EXIT.conflict), message: '{file}:{line}: {reason}' },
  unknown_feature: {
    ...ends(400, EXIT.conflict),
    message: '{file}:{line}: rate feature {feature} is not in the codec list; did you mean {nearest}?',
  },
  import_failed: {
    ...ends(400, EXIT.conflict),
    message: 'The import failed with {count} errors. Nothing was written.',
  },
  port_taken: { ...ends(500, EXIT.bind), message: 'Cannot listen on {address}: {reason}.' },
  disk_failed: {
    ...ends(500, EXIT.write),
    message: '{operation} of {file} failed: {reason}. Unsynced data is not trusted. Check the disk, then restart.',
  },
  memory_too_small: {
    ...ends(503, EXIT.usage),
    message:
      'The snapshot of index {index} with {packages} packages needs about {needed} bytes of memory, and memory_max_bytes: {memory} leaves {room} for data. Give more memory, or split the data into several shards (build-snapshot --max-shard-packages).',
  },
  no_room: {
    ...ends(503, EXIT.write),
    message:
      'The disk of {directory} is full: there is no space to create the log. Nothing was lost. Free disk space, then restart.',
  },
  corrupt_data: {
    ...ends(500, EXIT.corruption),
    message:
      '{file} is damaged at byte {offset}: {reason}. Run `vacancy inspect` to see what is affected. A member of a shard can be restarted with --rejoin.',
  },
  assertion_failed: { ...ends(500, EXIT.assertion), message: 'Internal error: {reason}.' },
  digest_mismatch: {
    ...ends(500, EXIT.digest),
    message: 'The state after index {index} has digest {found}, expected {wanted}.',
  },
  memory_exhausted: {
    ...ends(500, EXIT.memory),
    message:
      'No free block of {bytes} bytes: {used} of {limit} bytes of memory are in use. Restart the node, which compacts its memory. If it exits again, raise memory_max_bytes.',
  },
  suspect_data: {
    ...ends(500, EXIT.digest),
    message:
      '{directory} is not trusted: {reason} Restore a backup, or start once with `vacancy run --accept-loss` to continue with the data that the directory holds.',
  },
  cores_changed: {
    ...ends(500, EXIT.coresChanged),
    message: 'The number of cores changed from {before} to {now}. Restart the process.',
  },
} as const satisfies Record<string, ErrorRow>

export type ErrorName = keyof typeof ERRORS

/** Names of the placeholders of a message. */
type NamesIn<Message extends string> = Message extends `${string}{${infer Name}}${infer Rest}`
  ? Name | NamesIn<Rest>
  : never

export type ErrorFieldValue = string | number | bigint | boolean | readonly (string | number)[]
/** The fields that the message of an error needs. More may be given, for logs and programs. */
export type ErrorFields<Code extends ErrorName> = {
  readonly [Name in NamesIn<(typeof ERRORS)[Code]['message']>]: ErrorFieldValue
} & {
  readonly [name: string]: ErrorFieldValue
}

/** An environment or input failure. Its message is that of its row, with the fields filled in. */
export class VacancyError<Code extends ErrorName = ErrorName> extends Error {
  override readonly name = 'VacancyError'
  readonly code: Code
  readonly fields: { readonly [name: string]: ErrorFieldValue }

  constructor(code: Code, fields: ErrorFields<Code>, options?: { readonly cause?: unknown }) {
    super(sentence(code, fields), options)
    this.code = code
    this.fields = fields
  }
}

/** Bytes of one value in a message. */
const VALUE_BYTES_MAX = 400
/** A reason is our own text. It may list several errors, one per line. */
const REASON_BYTES_MAX = 16_384

/** The message of an error with its fields filled in, each truncated and free of control characters. */
export function sentence(code: ErrorName, fields: { readonly [name: string]: ErrorFieldValue }): string {
  return ERRORS[code].message.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = fields[name]
    if (value === undefined) return whole
    const text = typeof value === 'object' ? value.join(', ') : String(value)
    if (name === 'reason') return cutToBytes(text.replace(CONTROL_BUT_NEWLINE, ' '), REASON_BYTES_MAX)
    return cutToBytes(text.replace(CONTROL, ' '), VALUE_BYTES_MAX)
  })
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters.
const CONTROL = /[\u0000-\u001f\u007f]/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters.
const CONTROL_BUT_NEWLINE = /[\u0000-\u0009\u000b-\u001f\u007f]/g

/** Text of the ERROR reply for an error that crosses the wire: a bare number, or `CODE: explanation`. */
export function wireText(code: ErrorName, fields: { readonly [name: string]: ErrorFieldValue } = {}): string {
  const wire = errorRow(code).wire ?? '500'
  return isNumeric(wire) ? wire : fitErrorText(`${wire}: ${sentence(code, fields)}`)
}

/** The row of an error with all columns. The table's own type has only the columns that are set. */
export function errorRow(code: ErrorName): ErrorRow {
  return ERRORS[code]
}

/** Whether a wire code is numeric. Numeric codes are sent without an explanation. */
export function isNumeric(wire: string): boolean {
  return wire.length === 3 && wire >= '100' && wire <= '999'
}

/** What a caller can do about a wire code. Unknown codes are `internal`. */
export function kindOfWireCode(wire: string): ErrorKind {
  return Object.hasOwn(KIND_OF_WIRE, wire) ? KIND_OF_WIRE[wire as WireCode] : 'internal'
}

/** Codes of replies, for tables and tests. */
export const WIRE_CODES = Object.keys(KIND_OF_WIRE) as readonly WireCode[]

/** What a caller can do about an error. */
export function kindOf(code: ErrorName): ErrorKind {
  const { wire, retry, exit } = errorRow(code)
  if (wire !== undefined) return KIND_OF_WIRE[wire]
  if (exit !== undefined) return exit === EXIT.usage || exit === EXIT.conflict ? 'request' : 'internal'
  if (retry) return 'retry'
  return CLIENT_KINDS[code as keyof typeof CLIENT_KINDS]
}

const CLIENT_KINDS = {
  malformed_reply: 'unknown_outcome',
  connection_lost: 'unknown_outcome',
  deadline_exceeded: 'unknown_outcome',
  cancelled: 'unknown_outcome',
  login_failed: 'client',
  client_closed: 'client',
} as const
