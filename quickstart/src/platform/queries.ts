/** The sample queries of a platform as bodies of the HTTP proxy, each with the answer it has. Pure. */

import { isDeepStrictEqual } from 'node:util'
import { formatDay, weekdayOf } from '@vacancy/shared'

/** A body of `POST /api`. */
export type Query = {
  readonly command: string
  readonly segment?: string
  readonly body: { readonly [name: string]: unknown }
}

/** A response of `POST /api`. */
export type Answer = { readonly status: number; readonly body: unknown }

export type SampleQuery = {
  /** Its file. */
  readonly name: string
  readonly query: Query
  /** The answer, as a sentence. */
  readonly states: string
  /** '' when the answer is as stated, else what is different. */
  readonly check: (answer: Answer) => string
}

const ROOMS = 15
const PRICE = 150
const FEATURES = ['free_cancellation', 'free_wifi']
const LIMIT = 100
/** From a Friday and a Saturday: some weekends are sold out. */
const DAYS_TO_SUNDAY: { readonly [weekday: number]: number } = { 5: 2, 6: 1 }

/** The properties of a shard, as in its CSV file. */
export type SampleProperty = {
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

/** What the queries need of a sample. */
export type QuerySample = {
  /** The properties of each shard. */
  readonly shards: readonly { readonly name: string; readonly properties: readonly SampleProperty[] }[]
  /** A property of the first shard, and one of its room types. */
  readonly propertyId: string
  readonly roomType: string
}

/**
 * In this order: `05-book` follows `02-setroompkg`.
 *
 * @param day the first day on sale
 */
export function sampleQueries({ shards, propertyId, roomType }: QuerySample, day: number): readonly SampleQuery[] {
  const property = shards[0]?.properties.find((each) => each.propertyId === propertyId)
  if (property === undefined) throw new Error(`the first shard has no property ${propertyId}`)
  const { segment: own } = property
  const segments = [...new Set(shards.flatMap(({ properties }) => properties.map(({ segment }) => segment)))].toSorted()
  const date = formatDay(day + (DAYS_TO_SUNDAY[weekdayOf(day)] ?? 0))
  const night = { property_id: propertyId, room_type: roomType, date }
  const all: SampleQuery[] = [
    {
      name: '01-setprop.json',
      query: {
        command: 'SETPROP',
        segment: own,
        body: {
          segment: own,
          area: property.area,
          property_id: propertyId,
          property_type: property.propertyType,
          category: property.category,
          stars: property.stars,
          latitude: property.latitude,
          longitude: property.longitude,
          amenities: property.amenities,
        },
      },
      states: `success; ${propertyId} keeps its values`,
      check: (answer) => differs(answer, { status: 'success' }),
    },
    {
      name: '02-setroompkg.json',
      query: {
        command: 'SETROOMPKG',
        segment: own,
        body: { ...night, availability: ROOMS, final_price: PRICE, rate_features: FEATURES },
      },
      states: 'success',
      check: (answer) => differs(answer, { status: 'success' }),
    },
    {
      name: '03-search.json',
      query: {
        command: 'SEARCHAVAIL',
        segment: own,
        body: { segment: own, room_type: roomType, date: [date], final_price: 200, limit: LIMIT },
      },
      states: `contains ${propertyId} with availability ${ROOMS} and price ${PRICE}, as 02 wrote it`,
      check: (answer) => {
        const days = [{ date, availability: ROOMS, final_price: PRICE, rate_feature: FEATURES }]
        return contains(answer, { property_id: propertyId, days })
      },
    },
    {
      name: '04-segments.json',
      query: { command: 'GETSEGMENTS', segment: '', body: {} },
      states: `the ${segments.length} segments`,
      check: (answer) => {
        const found = listOf(answer, 'segments').map((each) => String((each as { segment?: unknown }).segment))
        return same(found.toSorted(), segments)
      },
    },
    {
      name: '05-book.json',
      query: { command: 'DECROOMAVL', segment: own, body: { ...night, amount: 1 } },
      states: `availability ${ROOMS - 1}`,
      check: (answer) => differs(answer, { status: 'success', availability: ROOMS - 1 }),
    },
  ]
  const [, other] = shards
  if (other) all.push(otherShard(other))
  all.push({
    name: '07-unknown.json',
    query: {
      command: 'SEARCHPROP',
      segment: 'segment_unknown',
      body: { segment: 'segment_unknown' },
    },
    states: '404: no shard has this segment',
    check: ({ status }) => (status === 404 ? '' : `the status is ${status}, not 404`),
  })
  return all
}

function otherShard({ name, properties }: QuerySample['shards'][number]): SampleQuery {
  const segment = properties[0]?.segment ?? ''
  const ids = properties.filter((each) => each.segment === segment).map(({ propertyId }) => propertyId)
  const [first = ''] = ids
  return {
    name: '06-other-shard.json',
    query: { command: 'SEARCHPROP', segment, body: { segment, limit: LIMIT } },
    states: `the ${ids.length} properties of ${segment}, which ${name} holds, among them ${first}`,
    check: (answer) => {
      const found = listOf(answer, 'properties')
      if (found.length !== ids.length) return `${found.length} properties, not ${ids.length}`
      return found.includes(first) ? '' : `${first} is not in the answer`
    },
  }
}

/** The file that explains the queries. */
export function queriesReadme(queries: readonly SampleQuery[], proxy: string): string {
  return [
    '# Sample queries',
    '',
    `Bodies of \`POST ${proxy}/api\`. \`vacancy quickstart query\` sends all of them in this order and compares the answers.`,
    'A search may be answered by a follower, which is some milliseconds behind a write.',
    '',
    '| File | Answer |',
    '|---|---|',
    ...queries.map(({ name, states }) => `| ${name} | ${states} |`),
    '',
  ].join('\n')
}

function differs({ status, body }: Answer, wanted: { readonly [name: string]: unknown }): string {
  if (status !== 200) return `the status is ${status}: ${JSON.stringify(body)}`
  const given = (body ?? {}) as { readonly [name: string]: unknown }
  const wrong = Object.keys(wanted).find((name) => !isDeepStrictEqual(given[name], wanted[name]))
  return wrong === undefined ? '' : `${wrong} is ${same(given[wrong], wanted[wrong])}`
}

function contains(answer: Answer, property: { readonly property_id: string; readonly days: unknown }): string {
  const fault = differs(answer, { status: 'success' })
  if (fault !== '') return fault
  const found = listOf(answer, 'properties').find(
    (each) => (each as { property_id?: unknown }).property_id === property.property_id,
  )
  return found === undefined ? `${property.property_id} is not in the answer` : same(found, property)
}

function listOf({ body }: Answer, name: string): readonly unknown[] {
  const list = ((body ?? {}) as { readonly [name: string]: unknown })[name]
  return Array.isArray(list) ? list : []
}

/** '' for equal values; names of objects in any order. */
function same(given: unknown, wanted: unknown): string {
  return isDeepStrictEqual(given, wanted) ? '' : `${JSON.stringify(given)}, not ${JSON.stringify(wanted)}`
}
