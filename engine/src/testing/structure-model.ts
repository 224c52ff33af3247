/**
 * The exact state of a store after each command, and the replies that readers may get while commands are applied. For
 * tests with one thread (model.ts), and with readers in other threads (structure-run.ts).
 *
 * Each command has an index; the state after it is the state of that index. Guarantees (store/version.ts):
 *
 * - A word (property, room type, day) is read at one time; different words of a read at different times.
 * - Commands that mark a table are atomic for readers: deletes of properties, rooms, days and segments, new attributes
 *   and moves of existing properties. The time between two of them is an era of the table, and a whole reply belongs to
 *   one era.
 * - New rows, new words and dropped days are not marked: they become visible one by one.
 */

import { formatDay } from '@vacancy/shared'
import type { CommandName } from '@vacancy/shared/wire'
import type { LooseFields } from './node-in-memory.ts'
import type { SeenAnswer } from './structure-reader.ts'

export type ModelProperty = {
  readonly segment: string
  readonly propertyType: string
  readonly category: string
  readonly stars: number
  readonly area: string
  readonly amenities: readonly string[]
  readonly latitude: number
  readonly longitude: number
}
type ModelWord = {
  readonly availability: number
  readonly finalPrice: number
  readonly rateFeatures: readonly string[]
}

/** Values, each with the index from which it applies. */
type History<T> = { readonly index: number; readonly value: T | undefined }[]

export type StructureModel = {
  /** All days that are ever sold. */
  readonly dates: readonly string[]
  readonly roomTypes: readonly string[]
  readonly properties: Map<string, History<ModelProperty>>
  /** By property and room type. */
  readonly rooms: Map<string, History<true>>
  /** By property, room type and day. */
  readonly words: Map<string, History<ModelWord>>
  /** Commands that mark a table, by segment and room type; '' is the property table. */
  readonly marks: Map<string, number[]>
}

export function createStructureModel(dates: readonly string[], roomTypes: readonly string[]): StructureModel {
  return { dates, roomTypes, properties: new Map(), rooms: new Map(), words: new Map(), marks: new Map() }
}

const roomKey = (property: string, room: string) => `${property} ${room}`
const wordKey = (property: string, room: string, date: string) => `${property} ${room} ${date}`

function note<T>(histories: Map<string, History<T>>, key: string, index: number, value: T | undefined): void {
  const history = histories.get(key)
  if (history) history.push({ index, value })
  else
    histories.set(key, [
      { index: 0, value: undefined },
      { index, value },
    ])
}

function last<T>(histories: Map<string, History<T>>, key: string): T | undefined {
  return histories.get(key)?.at(-1)?.value
}

/** All values from the state of one index to another. */
function between<T>(histories: Map<string, History<T>>, key: string, from: number, to: number): (T | undefined)[] {
  const history = histories.get(key)
  if (!history) return [undefined]
  let first = history.length - 1
  while (first > 0 && (history[first] as History<T>[0]).index > from) first--
  const values: (T | undefined)[] = []
  for (let n = first; n < history.length && (n === first || (history[n] as History<T>[0]).index <= to); n++) {
    values.push((history[n] as History<T>[0]).value)
  }
  return values
}

function markTable(model: StructureModel, segment: string, room: string, index: number): void {
  const key = roomKey(segment, room)
  const list = model.marks.get(key)
  if (list) list.push(index)
  else model.marks.set(key, [index])
}

function roomsOf(model: StructureModel, property: string): string[] {
  return model.roomTypes.filter((room) => last(model.rooms, roomKey(property, room)))
}

function markRooms(model: StructureModel, property: string, segment: string, index: number): void {
  for (const room of roomsOf(model, property)) markTable(model, segment, room, index)
}

// Commands

/** Applies a command to the model. @returns the reply that it must have */
export function applyToModel(model: StructureModel, index: number, command: CommandName, fields: LooseFields) {
  const [id, room, date] = [fields['propertyId'], fields['roomType'], fields['date']] as [string, string, string]
  const property = last(model.properties, id)
  const word = last(model.words, wordKey(id, room, date))
  const amount = fields['amount'] as number
  const missing = { error: 'NOT_FOUND', value: 0 }
  const done = { error: '', value: 0 }
  switch (command) {
    case 'SETPROP':
      noteProperty(model, index, id, fields as unknown as ModelProperty)
      return done
    case 'SETROOMPKG': {
      if (!property) return missing
      const old: ModelWord = word ?? { availability: 0, finalPrice: 0, rateFeatures: [] }
      noteWord(model, index, id, room, date, { ...old, ...(fields as Partial<ModelWord>) })
      return done
    }
    case 'DECROOMAVL':
    case 'INCROOMAVL':
    case 'SETROOMAVL': {
      if (!word) return missing
      const { availability: value } = word
      const next = command === 'SETROOMAVL' ? amount : value + (command === 'INCROOMAVL' ? amount : -amount)
      if (next > 255 || next < 0) return { error: next > 255 ? 'OVERFLOW' : 'UNDERFLOW', value }
      noteWord(model, index, id, room, date, { ...word, availability: next })
      return { error: '', value: next }
    }
    case 'DELPROP':
      if (property) noteDeletedProperty(model, index, id)
      return property ? done : missing
    case 'DELPROPROOM':
      if (!last(model.rooms, roomKey(id, room))) return missing
      noteDeletedRoom(model, index, id, room)
      return done
    case 'DELROOMDAY':
      if (word) noteWord(model, index, id, room, date)
      return word ? done : missing
    case 'DELPROPDAY':
      if (property) noteDeletedDay(model, index, id, date)
      return property ? done : missing
    default: {
      const segment = fields['segment'] as string
      const isKnown = [...model.properties.keys()].some((each) => last(model.properties, each)?.segment === segment)
      noteDeletedSegment(model, index, segment)
      return isKnown ? done : missing
    }
  }
}

function noteProperty(model: StructureModel, index: number, id: string, value: ModelProperty): void {
  const before = last(model.properties, id)
  if (before) {
    markTable(model, before.segment, '', index)
    markRooms(model, id, before.segment, index)
    if (before.segment !== value.segment) markRooms(model, id, value.segment, index)
  }
  note(model.properties, id, index, value)
}

function noteWord(model: StructureModel, index: number, id: string, room: string, date: string, word?: ModelWord) {
  if (!last(model.rooms, roomKey(id, room))) note(model.rooms, roomKey(id, room), index, true)
  note(model.words, wordKey(id, room, date), index, word)
}

function noteDeletedDay(model: StructureModel, index: number, id: string, date: string): void {
  const segment = last(model.properties, id)?.segment ?? ''
  markRooms(model, id, segment, index)
  for (const room of model.roomTypes) empty(model, index, wordKey(id, room, date))
}

function empty(model: StructureModel, index: number, word: string): void {
  if (last(model.words, word)) note(model.words, word, index, undefined)
}

function noteDeletedRoom(model: StructureModel, index: number, id: string, room: string): void {
  markTable(model, last(model.properties, id)?.segment ?? '', room, index)
  forget(model, index, id, room)
}

function forget(model: StructureModel, index: number, id: string, room: string): void {
  note(model.rooms, roomKey(id, room), index, undefined)
  for (const date of model.dates) empty(model, index, wordKey(id, room, date))
}

function noteDeletedProperty(model: StructureModel, index: number, id: string): void {
  const segment = last(model.properties, id)?.segment ?? ''
  markTable(model, segment, '', index)
  markRooms(model, id, segment, index)
  for (const room of roomsOf(model, id)) forget(model, index, id, room)
  note(model.properties, id, index, undefined)
}

function noteDeletedSegment(model: StructureModel, index: number, segment: string): void {
  for (const id of model.properties.keys()) {
    if (last(model.properties, id)?.segment === segment) noteDeletedProperty(model, index, id)
  }
}

export function noteDropped(model: StructureModel, index: number, before: number): void {
  const day = formatDay(before)
  for (const key of model.words.keys()) if (key.slice(-10) < day) empty(model, index, key)
}

// Answers

/** @returns why no possible state explains the reply; '' when one does */
export function faultOf(model: StructureModel, answer: SeenAnswer): string {
  const { command, fields, from, to } = answer
  const property = String(fields['propertyId'])
  const room = String(fields['roomType'])
  switch (command) {
    case 'PROPROOMEXIST': {
      const found = (answer.result as { exists: boolean }).exists
      return between(model.rooms, roomKey(property, room), from, to).some((held) => (held ?? false) === found)
        ? ''
        : `the room was never ${found}`
    }
    case 'GETPROPROOMDAY':
      return faultOfNight(model, answer, property, room)
    case 'PROPROOMDATELIST':
      return faultOfDates(model, answer, property, room)
    default:
      return faultOfSearch(model, answer)
  }
}

function faultOfNight(model: StructureModel, answer: SeenAnswer, property: string, room: string): string {
  const words = between(model.words, wordKey(property, room, String(answer.fields['date'])), answer.from, answer.to)
  if (answer.error !== '') return words.includes(undefined) ? '' : 'the package always existed'
  const seen = answer.result as FoundDay
  return words.some((word) => word !== undefined && isWord(word, seen)) ? '' : 'the package never had this value'
}

type FoundDay = { availability: number; finalPrice: number; rateFeatures: readonly string[] }

function isWord(word: ModelWord, seen: FoundDay): boolean {
  return (
    word.availability === seen.availability &&
    word.finalPrice === seen.finalPrice &&
    word.rateFeatures.toSorted().join() === seen.rateFeatures.toSorted().join()
  )
}

function faultOfDates(model: StructureModel, answer: SeenAnswer, property: string, room: string): string {
  const { from, to } = answer
  if (answer.error !== '') {
    return between(model.rooms, roomKey(property, room), from, to).includes(undefined) ? '' : 'the room existed'
  }
  const dates = new Set((answer.result as { dates: string[] }).dates)
  let fault = 'no era'
  for (const era of erasOfProperty(model, property, room, from, to)) {
    fault = ''
    for (const date of model.dates) {
      const words = between(model.words, wordKey(property, room, date), era.from, era.to)
      if (!words.some((word) => (word !== undefined) === dates.has(date))) fault = `${date} never had this value`
    }
    if (fault === '') return ''
  }
  return fault
}

type Era = { readonly from: number; readonly to: number }

/** The states between two marks of a table. */
function erasOf(model: StructureModel, keys: readonly string[], from: number, to: number): Era[] {
  const marks = keys.flatMap((key) => model.marks.get(key) ?? []).filter((index) => index > from && index <= to)
  const eras: Era[] = []
  let first = from
  for (const index of marks.sort((a, b) => a - b)) {
    eras.push({ from: first, to: index - 1 })
    first = index
  }
  eras.push({ from: first, to })
  return eras
}

/** The tables that held this room of the property during the read. */
function erasOfProperty(model: StructureModel, property: string, room: string, from: number, to: number): Era[] {
  const segments = new Set(between(model.properties, property, from, to).map((value) => value?.segment ?? ''))
  return erasOf(
    model,
    [...segments].map((segment) => roomKey(segment, room)),
    from,
    to,
  )
}

/** Whether the table of a search was marked during the search. */
export function isBesideMark(model: StructureModel, { command, fields, from, to }: SeenAnswer): boolean {
  if (command !== 'SEARCHAVAIL' && command !== 'SEARCHPROP') return false
  return erasOf(model, [tableOf(command, fields)], from, to).length > 1
}

function tableOf(command: SeenAnswer['command'], fields: SeenAnswer['fields']): string {
  return roomKey(String(fields['segment']), command === 'SEARCHAVAIL' ? String(fields['roomType']) : '')
}

function faultOfSearch(model: StructureModel, answer: SeenAnswer): string {
  const { command, fields, from, to, error } = answer
  if (error !== '') return `a search failed with ${error}`
  const isStay = command === 'SEARCHAVAIL'
  const found = foundBy(answer, isStay)
  if (typeof found === 'string') return found
  const faults: string[] = []
  for (const era of erasOf(model, [tableOf(command, fields)], from, to)) {
    const fault = faultOfEra(model, fields, found, isStay, era)
    if (fault === '') return ''
    faults.push(`[${era.from}, ${era.to}] ${fault}`)
  }
  return faults.join('; ')
}

/** Found days by property, or an error. */
function foundBy(answer: SeenAnswer, isStay: boolean): Map<string, readonly FoundDay[]> | string {
  const found = new Map<string, readonly FoundDay[]>()
  const result = answer.result as { properties?: { propertyId: string; days: FoundDay[] }[]; propertyIds?: string[] }
  const rows = isStay
    ? (result.properties ?? [])
    : (result.propertyIds ?? []).map((id) => ({ propertyId: id, days: [] }))
  for (const { propertyId, days } of rows) {
    if (found.has(propertyId)) return `${propertyId} is found twice`
    found.set(propertyId, days)
  }
  return found
}

function faultOfEra(
  model: StructureModel,
  fields: SeenAnswer['fields'],
  found: Map<string, readonly FoundDay[]>,
  isStay: boolean,
  { from, to }: Era,
): string {
  for (const id of found.keys()) if (!model.properties.has(id)) return `${id} never existed`
  const dates = isStay ? [...new Set(fields['dates'] as string[])].sort() : []
  for (const id of model.properties.keys()) {
    const properties = between(model.properties, id, from, to)
    const days = found.get(id)
    const words = (date: string) => between(model.words, wordKey(id, String(fields['roomType']), date), from, to)
    if (!days) {
      const mayMiss =
        properties.some((property) => !hasAttributes(id, property, fields)) ||
        dates.some((date) => words(date).some((word) => !isSold(word, fields)))
      if (!mayMiss) return `${id} is missing`
      continue
    }
    if (!properties.some((property) => hasAttributes(id, property, fields))) return `${id} is not one of these`
    if (days.length !== dates.length) return `${id} has ${days.length} days`
    for (const [n, date] of dates.entries()) {
      const seen = days[n] as FoundDay
      if (!words(date).some((word) => isSold(word, fields) && word && isWord(word, seen))) {
        return `${id} on ${date} was never ${JSON.stringify(seen)}`
      }
    }
  }
  return ''
}

function hasAttributes(id: string, property: ModelProperty | undefined, fields: SeenAnswer['fields']): boolean {
  if (property === undefined || (fields['propertyId'] ?? id) !== id) return false
  for (const name of ['segment', 'propertyType', 'category', 'stars', 'area'] as const)
    if ((fields[name] ?? property[name]) !== property[name]) return false
  return (
    property.stars >= ((fields['minStars'] ?? 1) as number) &&
    ((fields['amenities'] ?? []) as string[]).every((name) => property.amenities.includes(name)) &&
    (fields['latitude'] === undefined || metresTo(property, fields) <= ((fields['radiusMetres'] ?? 5000) as number))
  )
}

/** Along a great circle. */
function metresTo({ latitude, longitude }: ModelProperty, fields: SeenAnswer['fields']): number {
  const rad = (degrees: unknown) => ((degrees as number) * Math.PI) / 180
  const dLat = (rad(fields['latitude']) - rad(latitude)) / 2
  const dLon = (rad(fields['longitude']) - rad(longitude)) / 2
  const h = Math.sin(dLat) ** 2 + Math.cos(rad(latitude)) * Math.cos(rad(fields['latitude'])) * Math.sin(dLon) ** 2
  return 2 * 6371008.8 * Math.asin(Math.sqrt(h))
}

function isSold(word: ModelWord | undefined, fields: SeenAnswer['fields']): boolean {
  const { availability = 1, finalPrice = 2 ** 32 - 1, minPrice = 0, rateFeatures = [] } = fields
  return (
    word !== undefined &&
    word.availability >= (availability as number) &&
    word.finalPrice <= (finalPrice as number) &&
    word.finalPrice >= (minPrice as number) &&
    (rateFeatures as string[]).every((name) => word.rateFeatures.includes(name))
  )
}
