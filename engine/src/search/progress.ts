/** The progress of a search that picks a page: plain data, kept between two slices (page.ts). */

import type { Merge } from './merge.ts'

/** A value of a facet and the number of its matches. */
export type Entry = { readonly value: Uint8Array; readonly count: number }
/** What one pass over the tables counts, and the facet whose filter it leaves out. */
export type Pass = { readonly facets: number; readonly without: number }

/** Counts so far. */
export type Tally = {
  readonly passes: readonly Pass[]
  pass: number
  isBegun: boolean
  /** By ATTRIBUTE and number of the value. */
  counts: Uint32Array<ArrayBuffer>[]
  /** Matches of each table. */
  readonly rooms: Uint32Array
  /** Of the passes that ended, by the bit of the facet. */
  readonly results: Map<number, Entry[]>
}

/** What is found so far. */
export type Progress = {
  /** Tables in the order of their room types' names, and the table of all properties if it is needed. */
  readonly tables: number[]
  readonly versions: number[]
  /** Tables that are only read to count room types. */
  unnamed: ReadonlySet<number>
  propertyTable: number
  propertyVersion: number
  /** The table and row to continue with. */
  table: number
  nextRow: number
  /** Applied index before the first row was read. */
  index: number
  matches: number
  after: number
  size: number
  isStopped: boolean
  examined: number
  /** Entries between two slices. */
  entries: Uint8Array
  merge: Merge | undefined
  tally: Tally | undefined
}

/** Where all tables are part of the search. */
export const NO_TABLES: ReadonlySet<number> = new Set()

export function createProgress(): Progress {
  return {
    ...{
      tables: [],
      versions: [],
      unnamed: NO_TABLES,
      tally: undefined,
      propertyTable: 0,
      propertyVersion: 0,
      table: 0,
      nextRow: 0,
      index: 0,
    },
    ...{ matches: 0, after: 0, size: 0, isStopped: false, examined: 0, entries: new Uint8Array(0), merge: undefined },
  }
}
