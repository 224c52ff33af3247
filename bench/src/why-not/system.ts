/** What the comparison needs of a system: a client connection, and how the system runs. */
import type { Dataset, DatasetSpec } from '../dataset.ts'
import type { SearchFields, StayPage } from '../queries.ts'

export const SYSTEMS = ['vacancy', 'sqlite', 'postgres', 'redis'] as const
export type SystemName = (typeof SYSTEMS)[number]

/** One night of a room type, by its numbers in the data set. */
export type Booking = { readonly property: number; readonly roomType: number; readonly day: number }

/** Where a client finds the system: a port, or the file of an embedded database. */
export type Target = { readonly port: number; readonly file: string }

/** Requests are prepared once, so that translating names is not measured. */
export type Connection = {
  /** Property ids. */
  search(fields: SearchFields): () => Promise<readonly string[]> | readonly string[]
  /** The cheapest stays of a search without filters on the property but its type. */
  page(fields: SearchFields): () => Promise<StayPage> | StayPage
  /** Takes a room (−1) or gives it back (1); settles when the change is durable. */
  write(booking: Booking, rooms: 1 | -1): () => Promise<void> | void
  close(): Promise<void> | void
}

/** How the connection is opened, in the process of the client. */
export type Connect = (target: Target, dataset: Dataset) => Promise<Connection>

export type RunningSystem = {
  readonly name: SystemName
  readonly version: string
  readonly target: Target
  /** From the input to the first answer. */
  readonly loadSeconds: number
  /** Size of the data as the system itself reports it. */
  bytes(): Promise<number>
  /** Processor time of the server so far; undefined of a library, which runs in the threads of the clients. */
  readonly cpuSeconds: (() => number) | undefined
  stop(): Promise<void>
}

/** Input of a system that loads the data. */
export type Source = {
  readonly dataset: Dataset
  readonly spec: DatasetSpec
  /** An empty folder. */
  readonly dir: string
}
