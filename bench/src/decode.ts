/** `npm run bench -- decode`: what a client needs to read replies, beside `JSON.parse` of the same content. */

import { createCodecList, EXIT, formatDay, packPropertyId, unpackPropertyId } from '@vacancy/shared'
import { defineCommand, whole } from '@vacancy/shared/node'
import { type CommandName, decodeReply, encodeReply, FRAME_HEADER_BYTES, type Result } from '@vacancy/shared/wire'
import { type RowReport, rowOf } from './format.ts'
import { median } from './pauses.ts'
import { measureSection, RECORD_FLAGS, type SectionHead, storeSection } from './record-section.ts'
import type { Measure } from './verdict.ts'

const HITS = 301
const STAYS = 100
/** A turn is long enough for the clock, and short enough that other programs disturb few of them. */
const TURN_BYTES = 200_000
const FIRST_DAY = 20_817
const BASE_YEAR = 2026
const CODECS = createCodecList(Array.from({ length: 12 }, (_, i) => `feature_${i}`))
const NIGHTS = [0, 1, 2].map((n) => formatDay(FIRST_DAY + n))

export const decodeCommand = defineCommand({
  name: 'bench decode',
  component: 'decode',
  summary: 'Reads replies as a client does, beside JSON.parse of the same content.',
  flags: {
    rounds: { ...whole(300, 100, 100_000), summary: 'Turns of each, after half as many to warm up.' },
    ...RECORD_FLAGS,
  },
  run: async ({ flags }) => {
    const { section } = await measureSection(headOf(flags.rounds), async () => ({ rows: rowsOf(flags.rounds) }))
    storeSection(section, flags)
    return EXIT.ok
  },
})

const headOf = (rounds: number): SectionHead => ({
  name: 'decode',
  title: 'Replies in the client',
  command: `npm run bench -- decode --rounds ${rounds}`,
  scope: `medians of ${rounds} turns of each in turn, one process, no sockets`,
  how: ['The baseline is `JSON.parse` of the same content, with the same fields read.'],
})

/** A reply, and what a program does with its result; the number keeps the compiler from leaving it out. */
type Reply<Name extends CommandName = CommandName> = {
  readonly what: string
  readonly command: Name
  readonly result: Result<Name>
  readonly reads: { readonly [what: string]: (result: Result<Name>) => number }
}

const ofHits = (name: string, idOf: (n: number) => string): Reply<'SEARCHAVAIL'> => ({
  what: `${HITS} hits of ${NIGHTS.length} nights, ${name}`,
  command: 'SEARCHAVAIL',
  result: { numDays: NIGHTS.length, properties: Array.from({ length: HITS }, (_, n) => hitOf(n, idOf(n))) },
  reads: {
    'every field read': ({ properties }) => {
      let sum = 0
      for (const { propertyId, days } of properties) {
        sum += propertyId.length
        for (const night of days)
          sum += night.date.length + night.availability + night.finalPrice + night.rateFeatures.length
      }
      return sum
    },
    'ids and totals read': ({ properties }) => {
      let sum = 0
      for (const { propertyId, days } of properties) {
        sum += propertyId.length
        for (const { finalPrice } of days) sum += finalPrice
      }
      return sum
    },
  },
})

function hitOf(n: number, propertyId: string) {
  const days = NIGHTS.map((date, night) => ({
    date,
    availability: ((n + night) % 9) + 1,
    finalPrice: 9_000 + n * 31 + night,
    rateFeatures: CODECS.names.filter((_, bit) => ((n % 7) * night + (n % 5)) & (1 << bit)),
  }))
  return { propertyId, days }
}

/** What a list page asks for: `compact` and `want: ['total']`. */
const ofTotals = (name: string, idOf: (n: number) => string): Reply<'SEARCHAVAIL'> => ({
  what: `${HITS} compact hits, ${name}`,
  command: 'SEARCHAVAIL',
  result: {
    numDays: NIGHTS.length,
    properties: Array.from({ length: HITS }, (_, n) => ({ propertyId: idOf(n), days: [], total: 27_000 + n })),
  },
  reads: {
    'ids and totals read': ({ properties }) =>
      properties.reduce((sum, { propertyId, total }) => sum + propertyId.length + Number(total), 0),
  },
})

const shortId = (n: number) => `hotel-${100_000 + n * 37}`

function uuid(n: number): string {
  const bytes = packPropertyId('01890a5d-ac96-774b-bcce-b302099a8057') as Uint8Array
  new DataView(bytes.buffer).setUint32(12, n * 7_919)
  return unpackPropertyId(bytes, 0)
}

const lineOf = (n: number) => ({
  propertyId: shortId(n),
  roomType: 'double',
  arrival: NIGHTS[0] as string,
  nights: 3,
  rooms: 1,
})

const REPLIES = [
  ofHits('short ids', shortId),
  ofHits('UUIDs', uuid),
  ofTotals('short ids', shortId),
  ofTotals('UUIDs', uuid),
  {
    what: `${HITS} ids`,
    command: 'SEARCHPROP',
    result: { propertyIds: Array.from({ length: HITS }, (_, n) => shortId(n)) },
    reads: { read: ({ propertyIds }) => propertyIds.reduce((sum, { length }) => sum + length, 0) },
  } satisfies Reply<'SEARCHPROP'>,
  {
    what: `${STAYS} stays`,
    command: 'LISTSTAYS',
    result: {
      stays: Array.from({ length: STAYS }, (_, n) => {
        return { stayId: uuid(n), state: 'booked', index: n, timeMs: 1.8e12 + n, source: 'web', lines: [lineOf(n)] }
      }),
      cursor: '',
    },
    reads: { read: ({ stays }) => stays.reduce((sum, { stayId, lines }) => sum + stayId.length + lines.length, 0) },
  } satisfies Reply<'LISTSTAYS'>,
  {
    what: 'one package',
    command: 'GETPROPROOMDAY',
    result: {
      propertyId: shortId(1),
      date: NIGHTS[0] as string,
      availability: 3,
      finalPrice: 9_000,
      rateFeatures: ['feature_1'],
    },
    reads: { read: ({ availability, finalPrice }) => availability + finalPrice },
  } satisfies Reply<'GETPROPROOMDAY'>,
  {
    what: 'rooms left after a decrement',
    command: 'DECROOMAVL',
    result: { availability: 3 },
    reads: { read: ({ availability }) => availability },
  } satisfies Reply<'DECROOMAVL'>,
] as readonly Reply[]

/** Written where no compiler can know that nobody reads it. */
const sink = new Float64Array(1)

const rowsOf = (rounds: number): RowReport[] =>
  REPLIES.map((reply, i) => {
    const measures = Object.keys(reply.reads).map((name) => measureOf(reply, name, rounds))
    return rowOf(i + 1, reply.what, measures)
  })

function measureOf({ command, result, reads }: Reply, name: string, rounds: number): Measure {
  const read = reads[name] as (result: Result) => number
  const context = { baseYear: BASE_YEAR, dates: NIGHTS, codecs: CODECS }
  const payload = encodeReply(command, 1, result, context).slice(FRAME_HEADER_BYTES)
  const text = JSON.stringify(result)
  const decode = () => {
    const reply = decodeReply(command, payload, context)
    return reply.ok ? read(reply.result) : Number.NaN
  }
  const parse = () => read(JSON.parse(text))
  const count = Math.ceil(TURN_BYTES / (payload.length + 100))
  const micros: [number[], number[]] = [[], []]
  for (let round = -rounds / 2; round < rounds; round++) {
    for (const [i, run] of [decode, parse].entries()) {
      const begun = performance.now()
      for (let n = 0; n < count; n++) sink[0] = run()
      if (round >= 0) micros[i as 0 | 1].push(((performance.now() - begun) * 1000) / count)
    }
  }
  const [ours, json] = micros.map(median) as [number, number]
  return { name, value: ours, unit: 'µs', baseline: { name: 'JSON.parse', value: json } }
}
