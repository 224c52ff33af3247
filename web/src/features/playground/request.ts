/**
 * The request being edited: one value, with form, JSON and wire as views. It may be incomplete; `compile` checks whether
 * it can be sent.
 */
import { VacancyError } from '@vacancy/shared'
import {
  COMMANDS,
  type CommandName,
  decodeEnvelope,
  decodeRequest,
  encodeRequest,
  type FieldSpec,
  FRAME_HEADER_BYTES,
  fieldsFromJson,
  fieldsToJson,
  isCommandName,
  type JsonFields,
  type JsonFieldValue,
  MAGIC_ENVELOPE,
  type RequestFields,
  type StayLine,
} from '@vacancy/shared/wire'
import type { QueryCommand } from './catalogue.ts'
import * as copy from './copy.ts'
import { type Bounds, whyNotNights } from './dates.ts'

export type Draft = {
  /** '' for the only shard, or the one that the page chose. */
  readonly shard: string
  /** '' lets the control plane choose. */
  readonly node: string
  readonly command: QueryCommand
  readonly fields: JsonFields
}

export type Compiled =
  | { readonly ok: true; readonly fields: RequestFields; readonly frame: Uint8Array }
  | { readonly ok: false; readonly reason: string; readonly field: string | undefined }

/** The correlation id is set on sending. */
const NO_CORRELATION = 0

export function compile({ command, fields }: Pick<Draft, 'command' | 'fields'>): Compiled {
  try {
    const read = fieldsFromJson(command, fields)
    return { ok: true, fields: read, frame: encodeRequest({ command, correlationId: NO_CORRELATION, fields: read }) }
  } catch (error) {
    if (!(error instanceof VacancyError)) throw error
    return { ok: false, reason: error.message, field: fieldIn(command, error.message) }
  }
}

/** As `compile`; what is not a date, and more nights than the shard accepts, cannot be sent either. */
export function compileFor(draft: Pick<Draft, 'command' | 'fields'>, bounds: Bounds): Compiled {
  const compiled = compile(draft)
  if (!compiled.ok) return compiled
  for (const field of ['dates', 'date']) {
    const given = draft.fields[field]
    if (given === undefined) continue
    const reason = whyNotNights([given].flat().map(String), bounds)
    if (reason !== undefined) return { ok: false, reason, field }
  }
  return compiled
}

function fieldIn(command: CommandName, message: string): string | undefined {
  return COMMANDS[command].fields.find(({ name }) => new RegExp(`(?:^|of |field )${name}\\b`).test(message))?.name
}

/** Changes the command and keeps common fields. A required list that may be empty starts empty. */
export function withCommand(draft: Draft, command: QueryCommand): Draft {
  const specs: readonly FieldSpec[] = COMMANDS[command].fields
  const fields: { [name: string]: JsonFieldValue } = {}
  for (const { name, width, required } of specs) {
    const value = draft.fields[name]
    if (value !== undefined) fields[name] = value
    else if (required && width === 'list' && name !== 'dates') fields[name] = []
  }
  return { ...draft, command, fields }
}

/** Sets a field, or removes it with undefined, in the order of the command table. */
export function withField(draft: Draft, name: string, value: JsonFieldValue | undefined): Draft {
  const fields: { [name: string]: JsonFieldValue } = {}
  for (const spec of COMMANDS[draft.command].fields) {
    const next = spec.name === name ? value : draft.fields[spec.name]
    if (next !== undefined) fields[spec.name] = next
  }
  return { ...draft, fields }
}

/** The fields of a map box, all or none of which a search has. */
const BOX = ['south', 'west', 'north', 'east'] as const
export type Box = { readonly [side in (typeof BOX)[number]]: number }

/** Undefined while a side is missing or no number. */
export function boxOf({ fields }: Draft): Box | undefined {
  const sides = BOX.map((side) => [side, fields[side]] as const)
  return sides.every(([, degrees]) => typeof degrees === 'number') ? (Object.fromEntries(sides) as Box) : undefined
}

/** The search in another box, or in none, from its first page. */
export function withBox(draft: Draft, box: Box | undefined): Draft {
  const first = withField(draft, 'cursor', undefined)
  return BOX.reduce((changed, side) => withField(changed, side, box?.[side]), first)
}

// Removing fields

/** Fields that form one filter, named by the first. */
const TOGETHER: readonly (readonly string[])[] = [['longitude', 'latitude', 'radiusMetres'], BOX]

/** The request without a field, or without one entry of its list. */
export function without(draft: Draft, field: string, entry: string | null): Draft {
  const together = TOGETHER.find(([first]) => first === field) ?? [field]
  const value = draft.fields[field]
  const entries = Array.isArray(value) ? value.filter((each) => typeof each === 'string') : []
  const left = entry !== null ? entries.filter((other) => other !== entry) : []
  const rest: [string, JsonFieldValue][] = []
  for (const [name, own] of Object.entries(draft.fields)) {
    if (!together.includes(name)) rest.push([name, own])
    else if (field === 'availability') rest.push([name, 0])
    else if (left.length > 0) rest.push([name, left])
  }
  return { ...draft, fields: Object.fromEntries(rest) }
}

// JSON

export function jsonOf({ command, fields }: Pick<Draft, 'command' | 'fields'>): string {
  return JSON.stringify({ command, fields }, undefined, 2)
}

export type Parsed =
  | { readonly ok: true; readonly draft: Pick<Draft, 'command' | 'fields'> }
  | { readonly ok: false; readonly reason: string; readonly line: number; readonly column: number }

/** Parses a request, or reports what is wrong and where. */
export function parseRequest(text: string): Parsed {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    const at = faultAt(text)
    return { ok: false, reason: wordsOf(error), ...placeOf(text, at) }
  }
  const wrong = (reason: string, near: string): Parsed => ({
    ok: false,
    reason,
    ...placeOf(text, Math.max(0, near === '' ? 0 : text.indexOf(`"${near}"`))),
  })
  if (!isObject(value)) return wrong(copy.requestErrors.notAnObject, '')
  const { command, fields = {} } = value
  if (typeof command !== 'string' || !isCommandName(command) || command === 'LOGIN') {
    return wrong(copy.requestErrors.unknownCommand(String(command)), 'command')
  }
  const extra = Object.keys(value).find((name) => name !== 'command' && name !== 'fields')
  if (extra !== undefined) return wrong(copy.requestErrors.unknownKey(extra), extra)
  if (!isObject(fields)) return wrong(copy.requestErrors.fieldsNotAnObject, 'fields')
  const draft = { command, fields: fields as JsonFields }
  const compiled = compile(draft)
  if (compiled.ok) return { ok: true, draft: { command, fields: fieldsToJson(command, compiled.fields) } }
  const unknown = Object.keys(fields).find((name) => compiled.reason.endsWith(`no field ${name}`))
  return wrong(compiled.reason, unknown ?? compiled.field ?? 'fields')
}

function isObject(value: unknown): value is { readonly [name: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function wordsOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  // Browsers add the position in their own words and quote the text.
  return message
    .replace(/^JSON\.parse: /, '')
    .replace(/,? \.{0,3}"[\s\S]*$| (?:in JSON )?at (?:position|line)[\s\S]*$/, '')
}

/** Position of the first JSON syntax error: the end of the longest prefix that could still be completed. */
export function faultAt(text: string): number {
  let at = 0
  const blank = () => {
    while (at < text.length && ' \t\r\n'.includes(text[at] as string)) at++
  }
  const word = /(?:true|false|null)/y
  const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
  // biome-ignore lint/suspicious/noControlCharactersInRegex: characters that a JSON string must not contain.
  const string = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y
  const take = (pattern: RegExp) => {
    pattern.lastIndex = at
    const found = pattern.exec(text)
    if (found) at += found[0].length
    return found !== null
  }
  const list = (close: string, entry: () => boolean): boolean => {
    at++
    blank()
    if (text[at] === close) {
      at++
      return true
    }
    for (;;) {
      blank()
      if (!entry()) return false
      blank()
      if (text[at] === close) {
        at++
        return true
      }
      if (text[at] !== ',') return false
      at++
    }
  }
  const member = (): boolean => {
    if (!take(string)) return false
    blank()
    if (text[at] !== ':') return false
    at++
    return value()
  }
  const value = (): boolean => {
    blank()
    if (text[at] === '{') return list('}', member)
    if (text[at] === '[') return list(']', value)
    return take(string) || take(word) || take(number)
  }
  if (value()) blank()
  return at
}

function placeOf(text: string, at: number): { readonly line: number; readonly column: number } {
  const before = text.slice(0, at).split('\n')
  return { line: before.length, column: (before.at(-1) ?? '').length + 1 }
}

// Wire

/** @returns undefined when the text is not hexadecimal */
export function bytesOfHex(text: string): Uint8Array | undefined {
  const digits = text.replace(/0x|[\s,:;_-]/gi, '')
  if (digits.length === 0 || digits.length % 2 !== 0 || !/^[0-9a-f]+$/i.test(digits)) return undefined
  return Uint8Array.from({ length: digits.length / 2 }, (_, n) => Number.parseInt(digits.slice(n * 2, n * 2 + 2), 16))
}

export function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

export type Pasted =
  | { readonly ok: true; readonly draft: Pick<Draft, 'command' | 'fields'> }
  | { readonly ok: false; readonly reason: string }

/** Decodes a pasted frame, with or without the envelope of a router. */
export function requestOfFrame(text: string): Pasted {
  const bytes = bytesOfHex(text)
  if (!bytes) return { ok: false, reason: copy.requestErrors.notHexadecimal }
  try {
    const start = bytes[0] === MAGIC_ENVELOPE ? decodeEnvelope(bytes).frameStart : 0
    const { command, fields } = decodeRequest(bytes.subarray(start + FRAME_HEADER_BYTES))
    if (command === 'LOGIN') return { ok: false, reason: copy.requestErrors.login }
    return { ok: true, draft: { command, fields: fieldsToJson(command, fields) } }
  } catch (error) {
    if (error instanceof VacancyError) return { ok: false, reason: error.message }
    throw error
  }
}

// Parameters of saved queries

const PARAMETER = /\{\{\s*([\w-]{1,40})\s*\}\}/g

/** Names of `{{name}}` in texts and lists, each once. */
export function parametersOf(fields: JsonFields): string[] {
  const texts = Object.values(fields).flatMap((value) => (typeof value === 'number' ? [] : textsOf(value)))
  return [...new Set(texts.flatMap((text) => Array.from(text.matchAll(PARAMETER), ([, name]) => name as string)))]
}

function textsOf(value: Exclude<JsonFieldValue, number>): string[] {
  if (typeof value === 'string') return [value]
  if (isNumbers(value)) return []
  if (isLines(value)) return value.flatMap((line) => Object.values(line).map(String))
  return isList(value) ? [...value] : []
}

/** Fills parameters in. Numeric fields become numbers; an empty value omits the field. */
export function fillParameters(
  command: QueryCommand,
  fields: JsonFields,
  values: { readonly [name: string]: string },
): JsonFields {
  const specs: readonly FieldSpec[] = COMMANDS[command].fields
  const fill = (text: string) => text.replaceAll(PARAMETER, (_, name: string) => values[name]?.trim() ?? '')
  const filled: { [name: string]: JsonFieldValue } = {}
  for (const [name, value] of Object.entries(fields)) {
    if (typeof value === 'number') filled[name] = value
    else if (isLines(value)) filled[name] = value.map((line) => filledLine(line, fill))
    else if (isNumbers(value)) filled[name] = value
    else if (isList(value)) filled[name] = value.flatMap((entry) => splitEntries(fill(entry)))
    else {
      const text = fill(value)
      const width = specs.find((spec) => spec.name === name)?.width
      if (text === '' && value !== '') continue
      const isNumber = width !== 'text' && width !== 'list' && text !== '' && Number.isFinite(Number(text))
      filled[name] = isNumber ? Number(text) : width === 'list' ? splitEntries(text) : text
    }
  }
  return filled
}

function isLines(value: JsonFieldValue): value is readonly StayLine[] {
  return typeof value === 'object' && typeof value[0] === 'object'
}

function isNumbers(value: JsonFieldValue): value is readonly number[] {
  return typeof value === 'object' && typeof value[0] === 'number'
}

function isList(value: JsonFieldValue): value is readonly string[] {
  return typeof value === 'object'
}

function filledLine(line: StayLine, fill: (text: string) => string): StayLine {
  const filled = Object.entries(line).map(([name, value]) => [name, typeof value === 'string' ? fill(value) : value])
  return Object.fromEntries(filled) as StayLine
}

function splitEntries(text: string): string[] {
  return text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
}

// Differences

export type Difference = { readonly what: string; readonly from: string; readonly to: string }

export function differencesOf(from: Draft, to: Draft): Difference[] {
  const flat = ({ shard, node, command, fields }: Draft) =>
    new Map<string, string>([
      ['shard', shard],
      ['node', node || 'auto'],
      ['command', command],
      ...Object.entries(fields).map(
        ([name, value]) => [name, typeof value === 'object' ? value.join(', ') : String(value)] as const,
      ),
    ])
  const [before, after] = [flat(from), flat(to)]
  return [...new Set([...before.keys(), ...after.keys()])]
    .filter((what) => before.get(what) !== after.get(what))
    .map((what) => ({ what, from: before.get(what) ?? '–', to: after.get(what) ?? '–' }))
}
