/** Snapshot downloads: the file or a range of it, an archive, and downloads of nodes with a token. */
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { problem } from '@vacancy/shared/api/errors'
import type { RouteRequest } from '@vacancy/shared/api/route'
import type { SnapshotFile } from '@vacancy/shared/contract'
import { tarBytes, tarOf } from '../http/tar.ts'
import { hashOf, type Row, requireSnapshot, type Snapshots, snapshotPath } from './snapshot-store.ts'

/** The file, or the requested range. */
export async function sendFile(
  snapshots: Snapshots,
  row: Row,
  { headers, reply }: Pick<RouteRequest<'GET /api/v1/pull/{id}'>, 'headers' | 'reply'>,
): Promise<Readable> {
  await checkFile(snapshots, row)
  reply.header('accept-ranges', 'bytes')
  reply.header('content-disposition', `attachment; filename="${row.id}.snapshot"`)
  const range = /^bytes=(\d{1,15})-(\d{1,15})?$/.exec(typeof headers['range'] === 'string' ? headers['range'] : '')
  const start = Number(range?.[1] ?? 0)
  const end = Math.min(Number(range?.[2] ?? row.bytes - 1), row.bytes - 1)
  if (range && start > end) {
    reply.header('content-range', `bytes */${row.bytes}`)
    throw problem('no-such-range', { detail: `The file has ${row.bytes} bytes.` })
  }
  reply.header('content-length', String(end - start + 1))
  if (range) {
    reply.status(206)
    reply.header('content-range', `bytes ${start}-${end}/${row.bytes}`)
  }
  return createReadStream(snapshotPath(snapshots, row.id), { start, end, highWaterMark: 1 << 20 })
}

/** A tar archive: the file, a manifest with its content and sources, and checksums of both. */
export async function sendArchive(
  snapshots: Snapshots,
  { params, reply }: RouteRequest<'GET /api/v1/snapshots/{id}/archive'>,
): Promise<Readable> {
  const row = await requireSnapshot(snapshots, params.id)
  await checkFile(snapshots, row)
  const document = JSON.parse(row.document) as SnapshotFile
  const { segments: _segments, path: _path, ...facts } = document
  const file = `${row.id}.snapshot`
  const createdAt = new Date(row.created_at).toISOString()
  const manifest = Buffer.from(
    `${JSON.stringify(
      {
        format: 'vacancy-snapshot-archive',
        version: 1,
        name: row.name,
        createdAt,
        by: row.by_name,
        file: { name: file, bytes: row.bytes, sha256: row.sha256 },
        snapshot: { ...facts, segments: document.segments.map(({ name, properties }) => ({ name, properties })) },
        counters: JSON.parse(row.counters) as unknown,
        sources: JSON.parse(row.sources) as unknown,
      },
      undefined,
      2,
    )}\n`,
  )
  const sums = Buffer.from(`${row.sha256}  ${file}\n${hashOf(manifest)}  manifest.json\n`)
  const entries = [
    { name: 'manifest.json', bytes: manifest.length, content: manifest },
    { name: 'SHA256SUMS', bytes: sums.length, content: sums },
    {
      name: file,
      bytes: row.bytes,
      content: () => createReadStream(snapshotPath(snapshots, row.id), { highWaterMark: 1 << 20 }),
    },
  ]
  reply.header('content-type', 'application/x-tar')
  reply.header('content-disposition', `attachment; filename="vacancy-${row.id.slice(0, 12)}.tar"`)
  reply.header('content-length', String(tarBytes(entries)))
  return tarOf(entries, Math.floor(row.created_at / 1000))
}

/** @throws ProblemError 410 when the file is missing or has another size */
export async function checkFile(snapshots: Snapshots, row: Row): Promise<void> {
  const found = await stat(snapshotPath(snapshots, row.id)).catch((error: NodeJS.ErrnoException) => {
    // Any other error is internal and is logged.
    if (error.code !== 'ENOENT') throw error
    return undefined
  })
  if (found?.size === row.bytes) return
  throw problem('snapshot-lost')
}

export async function pullSnapshot(
  snapshots: Snapshots,
  request: RouteRequest<'GET /api/v1/pull/{id}'>,
): Promise<Readable> {
  const given = /^Bearer ([A-Za-z0-9_-]{43})$/.exec(String(request.headers['authorization'] ?? ''))?.[1]
  const token =
    given === undefined
      ? undefined
      : await snapshots.database
          .selectFrom('pull_tokens')
          .selectAll()
          .where('hash', '=', hashOf(given))
          .where('snapshot', '=', request.params.id)
          .executeTakeFirst()
  if (!token || token.expires_at < snapshots.clock.wallMs()) {
    throw problem('invalid-token', {
      detail: 'This needs the token that was issued for this snapshot and has not expired.',
      hint: 'Nodes get one with each install. People download snapshots in the console.',
    })
  }
  return await sendFile(snapshots, await requireSnapshot(snapshots, request.params.id), request)
}
