/** Names in use and their number of properties, for `/words`. Reads the property table of a segment once. */

import { assert, unreachable } from '@vacancy/shared'
import type { WORD_KINDS } from '@vacancy/shared/contract'
import { findName, NAMES, type NameKind, nameCount, nameText } from '../store/dictionary.ts'
import { PROPERTY, ROOMS } from '../store/layout.ts'
import { segmentCounts } from '../store/read.ts'
import { forEachProperty, roomCount, roomEntry, segmentNames, segmentOf } from '../store/segment.ts'
import type { Memory } from '../store/store.ts'
import { field } from '../store/table-fields.ts'
import { enter, leave } from '../store/version.ts'

export type WordKind = (typeof WORD_KINDS)[number]
export type Word = { readonly word: string; readonly properties: number }

export type WordQuery = {
  readonly kind: WordKind
  /** This segment only; all segments when undefined. */
  readonly segment: string | undefined
  readonly prefix: string
  readonly limit: number
}

const encoder = new TextEncoder()

/** @returns words that begin with the prefix, by name, and whether there are more than the limit */
export function findWords(memory: Memory, reader: number, query: WordQuery): { words: Word[]; more: boolean } {
  const found =
    query.kind === 'segment' ? segments(memory, reader, query) : counted(memory, reader, query.kind, query.segment)
  const words = found
    .filter(({ word }) => word.startsWith(query.prefix))
    .sort((a, b) => (a.word < b.word ? -1 : a.word > b.word ? 1 : 0))
  return { words: words.slice(0, query.limit), more: words.length > query.limit }
}

function segments(memory: Memory, reader: number, { segment }: WordQuery): Word[] {
  return segmentCounts({ memory, reader })
    .filter(({ name }) => segment === undefined || name === segment)
    .map(({ name, properties }) => ({ word: name, properties }))
}

function counted(
  memory: Memory,
  reader: number,
  kind: Exclude<WordKind, 'segment'>,
  segment: string | undefined,
): Word[] {
  const names = kindOf(kind)
  enter(memory, reader)
  try {
    // Names added during the count are left to the next call.
    const counts = new Uint32Array(nameCount(memory, names))
    for (const address of segmentsOf(memory, segment)) countIn(memory, address, kind, counts)
    return Array.from(counts, (properties, name) => ({ name, properties }))
      .filter(({ properties }) => properties > 0)
      .map(({ name, properties }) => ({ word: nameText(memory, names, name), properties }))
  } finally {
    leave(memory, reader)
  }
}

function segmentsOf(memory: Memory, segment: string | undefined): number[] {
  if (segment === undefined)
    return segmentNames(memory)
      .map((name) => segmentOf(memory, name))
      .filter((address) => address !== 0)
  const bytes = encoder.encode(segment)
  const address = segmentOf(memory, findName(memory, NAMES.segment, bytes, 0, bytes.length))
  return address === 0 ? [] : [address]
}

function kindOf(kind: Exclude<WordKind, 'segment'>): NameKind {
  switch (kind) {
    case 'area':
      return NAMES.area
    case 'type':
      return NAMES.type
    case 'category':
      return NAMES.category
    case 'room_type':
      return NAMES.roomType
    case 'amenity':
      return NAMES.amenity
    default:
      return unreachable(kind)
  }
}

function countIn(memory: Memory, segment: number, kind: Exclude<WordKind, 'segment'>, counts: Uint32Array): void {
  const add = (name: number) => {
    if (name < counts.length) counts[name] = counts[name] + 1
  }
  forEachProperty(memory, segment, (property) => {
    assert(property !== 0, 'dead rows are skipped')
    if (kind === 'room_type') {
      const rooms = roomCount(memory, property)
      for (let n = 0; n < rooms; n++) add(field(memory, roomEntry(memory, property, n) + ROOMS.roomType))
    } else if (kind === 'amenity') {
      const list = field(memory, property + PROPERTY.amenities)
      const held = list === 0 ? 0 : field(memory, list)
      for (let i = 1; i <= held; i++) add(field(memory, list + i * 4))
    } else {
      add(field(memory, property + PROPERTY[kind]))
    }
  })
}
