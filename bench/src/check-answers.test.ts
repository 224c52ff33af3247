import { createServer, type Server } from 'node:net'
import { createCodecList, dayOf, parseDay, yearOf } from '@vacancy/shared'
import { createFrameSplitter, decodeRequest, encodeError, encodeReply, splitFrames } from '@vacancy/shared/wire'
import { afterEach, expect, test } from 'vitest'
import { checkAnswers } from './check-answers.ts'
import { createDataset, namesIn } from './dataset.ts'
import { availabilityOf, featuresOf, priceOf } from './inventory.ts'
import { answerTo, createTables, type SearchFields, searches } from './queries.ts'

const today = dayOf(Date.now())
const dataset = createDataset({
  shape: 'region',
  packages: 5000,
  days: 10,
  from: today,
  seed: 1,
  segments: 2,
  nights: 'random',
})
const tables = createTables(dataset)
const wanted = searches(tables, { kind: 'broad', count: 20, seed: 1 })
const context = { baseYear: yearOf(today), codecs: createCodecList(dataset.names.rateFeatures) }

type Night = { date: string; availability: number; finalPrice: number; rateFeatures: string[] }
type Stay = { propertyId: string; days: Night[] }

/** The right answer to a search, straight from the data set. */
function staysFor(fields: SearchFields): Stay[] {
  const { names, properties, rows } = dataset
  return answerTo(tables, fields).map((propertyId) => {
    const property = properties.ids.indexOf(propertyId)
    const row = rows.property.findIndex(
      (at, row) => at === property && names.roomTypes[rows.roomType[row] ?? -1] === fields.roomType,
    )
    const days = fields.dates.map((date) => {
      const packed = dataset.packageOf(dataset, row, parseDay(date) ?? -1)
      const rateFeatures = namesIn(featuresOf(packed), names.rateFeatures)
      return { date, availability: availabilityOf(packed), finalPrice: priceOf(packed), rateFeatures }
    })
    return { propertyId, days }
  })
}

let server: Server | undefined
afterEach(() => server?.close())

/** A server that answers rightly but for what `change` does to the stays. */
async function serve(change: (stays: Stay[]) => Stay[] | string): Promise<{ host: string; port: number }> {
  const listening = createServer((socket) => {
    const splitter = createFrameSplitter({ payloadBytesMax: 65_536, skipBytesMax: 65_536 })
    const reply = (payload: Uint8Array, correlationId: number) => {
      const { fields } = decodeRequest(payload)
      const properties = change(staysFor(fields as unknown as SearchFields))
      return typeof properties === 'string'
        ? encodeError(correlationId, properties)
        : encodeReply('SEARCHAVAIL', correlationId, { numDays: 3, properties }, context)
    }
    socket.on('error', () => socket.destroy())
    socket.on('data', (chunk: Buffer) =>
      splitFrames(splitter, chunk, {
        frame: (bytes, start, end, correlationId) => socket.write(reply(bytes.slice(start, end), correlationId)),
        refuse: () => socket.destroy(),
        fatal: () => socket.destroy(),
      }),
    )
  })
  server = listening
  await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve))
  const address = listening.address()
  return { host: '127.0.0.1', port: address && typeof address === 'object' ? address.port : 0 }
}

test('right answers pass, in whatever order the properties come', async () => {
  const node = await serve((stays) => stays.toReversed())

  await expect(checkAnswers(node, tables, wanted)).resolves.toBeUndefined()
})

test.each<[string, (stays: Stay[]) => Stay[] | string, RegExp]>([
  ['one property left out', (stays) => stays.slice(1), /\d+ properties instead of \d+/],
  ['one property twice', (stays) => stays.map(() => stays[0] as Stay), /does not match, or is there twice/],
  [
    'a price of another night',
    (stays) =>
      stays.map(({ propertyId, days }) => ({ propertyId, days: days.map((day) => ({ ...day, finalPrice: 1 })) })),
    /rooms at 1 with/,
  ],
  [
    'nights that were not requested',
    (stays) =>
      stays.map(({ propertyId, days }) => ({
        propertyId,
        days: days.map((day) => ({ ...day, date: days[0]?.date ?? '' })),
      })),
    /: nights /,
  ],
  ['an error', () => '503', /wrongly: 503/],
])('%s is detected', async (_, change, message) => {
  const node = await serve(change)
  const several = wanted.filter(({ hits }) => hits > 1)

  await expect(checkAnswers(node, tables, several)).rejects.toThrow(message)
})
