/**
 * Reads the body of `POST /api` into a request of the wire protocol (docs/proxy.md). Driven by the command table; pure.
 */

import { RESERVED_SEGMENTS, snakeCase, unknownName, VacancyError } from '@vacancy/shared'
import {
  encodeRequest,
  FRAME_HEADER_BYTES,
  hasPages,
  type RequestFields,
  type SearchCommand,
  searchFields,
  textFault,
} from '@vacancy/shared/wire'
import { JSON_COMMANDS, type JsonCommand, type JsonField } from './commands.ts'
import type { Asked } from './reply-json.ts'
import { type Refusal, refusal } from './status.ts'
import { readLines } from './stay-json.ts'

/** How segments are used: `router` needs one for each request, `none` sends bare frames to a shard. */
export type Segments = 'router' | 'none'

export type ApiRequest = {
  readonly command: JsonCommand
  /** Where a router sends the request; undefined if it answers itself, and without a router. */
  readonly segment: string | undefined
  /** The segment that the body names; '' if none. For the allow lists of tokens. */
  readonly bodySegment: string
  /** The nights that the body names; the packed dates of the reply are among them. */
  readonly dates: readonly string[]
  readonly asked: Asked
  /** Payload of the request frame. */
  readonly payload: Uint8Array
}

const SEGMENT_BYTES_MAX = 255
const NO_DATES: readonly string[] = []
const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false })

/** Parses the bytes of a body. @returns the value, or the refusal of anything but JSON in UTF-8 */
export function parseBody(bytes: Uint8Array): { readonly value: unknown } | Refusal {
  try {
    return { value: JSON.parse(decoder.decode(bytes)) }
  } catch {
    // The parser's message quotes the body; the reason is enough.
    return refusal(400, 'PARSE_ERROR', 'Invalid JSON')
  }
}

/** The command that a body names, before its fields are read: tokens are checked in between. */
export function readCommand(body: unknown): JsonCommand | Refusal {
  if (!isObject(body)) return refusal(400, 'PARSE_ERROR', 'Invalid JSON: the body must be an object')
  const name = own(body, 'command')
  if (name === undefined || name === null || name === '') {
    return refusal(400, 'VALIDATION_ERROR', 'Missing command field')
  }
  const command = typeof name === 'string' ? JSON_COMMANDS.get(name) : undefined
  return command ?? refusal(400, 'VALIDATION_ERROR', 'unsupported command')
}

/** Reads segment and fields. @returns the refusal of the first field, in the order of the table, that is not valid */
export function readRequest(command: JsonCommand, body: object, segments: Segments): ApiRequest | Refusal {
  const top = byName(PARTS, body)
  if (typeof top === 'string') return invalid(top)
  const values = top.get('body')?.value ?? {}
  if (!isObject(values)) return invalid('body must be an object')
  const given = byName(command.names, values)
  if (typeof given === 'string') return invalid(given)
  const asked = valuesOf(command, given)
  if (typeof asked === 'string') return invalid(asked)
  const fields: { [name: string]: RequestFields[string] } = {}
  for (const field of command.fields) {
    const fault = readField(field, asked, fields)
    if (fault !== '') return invalid(fault)
  }
  const bodySegment = command.hasSegment ? (fields['segment'] as string) : ''
  let segment: string | undefined
  if (segments === 'router' && command.routing === 'segment') {
    const inside = command.hasSegment ? bodySegment : given.get('segment')?.value
    const routed = routeOf(top.get('segment')?.value, inside)
    if (typeof routed !== 'string') return routed
    segment = routed
  }
  try {
    const frame = encodeRequest({ command: command.name, correlationId: 0, fields })
    const dates = (fields['dates'] ?? NO_DATES) as readonly string[]
    const payload = frame.subarray(FRAME_HEADER_BYTES)
    return { command, segment, bodySegment, dates, asked: askedFor(fields), payload }
  } catch (error) {
    // What is left for the encoder to find: a request of more than 64 KiB.
    if (error instanceof VacancyError && error.code === 'validation_error') return invalid(error.message)
    throw error
  }
}

type Values = { readonly [name: string]: unknown }

/** What was given, by the names of the table; objects and words of searches as the fields they mean. @returns or the fault */
function valuesOf({ name, spec }: JsonCommand, given: Given<GivenField>): Values | string {
  const values: { [name: string]: unknown } = {}
  for (const [field, { value }] of given) values[typeof field === 'string' ? field : field.spec.name] = value
  if (spec.group !== 'search') return values
  try {
    const fields = searchFields(name as SearchCommand, values, snakeCase)
    // With an order the reply says how to get the next page.
    return hasPages(name as SearchCommand, fields) && fields['count'] === undefined
      ? { ...fields, count: WITHOUT_NUMBER }
      : fields
  } catch (error) {
    if (error instanceof VacancyError && error.code === 'validation_error') return error.message
    throw error
  }
}

function askedFor({ want, count, compact, facets, cells }: Values): Asked {
  if (compact !== undefined) return 'compact'
  return [want, count, facets, cells].some((value) => value !== undefined) ? 'page' : 'plain'
}

/** Of `count`: a page without the number of matches. */
const WITHOUT_NUMBER = 2

/** The segment of a request through a router: beside the command, or in the body. */
function routeOf(outside: unknown = '', inside: unknown = ''): string | Refusal {
  if (typeof outside !== 'string' || typeof inside !== 'string') return invalid('segment must be text')
  if (outside !== '' && inside !== '' && outside !== inside) return invalid('segment and body.segment differ')
  const segment = outside === '' ? inside : outside
  if (segment === '') return invalid('segment is required')
  // These would be taken by a router, which never answers one of them.
  if (RESERVED_SEGMENTS.includes(segment)) return invalid('segment is a reserved name')
  if (!segment.isWellFormed()) return invalid('segment is not valid Unicode')
  const bytes = encoder.encode(segment)
  const fault = textFault(bytes, 0, bytes.length, SEGMENT_BYTES_MAX)
  return fault === '' ? segment : invalid(`segment ${fault}`)
}

/** @returns '' or the error */
function readField(field: JsonField, values: Values, fields: { [name: string]: unknown }): string {
  const { spec, kind } = field
  const value = values[spec.name]
  const isEmpty = value === '' && (kind === 'text' || kind === 'list' || kind === 'texts')
  if (value === undefined || value === null || isEmpty) {
    const isReplaced = field.unless.some((name) => values[name] !== undefined)
    if (field.required && !isReplaced) return field.missing
    if (field.spec.required && !field.required) fields[spec.name] = []
    return ''
  }
  switch (kind) {
    case 'text':
      if (typeof value !== 'string') return field.fault
      if (!value.isWellFormed()) return `${field.name} is not valid Unicode`
      fields[spec.name] = value
      return ''
    case 'list':
    case 'texts':
      return readList(field, kind === 'texts' && typeof value === 'string' ? [value] : value, fields)
    case 'names':
      return readNames(field, value, fields)
    case 'lines': {
      const lines = readLines(field.name, value)
      if (typeof lines === 'string') return lines
      fields[spec.name] = lines
      return ''
    }
    case 'word':
    case 'words':
    case 'facets':
    case 'wholes':
      fields[spec.name] = value
      return ''
    case 'flag':
      // Already a number, of which a search has more than these.
      if (spec.name === 'count') {
        fields[spec.name] = value
        return ''
      }
      if (value !== true && value !== false && value !== 0 && value !== 1) return field.fault
      if (value) fields[spec.name] = 1
      return ''
    case 'whole':
      if (!Number.isInteger(value)) return field.fault
      break
    case 'number':
      if (typeof value !== 'number') return field.fault
      break
  }
  if ((value as number) < field.min || (value as number) > field.max) return field.fault
  fields[spec.name] = value
  return ''
}

function readList(field: JsonField, value: unknown, fields: { [name: string]: unknown }): string {
  if (!Array.isArray(value)) return field.fault
  for (const entry of value) {
    // A comma separates entries on the wire, so an entry with one would be two.
    if (typeof entry !== 'string' || entry === '' || entry.includes(',')) return field.fault
    if (!entry.isWellFormed()) return `${field.name} is not valid Unicode`
  }
  if (value.length === 0 && field.required) return field.missing
  if (value.length > 0 || field.sendsEmpty) fields[field.spec.name] = value
  return ''
}

function readNames(field: JsonField, value: unknown, fields: { [name: string]: unknown }): string {
  if (!Array.isArray(value) || value.length === 0) return field.fault
  for (const entry of value) {
    if (typeof entry !== 'string' || entry === '') return field.fault
    if (!entry.isWellFormed()) return `${field.name} is not valid Unicode`
  }
  fields[field.spec.name] = value
  return ''
}

/** The parts of a body, and other names for them. */
const PARTS: ReadonlyMap<string, 'command' | 'segment' | 'body'> = new Map([
  ['command', 'command'],
  ['segment', 'segment'],
  ['body', 'body'],
  ['payload', 'body'],
])

type GivenField = JsonField | 'segment' | 'stay' | 'box'
type Given<Field> = ReadonlyMap<Field, { readonly key: string; readonly value: unknown }>

/**
 * The values of an object by what their names mean; null counts as absent.
 *
 * @returns the fault of a name that means nothing, or the same as another one
 */
function byName<Field>(names: ReadonlyMap<string, Field>, from: object): Given<Field> | string {
  const given = new Map<Field, { readonly key: string; readonly value: unknown }>()
  for (const [key, value] of Object.entries(from)) {
    const field = names.get(key)
    if (field === undefined) return unknownName(key, names.keys())
    if (value === null) continue
    const other = given.get(field)
    if (other !== undefined) return `${other.key} and ${key} are the same field: give one`
    given.set(field, { key, value })
  }
  return given
}

/** A property of parsed JSON, never one of a prototype. */
function own(from: object, name: string): unknown {
  return Object.hasOwn(from, name) ? (from as { readonly [name: string]: unknown })[name] : undefined
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function invalid(reason: string): Refusal {
  return refusal(400, 'VALIDATION_ERROR', reason)
}
