/**
 * The one table of errors: what each is called, how it is told on the wire, over HTTP and by the exit code, whether a
 * repeat can help, and its sentence (wire-protocol.md §7.1, platform.md §1.4 and §9). The reference page is made from it.
 */

import { cutToBytes, fitErrorText } from './text.ts'

/** Codes of ERROR replies. Those of digits stand alone, the others before a colon and an explanation. */
export type WireCode =
  | 'VALIDATION_ERROR'
  | 'NOT_FOUND'
  | 'OVERFLOW'
  | 'UNDERFLOW'
  | 'FORBIDDEN'
  | 'AUTH_ERROR'
  | 'PARSE_ERROR'
  | '308'
  | '404'
  | '405'
  | '408'
  | '429'
  | '500'
  | '503'

/**
 * What a caller can do about an error.
 *
 * - `request`: the call itself is wrong, or a rule of the business says no: change it.
 * - `client`: the connection lacks something, as a login.
 * - `retry`: nothing was done; the same call may succeed later or elsewhere.
 * - `unknown_outcome`: a write may or may not have been done: ask, or repeat it with its request key. A read may simply
 *   be repeated.
 * - `internal`: a fault in a program or in the data; report it.
 */
export type ErrorKind = 'request' | 'client' | 'retry' | 'unknown_outcome' | 'internal'

const KIND_OF_WIRE: { readonly [code in WireCode]: ErrorKind } = {
  VALIDATION_ERROR: 'request',
  NOT_FOUND: 'request',
  OVERFLOW: 'request',
  UNDERFLOW: 'request',
  FORBIDDEN: 'request',
  AUTH_ERROR: 'client',
  PARSE_ERROR: 'internal',
  '308': 'retry',
  '404': 'internal',
  '405': 'retry',
  '408': 'unknown_outcome',
  '429': 'retry',
  '500': 'unknown_outcome',
  '503': 'retry',
}

/** Exit codes of all programs (platform.md §9). */
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
  coresChanged: 75,
} as const

export type ErrorRow = {
  /** Code of the ERROR reply; absent where the error never crosses the wire. */
  readonly wire?: WireCode
  /** HTTP status. */
  readonly http: number
  /** Whether the same call may succeed later, and was certainly not executed. */
  readonly retry: boolean
  /** Exit code of a process that ends because of it. */
  readonly exit?: number
  /** What is wrong, where, and what to do; `{name}` is filled in from the fields. */
  readonly says: string
}

export const ERRORS = {
  // Answers to requests.
  validation_error: { wire: 'VALIDATION_ERROR', http: 400, retry: false, says: '{reason}' },
  parse_error: { wire: 'PARSE_ERROR', http: 400, retry: false, says: '{reason}' },
  not_found: { wire: 'NOT_FOUND', http: 400, retry: false, says: '{what} not found' },
  overflow: {
    wire: 'OVERFLOW',
    http: 400,
    retry: false,
    says: 'availability would exceed 255, it is {left}',
  },
  underflow: {
    wire: 'UNDERFLOW',
    http: 400,
    retry: false,
    says: 'availability would drop below 0, {left} left',
  },
  forbidden: { wire: 'FORBIDDEN', http: 403, retry: false, says: 'role {role} may not run {command}' },
  auth_error: { wire: 'AUTH_ERROR', http: 401, retry: false, says: 'login required' },
  overloaded: {
    wire: '429',
    http: 429,
    retry: true,
    says: 'Too many requests are in flight. Nothing was done: wait a little and repeat.',
  },
  not_serving: {
    wire: '503',
    http: 503,
    retry: true,
    says: 'The node is not serving: it is starting, restoring or shutting down. Nothing was done: repeat later.',
  },
  no_leader: {
    wire: '503',
    http: 503,
    retry: true,
    says: 'No leader is known. Nothing was done: repeat later.',
  },
  transferring: {
    wire: '503',
    http: 503,
    retry: true,
    says: 'Leadership is being handed to another node. Nothing was done: repeat at once, there or here.',
  },
  not_leader: {
    wire: '308',
    http: 503,
    retry: true,
    says: 'This node is not the leader. Nothing was done: send writes to the leader.',
  },
  leader_reads_off: {
    wire: '405',
    http: 503,
    retry: true,
    says: 'The leader does not serve reads here (leader_reads: false): read from another node.',
  },
  not_caught_up: {
    wire: '308',
    http: 503,
    retry: true,
    says: 'This node has not applied the index that the read asks for: repeat, or ask another node.',
  },
  stale: {
    wire: '503',
    http: 503,
    retry: true,
    says: 'This node may be further behind than the read accepts: repeat, or ask another node.',
  },
  disk_full: {
    wire: '503',
    http: 503,
    retry: true,
    says: 'The disk is full. Nothing was written; reads go on. Free space on it: writes resume by themselves.',
  },
  memory_full: {
    wire: '503',
    http: 503,
    retry: true,
    says: 'The memory for data is full. Nothing was written; reads, updates and deletes go on. Delete data, or restart with more memory.',
  },
  unknown_route: {
    wire: '404',
    http: 404,
    retry: false,
    says: 'No shard is known for the segment: check its name.',
  },
  outcome_unknown: {
    wire: '408',
    http: 504,
    retry: false,
    says: 'It is not known whether the write was done: read the state, or repeat it with its request key.',
  },
  too_old: {
    wire: '408',
    http: 504,
    retry: false,
    says: 'The request number lies below the window of its session, so its outcome is no longer known: read the state.',
  },
  session_expired: {
    wire: '408',
    http: 504,
    retry: false,
    says: 'The session of the request key is no longer known, nor the outcome of its earlier writes: open a new session and read the state.',
  },
  internal: {
    wire: '500',
    http: 500,
    retry: false,
    exit: EXIT.failure,
    says: 'A fault in the program: {reason}. The outcome of a write is not known.',
  },

  // What the client library finds out by itself.
  malformed_reply: { http: 502, retry: false, says: 'The reply to {command} cannot be read: {reason}.' },
  connection_failed: { http: 503, retry: true, says: 'No connection to {address}: {reason}. Nothing was sent.' },
  connection_lost: {
    http: 504,
    retry: false,
    says: 'The connection to {address} was lost before the answer came: {reason}.',
  },
  deadline_exceeded: { http: 504, retry: false, says: 'No answer to {command} within {milliseconds} ms.' },
  cancelled: { http: 499, retry: false, says: '{command} was cancelled by the caller.' },
  login_failed: { http: 401, retry: false, says: '{address} refused the token.' },
  client_closed: { http: 503, retry: false, says: 'The client was closed.' },
  backpressure: {
    http: 429,
    retry: true,
    says: '{count} requests wait for their answers already. Nothing was sent: slow down, or raise the limit.',
  },

  // Reasons for which a process does not start, or ends.
  failure: { http: 500, retry: false, exit: EXIT.failure, says: '{reason}' },
  usage_error: { http: 400, retry: false, exit: EXIT.usage, says: '{reason}' },
  invalid_config: { http: 400, retry: false, exit: EXIT.usage, says: '{reason}' },
  invalid_codecs: { http: 400, retry: false, exit: EXIT.usage, says: 'Codec list: {entry} {reason}.' },
  invalid_tokens: { http: 400, retry: false, exit: EXIT.usage, says: '{reason}' },
  invalid_tls: { http: 400, retry: false, exit: EXIT.usage, says: '{reason}' },
  data_conflict: { http: 409, retry: false, exit: EXIT.conflict, says: '{reason}' },
  codecs_changed: {
    http: 409,
    retry: false,
    exit: EXIT.conflict,
    says: 'The codec list of {file} is not the one that {directory} was made with: {reason}.',
  },
  wrong_shard: {
    http: 409,
    retry: false,
    exit: EXIT.conflict,
    says: '{directory} belongs to shard {found}, not to {wanted}: give the directory of {wanted}.',
  },
  directory_in_use: {
    http: 409,
    retry: false,
    exit: EXIT.conflict,
    says: '{directory} is in use by process {pid}: stop that one, or give another directory.',
  },
  no_snapshot: {
    http: 409,
    retry: false,
    exit: EXIT.conflict,
    says: '{directory} holds no snapshot of shard {shard}.',
  },
  invalid_csv: { http: 400, retry: false, exit: EXIT.conflict, says: '{file}:{line}: {reason}' },
  unknown_feature: {
    http: 400,
    retry: false,
    exit: EXIT.conflict,
    says: '{file}:{line}: rate feature {feature} is not in the codec list; did you mean {nearest}?',
  },
  import_failed: {
    http: 400,
    retry: false,
    exit: EXIT.conflict,
    says: 'The import failed with {count} errors; nothing was written.',
  },
  port_taken: { http: 500, retry: false, exit: EXIT.bind, says: 'Cannot listen on {address}: {reason}.' },
  disk_failed: {
    http: 500,
    retry: false,
    exit: EXIT.write,
    says: '{operation} of {file} failed: {reason}. What was not synced is not trusted: check the disk, then start again.',
  },
  no_room: {
    http: 503,
    retry: false,
    exit: EXIT.write,
    says: 'The disk of {directory} is full: there is no room to begin the log. Nothing was lost; free space on it, then start again.',
  },
  corrupt_data: {
    http: 500,
    retry: false,
    exit: EXIT.corruption,
    says: '{file} is damaged at byte {offset}: {reason}. `vacancy inspect` says what is affected; a member of a shard can be started with --rejoin.',
  },
  assertion_failed: { http: 500, retry: false, exit: EXIT.assertion, says: 'A fault in the program: {reason}.' },
  digest_mismatch: {
    http: 500,
    retry: false,
    exit: EXIT.digest,
    says: 'The state after index {index} has digest {found}, not {wanted}.',
  },
  cores_changed: {
    http: 500,
    retry: false,
    exit: EXIT.coresChanged,
    says: 'The number of cores changed from {before} to {now}: start again.',
  },
} as const satisfies Record<string, ErrorRow>

export type ErrorName = keyof typeof ERRORS

/** Names in the braces of a sentence. */
type NamesIn<Says extends string> = Says extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never

export type ErrorFieldValue = string | number | bigint | boolean | readonly (string | number)[]
/** What the sentence of an error needs; more may be given, for logs and programs. */
export type ErrorFields<Code extends ErrorName> = {
  readonly [Name in NamesIn<(typeof ERRORS)[Code]['says']>]: ErrorFieldValue
} & {
  readonly [name: string]: ErrorFieldValue
}

/** A failure of the world or of the input. Its message is the sentence of its row, filled in. */
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

/** Bytes of one value in a sentence. */
const VALUE_BYTES_MAX = 400
/** A reason is our own text and may list several faults, a line each. */
const REASON_BYTES_MAX = 16_384

/** The sentence of an error with its fields filled in, each cut to a sane length and free of control characters. */
export function sentence(code: ErrorName, fields: { readonly [name: string]: ErrorFieldValue }): string {
  return ERRORS[code].says.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = fields[name]
    if (value === undefined) return whole
    const text = typeof value === 'object' ? value.join(', ') : String(value)
    if (name === 'reason') return cutToBytes(text.replace(CONTROL_BUT_NEWLINE, ' '), REASON_BYTES_MAX)
    return cutToBytes(text.replace(CONTROL, ' '), VALUE_BYTES_MAX)
  })
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
const CONTROL = /[\u0000-\u001f\u007f]/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
const CONTROL_BUT_NEWLINE = /[\u0000-\u0009\u000b-\u001f\u007f]/g

/** Text of the ERROR reply for an error that crosses the wire: a bare number, or `CODE: explanation`. */
export function wireText(code: ErrorName, fields: { readonly [name: string]: ErrorFieldValue } = {}): string {
  const wire = errorRow(code).wire ?? '500'
  return isNumeric(wire) ? wire : fitErrorText(`${wire}: ${sentence(code, fields)}`)
}

/** The row of an error with all its columns, where the table's own type knows only those that are set. */
export function errorRow(code: ErrorName): ErrorRow {
  return ERRORS[code]
}

/** Whether a wire code is one of digits: those stand alone. */
export function isNumeric(wire: string): boolean {
  return wire.length === 3 && wire >= '100' && wire <= '999'
}

/** What a caller can do about a wire code; codes that nobody knows are `internal`. */
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
  return CLIENT_KINDS[code as ClientError]
}

type ClientError =
  | 'malformed_reply'
  | 'connection_lost'
  | 'deadline_exceeded'
  | 'cancelled'
  | 'login_failed'
  | 'client_closed'

const CLIENT_KINDS: { readonly [code in ClientError]: ErrorKind } = {
  malformed_reply: 'unknown_outcome',
  connection_lost: 'unknown_outcome',
  deadline_exceeded: 'unknown_outcome',
  cancelled: 'unknown_outcome',
  login_failed: 'client',
  client_closed: 'client',
}
