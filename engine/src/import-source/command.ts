/**
 * The command `import-source`: rows of a database or of other files become properties.csv and packages.csv in a folder of
 * the output, and build-snapshot reads these with all of its checks. Errors name the rows and columns of the source.
 */

import { existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type CodecList, EXIT, groupDigits, IMPORT_COLUMNS, type ImportFileKind } from '@vacancy/shared'
import { type Command, count, defineCommand, type FlagValues, named, tableLines } from '@vacancy/shared/node'
import { createEnv, type Env } from '../env.ts'
import {
  BUILD_FLAGS,
  buildFrom,
  checkShardId,
  createDisplay,
  type Display,
  endWith,
  errorLines,
  holdOutput,
  readCodecs,
  SHARD_FLAG,
  silent,
  threadsOf,
  usage,
  windowOf,
} from '../import/command.ts'
import { checkWindow, type ImportOutcome, SEED_FILE } from '../import/import.ts'
import type { Finding } from '../import/row-errors.ts'
import { openDuckDb } from './duckdb.ts'
import { checkFirstRows } from './first-rows.ts'
import { type Mapping, readMapping, type Source, type TableMapping } from './mapping.ts'
import { openPostgres } from './postgres.ts'
import { renamedFor, selectOf } from './select.ts'
import type { OpenSource, Written } from './source.ts'

/** In the output folder, while the command runs. */
const WORK_FOLDER = 'import-source.tmp'
const PROGRESS_MS = 250
/** Of `--dry-run`: rows that are read and checked of each table, and shown. */
const ROWS_CHECKED = 1000
const ROWS_SHOWN = 5
const CELL_SHOWN = 40

const FLAGS = {
  ...SHARD_FLAG,
  'output-path': {
    ...named('DIR'),
    required: true,
    summary: 'Folder for seed.snapshot, created if absent. Also holds the rows as CSV files until the command ends.',
  },
  codecs: { ...named('FILE'), summary: 'Codec file. Default: codecs.yml beside MAPPING.' },
  'dry-run': {
    type: 'boolean',
    summary: `Shows the first rows as they would be imported and what is wrong in the first ${ROWS_CHECKED} of each table. Builds nothing.`,
  },
  ...BUILD_FLAGS,
} as const

export const importSourceCommand: Command = defineCommand({
  name: 'vacancy import-source',
  component: 'import-source',
  summary:
    'Builds seed.snapshot from PostgreSQL, MySQL, DuckDB, Parquet or CSV files of another form, as a mapping file says.',
  flags: FLAGS,
  operands: {
    name: 'MAPPING',
    min: 1,
    max: 1,
    summary: 'JSON file that maps tables or queries to the columns of the import.',
  },
  run: ({ flags, operands: [mapping = ''] }) => importSource(mapping, flags, createEnv(silent)),
})

type ImportFlags = FlagValues<typeof FLAGS>

async function importSource(file: string, flags: ImportFlags, env: Env): Promise<number> {
  checkShardId(flags.shardId)
  const mapping = readMapping(file)
  const codecs = readCodecs(flags.codecs ?? join(dirname(file), 'codecs.yml'))
  const { outputPath } = flags
  const seed = join(outputPath, SEED_FILE)
  // Found before the rows are read, which may take long.
  checkWindow(windowOf(flags, env.clock))
  if (!flags.overwrite && !flags.dryRun && flags.maxShardPackages === 0 && existsSync(seed))
    throw usage(`${seed} already exists. Replace it with --overwrite`)
  const work = join(outputPath, WORK_FOLDER)
  const release = await holdOutput(outputPath, work)
  const show = createDisplay(flags.progress, env.clock)
  try {
    return await run({ mapping, codecs, work, flags, env, show })
  } finally {
    show.clear()
    release()
  }
}

type Run = {
  readonly mapping: Mapping
  readonly codecs: CodecList
  /** Folder of the CSV files. */
  readonly work: string
  readonly flags: ImportFlags
  readonly env: Env
  readonly show: Display
}

async function run({ mapping, codecs, work, flags, env, show }: Run): Promise<number> {
  const startMs = env.clock.monotonicMs()
  const tables = [mapping.properties, mapping.packages]
  const options = { folder: mapping.folder, workFolder: work, threads: threadsOf(flags) }
  const written = await readTables(tables, options, flags.dryRun ? ROWS_CHECKED : undefined, (kind) => {
    const path = join(work, `${kind}.csv`)
    return { path, ends: followFile(path, env, startMs, show) }
  })
  show.clear()
  const rejected = written.flatMap((each) => each.rejected.first)
  if (rejected.length > 0) {
    const total = written.reduce((sum, each) => sum + each.rejected.count, 0)
    return endWith(rejectedOutcome(rejected, total), flags, show)
  }
  const rename = renamedFor(tables)
  if (flags.dryRun) return dryRun({ tables, work, codecs, priceDecimals: flags.priceDecimals, rename })
  const seconds = (env.clock.monotonicMs() - startMs) / 1000
  const [properties, packages] = written.map(({ rows }) => rows)
  const notes = [
    `read ${count(properties ?? 0, 'property', 'properties')} and ${count(packages ?? 0, 'package')} from the source in ${seconds.toFixed(2)} s`,
  ]
  return await buildFrom({ inputPath: work, outputPath: flags.outputPath, codecs, rename, notes }, flags, env, show)
}

/** Reads one table after the other; a source that both have is opened once. */
async function readTables(
  tables: readonly TableMapping[],
  options: Parameters<typeof openDuckDb>[1],
  rowsMax: number | undefined,
  begin: (kind: ImportFileKind) => { readonly path: string; readonly ends: () => void },
): Promise<Written[]> {
  const sources = new Map<Source, OpenSource>()
  try {
    const selects: string[] = []
    // All mistakes in the mapping are found before the first row is read.
    for (const table of tables) {
      const source = sources.get(table.source) ?? (await openSource(table.source, options))
      sources.set(table.source, source)
      selects.push(selectOf(table, await source.describe(table)))
    }
    const written: Written[] = []
    for (const [at, table] of tables.entries()) {
      const { path, ends } = begin(table.kind)
      try {
        written.push(await (sources.get(table.source) as OpenSource).write(table, selects[at] as string, path, rowsMax))
      } finally {
        ends()
      }
    }
    return written
  } finally {
    for (const source of sources.values()) await source.close()
  }
}

async function openSource(source: Source, options: Parameters<typeof openDuckDb>[1]): Promise<OpenSource> {
  return source.kind === 'postgres' ? await openPostgres(source) : await openDuckDb(source, options)
}

/** Reports the growth of a file, which others write. @returns ends it */
function followFile(path: string, env: Env, startMs: number, show: Display): () => void {
  const { progress } = show
  if (!progress) return () => {}
  const timer = setInterval(() => {
    const done = statSync(path, { throwIfNoEntry: false })?.size ?? 0
    const seconds = Math.round(env.clock.monotonicMs() - startMs) / 1000
    progress({ phase: 'source', file: path.endsWith('properties.csv') ? 'properties' : 'packages', done, seconds })
  }, PROGRESS_MS)
  return () => clearInterval(timer)
}

function rejectedOutcome(rejected: Written['rejected']['first'], total: number): ImportOutcome {
  const first = rejected.map(({ file, line, reason, text }) => ({
    ...{ file, line, column: 0, name: '', value: text.slice(0, 80), kind: 'columns' },
    message: `is no row: ${reason}`,
  }))
  const groups = first.slice(0, 1).map((finding) => ({ count: total, first: finding }))
  return { ok: false, errors: { count: total, countByKind: { columns: total }, first, groups } }
}

function dryRun({
  tables,
  work,
  codecs,
  priceDecimals,
  rename,
}: {
  readonly tables: readonly TableMapping[]
  readonly work: string
  readonly codecs: CodecList
  readonly priceDecimals: number
  readonly rename: (finding: Finding) => Finding
}): number {
  let faults = 0
  for (const { kind, label } of tables) {
    const path = join(work, `${kind}.csv`)
    const { cells, findings } = checkFirstRows(kind, path, ROWS_SHOWN, { codecs, priceDecimals })
    const rows = cells.map((row) =>
      row.map((cell) => (cell.length > CELL_SHOWN ? `${cell.slice(0, CELL_SHOWN)}…` : cell)),
    )
    const table = tableLines({ columns: IMPORT_COLUMNS[kind], rows, counted: '' })
    process.stdout.write(`${kind}.csv from ${label}\n${table.map((line) => `  ${line}\n`).join('')}`)
    if (findings.length === 0) continue
    faults += findings.length
    process.stderr.write(
      `${errorLines(errorsOf(findings.map(rename)))
        .slice(0, -1)
        .join('\n')}\n`,
    )
  }
  const checked = `the first ${groupDigits(ROWS_CHECKED)} rows of each table`
  process.stdout.write(`${count(faults, 'error')} in ${checked}; nothing was written\n`)
  return faults === 0 ? EXIT.ok : EXIT.conflict
}

function errorsOf(findings: readonly Finding[]) {
  const groups = new Map<string, { count: number; readonly first: Finding }>()
  for (const finding of findings) {
    const key = `${finding.kind} ${finding.column}`
    const group = groups.get(key)
    if (group) group.count++
    else groups.set(key, { count: 1, first: finding })
  }
  return { count: findings.length, countByKind: {}, first: findings.slice(0, ROWS_SHOWN), groups: [...groups.values()] }
}
