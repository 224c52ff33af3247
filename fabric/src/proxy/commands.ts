/**
 * The commands as JSON over HTTP (docs/proxy.md): names, aliases and ranges of the body's fields, derived from the
 * command table of the wire protocol. The request reader, `/openapi.json` and the tests read these rows. A command or
 * field that is added to the table needs no code here. `trace` is not a field of bodies: the header `traceparent` is.
 */

import { assert, snakeCase, spellingOf } from '@vacancy/shared'
import {
  COMMAND_LIST,
  type CommandName,
  type CommandSpec,
  type FieldSpec,
  type SearchCommand,
  searchWords,
} from '@vacancy/shared/wire'

/**
 * The JSON type of a field. `texts` accepts one text for a list of one, `names` are texts that may have commas; `flag`
 * is true, false, 1 or 0; `word`, `words` and `facets` are some of a few, read into a number by `searchFields`, which
 * checks `wholes` too.
 */
type JsonKind =
  | ('text' | 'list' | 'texts' | 'names' | 'lines' | 'flag')
  | ('word' | 'words' | 'facets' | 'wholes' | 'whole' | 'number')

export type JsonField = {
  readonly spec: FieldSpec
  /** Name in the body, snake_case. */
  readonly name: string
  /** Other spellings that existing documents use. */
  readonly aliases: readonly string[]
  readonly kind: JsonKind
  readonly required: boolean
  /** Names in the table of fields of which one is given instead of a required one. */
  readonly unless: readonly string[]
  /** Bodies name it in an object. */
  readonly isInPart: boolean
  /** A list that is sent even if it is empty. */
  readonly sendsEmpty: boolean
  /** Accepted, where only some are. */
  readonly words: readonly string[]
  /** Bounds of a number, inclusive. */
  readonly min: number
  readonly max: number
  /** The error for a missing value, and for a value of a wrong type or out of range. */
  readonly missing: string
  readonly fault: string
}

/** What searches have beside the fields of the table: objects, read into fields by `searchFields`. */
export const SEARCH_PARTS = ['stay', 'box'] as const
type SearchPart = (typeof SEARCH_PARTS)[number]
/** Fields that bodies name as parts of an object. */
const IN_PARTS: readonly string[] = ['south', 'west', 'north', 'east', 'total_bounds']

/** Where a router sends a command: by a segment, or to the router itself, which answers. */
type Routing = 'segment' | 'router'

export type JsonCommand = {
  readonly name: CommandName
  readonly spec: CommandSpec
  readonly fields: readonly JsonField[]
  /**
   * The fields by each spelling of their names, the documented ones first. `segment` where it is no field, but the body
   * may name it for a router; the objects of searches.
   */
  readonly names: ReadonlyMap<string, JsonField | 'segment' | SearchPart>
  readonly isWrite: boolean
  readonly routing: Routing
  /** Whether the body names a segment. */
  readonly hasSegment: boolean
}

/** Names that differ from the table's: of one command, or of all of them. */
const NAMES: { readonly [name: string]: readonly [name: string, ...aliases: string[]] } = {
  'SEARCHPROP.propertyType': ['type', 'property_type'],
  'SEARCHAVAIL.propertyType': ['type', 'property_type'],
  'SEARCHAVAIL.availability': ['availability', 'rooms'],
  'PRICECAL.propertyType': ['type', 'property_type'],
  'PRICECAL.availability': ['availability', 'rooms'],
  'SEARCHFLEX.propertyType': ['type', 'property_type'],
  'SEARCHFLEX.availability': ['availability', 'rooms'],
  dates: ['date', 'dates'],
  rateFeatures: ['rate_features', 'rate_feature'],
}

/** Fields whose errors have the wording of existing proxies. */
const TEXTS: { readonly [name: string]: { readonly missing?: string; readonly fault: string } } = {
  amount: { missing: 'amount is required and must be 0-255', fault: 'amount is required and must be 0-255' },
  stars: { fault: 'stars must be between 1 and 5' },
}

/** Small numbers of our own commands that are switches. */
const SWITCHES = ['retake', 'void', 'reinstate', 'unrecorded']
const LEAST: { readonly [name: string]: number } = { limit: 1, requestNumber: 1 }
const GREATEST = { u8: 0xff, u32: 0xffff_ffff, u64: Number.MAX_SAFE_INTEGER } as const

const JSON_COMMAND_LIST: readonly JsonCommand[] = COMMAND_LIST.filter(({ access }) => access !== 'session').map(
  (spec) => {
    const fields = spec.fields.filter(({ name }) => name !== 'trace').map((field) => fieldOf(spec.name, field))
    const routing = spec.reply === 'codecs' || spec.reply === 'segments' ? 'router' : 'segment'
    return {
      name: spec.name,
      spec,
      fields,
      names: namesOf(spec, fields, routing),
      isWrite: spec.access === 'write',
      routing,
      hasSegment: spec.fields.some(({ name }) => name === 'segment'),
    }
  },
)

/** By name, in the order of the table. A Map, so that no name of a prototype is a command. */
export const JSON_COMMANDS: ReadonlyMap<string, JsonCommand> = new Map(
  JSON_COMMAND_LIST.map((command) => [command.name, command]),
)

/** Names in snake_case are the same in camelCase, which is how the native client spells them. */
function namesOf({ group, fields: specs }: CommandSpec, fields: readonly JsonField[], routing: Routing) {
  const names = new Map<string, JsonField | 'segment' | SearchPart>()
  if (routing === 'segment') names.set('segment', 'segment')
  const parts = group === 'search' ? SEARCH_PARTS : []
  for (const part of parts) if (part === 'box' || specs.some(({ name }) => name === 'dates')) names.set(part, part)
  for (const field of fields.filter(({ isInPart }) => !isInPart))
    for (const name of [field.name, ...field.aliases]) names.set(name, field)
  for (const [name, field] of [...names]) {
    const other = names.get(spellingOf(name))
    assert(other === undefined || other === field, 'a spelling belongs to one field')
    names.set(spellingOf(name), field)
  }
  return names
}

function fieldOf(command: CommandName, spec: FieldSpec): JsonField {
  const [name, ...aliases] = NAMES[`${command}.${spec.name}`] ?? NAMES[spec.name] ?? [snakeCase(spec.name)]
  for (const each of [name, ...aliases]) assert(!(each in {}), 'no field has the name of a property of every object')
  const kind = kindOf(spec)
  const words = wordsOfField(command, spec.name, kind)
  const isNumber = kind === 'whole' || kind === 'number'
  const min = isNumber ? (spec.min ?? LEAST[spec.name] ?? 0) : 0
  const max = spec.max ?? (spec.width in GREATEST ? GREATEST[spec.width as keyof typeof GREATEST] : 0)
  return {
    spec,
    name,
    aliases,
    kind,
    words,
    required: spec.required && spec.name !== 'amenities',
    unless: spec.unless,
    isInPart: IN_PARTS.includes(name),
    sendsEmpty: spec.required || spec.keepsEmpty,
    min,
    max,
    missing: TEXTS[name]?.missing ?? [`${name} is required`, ...spec.unless.map(snakeCase)].join(', or '),
    fault: TEXTS[name]?.fault ?? `${name} must be ${wordsOf(kind, min, max, words)}`,
  }
}

function kindOf({ name, width, extension, min }: FieldSpec): JsonKind {
  switch (width) {
    case 'text':
      return 'text'
    case 'list':
      return name === 'dates' ? 'texts' : 'list'
    case 'names':
      return 'names'
    case 'lines':
      return 'lines'
    case 'u8s':
    case 'u64s':
      return 'wholes'
    case 'f64':
      return 'number'
    case 'u8':
      if (name === 'order') return 'word'
      if (name === 'want' || name === 'weekdays') return 'words'
      if (name === 'count') return 'flag'
      // A small number of our own without a range is a switch.
      return (extension || SWITCHES.includes(name)) && min === undefined ? 'flag' : 'whole'
    default:
      if (name === 'facets') return 'facets'
      return name === 'disjunctiveFacets' ? 'words' : 'whole'
  }
}

function wordsOfField(command: CommandName, name: string, kind: JsonKind): readonly string[] {
  if (kind !== 'word' && kind !== 'words' && kind !== 'facets') return []
  const { orders, wants, weekdays, facets } = searchWords(command as SearchCommand, snakeCase)
  if (kind === 'word') return orders
  if (name === 'weekdays') return weekdays
  return name === 'want' ? wants : facets
}

function wordsOf(kind: JsonKind, min: number, max: number, words: readonly string[]): string {
  switch (kind) {
    case 'text':
      return 'text'
    case 'list':
      return 'an array of texts, not empty and without commas'
    case 'texts':
      return 'text or an array of texts, not empty and without commas'
    case 'names':
      return 'an array of texts, not empty'
    case 'lines':
      return 'an array of 1 to 16 lines'
    case 'flag':
      return 'true or false'
    case 'wholes':
      return 'an array of whole numbers'
    case 'facets':
    case 'word':
    case 'words':
      return `of ${words.join(', ')}`
    case 'whole':
      return `a whole number from ${min} to ${max}`
    case 'number':
      return `a number from ${min} to ${max}`
  }
}
