/**
 * Writes a data set as properties.csv, packages.csv and codecs.yml: header line, LF, no quotes
 * (docs/design/storage.md#import).
 *
 * A record of packages.csv is put together from ready pieces, each copied four bytes at a time into one big
 * buffer, up to three bytes too many that the next piece overwrites:
 *
 *   "p_0000001,room1," | "2026-03-01," | "7," | "250," | "free_wifi|partial_refund\n"
 *     once a row          a table of days  tables of numbers   a table of all masks
 *
 * That is about 25 stores of 4 bytes a record, against some 100 of one byte, and no string at all.
 */
import { closeSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { formatDay } from '@vacancy/shared'
import { type Dataset, namesIn, nightsOf } from './dataset.ts'
import { availabilityOf, featuresOf, PRICE_END, priceOf } from './inventory.ts'
import { permute, upperBound } from './random.ts'

export const PROPERTIES_HEADER = 'PropertyID,Segment,Area,PropertyType,Category,Stars,Latitude,Longitude,Amenities\n'
export const PACKAGES_HEADER = 'PropertyID,RoomType,Date,Availability,FinalPrice,RateFeature\n'

/** Grouped: by property, room type and date. Shuffled: any order, the worst case of an import. */
export const ORDERS = ['grouped', 'shuffled'] as const
export type Order = (typeof ORDERS)[number]

export type Written = { propertiesBytes: number; packagesBytes: number }

/** Called now and then with the number of packages written. */
export type Progress = (packages: number) => void

const BUFFER_BYTES = 1024 * 1024
/** More than the longest record: id 36, room type 64, date 10, numbers 3 + 5, eight features of at most 20, commas. */
const RECORD_BYTES_MAX = 512
const PACKAGES_BETWEEN_REPORTS = 1 << 20

/** Writes the three files into `dir`. Each gets its name when it is whole, packages.csv last. */
export function writeDataset(
  dataset: Dataset,
  { dir, order = 'grouped', progress }: { dir: string; order?: Order; progress?: Progress },
): Written {
  mkdirSync(dir, { recursive: true })
  writeFile(dir, 'codecs.yml', (file) => {
    writeSync(file, `rate_features:\n${dataset.names.rateFeatures.map((name) => `  - ${name}\n`).join('')}`)
  })
  const propertiesBytes = writeFile(dir, 'properties.csv', (file) => writeProperties(dataset, file))
  const packagesBytes = writeFile(dir, 'packages.csv', (file) => writePackages(dataset, file, order, progress))
  return { propertiesBytes, packagesBytes }
}

function writeFile<T>(dir: string, name: string, write: (file: number) => T): T {
  const unfinished = join(dir, `${name}.unfinished`)
  const file = openSync(unfinished, 'w')
  let written: T
  try {
    written = write(file)
  } finally {
    closeSync(file)
  }
  renameSync(unfinished, join(dir, name))
  return written
}

function writeProperties(dataset: Dataset, file: number): number {
  const { names, properties } = dataset
  const amenityTexts = new Map<number, string>()
  let bytes = writeSync(file, PROPERTIES_HEADER)
  let lines: string[] = []
  for (const [property, id] of properties.ids.entries()) {
    const mask = properties.amenities[property] ?? 0
    let amenities = amenityTexts.get(mask)
    if (amenities === undefined) {
      amenities = namesIn(mask, names.amenities).join('|')
      amenityTexts.set(mask, amenities)
    }
    lines.push(
      [
        id,
        names.segments[properties.segment[property] ?? 0],
        names.areas[properties.area[property] ?? 0],
        names.types[properties.type[property] ?? 0],
        names.categories[properties.category[property] ?? 0],
        properties.stars[property],
        ((properties.latitudeMicro[property] ?? 0) / 1e6).toFixed(6),
        ((properties.longitudeMicro[property] ?? 0) / 1e6).toFixed(6),
        `${amenities}\n`,
      ].join(','),
    )
    if (lines.length === 8192) {
      bytes += writeSync(file, lines.join(''))
      lines = []
    }
  }
  return bytes + (lines.length ? writeSync(file, lines.join('')) : 0)
}

type Out = { file: number; buffer: Buffer; view: DataView; end: number; bytesWritten: number }

function createOut(file: number): Out {
  const buffer = Buffer.alloc(BUFFER_BYTES + RECORD_BYTES_MAX)
  return {
    file,
    buffer,
    view: new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength),
    end: 0,
    bytesWritten: 0,
  }
}

function flush(out: Out): void {
  let start = 0
  while (start < out.end) start += writeSync(out.file, out.buffer, start, out.end - start)
  out.bytesWritten += out.end
  out.end = 0
}

function writePackages(dataset: Dataset, file: number, order: Order, progress: Progress | undefined): number {
  const out = createOut(file)
  out.end = out.buffer.write(PACKAGES_HEADER, 'latin1')
  const pieces = createPieces(dataset)
  if (order === 'grouped') writeGrouped(dataset, pieces, out, progress)
  else writeShuffled(dataset, pieces, out, progress)
  flush(out)
  progress?.(dataset.packages)
  return out.bytesWritten
}

function writeGrouped(dataset: Dataset, pieces: Pieces, out: Out, progress: Progress | undefined): void {
  const { spec, rows, packageOf } = dataset
  const prefixes = createTexts(1, RECORD_BYTES_MAX)
  let reportAt = PACKAGES_BETWEEN_REPORTS
  for (let row = 0; row < rows.property.length; row++) {
    setPrefix(prefixes, 0, dataset, row)
    const nights = nightsOf(dataset, row)
    for (let night = 0; night < nights; night++) {
      appendRecord(out, pieces, prefixes, 0, night, packageOf(dataset, row, spec.from + night))
      if (out.end >= BUFFER_BYTES) flush(out)
    }
    const written = rows.packagesBefore[row + 1] ?? 0
    if (written >= reportAt) {
      progress?.(written)
      reportAt = written + PACKAGES_BETWEEN_REPORTS
    }
  }
}

function writeShuffled(dataset: Dataset, pieces: Pieces, out: Out, progress: Progress | undefined): void {
  const { spec, rows, packageOf, packages } = dataset
  const prefixes = createTexts(rows.property.length, prefixBytesMax(dataset))
  for (let row = 0; row < rows.property.length; row++) setPrefix(prefixes, row, dataset, row)
  for (let place = 0; place < packages; place++) {
    const number = permute(place, packages, spec.seed)
    const row = upperBound(rows.packagesBefore, number) - 1
    const night = number - (rows.packagesBefore[row] ?? 0)
    appendRecord(out, pieces, prefixes, row, night, packageOf(dataset, row, spec.from + night))
    if (out.end >= BUFFER_BYTES) flush(out)
    if ((place + 1) % PACKAGES_BETWEEN_REPORTS === 0) progress?.(place + 1)
  }
}

/**
 * Texts by number: text i lies at i * stride, padded with zeros to a multiple of four bytes.
 *
 *   view     [text 0 ….][text 1 ….] …     stride bytes each
 *   lengths  bytes of each text, without the padding
 */
type Texts = { words: Uint32Array; stride: number; lengths: Uint16Array }

function createTexts(count: number, bytesMax: number): Texts {
  const stride = Math.ceil(bytesMax / 4) * 4
  return { words: new Uint32Array((count * stride) / 4), stride, lengths: new Uint16Array(count) }
}

function setText(texts: Texts, index: number, text: string): void {
  const { written } = new TextEncoder().encodeInto(text, new Uint8Array(texts.words.buffer, index * texts.stride))
  texts.lengths[index] = written
}

function textsOf(all: readonly string[]): Texts {
  const texts = createTexts(all.length, Math.max(...all.map((text) => text.length)))
  for (const [index, text] of all.entries()) setText(texts, index, text)
  return texts
}

type Pieces = { dates: Texts; availabilities: Texts; prices: Texts; features: Texts }

function createPieces({ spec, names }: Dataset): Pieces {
  const { rateFeatures } = names
  const numbered = (count: number) => textsOf(Array.from({ length: count }, (_, value) => `${value},`))
  return {
    dates: textsOf(Array.from({ length: spec.days }, (_, night) => `${formatDay(spec.from + night)},`)),
    availabilities: numbered(256),
    prices: numbered(PRICE_END),
    features: textsOf(
      Array.from({ length: 2 ** rateFeatures.length }, (_, mask) => `${namesIn(mask, rateFeatures).join('|')}\n`),
    ),
  }
}

function prefixBytesMax({ names, properties }: Dataset): number {
  const longest = (texts: readonly string[]) => texts.reduce((most, text) => Math.max(most, text.length), 0)
  return longest(properties.ids) + longest(names.roomTypes) + 2
}

function setPrefix(prefixes: Texts, index: number, { names, properties, rows }: Dataset, row: number): void {
  const id = properties.ids[rows.property[row] ?? 0]
  setText(prefixes, index, `${id},${names.roomTypes[rows.roomType[row] ?? 0]},`)
}

function appendRecord(out: Out, pieces: Pieces, prefixes: Texts, row: number, night: number, packed: number): void {
  const { view } = out
  let end = append(view, out.end, prefixes, row)
  end = append(view, end, pieces.dates, night)
  end = append(view, end, pieces.availabilities, availabilityOf(packed))
  end = append(view, end, pieces.prices, priceOf(packed))
  out.end = append(view, end, pieces.features, featuresOf(packed))
}

/** Copies text `index` to `end` and returns the new end. */
function append(view: DataView, end: number, texts: Texts, index: number): number {
  const { words, stride } = texts
  const start = index * stride
  const length = texts.lengths[index] ?? 0
  for (let at = 0; at < length; at += 4) view.setUint32(end + at, words[(start + at) >> 2] ?? 0, true)
  return end + length
}
