/**
 * Uploads, imports and snapshots of the control plane (docs/design/control-plane.md#imports,
 * docs/design/control-plane.md#snapshots).
 */

import { z } from 'zod'
import { LIMITS } from '../domain.ts'
import { ACCESS_LIMITS } from './access.ts'
import { VIEW_ROLES } from './cluster-view.ts'
import { type ControlRoute, count, noBody, time } from './control.ts'
import { SNAPSHOT_ORIGINS } from './node.ts'
import { snapshotDifferencesBody } from './programs.ts'

export const IMPORT_LIMITS = {
  /** Of one file, as sent and as unpacked. */
  fileBytesMax: 64 * 2 ** 30,
  chunkBytes: 8 * 2 ** 20,
  /** Largest expansion factor of a gzip file. */
  unpackFactorMax: 250,
  /** Unfinished uploads, and finished ones that no import uses yet. */
  uploadsMax: 32,
  uploadKeptMs: 48 * 3_600_000,
  /** Unfinished imports. */
  importsOpenMax: 16,
  nameMax: 128,
  codecFileCharactersMax: 16_384,
  folderFilesMax: 500,
  errorsKept: 10_000,
  alikeMax: 200,
  logLinesMax: 200,
  ratesMax: 60,
  /** Time a node has to fetch a snapshot, retries included. */
  pullMs: 3_600_000,
} as const

export const FILE_KINDS = ['properties', 'packages'] as const
export type FileKind = (typeof FILE_KINDS)[number]

const digest = z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 hexadecimal digits')
const day = z.iso.date()
const id = z.string().max(64)
const idParams = z.object({ id })
const shardId = z.string().min(1).max(128)

const uploadRequest = z.object({
  /** The original file name. Only displayed, never used as a path. */
  name: z.string().min(1).max(1_024),
  bytes: z.int().min(1).max(IMPORT_LIMITS.fileBytesMax),
  kind: z.enum(FILE_KINDS),
  /** SHA-256 of size, first and last MiB: identifies a file that is chosen again. */
  fingerprint: digest,
})

const uploadView = z.object({
  id: z.string(),
  name: z.string(),
  kind: z.enum(FILE_KINDS),
  bytes: count,
  /** Offset of the next chunk. */
  offset: count,
  chunkBytes: count,
  fingerprint: z.string(),
  complete: z.boolean(),
  /** Digest of the whole file, computed after the last chunk. */
  sha256: z.string().nullable(),
  import: z.string().nullable(),
  by: z.string(),
  createdAt: time,
  touchedAt: time,
  /** The upload is dropped at this time unless another chunk arrives. */
  expiresAt: time,
})
export type UploadView = z.infer<typeof uploadView>

/** In order. `errors` only if there are errors. */
export const BUILD_PHASES = ['settings', 'properties', 'packages', 'tables', 'write', 'verify'] as const
export type BuildPhase = (typeof BUILD_PHASES)[number]

const IMPORT_STATES = [
  'uploading',
  'queued',
  'checking',
  'building',
  'verifying',
  'built',
  'failed',
  'cancelled',
] as const
export type ImportState = (typeof IMPORT_STATES)[number]
export const IMPORT_ENDS: readonly ImportState[] = ['built', 'failed', 'cancelled']

const importFile = z.object({
  upload: z.string(),
  name: z.string(),
  bytes: count,
  received: count,
  sha256: z.string().nullable(),
  /** Lines with data, counted by the reader; null before the count is known. */
  rows: count.nullable(),
  /** The file was sent as gzip and unpacked. */
  unpacked: z.boolean(),
})

/** Three independent counts: lines of the files, rows in the builder, and rows of the snapshot read back from disk. */
const importCounters = z.object({
  reader: z.object({ properties: count, packages: count }),
  builder: z.object({ properties: count, packages: count, outOfWindow: count }),
  readBack: z.object({ properties: count, packages: count }),
  agree: z.boolean(),
  /** Rows left out because an earlier import had rejected them; absent when none were. */
  rejected: z.object({ properties: count, packages: count }).optional(),
  /** Which two counts differ. */
  differs: z.array(z.string()),
})

const importView = z.object({
  id: z.string(),
  name: z.string(),
  shard: z.string(),
  state: z.enum(IMPORT_STATES),
  /** The state in a sentence. */
  message: z.string(),
  /** The action to take; '' when there is none. */
  hint: z.string(),
  by: z.string(),
  createdAt: time,
  startedAt: time.nullable(),
  endedAt: time.nullable(),
  window: z.object({ from: day, to: day }),
  files: z.object({ properties: importFile, packages: importFile }),
  progress: z
    .object({
      phase: z.enum([...BUILD_PHASES, 'errors']),
      /** Starts at 1. */
      number: count,
      of: count,
      /** Bytes or parts of this phase. */
      done: count,
      total: count,
      /** Of the whole import. Never decreases, and reaches 100 only after verification. */
      percent: z.number(),
      records: count,
      recordsPerSecond: count,
      /** Until the end of the whole import, by the pace so far; null before that can be told. */
      etaSeconds: z.number().nullable(),
      seconds: z.number(),
      /** Resident memory of the builder; null where it cannot be read. */
      memoryBytes: count.nullable(),
      /** Those that have begun, with their time so far. */
      phases: z.array(z.object({ phase: z.enum([...BUILD_PHASES, 'errors']), seconds: z.number() })),
    })
    .nullable(),
  /** Recent records per second, newest last. */
  rates: z.array(count),
  log: z.array(z.string()),
  errors: z
    .object({
      count,
      countByKind: z.record(z.string(), count),
      kept: count,
      /** Of the kept errors, by file. Only these have rows to download. */
      keptOf: z.object({ properties: count, packages: count }),
      /** Rows that a rebuild can leave out; null when it cannot, for the reason in `again`. */
      rows: count.nullable(),
      again: z.string(),
    })
    .nullable(),
  /** The import whose rejected rows are left out. */
  withoutRowsOf: z.string().nullable(),
  /** Decimals of the prices in packages.csv. */
  priceDecimals: count,
  /** The codec list uploaded with the files; null to use that of the shard or the registry. */
  codecs: z.array(z.string()).nullable(),
  counters: importCounters.nullable(),
  /** Content digest of the result. */
  snapshot: z.string().nullable(),
  result: z
    .object({
      seconds: z.number(),
      recordsPerSecond: count,
      threads: count,
      kernel: z.string(),
      notes: z.array(z.string()),
      command: z.string(),
    })
    .nullable(),
  cancellable: z.boolean(),
})
export type ImportView = z.infer<typeof importView>

const importsBody = z.object({ imports: z.array(importView), uploads: z.array(uploadView) })

/**
 * Data for `/imports/new`: the codec list to validate with, shards to choose from, free space, and past build speed.
 */
const importOptions = z.object({
  codecs: z.object({ names: z.array(z.string()), hash: z.string(), source: z.string() }).nullable(),
  codecsError: z.string(),
  shards: z.array(z.string()),
  freeBytes: count.nullable(),
  recordsPerSecond: count.nullable(),
  /** Files may be taken from an import folder of the control plane. */
  folder: z.boolean(),
  today: day,
  window: z.object({ from: day, to: day }),
})
const codecNames = z.array(z.string().max(256)).min(1).max(24)

/** A file of the import folder, by its relative path. `recent`: it changed less than a minute ago and may be unfinished. */
const folderFile = z.object({ path: z.string(), bytes: count, changedAt: time, recent: z.boolean() })
export type FolderFile = z.infer<typeof folderFile>

const importError = z.object({
  file: z.string(),
  /** Starts at 1; 0 for the file as a whole. */
  line: count,
  column: count,
  name: z.string(),
  value: z.string(),
  kind: z.string(),
  message: z.string(),
  /** The original line; null when it was not kept. */
  row: z.string().nullable(),
})
export type ImportError = z.infer<typeof importError>

/** Errors that differ only in their lines. */
const alikeErrors = importError.omit({ row: true, line: true }).extend({
  /** Of the first of them. */
  line: count,
  count,
})
export type AlikeErrors = z.infer<typeof alikeErrors>

export const REJECTED_FILES = ['rejected-properties.csv', 'rejected-packages.csv', 'errors.csv', 'errors.json'] as const

/** Packages of a segment, by day from the first day of the window. */
const segmentCoverage = z.object({
  name: z.string(),
  properties: count,
  /** Rooms left on all days; null when not counted. */
  rooms: count.nullable(),
  packages: z.array(count),
})
const coverageBody = z.object({
  window: z.object({ from: day, to: day }).nullable(),
  segments: z.array(segmentCoverage),
})
export type CoverageBody = z.infer<typeof coverageBody>

const snapshotView = z.object({
  /** Content digest. */
  id: z.string(),
  name: z.string(),
  /** `import`: built here; otherwise why a node wrote it. */
  origin: z.enum(['import', ...SNAPSHOT_ORIGINS]),
  shard: z.string(),
  /** False: only a node has it. */
  stored: z.boolean(),
  packages: count,
  properties: count,
  segments: count,
  roomTypes: count.nullable(),
  window: z.object({ from: day, to: day }).nullable(),
  codecHash: z.string(),
  /** False: the current list differs, so no shard can load it. Null: the current list is unknown. */
  codecsCurrent: z.boolean().nullable(),
  bytes: count,
  sha256: z.string().nullable(),
  createdAt: time,
  by: z.string(),
  import: z.string().nullable(),
  /** The counts agree, so it may be installed. */
  installable: z.boolean(),
  /** Shards that serve it now, from the reports of nodes and the operations. */
  servedBy: z.array(z.string()),
  /** Nodes whose newest own snapshot it is. */
  heldBy: z.array(z.object({ shard: z.string(), node: z.string() })),
})
export type SnapshotView = z.infer<typeof snapshotView>

const snapshotDetails = snapshotView.extend({
  codecs: z.array(z.string()),
  coverage: coverageBody.nullable(),
  roomsPerProperty: z.array(count),
  counters: importCounters.nullable(),
  sources: z.array(z.object({ name: z.string(), bytes: count, sha256: z.string(), rows: count })),
  installs: z.array(z.object({ operation: z.string(), shard: z.string(), at: time, state: z.string() })),
})
export type SnapshotDetails = z.infer<typeof snapshotDetails>

/** Whether a shard would recover its data after all of its nodes had stopped. */
const restorable = z.object({
  shard: z.string(),
  verdict: z.enum(['yes', 'no', 'unknown']),
  /** "Yes: 3 of 3 voters have a snapshot and the log behind it on disk, 2 needed". */
  message: z.string(),
  /** Of the files themselves: "2 of 3 voters hold 8f3a…"; '' while no node has reported one. */
  same: z.string(),
})
export type Restorable = z.infer<typeof restorable>

/** The nodes of a shard with their known snapshots. A node reports only its newest. */
const snapshotMatrix = z.object({
  shard: z.string(),
  voters: count,
  majority: count,
  snapshots: z.array(
    z.object({
      id: z.string(),
      name: z.string(),
      /** Its file is also stored here. */
      stored: z.boolean(),
      codecsCurrent: z.boolean().nullable(),
      createdAt: time.nullable(),
      /** Voters whose newest snapshot it is, by their last report. */
      voters: count,
      /** A majority of the voters has it. */
      majority: z.boolean(),
    }),
  ),
  nodes: z.array(
    z.object({
      node: z.string(),
      role: z.enum(VIEW_ROLES),
      voter: z.boolean().nullable(),
      /**
       * `current`: a recent report. `last`: the node does not respond; this is its last report. `none`: no report yet.
       */
      report: z.enum(['current', 'last', 'none']),
      at: time.nullable(),
      /** Why it does not respond; '' when it does. */
      error: z.string(),
      /** Id of its newest snapshot; null when it has none or reported none. */
      holds: z.string().nullable(),
      /** Last entry of its log, which continues from the snapshot. */
      lastIndex: count.nullable(),
    }),
  ),
})
export type SnapshotMatrix = z.infer<typeof snapshotMatrix>

const side = z.object({
  title: z.string(),
  kind: z.enum(['snapshot', 'shard']),
  id: z.string(),
  /** The node queried; null for a snapshot. */
  node: z.string().nullable(),
  at: time,
  properties: count,
  packages: count,
  window: z.object({ from: day, to: day }).nullable(),
  codecHash: z.string().nullable(),
  /** In their order; null when the node did not report them. */
  codecs: z.array(z.string()).nullable(),
})
const comparison = z.object({
  a: side,
  b: side,
  equal: z.boolean(),
  codecsEqual: z.boolean().nullable(),
  /** The days of both sides. */
  window: z.object({ from: day, to: day }).nullable(),
  segments: z.array(
    z.object({
      name: z.string(),
      in: z.enum(['a', 'b', 'both']),
      properties: z.object({ a: count, b: count }),
      packages: z.object({ a: count, b: count }),
      /** b − a, by day from window.from. */
      days: z.array(z.int()),
    }),
  ),
})
export type Comparison = z.infer<typeof comparison>

export const IMPORT_ROUTES = {
  'POST /api/v1/uploads': {
    access: 'operator',
    summary: 'Starts an upload; chunks follow with PATCH. 507 when the disk has too little space.',
    body: uploadRequest,
    status: 201,
    response: uploadView,
  },
  'GET /api/v1/import-folder': {
    access: 'operator',
    summary: 'Files that can be imported without an upload, when the control plane has an import folder.',
    response: z.object({
      files: z.array(folderFile),
      /** More files exist than are listed. */
      more: z.boolean(),
    }),
  },
  'POST /api/v1/import-folder': {
    access: 'operator',
    summary: 'Registers a file of the import folder as a complete upload. The file is read in place.',
    body: z.object({ path: z.string().min(1).max(1_024), kind: z.enum(FILE_KINDS) }),
    status: 201,
    response: uploadView,
  },
  'POST /api/v1/import-codecs': {
    access: 'operator',
    summary: 'Parses a codec file for an import. Stores nothing.',
    body: z.object({ text: z.string().max(IMPORT_LIMITS.codecFileCharactersMax) }),
    response: z.object({ names: z.array(z.string()), hash: z.string() }),
  },
  'GET /api/v1/uploads': {
    access: 'operator',
    summary: 'Uploads that are in progress or wait for an import.',
    response: z.object({ uploads: z.array(uploadView) }),
  },
  'GET /api/v1/uploads/{id}': {
    access: 'operator',
    summary: 'One upload; `upload-offset` of the response (also to HEAD) is the offset of the next chunk.',
    params: idParams,
    response: uploadView,
  },
  'PATCH /api/v1/uploads/{id}': {
    access: 'operator',
    summary:
      'One chunk at `upload-offset` with `x-chunk-sha256`. 409 `wrong-offset` has the expected one in `offset`. 460: checksum mismatch, send the chunk again.',
    params: idParams,
    takes: 'bytes',
    response: uploadView,
  },
  'DELETE /api/v1/uploads/{id}': {
    access: 'operator',
    summary: 'Deletes an upload.',
    params: idParams,
    status: 204,
    response: noBody,
  },
  'GET /api/v1/import-options': { access: 'viewer', summary: 'The options for a new import.', response: importOptions },
  'POST /api/v1/imports': {
    access: 'operator',
    summary: 'Builds a snapshot from two uploads. Starts when both are complete.',
    body: z.object({
      name: z.string().trim().min(1).max(IMPORT_LIMITS.nameMax),
      shard: shardId,
      properties: id,
      packages: id,
      /** For nodes that read a codec file of their own. Refused if a registry has a different list. */
      codecs: codecNames.optional(),
      /** Decimals of the prices in packages.csv: with 2, 12.50 is 1250. With 0 a price with a point is refused. */
      priceDecimals: z.int().min(0).max(LIMITS.priceDecimalsMax).default(0),
      /** Nights to keep; by default a year from the present day of the shard. */
      from: day.optional(),
      to: day.optional(),
    }),
    status: 201,
    response: importView,
  },
  'GET /api/v1/imports': {
    access: 'viewer',
    summary: 'Imports, newest first, and uploads without an import.',
    response: importsBody,
  },
  'GET /api/v1/imports/{id}': { access: 'viewer', summary: 'One import.', params: idParams, response: importView },
  'POST /api/v1/imports/{id}/cancel': {
    access: 'operator',
    summary: 'Cancels a running import and removes its output.',
    params: idParams,
    response: importView,
  },
  'POST /api/v1/imports/{id}/again': {
    access: 'operator',
    summary: 'Rebuilds from the same files without the rejected rows. 409 when not every rejected row is known.',
    params: idParams,
    body: z.object({ reason: z.string().trim().min(ACCESS_LIMITS.reasonMin).max(ACCESS_LIMITS.reasonMax) }),
    status: 201,
    response: importView,
  },
  'GET /api/v1/imports/{id}/errors': {
    access: 'viewer',
    summary: 'Errors in the files, in file order.',
    params: idParams,
    query: z.object({
      kind: z.string().max(64).optional(),
      text: z.string().max(128).optional(),
      cursor: z.coerce.number().int().min(0).max(IMPORT_LIMITS.errorsKept).default(0),
      limit: z.coerce.number().int().min(1).max(500).default(200),
    }),
    response: z.object({
      errors: z.array(importError),
      next: count.nullable(),
      /** Kept errors that match. */
      total: count,
      /** Of all that match, the most frequent first. */
      alike: z.array(alikeErrors),
    }),
  },
  'GET /api/v1/imports/{id}/files/{file}': {
    access: 'viewer',
    summary: 'Rejected rows exactly as in their files, or the errors as CSV or JSON.',
    params: z.object({ id, file: z.enum(REJECTED_FILES) }),
    gives: 'bytes',
    response: z.string(),
  },
  'GET /api/v1/snapshots': {
    access: 'viewer',
    summary: 'Snapshots that were built here or found on nodes, newest first.',
    response: z.object({ snapshots: z.array(snapshotView) }),
  },
  'GET /api/v1/snapshots/matrix': {
    access: 'viewer',
    summary: 'Which node holds which snapshot, and whether each shard would recover after a full stop.',
    query: z.object({
      /** The shard whose nodes are listed. May be omitted when there is only one. */
      shard: shardId.optional(),
    }),
    response: z.object({ shards: z.array(restorable), matrix: snapshotMatrix.nullable() }),
  },
  'GET /api/v1/snapshots/compare': {
    access: 'viewer',
    summary: 'Differences by segment and day between two snapshots, or a snapshot and a running shard (`shard:s1`).',
    query: z.object({ a: z.string().max(160), b: z.string().max(160) }),
    response: comparison,
  },
  'GET /api/v1/snapshots/compare/properties': {
    access: 'viewer',
    summary:
      'Properties that were removed, added and changed from one stored snapshot to another; all counted, the first listed.',
    query: z.object({ a: digest, b: digest }),
    response: snapshotDifferencesBody,
  },
  'GET /api/v1/snapshots/{id}': {
    access: 'viewer',
    summary: 'One snapshot, with its coverage.',
    params: z.object({ id: digest }),
    response: snapshotDetails,
  },
  'GET /api/v1/snapshots/{id}/download': {
    access: 'operator',
    summary: 'The snapshot file; takes `range`.',
    params: z.object({ id: digest }),
    gives: 'bytes',
    response: z.string(),
  },
  'GET /api/v1/snapshots/{id}/archive': {
    access: 'operator',
    summary: 'A tar with the snapshot file, a manifest of its content and sources, and SHA256SUMS.',
    params: z.object({ id: digest }),
    gives: 'bytes',
    response: z.string(),
  },
  'POST /api/v1/snapshots/{id}/delete': {
    access: 'admin',
    summary: 'Deletes the stored file; refused while a shard serves it or an operation needs it.',
    params: z.object({ id: digest }),
    body: z.object({
      reason: z.string().trim().max(ACCESS_LIMITS.reasonMax).default(''),
      /** The digest, repeated. */
      confirm: z.string().max(128),
    }),
    status: 204,
    response: noBody,
  },
  'GET /api/v1/pull/{id}': {
    access: 'open',
    summary: 'For nodes: the snapshot file, authorized by a short-lived token issued for it; takes `range`.',
    params: z.object({ id: digest }),
    gives: 'bytes',
    response: z.string(),
  },
} as const satisfies { readonly [name: string]: ControlRoute }
