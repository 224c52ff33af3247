/**
 * A search as people write it, as fields of the wire: words for the order and the wanted values, objects for the stay,
 * the position and the box. The client, the HTTP proxy and the command line differ in the spelling of names only.
 */

import { formatDay, parseDay } from '../dates.ts'
import { LIMITS } from '../domain.ts'
import { VacancyError } from '../errors.ts'
import { knownValues } from '../names.ts'
import { PROPERTY_FACETS, SEARCH_FACETS, SEARCH_ORDERS, SEARCH_WANTS, WEEKDAY_BITS } from './search.ts'

/** Order of the properties found; ties are broken by the id. `stars`: most stars first, then the lowest total. */
export type SearchOrder = Exclude<keyof typeof SEARCH_ORDERS, 'row' | 'score'>
/** A value of each property, beside its id. */
export type SearchWant = keyof typeof SEARCH_WANTS
/** What the matches of a search are counted by, named like its filter. */
export type SearchFacet = keyof typeof SEARCH_FACETS
/** The nights from `arrival`, YYYY-MM-DD; the departure day is no night. */
export type SearchStay = { readonly arrival: string; readonly nights: number }
/** Degrees, inclusive. With west of more than east it crosses 180 degrees. */
export type SearchBox = {
  readonly south: number
  readonly west: number
  readonly north: number
  readonly east: number
}
/** Degrees and metres; 5000 metres without a radius, or all of the box. */
export type SearchNear = { readonly latitude: number; readonly longitude: number; readonly radiusMetres?: number }

/** A weekday of arrival. */
export type SearchWeekday = keyof typeof WEEKDAY_BITS

export type SearchCommand = 'SEARCHAVAIL' | 'SEARCHPROP' | 'PRICECAL' | 'SEARCHFLEX'
/** How an interface spells a name that is given in camelCase. */
export type Spell = (name: string) => string

type Given = { readonly [name: string]: unknown }
type Fields = { [name: string]: unknown }

/** Words of `order`, `want`, `weekdays` and `facets` that a command accepts, in an interface's spelling. */
export function searchWords(
  command: SearchCommand,
  spell: Spell,
): { orders: string[]; wants: string[]; weekdays: string[]; facets: string[] } {
  const isStay = command !== 'SEARCHPROP'
  const orders = Object.keys(SEARCH_ORDERS).filter(
    (word) => word !== 'row' && word !== 'score' && (isStay || !word.startsWith('total')),
  )
  const wants = Object.keys(SEARCH_WANTS).filter((word) => isStay || word === 'distance' || word === 'position')
  const facets = Object.entries(SEARCH_FACETS).flatMap(([word, bit]) => (isStay || bit <= PROPERTY_FACETS ? word : []))
  return {
    orders: orders.map(spell),
    wants: wants.map(spell),
    weekdays: Object.keys(WEEKDAY_BITS),
    facets: facets.map(spell),
  }
}

/**
 * Replaces what has another form on the wire; other fields stay. Without `want`, and beside it, a search for stays
 * returns what it is ordered or bounded by, and the room type where any may be found.
 *
 * @param given by name in camelCase; null counts as absent
 * @param spell for words, and for names in errors
 * @throws VacancyError validation_error with the name of the field and what is accepted
 */
export function searchFields(command: SearchCommand, given: Given, spell: Spell = (name) => name): Given {
  const fields: Fields = { ...given }
  const { orders, wants, weekdays, facets } = searchWords(command, spell)
  if (command === 'SEARCHAVAIL') putStay(fields)
  if (command !== 'SEARCHPROP') rename(fields, 'rooms', 'availability')
  if (isGiven(fields['weekdays']))
    fields['weekdays'] = sumOf('weekdays', fields['weekdays'], weekdays, WEEKDAY_BITS, spell)
  putParts(fields, 'near', ['latitude', 'longitude'], ['radiusMetres'])
  putParts(fields, 'box', ['south', 'west', 'north', 'east'], [])
  for (const name of ['compact', 'anyRoomType']) putSwitch(fields, name, [undefined, 1], spell)
  // It has no order, values and pages.
  if (command === 'PRICECAL') return fields
  putSwitch(fields, 'count', [2, 1], spell)
  putFacets(fields, facets, spell)
  const { order } = fields
  if (isGiven(order)) {
    if (!isWord(order, orders)) throw invalid(`order must be ${listed(orders)}, got ${quoted(order)}`)
    fields['order'] = numberOf(SEARCH_ORDERS, order, spell)
  }
  const wanted =
    sumOf('want', fields['want'], wants, SEARCH_WANTS, spell) | (command === 'SEARCHPROP' ? 0 : implied(fields))
  delete fields['want']
  return wanted === 0 ? fields : { ...fields, want: wanted }
}

/** Whether the search has pages: an order of its own, or one that is implied by any room type or by flexible dates. */
export function hasPages(command: SearchCommand, fields: Given): boolean {
  if (command === 'PRICECAL' || command === 'SEARCHFLEX') return command === 'SEARCHFLEX'
  return ['order', 'anyRoomType', 'roomTypes'].some((name) => isGiven(fields[name]) && fields[name] !== false)
}

/** The reverse for the order, wanted values, switches and the box of a request. */
export function wordsOfSearch(fields: Given, spell: Spell): Given {
  const { order, want, count, weekdays, south, west, north, east, ...others }: Fields = { ...fields }
  const { facets, totalBounds, disjunctiveFacets, ...words }: Fields = others
  const days = Object.entries(WEEKDAY_BITS).filter(([, bit]) => (Number(weekdays ?? 0) & bit) !== 0)
  const bounded = (word: string) => (word === 'total' ? { total: totalBounds } : word)
  const wants = Object.entries(SEARCH_WANTS).filter(([, bit]) => (Number(want ?? 0) & bit) !== 0)
  const orderWord = Object.entries(SEARCH_ORDERS).find(([, number]) => number === order)?.[0] ?? 'row'
  for (const name of ['compact', 'anyRoomType']) if (isGiven(words[name])) words[name] = words[name] === 1
  return {
    ...words,
    ...(orderWord !== 'row' && { order: spell(orderWord) }),
    ...(wants.length > 0 && { want: wants.map(([word]) => spell(word)) }),
    ...(days.length > 0 && { weekdays: days.map(([day]) => day) }),
    ...(isGiven(count) && { count: count === 1 }),
    ...(isGiven(facets) && { facets: facetWords(facets, spell).map(bounded) }),
    ...(isGiven(disjunctiveFacets) && { disjunctiveFacets: facetWords(disjunctiveFacets, spell) }),
    ...(isGiven(south) && { box: { south, west, north, east } }),
  }
}

function facetWords(mask: unknown, spell: Spell): string[] {
  return Object.entries(SEARCH_FACETS).flatMap(([word, bit]) => ((Number(mask) & bit) === 0 ? [] : spell(word)))
}

function putStay(fields: Fields): void {
  const { stay } = fields
  delete fields['stay']
  if (!isGiven(stay)) return
  for (const other of ['dates', 'date']) {
    if (isGiven(fields[other])) throw invalid(`${other} and stay are the same field: give one`)
  }
  const { arrival, nights } = partsOf('stay', stay, ['arrival', 'nights'], [])
  const first = typeof arrival === 'string' ? parseDay(arrival) : undefined
  if (first === undefined) throw invalid(`stay.arrival must be a date, YYYY-MM-DD, got ${quoted(arrival)}`)
  const most = LIMITS.datesInQueryMax
  if (!Number.isInteger(nights) || (nights as number) < 1 || (nights as number) > most) {
    throw invalid(`stay.nights must be a whole number from 1 to ${most}, got ${quoted(nights)}`)
  }
  fields['dates'] = Array.from({ length: nights as number }, (_, night) => formatDay(first + night))
}

/** Moves the parts of an object to fields of the same names. */
function putParts(fields: Fields, name: string, needed: readonly string[], others: readonly string[]): void {
  const value = fields[name]
  delete fields[name]
  if (!isGiven(value)) return
  for (const [part, number] of Object.entries(partsOf(name, value, needed, others))) {
    if (!isGiven(number) && others.includes(part)) continue
    if (isGiven(fields[part])) throw invalid(`${part} and ${name} are the same field: give one`)
    if (!Number.isFinite(number)) throw invalid(`${name}.${part} must be a number, got ${quoted(number)}`)
    fields[part] = number
  }
}

function partsOf(name: string, value: unknown, needed: readonly string[], others: readonly string[]): Given {
  const accepted = `${name} must be an object with ${listed(needed, 'and')}`
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalid(accepted)
  const parts = knownValues(value, [...needed, ...others])
  if (typeof parts === 'string') throw invalid(`${name}: ${parts}`)
  if (!needed.every((part) => isGiven(parts[part]))) throw invalid(accepted)
  return parts
}

function putSwitch(fields: Fields, name: string, [off, on]: readonly [number | undefined, number], spell: Spell): void {
  const value = fields[name]
  if (!isGiven(value)) return
  if (value !== true && value !== false && value !== 1 && value !== 0) {
    throw invalid(`${spell(name)} must be true or false, got ${quoted(value)}`)
  }
  fields[name] = value ? on : off
}

function rename(fields: Fields, from: string, to: string): void {
  if (!isGiven(fields[from])) return
  if (isGiven(fields[to])) throw invalid(`${to} and ${from} are the same field: give one`)
  fields[to] = fields[from]
  delete fields[from]
}

/** The bits of a list of words; 0 for an absent one. */
function sumOf(
  name: string,
  value: unknown,
  words: readonly string[],
  numbers: { readonly [word: string]: number },
  spell: Spell,
): number {
  if (!isGiven(value)) return 0
  const wrong = Array.isArray(value) ? value.find((word) => !isWord(word, words)) : value
  if (!Array.isArray(value) || wrong !== undefined) {
    throw invalid(`${name} must be a list of ${listed(words)}, got ${quoted(wrong)}`)
  }
  return value.reduce((bits, word) => bits | numberOf(numbers, word, spell), 0)
}

/** Words as bits, and the bounds of `{ total: [10000, 20000] }` as a field of their own. */
function putFacets(fields: Fields, words: readonly string[], spell: Spell): void {
  const { facets, disjunctiveFacets, cells } = fields
  for (const name of ['facets', 'disjunctiveFacets']) delete fields[name]
  const list = Array.isArray(facets)
    ? facets.map((facet) => (isBounds(facet) ? boundsOf(facet, fields) : facet))
    : facets
  const bits = sumOf('facets', list, words, SEARCH_FACETS, spell)
  const free = sumOf(spell('disjunctiveFacets'), disjunctiveFacets, words, SEARCH_FACETS, spell)
  if (bits !== 0) fields['facets'] = bits
  if (free !== 0) fields['disjunctiveFacets'] = free
  if ((free & ~bits) !== 0) throw invalid(`${spell('disjunctiveFacets')} must be some of facets`)
  if ((bits & SEARCH_FACETS.total) !== 0 && !isGiven(fields['totalBounds'])) {
    throw invalid('facets with total needs its bounds, such as {"total":[10000,20000]}')
  }
  if (!isGiven(cells)) return
  const most = LIMITS.mapCellsMax
  const isCount = (each: unknown) => Number.isInteger(each) && (each as number) >= 1 && (each as number) <= most
  if (Array.isArray(cells) && cells.length === 2 && cells.every(isCount)) return
  throw invalid(`cells must be two whole numbers from 1 to ${most}, columns and rows, got ${quoted(cells)}`)
}

function isBounds(facet: unknown): facet is object {
  return typeof facet === 'object' && facet !== null && !Array.isArray(facet)
}

function boundsOf(facet: object, fields: Fields): string {
  const bounds = (facet as Given)['total']
  const isTotals = Array.isArray(bounds) && bounds.length >= 1 && bounds.length <= LIMITS.facetBoundsMax
  const ascends = (each: unknown, n: number) =>
    Number.isSafeInteger(each) && (each as number) > (n === 0 ? 0 : Number((bounds as unknown[])[n - 1]))
  if (Object.keys(facet).length !== 1 || !isTotals || !bounds.every(ascends)) {
    throw invalid(
      `facets: {"total":[…]} must have 1 to ${LIMITS.facetBoundsMax} ascending whole numbers, got ${quoted(facet)}`,
    )
  }
  fields['totalBounds'] = bounds
  return 'total'
}

function implied(fields: Given): number {
  const { order } = fields
  const { total, distance, roomType } = SEARCH_WANTS
  const isByTotal = order === SEARCH_ORDERS.total || order === SEARCH_ORDERS.totalDown
  const isBounded = ['maxTotal', 'minTotal'].some((name) => isGiven(fields[name]))
  const isAnyRoom = ['anyRoomType', 'roomTypes'].some((name) => isGiven(fields[name]))
  return (
    (isByTotal || isBounded || isAnyRoom ? total : 0) |
    (order === SEARCH_ORDERS.distance ? distance : 0) |
    (isAnyRoom ? roomType : 0)
  )
}

function numberOf(numbers: { readonly [word: string]: number }, spelt: string, spell: Spell): number {
  return Object.entries(numbers).find(([word]) => spell(word) === spelt)?.[1] ?? 0
}

function isWord(value: unknown, words: readonly string[]): value is string {
  return typeof value === 'string' && words.includes(value)
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}

function listed(words: readonly string[], last = 'or'): string {
  return `${words.slice(0, -1).join(', ')} ${last} ${words.at(-1)}`
}

/** Characters of a foreign value that an error quotes. */
const QUOTED_MAX = 64

function quoted(value: unknown): string {
  const text = typeof value === 'number' || typeof value === 'bigint' ? String(value) : JSON.stringify(value)
  return (text ?? 'nothing').slice(0, QUOTED_MAX)
}

function invalid(reason: string): VacancyError {
  return new VacancyError('validation_error', { reason })
}
