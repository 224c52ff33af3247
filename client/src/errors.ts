/**
 * Errors by what their catcher can do about them. Which class an answer of the node belongs to follows from its code
 * (wire-protocol.md §7.1) and from what is at stake: a read that fails has changed nothing, whatever its code says.
 */

import { ERRORS, type ErrorName, kindOfWireCode, sentence } from '@vacancy/shared'
import type { CommandName } from '@vacancy/shared/wire'

/** What the client finds out by itself: a row of the errors' table each. */
export type ClientErrorCode =
  | 'malformed_reply'
  | 'connection_failed'
  | 'connection_lost'
  | 'deadline_exceeded'
  | 'cancelled'
  | 'login_failed'
  | 'client_closed'
  | 'backpressure'

/** What all errors of this library have in common. Catch one of its four kinds, or this one for all. */
export class VacancyCallError extends Error {
  /** A code of the wire, such as `NOT_FOUND` or `503`, or one of the client's own, such as `connection_lost`. */
  readonly code: string
  /** The command that failed; undefined when a connection could not be made. */
  readonly command: CommandName | undefined

  constructor(code: string, command: CommandName | undefined, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = new.target.name
    this.code = code
    this.command = command
  }
}

/** The call itself is wrong, or a rule of the business says no (sold out, not found). Nothing was changed. */
export class VacancyRequestError extends VacancyCallError {}

/** The client, its connection or the node is at fault, and repeating does not help. Nothing was changed. */
export class VacancyClientError extends VacancyCallError {}

/** Not now, not here, or not in time. Nothing was changed: the same call may succeed later. */
export class VacancyRetryError extends VacancyCallError {}

/** The write may or may not have been executed, and its fate can no longer be learnt. Read the state. */
export class VacancyUnknownOutcomeError extends VacancyCallError {}

export type Blamed = {
  readonly command: CommandName | undefined
  /** The call may have been executed. Never true for a read. */
  readonly inDoubt: boolean
}

/** A node sends 1,024 bytes at most. */
const EXPLANATION_LENGTH_MAX = 1024

/**
 * The error of an answer.
 *
 * @param code before the colon of the answer's text, or all of it
 * @param explanation behind the colon
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
      // A router knows no shard for the segment: the caller's to correct, as an unknown name would be.
      if (code === '404') return new VacancyRequestError(code, call.command, message)
      return new VacancyClientError(code, call.command, message)
  }
}

/** Numeric codes come without words: those of the table's first row with that code. */
function explain(code: string): string {
  for (const [name, row] of Object.entries(ERRORS)) {
    if ('wire' in row && row.wire === code) return sentence(name as ErrorName, { reason: 'its log says which' })
  }
  return `The node answered ${code === '' ? 'an error without a code' : code}.`
}

/** Which class an error found by the client has when nothing was changed. */
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
 * An error that the client found out by itself.
 *
 * @param fields what the sentence of the code needs (errors table)
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

/** The same for a call that a failed or lost connection leaves behind. */
export function errorOfConnection(call: Blamed, error: VacancyCallError): VacancyCallError {
  const { code, message, cause } = error
  if (call.inDoubt) return new VacancyUnknownOutcomeError(code, call.command, doubtful(code, message), cause)
  return new (error.constructor as typeof VacancyCallError)(code, call.command, message, cause)
}

/** That nothing was done, as many sentences say, is true of the last attempt only. */
function doubtful(code: string, message: string): string {
  if (code === 'connection_lost' || kindOfWireCode(code) === 'unknown_outcome') return message
  return `An earlier attempt may have been executed. Of the last one: ${message}`
}

/** An argument that no node needs to see to refuse it. */
export function badArgument(command: CommandName | undefined, message: string, cause?: unknown): VacancyRequestError {
  return new VacancyRequestError('VALIDATION_ERROR', command, message, cause)
}
