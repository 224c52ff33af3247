/** Runs searches on a node one by one and compares the results with a naive search over the same data set. */
import { connect } from 'node:net'
import { type CodecList, createCodecList, parseDay } from '@vacancy/shared'
import { createFrameSplitter, decodeReply, encodeRequest, splitFrames } from '@vacancy/shared/wire'
import { failure } from './failure.ts'
import { availabilityOf, featuresOf, priceOf } from './inventory.ts'
import { answerTo, type Search, type SearchFields, type Tables } from './queries.ts'

const LARGEST_REPLY_BYTES = 64 * 1024 * 1024

/** Throws on the first wrong result. A benchmark of wrong results measures nothing. */
export async function checkAnswers(
  server: { host: string; port: number },
  tables: Tables,
  searches: readonly Search[],
): Promise<void> {
  const codecs = createCodecList(tables.dataset.names.rateFeatures)
  const payloads = await askAll(server, searches)
  for (const [i, { fields, hits }] of searches.entries()) {
    const fault = faultIn(tables, fields, { hits, payload: payloads[i] ?? new Uint8Array(), codecs })
    if (fault) throw failure(`the node answers ${JSON.stringify(fields)} wrongly: ${fault}`)
  }
}

/** Sends all searches at once; replies may come in any order. */
function askAll(server: { host: string; port: number }, searches: readonly Search[]): Promise<Uint8Array[]> {
  const frames = searches.map(({ fields }, i) => encodeRequest({ command: 'SEARCHAVAIL', correlationId: i, fields }))
  return new Promise((resolve, reject) => {
    const payloads: Uint8Array[] = []
    let answered = 0
    const splitter = createFrameSplitter({ payloadBytesMax: LARGEST_REPLY_BYTES, skipBytesMax: LARGEST_REPLY_BYTES })
    const socket = connect(server.port, server.host, () => socket.write(Buffer.concat(frames)))
    const sink = {
      frame: (bytes: Uint8Array, start: number, end: number, correlationId: number) => {
        payloads[correlationId] = bytes.slice(start, end)
        answered += 1
      },
      refuse: (_: number, text: string) => socket.destroy(failure(text)),
      fatal: (reason: string) => socket.destroy(failure(reason)),
    }
    socket.on('data', (chunk: Buffer) => {
      splitFrames(splitter, chunk, sink)
      if (answered < searches.length) return
      socket.destroy()
      resolve(payloads)
    })
    socket.on('error', reject)
    socket.on('close', () => reject(failure(`the node closed the connection after ${answered} answers`)))
  })
}

type Given = { hits: number; payload: Uint8Array; codecs: CodecList }

/** What is wrong with an answer; '' when nothing is. */
function faultIn(tables: Tables, fields: SearchFields, { hits, payload, codecs }: Given): string {
  const reply = decodeReply('SEARCHAVAIL', payload, { dates: fields.dates, codecs })
  if (!reply.ok) return `${reply.code} ${reply.message}`
  const properties = reply.result.properties ?? []
  if (properties.length !== hits) return `${properties.length} properties instead of ${hits}`
  const wanted = new Set(answerTo(tables, fields))
  const rows = rowsById(tables, fields)
  for (const { propertyId, days } of properties) {
    // Each id counts once: what is taken out is not found again.
    if (!wanted.delete(propertyId)) return `${propertyId} does not match, or is there twice`
    const fault = nightsFault(tables, rows.get(propertyId) ?? -1, { fields, days, codecs })
    if (fault) return `${propertyId}: ${fault}`
  }
  return ''
}

function rowsById({ dataset, start, rows }: Tables, { segment, roomType }: SearchFields): Map<string, number> {
  const { names, properties } = dataset
  const table = names.segments.indexOf(segment) * names.roomTypes.length + names.roomTypes.indexOf(roomType)
  const byId = new Map<string, number>()
  for (const row of rows.subarray(start[table], start[table + 1])) {
    byId.set(properties.ids[dataset.rows.property[row] ?? 0] ?? '', row)
  }
  return byId
}

type Days = readonly { date: string; availability: number; finalPrice: number; rateFeatures: readonly string[] }[]

function nightsFault(
  { dataset }: Tables,
  row: number,
  { fields, days, codecs }: { fields: SearchFields; days: Days; codecs: CodecList },
): string {
  const dates = days.map(({ date }) => date).join()
  if (dates !== fields.dates.toSorted().join()) return `nights ${dates}`
  for (const { date, availability, finalPrice, rateFeatures } of days) {
    const packed = dataset.packageOf(dataset, row, parseDay(date) ?? -1)
    const features = rateFeatures.reduce((mask, name) => mask | (1 << (codecs.indexOf.get(name) ?? 31)), 0)
    const isRight =
      availability === availabilityOf(packed) && finalPrice === priceOf(packed) && features === featuresOf(packed)
    if (!isRight) return `on ${date} ${availability} rooms at ${finalPrice} with ${rateFeatures.join('|')}`
  }
  return ''
}
