/**
 * The sample data of a platform: hotels in segments of their own shard, from a seed. The package of a night depends on
 * the seed, the room and the date only, so days that come on sale later are made by the same function. Pure.
 */

import { formatDay, weekdayOf } from '@vacancy/shared'

export const CODECS = [
  'free_cancellation',
  'non_refundable',
  'pay_at_property',
  'includes_breakfast',
  'free_wifi',
  'no_prepayment',
  'partial_refund',
  'instant_confirmation',
] as const
const SEGMENTS_PER_SHARD = 4
const PROPERTIES_PER_SEGMENT = 10
export const ROOM_TYPES = ['room1', 'room2', 'room3', 'room4'] as const

const TYPES = ['hotel', 'hostel', 'resort', 'apartment'] as const
const CATEGORIES = ['budget', 'standard', 'premium', 'luxury'] as const
const AMENITIES = ['wifi', 'pool', 'breakfast', 'spa', 'restaurant', 'bar', 'gym', 'parking'] as const
const WEEKEND = [0, 6]
const HEADERS = {
  properties: 'PropertyID,Segment,Area,PropertyType,Category,Stars,Latitude,Longitude,Amenities',
  packages: 'PropertyID,RoomType,Date,Availability,FinalPrice,RateFeature',
} as const

export type Property = {
  readonly propertyId: string
  readonly segment: string
  readonly area: string
  readonly propertyType: string
  readonly category: string
  readonly stars: number
  readonly latitude: number
  readonly longitude: number
  readonly amenities: readonly string[]
}

export type Package = {
  readonly propertyId: string
  readonly roomType: string
  readonly date: string
  readonly availability: number
  readonly finalPrice: number
  readonly rateFeatures: readonly string[]
}

/** Of a shard, counted from 0, and its segment, counted from 1. */
export function segmentName(shard: number, segment: number): string {
  return `segment_${SEGMENTS_PER_SHARD * shard + segment}`
}

/** All segments of a platform, by shard. */
export function segmentNames(shards: number): string[] {
  return Array.from({ length: shards * SEGMENTS_PER_SHARD }, (_, at) => `segment_${at + 1}`)
}

/** @param shard counted from 0 */
export function propertiesOf(seed: number, shard: number): Property[] {
  return upTo(SEGMENTS_PER_SHARD).flatMap((segment) =>
    upTo(PROPERTIES_PER_SEGMENT).map((at) => propertyOf(seed, shard + 1, segment, at)),
  )
}

function propertyOf(seed: number, shard: number, segment: number, at: number): Property {
  const propertyId = `s${shard}_seg${segment}_p${at}`
  const random = randomOf(`${seed}/${propertyId}`)
  const near = (centre: number) => Number((centre + 0.5 * shard + 0.1 * segment + 0.02 * random() - 0.01).toFixed(6))
  return {
    propertyId,
    segment: segmentName(shard - 1, segment),
    area: `area_${shard}_${segment}`,
    propertyType: pick(TYPES, random),
    category: pick(CATEGORIES, random),
    stars: between(2, 5, random),
    latitude: near(40),
    longitude: near(-74),
    amenities: some(AMENITIES, between(3, 5, random), random),
  }
}

/**
 * The package of a room on a night.
 *
 * @param day day number
 */
export function packageOf(seed: number, propertyId: string, roomType: string, day: number): Package {
  const room = `${seed}/${propertyId}/${roomType}`
  const base = between(50, 300, randomOf(room)) + 10 * (day % 3)
  const random = randomOf(`${room}/${day}`)
  return {
    propertyId,
    roomType,
    date: formatDay(day),
    availability: between(1, 20, random),
    finalPrice: Math.floor(WEEKEND.includes(weekdayOf(day)) ? base * 1.2 : base),
    rateFeatures: some(CODECS, between(1, 3, random), random),
  }
}

/** All packages of a shard, from the first to the last day. */
export function packagesOf(
  seed: number,
  shard: number,
  { first, last }: { readonly first: number; readonly last: number },
): Package[] {
  const days = Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => first + at)
  return propertiesOf(seed, shard).flatMap(({ propertyId }) =>
    ROOM_TYPES.flatMap((roomType) => days.map((day) => packageOf(seed, propertyId, roomType, day))),
  )
}

export function propertiesCsv(properties: readonly Property[]): string {
  const rows = properties.map((each) => {
    const { propertyId, segment, area, propertyType, category, stars, latitude, longitude, amenities } = each
    const place = [latitude.toFixed(6), longitude.toFixed(6)]
    return [propertyId, segment, area, propertyType, category, stars, ...place, amenities.join('|')].join(',')
  })
  return lines([HEADERS.properties, ...rows])
}

export function packagesCsv(packages: readonly Package[]): string {
  const rows = packages.map(({ propertyId, roomType, date, availability, finalPrice, rateFeatures }) =>
    [propertyId, roomType, date, availability, finalPrice, rateFeatures.join('|')].join(','),
  )
  return lines([HEADERS.packages, ...rows])
}

export function codecsYaml(): string {
  return lines(['rate_features:', ...CODECS.map((name) => `  - ${name}`)])
}

function lines(texts: readonly string[]): string {
  return texts.map((text) => `${text}\n`).join('')
}

const upTo = (last: number): number[] => Array.from({ length: last }, (_, at) => at + 1)

/** Numbers from 0 to below 1, by a key: FNV-1a seeds a mulberry32. */
export function randomOf(key: string): () => number {
  let state = 0x811c9dc5
  for (let at = 0; at < key.length; at++) state = Math.imul(state ^ key.charCodeAt(at), 0x01000193)
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** A whole number, both ends included. */
function between(least: number, most: number, random: () => number): number {
  return least + Math.floor(random() * (most - least + 1))
}

function pick<T>(all: readonly T[], random: () => number): T {
  return all[Math.floor(random() * all.length)] as T
}

/** Different ones, in the order of the list. */
function some<T>(all: readonly T[], wanted: number, random: () => number): T[] {
  const left = [...all]
  while (left.length > wanted) left.splice(Math.floor(random() * left.length), 1)
  return left
}
