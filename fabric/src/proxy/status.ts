/**
 * How outcomes become HTTP (docs/proxy.md#errors): one table from the codes of the wire protocol to statuses and texts.
 * Pure.
 */

/** A refused or failed request, as it is answered. */
export type Refusal = {
  readonly status: number
  /** '' for errors of HTTP itself, such as an unknown path. */
  readonly code: string
  readonly message: string
  /** Seconds for the header `Retry-After`; undefined without one. */
  readonly retryAfter?: number
}

export function refusal(status: number, code: string, message: string, retryAfter?: number): Refusal {
  return retryAfter === undefined ? { status, code, message } : { status, code, message, retryAfter }
}

export function isRefusal(value: object): value is Refusal {
  return Object.hasOwn(value, 'status') && Object.hasOwn(value, 'message')
}

type Row = {
  readonly status: number
  /** The code of the response; that of the reply by default. */
  readonly code?: string
  /** Instead of the text of the reply, which for a number is only that. */
  readonly message?: string
  readonly ofWrites?: string
  readonly retryAfter?: number
}

const UNAVAILABLE: Row = {
  status: 503,
  code: '503',
  message: 'No node can serve the request now. Nothing was done. Retry.',
  retryAfter: 1,
}

/** By the code of an ERROR reply. */
export const STATUS_OF_CODE: { readonly [code: string]: Row } = {
  VALIDATION_ERROR: { status: 400 },
  NOT_FOUND: { status: 400 },
  OVERFLOW: { status: 400 },
  UNDERFLOW: { status: 400 },
  SOLD_OUT: { status: 409 },
  PRICE_CHANGED: { status: 409 },
  RESTRICTED: { status: 409 },
  EXPIRED: { status: 409 },
  CONFLICT: { status: 409 },
  TOO_OLD: { status: 410 },
  UNKNOWN_INDEX: { status: 410 },
  FORBIDDEN: { status: 403 },
  AUTH_ERROR: { status: 502 },
  // The proxy wrote the request, so it is not the client's mistake.
  PARSE_ERROR: { status: 502 },
  '404': { status: 404, message: 'unknown segment' },
  '429': { status: 429, message: 'Too many requests are in flight. Nothing was done. Retry.', retryAfter: 1 },
  '308': UNAVAILABLE,
  '405': UNAVAILABLE,
  '503': UNAVAILABLE,
  '408': {
    status: 504,
    message: 'No reply in time.',
    ofWrites: 'No reply in time. The outcome of the write is unknown: read the state before you repeat it.',
  },
  '500': {
    status: 502,
    message: 'The reply cannot be used.',
    ofWrites: 'The reply cannot be used. The outcome of the write is unknown: read the state before you repeat it.',
  },
}

/**
 * The response to an ERROR reply, or to a failed call.
 *
 * @param text the part of the reply after its code; '' if there is none
 */
export function refusalOfCode(code: string, text: string, isWrite: boolean): Refusal {
  const row = Object.hasOwn(STATUS_OF_CODE, code) ? (STATUS_OF_CODE[code] as Row) : undefined
  if (row === undefined) {
    const unknown = STATUS_OF_CODE['500'] as Row
    return refusal(unknown.status, '500', (isWrite ? unknown.ofWrites : unknown.message) as string)
  }
  const message = (isWrite ? row.ofWrites : undefined) ?? row.message ?? (text === '' ? code : `${code}: ${text}`)
  return refusal(row.status, row.code ?? code, message, row.retryAfter)
}

/** The body of a refusal. Everything is escaped, whatever a reply contained. */
export function refusalJson({ code, message }: Refusal): string {
  return JSON.stringify(code === '' ? { status: 'error', message } : { status: 'error', message, code })
}
