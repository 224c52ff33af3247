/** Maps fields of the command table to inputs: widget, completions and bounds. */
import { LIMITS } from '@vacancy/shared'
import {
  COMMAND_LIST,
  COMMANDS,
  type CommandName,
  type FieldSpec,
  SEARCH_ORDERS,
  SEARCH_WANTS,
} from '@vacancy/shared/wire'
import * as copy from './copy.ts'

export type QueryCommand = Exclude<CommandName, 'LOGIN'>
export type WordKind = 'segment' | 'area' | 'type' | 'category' | 'room_type' | 'amenity' | 'rate_feature' | 'property'

export type Widget =
  | { readonly as: 'text' }
  | { readonly as: 'word'; readonly kind: WordKind }
  | { readonly as: 'words'; readonly kind: WordKind }
  | { readonly as: 'dates' }
  | { readonly as: 'date' }
  | { readonly as: 'switch'; readonly on: number }
  /** One of the names of a number. */
  | { readonly as: 'choice'; readonly options: readonly { readonly value: number; readonly label: string }[] }
  /** One of a few whole numbers. */
  | { readonly as: 'few'; readonly min: number; readonly max: number }
  /** Named bits, summed. */
  | { readonly as: 'bits'; readonly options: readonly { readonly value: number; readonly label: string }[] }
  | { readonly as: 'number'; readonly min: number; readonly max: number; readonly step: 'any' | 1 }
  | { readonly as: 'list' }
  | { readonly as: 'lines' }

const WORDS: { readonly [field: string]: WordKind } = {
  segment: 'segment',
  area: 'area',
  propertyId: 'property',
  propertyType: 'type',
  category: 'category',
  roomType: 'room_type',
}
const LISTS: { readonly [field: string]: WordKind } = {
  amenities: 'amenity',
  rateFeatures: 'rate_feature',
  roomTypes: 'room_type',
}
/** With what each sends when it is on: 1, or more where that tells more. */
const SWITCHES: { readonly [field: string]: number } = {
  ...{ compact: 1, anyRoomType: 1, explain: 2, linearizable: 1, wantIndex: 1, retake: 1, void: 1, reinstate: 1 },
  unrecorded: 1,
}
const { score: _unavailable, ...ORDERS } = SEARCH_ORDERS
const CHOICES: { readonly [field: string]: Widget } = {
  order: { as: 'choice', options: optionsOf(ORDERS, copy.searches.orders) },
  count: { as: 'choice', options: optionsOf({ counted: 1, uncounted: 2 }, copy.searches.pages) },
  want: { as: 'bits', options: optionsOf(SEARCH_WANTS, copy.searches.wants) },
}

function optionsOf<Name extends string>(
  values: { readonly [name in Name]: number },
  labels: { readonly [name in Name]: string },
) {
  return (Object.keys(values) as Name[]).map((name) => ({ value: values[name], label: labels[name] }))
}

const MAX = { u8: 0xff, u32: 0xffff_ffff, u64: Number.MAX_SAFE_INTEGER, f64: Number.MAX_VALUE }

export function widgetOf({ name, width, ...spec }: FieldSpec): Widget {
  if (name === 'dates') return { as: 'dates' }
  if (name === 'date') return { as: 'date' }
  const on = SWITCHES[name]
  if (on !== undefined) return { as: 'switch', on }
  const choice = CHOICES[name]
  if (choice) return choice
  const word = WORDS[name]
  if (word) return { as: 'word', kind: word }
  const words = LISTS[name]
  if (words) return { as: 'words', kind: words }
  if (width === 'text') return { as: 'text' }
  if (width === 'list' || width === 'names' || width === 'u8s' || width === 'u64s') return { as: 'list' }
  if (width === 'lines') return { as: 'lines' }
  if (name === 'stars') return { as: 'few', min: LIMITS.starsMin, max: LIMITS.starsMax }
  const { min = width === 'f64' ? -MAX.f64 : 0, max = MAX[width] } = spec
  return { as: 'number', min, max, step: width === 'f64' ? 'any' : 1 }
}

/** "Rooms at least", "Price up to". */
export function labelOf(command: QueryCommand, field: string): string {
  const label = COMMANDS[command].fields.find(({ name }) => name === field)?.label
  return label ?? `${field.charAt(0).toUpperCase()}${field.slice(1)}`
}

/** Shown without expanding, like required fields: the filters that most searches use. */
const FIRST = new Set(['order', 'area', 'stars', 'finalPrice', 'availability', 'rateFeatures', 'amenities'])

export function isFirst(spec: FieldSpec, isGiven: boolean): boolean {
  return spec.required || isGiven || FIRST.has(spec.name)
}

export type CommandChoice = { readonly name: QueryCommand; readonly title: string; readonly isWrite: boolean }

/** Commands by group: searches first, deletes last. */
export function commandGroups(): { readonly label: string; readonly commands: CommandChoice[] }[] {
  const choices = COMMAND_LIST.filter(({ name }) => name !== 'LOGIN').map((spec) => ({
    name: spec.name as QueryCommand,
    title: spec.title,
    isWrite: spec.access === 'write',
    group: spec.name.startsWith('DEL') ? ('delete' as const) : spec.group,
  }))
  const order = ['search', 'packages', 'properties', 'shard', 'availability', 'stays', 'delete'] as const
  return order.map((name) => ({
    label: copy.commandGroups[name],
    commands: choices.filter(({ group }) => group === name),
  }))
}

export function isWrite(command: CommandName): boolean {
  return COMMANDS[command].access === 'write'
}

export function isSearch(command: CommandName): command is 'SEARCHPROP' | 'SEARCHAVAIL' {
  return command === 'SEARCHPROP' || command === 'SEARCHAVAIL'
}
