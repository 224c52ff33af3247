/** The progress of a search that picks a page: plain data, kept between two slices (page.ts). */

import type { Merge } from './merge.ts'

/** What is found so far. */
export type Progress = {
  /** Tables in the order of their room types' names, and the table of all properties if it is needed. */
  readonly tables: number[]
  readonly versions: number[]
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
}

export function createProgress(): Progress {
  return {
    ...{ tables: [], versions: [], propertyTable: 0, propertyVersion: 0, table: 0, nextRow: 0, index: 0 },
    ...{ matches: 0, after: 0, size: 0, isStopped: false, examined: 0, entries: new Uint8Array(0), merge: undefined },
  }
}
