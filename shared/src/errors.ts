/**
 * The error table: what went wrong, how it is told on the wire, over HTTP and as an exit code (wire-protocol.md §7.1,
 * platform.md §1.4 and §9). Codes are stable; sentences may improve. Braces name the fields of an error.
 */

/** What a caller may conclude: fix the request; fix the client; certainly not executed, try again; fate unknown. */
export type ErrorClass = 'request' | 'client' | 'retry' | 'unknown' | 'internal'

export type ErrorRow = {
  /** Text before the colon of an ERROR reply; numeric codes stand alone. */
  readonly wire: string
  readonly http: number
  readonly class: ErrorClass
  /** Exit code of a program that ends with this error. */
  readonly exit?: number
  readonly says: string
}

export const EXIT = {
  ok: 0,
  failure: 1,
  usage: 64,
  conflict: 65,
  bind: 69,
  write: 70,
  corruption: 71,
  assertion: 72,
  digest: 73,
  coresChanged: 75,
} as const

export const ERRORS = {
  validation: { wire: 'VALIDATION_ERROR', http: 400, class: 'request', says: '{reason}' },
  not_found: { wire: 'NOT_FOUND', http: 404, class: 'request', says: '{what} not found' },
  overflow: { wire: 'OVERFLOW', http: 409, class: 'request', says: 'availability would pass 255, it is {left}' },
  underflow: { wire: 'UNDERFLOW', http: 409, class: 'request', says: 'not enough rooms left, there are {left}' },
  forbidden: { wire: 'FORBIDDEN', http: 403, class: 'request', says: 'insufficient permissions' },
  login_required: { wire: 'AUTH_ERROR', http: 401, class: 'client', says: 'login required' },
  parse: { wire: 'PARSE_ERROR', http: 400, class: 'internal', says: '{reason}' },
  overloaded: { wire: '429', http: 429, class: 'retry', says: 'Too many requests in flight; try again later.' },
  not_serving: { wire: '503', http: 503, class: 'retry', says: 'This node is not serving: {reason}.' },
  disk_full: { wire: '503', http: 503, class: 'retry', says: 'Writes are refused: the disk of {path} is full.' },
  memory_full: {
    wire: '503',
    http: 503,
    class: 'retry',
    says: 'Writes that need memory are refused: {freeBytes} bytes are left of {totalBytes}.',
  },
  not_leader: { wire: '308', http: 503, class: 'retry', says: 'This node is not the leader.' },
  reads_elsewhere: { wire: '405', http: 503, class: 'retry', says: 'The leader does not serve reads.' },
  no_route: { wire: '404', http: 404, class: 'internal', says: 'No route for the segment.' },
  outcome_unknown: { wire: '408', http: 504, class: 'unknown', says: 'The outcome of the write is unknown.' },
  too_old: { wire: '408', http: 504, class: 'unknown', says: 'The request number is too old to tell its outcome.' },
  session_expired: { wire: '408', http: 504, class: 'unknown', says: 'The session of the request key has expired.' },
  internal: { wire: '500', http: 500, class: 'internal', says: 'A bug in the server: {reason}.' },

  usage: { wire: '500', http: 500, class: 'client', exit: EXIT.usage, says: '{reason}' },
  invalid_config: { wire: '500', http: 500, class: 'client', exit: EXIT.usage, says: '{reason}' },
  invalid_codecs: { wire: '500', http: 400, class: 'client', exit: EXIT.usage, says: '{reason}' },
  invalid_tokens: { wire: '500', http: 500, class: 'client', exit: EXIT.usage, says: '{reason}' },
  invalid_tls: { wire: '500', http: 500, class: 'client', exit: EXIT.usage, says: '{reason}' },
  import_failed: { wire: '500', http: 400, class: 'client', exit: EXIT.conflict, says: '{reason}' },
  wrong_shard: {
    wire: '500',
    http: 409,
    class: 'client',
    exit: EXIT.conflict,
    says: '{path} belongs to shard {found}, not to {expected}.',
  },
  data_locked: {
    wire: '500',
    http: 409,
    class: 'client',
    exit: EXIT.conflict,
    says: '{path} is in use by process {pid}; stop it first, or give this node a folder of its own.',
  },
  data_conflict: { wire: '500', http: 409, class: 'client', exit: EXIT.conflict, says: '{reason}' },
  cannot_bind: {
    wire: '500',
    http: 500,
    class: 'client',
    exit: EXIT.bind,
    says: 'Cannot listen on {host}:{port} ({code}); another program may use it.',
  },
  write_failed: {
    wire: '500',
    http: 500,
    class: 'internal',
    exit: EXIT.write,
    says: 'Writing {path} failed: {reason}. Nothing was acknowledged after it.',
  },
  wal_damaged: {
    wire: '500',
    http: 500,
    class: 'internal',
    exit: EXIT.corruption,
    says: '{path} is damaged at offset {offset}: {reason}. Nothing was changed; see `vacancy inspect`.',
  },
  snapshot_damaged: {
    wire: '500',
    http: 500,
    class: 'internal',
    exit: EXIT.corruption,
    says: '{path} is damaged at offset {offset}: {reason}.',
  },
  data_damaged: {
    wire: '500',
    http: 500,
    class: 'internal',
    exit: EXIT.corruption,
    says: '{path} is damaged: {reason}.',
  },
  assertion: { wire: '500', http: 500, class: 'internal', exit: EXIT.assertion, says: 'Must hold: {reason}.' },
  digest_mismatch: {
    wire: '500',
    http: 500,
    class: 'internal',
    exit: EXIT.digest,
    says: 'The state digest at index {index} is {found}, the log says {expected}.',
  },
  cores_changed: {
    wire: '500',
    http: 500,
    class: 'internal',
    exit: EXIT.coresChanged,
    says: 'The number of CPU cores changed from {before} to {after}; start again.',
  },
} as const satisfies { readonly [code: string]: ErrorRow }

export type ErrorCode = keyof typeof ERRORS
export type ErrorFields = { readonly [name: string]: unknown }

/** Longest value an error quotes. */
const QUOTE_MAX = 200

/** The sentence of an error with its fields filled in. */
export function sentence(code: ErrorCode, fields: ErrorFields = {}): string {
  return ERRORS[code].says.replace(/\{(\w+)\}/g, (_whole, name: string) => {
    const text = String(fields[name] ?? 'unknown')
    return name === 'reason' || text.length <= QUOTE_MAX ? text : `${text.slice(0, QUOTE_MAX)}…`
  })
}

/** A failure of the world or of the input, by its code. */
export class VacancyError extends Error {
  override readonly name = 'VacancyError'
  readonly code: ErrorCode
  readonly fields: ErrorFields
  constructor(code: ErrorCode, fields: ErrorFields = {}, options?: ErrorOptions) {
    super(sentence(code, fields), options)
    this.code = code
    this.fields = fields
  }
}

/** The class of an ERROR reply by the text before its colon. */
export function classOfWireCode(wire: string): ErrorClass {
  const row = Object.values<ErrorRow>(ERRORS).find(
    (candidate) => candidate.wire === wire && candidate.exit === undefined,
  )
  return row?.class ?? 'internal'
}
