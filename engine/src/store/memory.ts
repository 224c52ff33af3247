/** What a store is made of, as types: its memory, and what only the writing thread has. */

import type { Gap, Region } from './arena.ts'
import type { StoreDefects } from './defects.ts'

/** One shared memory and the views of one thread. It never grows: all of it is reserved at start, pages come with use. */
export type Memory = {
  readonly wasm: WebAssembly.Memory
  readonly buffer: SharedArrayBuffer
  readonly u8: Uint8Array
  readonly u16: Uint16Array
  readonly i32: Int32Array
  readonly u32: Uint32Array
  readonly f64: Float64Array
  /** Index of the first cell of the pages' epochs and spare addresses. */
  readonly pageEpochs: number
  readonly pageSpares: number
  /** A word of this thread alone, for ordering reads. */
  readonly fence: Int32Array
}

/** What only the writing thread has. */
export type Writer = {
  readonly records: Region
  readonly planes: Region
  readonly gap: Gap
  readonly limbo: Limbo
  readonly spare: SparePages
  readonly marks: Map<number, number>
  /** Addresses of sessions by key, as 32 hexadecimal digits. */
  readonly sessions: Map<string, number>
  copyOnWrite: boolean
  epoch: number
  /** Bytes between the regions that the command in hand may need: copies for a snapshot leave them there. */
  promisedBytes: number
  /** Bytes between the regions when a write was last refused for want of memory; -1 once there are more. */
  lackingAt: number
  /** First byte a record may lie at. */
  readonly recordsStart: number
  /** Room types a property is expected to have: what its list has room for from the start. */
  readonly roomsHint: number
  /** Tables a sweep for passed nights has yet to visit. */
  readonly sweep: number[]
  /** Planted defects (env.ts): none in any program that ships. */
  defects: StoreDefects
}

export type Reader = { readonly memory: Memory }
export type Store = { readonly memory: Memory; readonly writer: Writer }

/** Blocks that readers may still see, with the epoch in which they were retired. */
export type Limbo = { addresses: number[]; sizes: number[]; planes: boolean[]; epochs: number[]; head: number }

/** Spare pages of the writer: a stack of addresses. They are kept between snapshots, already touched. */
export type SparePages = {
  readonly addresses: number[]
  used: number
  stepsTaken: number
  copied: number
  failed: boolean
}
