/**
 * Error classes by what a caller can do about them. The class of a node's error follows from its code
 * (docs/design/protocol.md#errors) and from the command: a failed read has changed nothing, whatever its code.
 */

import { ERRORS, type ErrorName, kindOfWireCode, sentence } from '@vacancy/shared'
import type { CommandName } from '@vacancy/shared/wire'

/** Errors detected by the client; each has a row in the error table. */
export type ClientErrorCode =
  | 'malformed_reply'
  | 'connection_failed'
  | 'connection_lost'
  | 'deadline_exceeded'
  | 'cancelled'
  | 'login_failed'
  | 'client_closed'
  | 'backpressure'

export type Details = { readonly [name: string]: string | number }

const PAIRS = /^[a-z]+=\S+(?: [a-z]+=\S+)*$/

/** The `key=value` pairs of a message that consists of them; {} for any other. */
function detailsOf(message: string): Details {
  if (!PAIRS.test(message)) return {}
  return Object.fromEntries(
    message.split(' ').map((pair) => {
      const [name = '', value = ''] = pair.split('=')
      return [name, /^\d+$/.test(value) ? Number(value) : value]
    }),
  )
}

/** The common base of all errors of this library. Catch one of its four subclasses, or this class for all. */
export class VacancyCallError extends Error {
  /** A wire code, such as `NOT_FOUND` or `503`, or one of the client's own, such as `connection_lost`. */
  readonly code: string
  /** The command that failed; undefined when a connection could not be made. */
  readonly command: CommandName | undefined
  /** What the refusal of a stay names: `line`, `date`, `left` and `wanted`, or `total`, or `state`. */
  readonly details: Details

  constructor(code: string, command: CommandName | undefined, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = new.target.name
    this.code = code
    this.command = command
    this.details = detailsOf(message)
  }
}

/** The call is invalid, or a business rule refuses it (sold out, not found). Nothing was changed. */
export class VacancyRequestError extends VacancyCallError {}

/** The client, its connection or the node is at fault, and a retry does not help. Nothing was changed. */
export class VacancyClientError extends VacancyCallError {}

/** Temporarily refused, refused by this node, or too late. Nothing was changed: the same call may succeed later. */
export class VacancyRetryError extends VacancyCallError {}

/** The write may or may not have been executed, and its outcome can no longer be determined. Read the state. */
export class VacancyUnknownOutcomeError extends VacancyCallError {}

export type Blamed = {
  readonly command: CommandName | undefined
  /** The call may have been executed. Never true for a read. */
  readonly inDoubt: boolean
}

/** A node sends at most 1,024 bytes. */
const EXPLANATION_LENGTH_MAX = 1024

/**
 * The error for an ERROR reply.
 *
 * @param code the text before the colon, or all of it
 * @param explanation the text after the colon
 */
export function errorOfAnswer(call: Blamed & { readonly isWrite: boolean }, code: string, explanation: string) {
  const message = explanation === '' ? explain(code) : explanation.slice(0, EXPLANATION_LENGTH_MAX)
  if (call.inDoubt) return new VacancyUnknownOutcomeError(code, call.command, doubtful(code, message))
  switch (kindOfWireCode(code)) {
    case 'request':
      return new VacancyRequestError(code, call.command, message)
    case 'retry':
      return new VacancyRetryError(code, call.command, message)
    case 'unknown_outcome':
      if (call.isWrite) return new VacancyUnknownOutcomeError(code, call.command, message)
      if (code === '408') return new VacancyRetryError(code, call.command, message)
      return new VacancyClientError(code, call.command, message)
    default:
      // A router knows no shard for the segment. The caller must correct it, like any unknown name.
      if (code === '404') return new VacancyRequestError(code, call.command, message)
      return new VacancyClientError(code, call.command, message)
  }
}

/** Numeric codes have no text: use the message of the table's first row with that code. */
function explain(code: string): string {
  for (const [name, row] of Object.entries(ERRORS)) {
    if ('wire' in row && row.wire === code) return sentence(name as ErrorName, { reason: 'see the log of the node' })
  }
  return `The node replied with ${code === '' ? 'an error without a code' : code}.`
}

/** The class of an error detected by the client when nothing was changed. */
const CLASS_OF = {
  malformed_reply: VacancyClientError,
  connection_failed: VacancyRetryError,
  connection_lost: VacancyRetryError,
  deadline_exceeded: VacancyRetryError,
  cancelled: VacancyClientError,
  login_failed: VacancyClientError,
  client_closed: VacancyClientError,
  backpressure: VacancyRetryError,
} as const satisfies Record<ClientErrorCode, typeof VacancyCallError>

/**
 * An error detected by the client.
 *
 * @param fields the fields of the code's message (error table)
 */
export function errorOfClient(
  code: ClientErrorCode,
  call: Blamed,
  fields: { readonly [name: string]: string | number },
  cause?: unknown,
): VacancyCallError {
  const message = sentence(code, { command: call.command ?? 'the handshake', ...fields })
  const Class = call.inDoubt ? VacancyUnknownOutcomeError : CLASS_OF[code]
  return new Class(code, call.command, message, cause)
}

/** The same for a call whose connection failed or was lost. */
export function errorOfConnection(call: Blamed, error: VacancyCallError): VacancyCallError {
  const { code, message, cause } = error
  if (call.inDoubt) return new VacancyUnknownOutcomeError(code, call.command, doubtful(code, message), cause)
  return new (error.constructor as typeof VacancyCallError)(code, call.command, message, cause)
}

/** "Nothing was done" in a message refers only to the last attempt. */
function doubtful(code: string, message: string): string {
  if (code === 'connection_lost' || kindOfWireCode(code) === 'unknown_outcome') return message
  return `An earlier attempt may have been executed. Of the last one: ${message}`
}

/** An argument that is refused locally. */
export function badArgument(command: CommandName | undefined, message: string, cause?: unknown): VacancyRequestError {
  return new VacancyRequestError('VALIDATION_ERROR', command, message, cause)
}
