/**
 * Why a search matches a property or not: the rules of docs/design/protocol.md#searches, checked one by one in the
 * engine's order. Pure. A test compares the result with the engine (playground.test.ts).
 */
import { LIMITS, writeUnitVector } from '@vacancy/shared'
import type { WhyCheck } from '@vacancy/shared/contract'
import type { NightPackage, RequestFields } from '@vacancy/shared/wire'
import type { PropertyAttributes } from '../nodes/ask.ts'

export type SearchCommand = 'SEARCHPROP' | 'SEARCHAVAIL'

export type Examined = {
  readonly checks: readonly WhyCheck[]
  readonly matches: boolean
  /** The changes that together would make it match. */
  readonly wouldMatchIf: readonly string[]
}

/**
 * @param fields as the engine reads them: lists trimmed, without repeats
 * @param nights the packages of the room type on the dates of the search; undefined for dates without one
 */
function examine(
  command: SearchCommand,
  fields: RequestFields,
  property: PropertyAttributes,
  nights: ReadonlyMap<string, NightPackage | undefined>,
): Examined {
  const checks: WhyCheck[] = []
  const wants: string[] = []
  const addCheck = (field: string, ok: boolean, message: string, want: string, date: string | null = null) => {
    checks.push({ field, date, ok, message })
    if (!ok && date === null) wants.push(want)
  }
  const equal = (field: string, name: string, own: string | number) => {
    const request = fields[field]
    if (request === undefined) return
    const ok = request === own
    addCheck(field, ok, ok ? `${name} ${own}` : `${name} ${own}, required ${String(request)}`, `${name} were ${own}`)
  }
  equal('segment', 'segment', property.segment)
  equal('area', 'area', property.area)
  // Listed for completeness.
  if (command === 'SEARCHAVAIL') equal('propertyId', 'property', property.id)
  equal('propertyType', 'type', property.type)
  equal('stars', 'stars', property.stars)
  const minStars = numberOf(fields['minStars']) ?? 0
  if (minStars > 0) {
    const text = `stars ${property.stars}, at least ${minStars} required`
    addCheck('minStars', property.stars >= minStars, text, `the minimum stars were ${property.stars}`)
  }
  equal('category', 'category', property.category)
  for (const amenity of listOf(fields['amenities'])) {
    const ok = property.amenities.includes(amenity)
    addCheck('amenities', ok, ok ? `has ${amenity}` : `has no ${amenity}`, `${amenity} were not required`)
  }
  checkPosition(fields, property, addCheck)
  checkBox(fields, property, addCheck)
  if (command === 'SEARCHAVAIL') checkStay(fields, property, nights, addCheck)
  return { checks, matches: checks.every(({ ok }) => ok), wouldMatchIf: [...wants, ...wantsOfNights(checks, nights)] }
}

type AddCheck = (field: string, ok: boolean, message: string, want: string, date?: string | null) => void

function checkPosition(fields: RequestFields, property: PropertyAttributes, addCheck: AddCheck): void {
  const { latitude, longitude, radiusMetres } = fields
  if (typeof latitude !== 'number' || typeof longitude !== 'number') return
  const radius = typeof radiusMetres === 'number' ? radiusMetres : LIMITS.radiusMetresDefault
  const chord = squaredChord({ latitude, longitude }, property)
  const far = Math.ceil(2 * LIMITS.earthRadiusMetres * Math.asin(Math.min(1, Math.sqrt(chord) / 2)))
  const bound = 2 * Math.sin(radius / (2 * LIMITS.earthRadiusMetres))
  const message = `${far} m away, at most ${radius} m allowed`
  addCheck('radiusMetres', chord <= bound * bound, message, `the radius were ${far} m`)
}

function checkBox(fields: RequestFields, { latitude, longitude }: PropertyAttributes, addCheck: AddCheck): void {
  const [south, west, north, east] = (['south', 'west', 'north', 'east'] as const).map((name) => numberOf(fields[name]))
  if (south === undefined || west === undefined || north === undefined || east === undefined) return
  const [isPastWest, isBeforeEast] = [longitude >= west, longitude <= east]
  const isAcross = west > east
  const ok =
    latitude >= south && latitude <= north && (isAcross ? isPastWest || isBeforeEast : isPastWest && isBeforeEast)
  const place = `${latitude}, ${longitude}`
  addCheck('box', ok, `at ${place}, ${ok ? 'in' : 'outside'} the box`, `the box included ${place}`)
}

type Position = { readonly latitude: number; readonly longitude: number }

/** Squared chord between two points of the unit sphere. The engine compares the same value, so the boundary is the same. */
function squaredChord(a: Position, b: Position): number {
  const [from, to] = [vectorOf(a), vectorOf(b)]
  return from.reduce((sum, value, i) => sum + (value - (to[i] as number)) ** 2, 0)
}

function vectorOf({ latitude, longitude }: Position): Float64Array {
  const vector = new Float64Array(3)
  writeUnitVector(vector, 0, latitude, longitude)
  return vector
}

function checkStay(
  fields: RequestFields,
  property: PropertyAttributes,
  nights: ReadonlyMap<string, NightPackage | undefined>,
  addCheck: AddCheck,
): void {
  const room = String(fields['roomType'])
  const hasRoom = property.room_types.includes(room)
  const others = property.room_types.length === 0 ? 'no room type' : property.room_types.join(', ')
  addCheck(
    'roomType',
    hasRoom,
    hasRoom ? `has ${room}` : `has no ${room}, but ${others}`,
    `the room type were ${others}`,
  )
  if (!hasRoom) return
  const least = numberOf(fields['availability']) ?? 1
  const most = Math.min(numberOf(fields['finalPrice']) ?? LIMITS.priceMax, LIMITS.priceMax)
  const minPrice = numberOf(fields['minPrice']) ?? 0
  const dates = [...listOf(fields['dates'])].sort()
  checkTotal(
    fields,
    dates.map((date) => nights.get(date)),
    addCheck,
  )
  for (const date of dates) {
    const night = nights.get(date)
    if (!night) {
      addCheck('dates', false, 'no package', '', date)
      continue
    }
    const { availability, finalPrice, rateFeatures } = night
    addCheck('availability', availability >= least, `${availability} left, at least ${least} required`, '', date)
    if (most < LIMITS.priceMax || finalPrice > most) {
      addCheck('finalPrice', finalPrice <= most, `price ${finalPrice}, at most ${most} allowed`, '', date)
    }
    if (minPrice > 0)
      addCheck('minPrice', finalPrice >= minPrice, `price ${finalPrice}, at least ${minPrice} required`, '', date)
    for (const feature of listOf(fields['rateFeatures'])) {
      const ok = rateFeatures.includes(feature)
      addCheck('rateFeatures', ok, ok ? feature : `no ${feature}`, '', date)
    }
  }
}

/** Of all nights of one room; unknown while one of them has no package. */
function checkTotal(fields: RequestFields, nights: readonly (NightPackage | undefined)[], addCheck: AddCheck): void {
  const [most, least] = [numberOf(fields['maxTotal']), numberOf(fields['minTotal'])]
  if (nights.some((night) => night === undefined)) return
  const total = nights.reduce((sum, night) => sum + (night?.finalPrice ?? 0), 0)
  if (most !== undefined)
    addCheck('maxTotal', total <= most, `total ${total}, at most ${most} allowed`, `the highest total were ${total}`)
  if (least !== undefined)
    addCheck('minTotal', total >= least, `total ${total}, at least ${least} required`, `the lowest total were ${total}`)
}

/** The room types that a search may take, of those that a property has. */
export function roomTypesOf(fields: RequestFields, { room_types: own }: PropertyAttributes): readonly string[] {
  const named = listOf(fields['roomTypes'])
  if (named.length > 0) return own.filter((room) => named.includes(room))
  return fields['anyRoomType'] === 1 ? own : [String(fields['roomType'])]
}

/** Of several room types the one that the search takes: the cheapest that matches, else the one that lacks least. */
export function bestRoom(
  command: SearchCommand,
  fields: RequestFields,
  property: PropertyAttributes,
  nightsOf: ReadonlyMap<string, ReadonlyMap<string, NightPackage | undefined>>,
): Examined {
  const { anyRoomType: _, roomTypes: __, ...plain } = fields
  const examined = [...nightsOf].map(([roomType, nights]) => {
    const found = examine(command, { ...plain, roomType }, property, nights)
    const total = [...nights.values()].reduce((sum, night) => sum + (night?.finalPrice ?? 0), 0)
    return { found, lacks: found.checks.filter(({ ok }) => !ok).length, total }
  })
  examined.sort((a, b) => a.lacks - b.lacks || a.total - b.total)
  return examined[0]?.found ?? examine(command, plain, property, new Map())
}

/**
 * The changes that would make all nights match: each filter with a sufficient value. Nights without a package can only
 * be omitted.
 */
function wantsOfNights(checks: readonly WhyCheck[], nights: ReadonlyMap<string, NightPackage | undefined>): string[] {
  const failed = checks.filter(({ ok, date }) => !ok && date !== null)
  const valuesOf = (field: string, pick: (night: NightPackage) => number) =>
    failed.flatMap((check) => {
      const night = check.field === field && check.date !== null ? nights.get(check.date) : undefined
      return night ? [pick(night)] : []
    })
  const left = valuesOf('availability', ({ availability }) => availability)
  const above = valuesOf('finalPrice', ({ finalPrice }) => finalPrice)
  const below = valuesOf('minPrice', ({ finalPrice }) => finalPrice)
  const features = new Set(
    failed.flatMap(({ field, message }) => (field === 'rateFeatures' ? [message.replace(/^no /, '')] : [])),
  )
  const empty = failed.flatMap(({ field, date }) => (field === 'dates' && date !== null ? [date] : []))
  return [
    ...(left.length > 0 ? [`at least ${Math.min(...left)} rooms were required`] : []),
    ...(above.length > 0 ? [`the maximum price were ${Math.max(...above)}`] : []),
    ...(below.length > 0 ? [`the minimum price were ${Math.min(...below)}`] : []),
    ...[...features].map((feature) => `${feature} were not required`),
    ...emptyNights(empty, nights.size),
  ]
}

function emptyNights(empty: readonly string[], all: number): string[] {
  if (empty.length === 0) return []
  if (empty.length === all) return ['it had packages on these dates']
  const dates = empty.join(', ')
  return [empty.length === 1 ? `${dates} were left out` : `${empty.length} dates were left out (${dates})`]
}

function listOf(value: RequestFields[string]): readonly string[] {
  return Array.isArray(value) ? value : []
}

function numberOf(value: RequestFields[string]): number | undefined {
  return typeof value === 'number' ? value : undefined
}
