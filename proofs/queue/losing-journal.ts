/**
 * A journal on a disk that loses what was not synced (engine/src/testing/disk.ts). It keeps its rows in a file, and the groups since
 * then in a log:
 *
 *   current     the number of the rows and the log that count
 *   rows.N      every row
 *   log.N       the groups after them
 *
 * Opening it writes what was read to new files, since the process before may have written it without a sync.
 */
import { crc32 } from 'node:zlib'
import { type Disk, isDiskFull, readSmallFile, writeFully } from '../../engine/src/env.ts'
import { type Journal, JournalFullError, type OpenJournal, type Stored } from '../../queue/src/journal.ts'
import { createRows, type MemoryRows, type StoredGroup, storedGroup, storedRows, writeGroup } from './memory-rows.ts'

/** Its syncs, and the rewriting when it is opened. Each can be left out, to see that it matters. */
export const SYNCS = ['group', 'rows', 'current', 'folder', 'opening'] as const
export type Sync = (typeof SYNCS)[number]

const CHECKPOINT_GROUPS = 8
/** Length and checksum. */
const HEAD_BYTES = 8

type Open = { readonly disk: Disk; readonly without: Sync | undefined; rows: MemoryRows; number: number }

export function losingJournal(disk: Disk, without: Sync | undefined): OpenJournal {
  return async () => {
    const open: Open = { disk, without, rows: createRows(), number: 0 }
    read(open)
    if (without !== 'opening' || open.number === 0) await checkpoint(open)
    let groups = 0
    return {
      kind: 'memory',
      load: async function* () {
        yield [...storedRows(open.rows)] satisfies Stored[]
      },
      write: async (changes) => {
        const group = storedGroup(changes)
        await write(open, group)
        groups++
        if (groups % CHECKPOINT_GROUPS === 0) await checkpoint(open)
      },
      backup: async () => undefined,
      vacuum: async () => undefined,
      sizes: async () => ({ bytes: 0, freeBytes: 0 }),
      close: async () => undefined,
    } satisfies Journal
  }
}

async function write(open: Open, group: StoredGroup): Promise<void> {
  const { disk, without, number } = open
  const log = `/log.${number}`
  await turn()
  try {
    appendFile(disk, log, framed(group))
  } catch (error) {
    if (isDiskFull(error)) throw new JournalFullError(String(error))
    throw error
  }
  await turn()
  if (without !== 'group') syncFile(disk, log)
  writeGroup(open.rows, group)
}

/** Writes all rows to a new file, and begins a log. */
async function checkpoint(open: Open): Promise<void> {
  const { disk, without, number } = open
  const next = number + 1
  createFile(disk, `/rows.${next}`)
  await turn()
  appendFile(disk, `/rows.${next}`, framed(open.rows))
  await turn()
  if (without !== 'rows') syncFile(disk, `/rows.${next}`)
  createFile(disk, `/log.${next}`)
  createFile(disk, '/current.new')
  appendFile(disk, '/current.new', framed(next))
  await turn()
  if (without !== 'current') syncFile(disk, '/current.new')
  // The files have their names before they count.
  if (without !== 'folder') disk.syncDirectory('/')
  disk.rename('/current.new', '/current')
  await turn()
  if (without !== 'folder') disk.syncDirectory('/')
  if (number > 0) {
    disk.unlink(`/rows.${number}`)
    disk.unlink(`/log.${number}`)
  }
  open.number = next
}

/** @throws when a file that must be whole is not */
function read(open: Open): void {
  const { disk } = open
  const current = readFile(disk, '/current')
  if (current === undefined) return
  const [number] = unframed(current)
  const [rows] = unframed(readFile(disk, `/rows.${number}`) ?? Buffer.alloc(0))
  if (typeof number !== 'number' || rows === undefined) throw new Error('the journal is damaged')
  open.number = number
  open.rows = rows as MemoryRows
  // The last group may be torn: it was never confirmed.
  for (const group of unframed(readFile(disk, `/log.${number}`) ?? Buffer.alloc(0)))
    writeGroup(open.rows, group as StoredGroup)
}

function framed(value: unknown): Buffer {
  const text = Buffer.from(JSON.stringify(value, (_key, each) => (each instanceof Map ? { map: [...each] } : each)))
  const head = Buffer.alloc(HEAD_BYTES)
  head.writeUInt32LE(text.length)
  head.writeUInt32LE(crc32(text), 4)
  return Buffer.concat([head, text])
}

/** The frames up to the first one that is torn. */
function unframed(bytes: Buffer): unknown[] {
  const values: unknown[] = []
  for (let at = 0; at + HEAD_BYTES < bytes.length; ) {
    const end = at + HEAD_BYTES + bytes.readUInt32LE(at)
    const text = bytes.subarray(at + HEAD_BYTES, end)
    if (text.length === 0 || end > bytes.length || crc32(text) !== bytes.readUInt32LE(at + 4)) break
    values.push(
      JSON.parse(text.toString('utf8'), (_key, each) => (Array.isArray(each?.map) ? new Map(each.map) : each)),
    )
    at = end
  }
  return values
}

/** Left from a process that ended, it is replaced. */
function createFile(disk: Disk, path: string): void {
  if (disk.stat(path)) disk.unlink(path)
  disk.close(disk.open(path, 'create'))
}

function appendFile(disk: Disk, path: string, bytes: Uint8Array): void {
  const end = disk.stat(path)?.bytes ?? 0
  writeFully(disk, disk.open(path, 'write'), bytes, 0, bytes.length, end)
}

function syncFile(disk: Disk, path: string): void {
  disk.syncData(disk.open(path, 'write'))
}

function readFile(disk: Disk, path: string): Buffer | undefined {
  const bytes = readSmallFile(disk, path, Number.MAX_SAFE_INTEGER)
  return bytes && Buffer.from(bytes)
}

/** Other work runs between the operations of a disk. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
