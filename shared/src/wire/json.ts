/**
 * The fields of a request as JSON, with the names of the table: for typed input, links and the query API. The only
 * difference from the fields is that numbers beyond 2^53 − 1 are decimal text.
 */

import { VacancyError } from '../errors.ts'
import { COMMANDS, type CommandName, type FieldSpec, type FieldValue, type RequestFields } from './commands.ts'
import { encodeRequest } from './request.ts'
import type { StayLine } from './stay.ts'

export type JsonFieldValue = string | number | readonly string[] | readonly number[] | readonly StayLine[]
export type JsonFields = { readonly [name: string]: JsonFieldValue }

const U64_TEXT = /^(?:0|[1-9]\d{0,19})$/

/**
 * Parses fields for `encodeRequest` and validates them by the table: names, presence, types and widths. `null` counts
 * as absent.
 *
 * @throws VacancyError validation_error that names the field
 */
export function fieldsFromJson(command: CommandName, given: unknown): RequestFields {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new VacancyError('validation_error', { reason: 'fields must be an object' })
  }
  const specs: readonly FieldSpec[] = COMMANDS[command].fields
  const fields: { [name: string]: FieldValue } = {}
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined) continue
    const spec = specs.find((each) => each.name === name)
    const isText = typeof value === 'string' && U64_TEXT.test(value)
    if (spec?.width === 'u64' && isText) fields[name] = exact(BigInt(value))
    else if ((spec?.width === 'u8s' || spec?.width === 'u64s') && Array.isArray(value)) {
      // Typed into a form.
      fields[name] = value.map((each) => (typeof each === 'string' && U64_TEXT.test(each) ? Number(each) : each))
    } else fields[name] = value
  }
  // Validated by the encoder, whose frame is discarded.
  encodeRequest({ command, correlationId: 0, fields })
  return fields
}

function exact(value: bigint): number | bigint {
  return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value
}

/** The reverse: names in table order, absent fields omitted. */
export function fieldsToJson(command: CommandName, fields: RequestFields): JsonFields {
  const json: { [name: string]: JsonFieldValue } = {}
  for (const { name } of COMMANDS[command].fields) {
    const value = fields[name]
    if (value !== undefined) json[name] = typeof value === 'bigint' ? value.toString() : value
  }
  return json
}
