/** State of imports: how it is stored and shown, and notification of followers. */
import { join } from 'node:path'
import type { Clock } from '@vacancy/shared'
import { problem } from '@vacancy/shared/api/errors'
import { type FileKind, IMPORT_LIMITS, type ImportState, type ImportView, type Summary } from '@vacancy/shared/contract'
import type { Logger } from 'pino'
import type { WriteAudit } from '../access/audit.ts'
import type { Values } from '../history/series.ts'
import type { Live } from '../live/state.ts'
import { touchTopic } from '../live/topics.ts'
import type { CodecSource } from './codecs.ts'
import { type ImportDetail, type Item, isOver, type Row } from './item.ts'
import type { Snapshots } from './snapshot-store.ts'
import type { ImportDatabase } from './tables.ts'
import type { Uploads } from './uploads.ts'

const LOG_LINE_CHARACTERS_MAX = 500

export type ImportsOptions = {
  readonly database: ImportDatabase
  readonly audit: WriteAudit
  readonly clock: Clock
  readonly log: Logger
  readonly live: Live
  readonly folder: string
  readonly uploads: Uploads
  readonly snapshots: Snapshots
  readonly codecs: CodecSource
  readonly shards: () => readonly string[]
  /** Minutes after midnight UTC at which the day of a shard begins. */
  readonly dayBegins: (shard: string) => number
  /** Files may be imported from a folder of this machine. */
  readonly hasFolder: boolean
  /** Whether the nodes of a shard read codec files of their own. */
  readonly ownCodecs: (shard: string) => boolean
}

/** The listed imports, and the one that is being built. */
export type Imports = ImportsOptions & {
  readonly items: Map<string, Item>
  /** Received bytes, by upload. */
  readonly received: Map<string, number>
  /** Set while an import is being built. */
  working: Promise<void> | undefined
  isStopping: boolean
}

/** The folder in which an import is built and its errors are stored. */
export function buildFolder(imports: Imports, id: string): string {
  return join(imports.folder, 'builds', id)
}

function nowText(imports: Imports): string {
  return new Date(imports.clock.wallMs()).toISOString()
}

/** Newest first. */
export function ordered(imports: Imports): Item[] {
  return [...imports.items.values()].sort((a, b) => b.row.created_at - a.row.created_at)
}

export function importView(imports: Imports, { row, detail, progress, rates }: Item): ImportView {
  const state = row.state as ImportState
  const file = (kind: FileKind) => {
    const note = detail.files[kind]
    const upload = row[`${kind}_upload`]
    return { upload, ...note, received: state === 'uploading' ? (imports.received.get(upload) ?? 0) : note.bytes }
  }
  return {
    id: row.id,
    name: row.name,
    shard: row.shard,
    state,
    message: detail.message,
    hint: detail.hint,
    by: row.by_name,
    createdAt: iso(row.created_at),
    startedAt: row.started_at === null ? null : iso(row.started_at),
    endedAt: row.ended_at === null ? null : iso(row.ended_at),
    window: { from: row.window_from, to: row.window_to },
    files: { properties: file('properties'), packages: file('packages') },
    progress,
    rates,
    log: [...detail.log],
    errors: detail.errors,
    withoutRowsOf: row.without_rows_of,
    priceDecimals: detail.priceDecimals,
    codecs: row.codecs === null ? null : (JSON.parse(row.codecs) as string[]),
    counters: detail.counters,
    snapshot: detail.snapshot,
    result: detail.result,
    cancellable: !isOver(row),
  }
}

/** The live channel limits how often followers are notified. */
export function reportChange(imports: Imports, item: Item): void {
  touchTopic(imports.live, `import:${item.row.id}`)
  touchTopic(imports.live, 'imports')
}

export async function saveImport(
  imports: Imports,
  item: Item,
  row: Partial<Row>,
  detail: Partial<ImportDetail> = {},
): Promise<void> {
  item.row = { ...item.row, ...row }
  item.detail = { ...item.detail, ...detail }
  const { id: _id, ...columns } = item.row
  await imports.database
    .updateTable('imports')
    .set({ ...columns, detail: JSON.stringify(item.detail) })
    .where('id', '=', item.row.id)
    .execute()
  reportChange(imports, item)
}

/** Adds a line to the log of the import. */
export function addLogLine(imports: Imports, item: Item, line: string): void {
  const lines = [...item.detail.log, `${nowText(imports).slice(11, 19)} ${line.slice(0, LOG_LINE_CHARACTERS_MAX)}`]
  item.detail = { ...item.detail, log: lines.slice(-IMPORT_LIMITS.logLinesMax) }
}

/** Newest first. */
export function importViews(imports: Imports): ImportView[] {
  return ordered(imports).map((item) => importView(imports, item))
}

export function requireImport(imports: Imports, id: string): Item {
  const item = imports.items.get(id)
  if (item) return item
  throw problem('no-such-import', { detail: `There is no import ${id.slice(0, 64)}.` })
}

/** Running imports for the overview. */
export function runningImports(imports: Imports): Summary['running'] {
  return ordered(imports)
    .filter(({ row }) => !isOver(row))
    .map((item) => ({
      id: item.row.id,
      kind: 'import',
      title: `Import ${item.row.name}`,
      message: item.detail.message,
      href: `/imports/${item.row.id}`,
      percent: item.progress?.percent ?? null,
    }))
}

/** How many imports run, and the records per second of their builds. */
export function importValues(imports: Imports): Values {
  const running = ordered(imports).filter(({ row }) => !isOver(row))
  const rates = running.flatMap(({ progress }) => (progress ? [progress.recordsPerSecond] : []))
  return { import_running: running.length, import_records: rates.reduce((all, each) => all + each, 0) }
}

function iso(ms: number): string {
  return new Date(ms).toISOString()
}
