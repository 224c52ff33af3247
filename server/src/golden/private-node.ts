/**
 * A node that serves a stored snapshot to this control plane alone: a standalone `vacancy run` on a free port of the
 * loopback address, with low priority and a token of its own, in a folder that is removed afterwards. It ends with the
 * control plane, even when that is killed; a folder that remains then is removed at the next start.
 *
 *   folder/node-XXXXXX/   vacancy.yml, codecs.yml, auth.yml, data/seed.snapshot (a link to the stored file)
 */
import { randomBytes } from 'node:crypto'
import { copyFile, link, mkdir, mkdtemp, rm, statfs, writeFile } from 'node:fs/promises'
import { freemem } from 'node:os'
import { join } from 'node:path'
import { formatDay } from '@vacancy/shared'
import { codecFile } from '../imports/codecs.ts'
import { programEnd, startVacancy } from '../imports/process.ts'
import type { ShardLimits } from '../nodes/query.ts'

const HOST = '127.0.0.1'
const MEBIBYTE = 2 ** 20
/** The data in memory and what the process needs itself, by the bytes of the file: an estimate with a margin. */
const MEMORY = { ownBytes: 256 * MEBIBYTE, perFileByte: 2 } as const
/** Data of a node are at most this. */
const DATA_BYTES = { min: 128 * MEBIBYTE, max: 4 * 2 ** 30 } as const
/** The node extracts the file beside it. */
const DISK = { ownBytes: 64 * MEBIBYTE, perFileByte: 1.5 } as const
const LOG_FILE_BYTES = 4 * MEBIBYTE
const SERVING = /^serving: tcp (\S+):(\d+), http /m
const PRINTED_MAX = 65_536
const REASON_CHARS = 300

type PrivateSnapshot = {
  readonly path: string
  readonly bytes: number
  readonly shard: string
  readonly codecs: readonly string[]
}

export type PrivateNode = { readonly host: string; readonly port: number; readonly token: string }

/** Why it cannot be started or did not last, in words for people. */
export class PrivateNodeError extends Error {}

/**
 * Starts the node, does the work and ends the node.
 *
 * @param today the day of the shard, which the node takes for its own however old the snapshot is
 * @throws PrivateNodeError; the reason of the signal; what the work throws
 */
export async function withPrivateNode<T>(
  folder: string,
  snapshot: PrivateSnapshot,
  { limits, today, signal }: { readonly limits: ShardLimits; readonly today: number; readonly signal: AbortSignal },
  work: (node: PrivateNode) => Promise<T>,
): Promise<T> {
  await checkRoom(folder, snapshot)
  const own = await mkdtemp(join(folder, 'node-'))
  const token = randomBytes(32).toString('hex')
  const stopped = new AbortController()
  let end: Promise<unknown> = Promise.resolve()
  try {
    await writeFiles(own, snapshot, limits, token)
    signal.throwIfAborted()
    const child = startVacancy(argumentsOf(own, snapshot, today), 'VACANCY_RUN_')
    const ending = programEnd(child, AbortSignal.any([signal, stopped.signal]))
    end = ending.catch(() => undefined)
    const died = ending.then(({ code, signal: killedBy, stderr }): never => {
      signal.throwIfAborted()
      throw new PrivateNodeError(`its node ended with ${code ?? killedBy}: ${lastLine(stderr)}`)
    })
    // Observed by the races below; it also rejects after the work.
    died.catch(() => {})
    const serving = new Promise<PrivateNode>((resolve) => {
      let printed = ''
      child.stdout?.setEncoding('utf8').on('data', (text: string) => {
        if (printed.length < PRINTED_MAX) printed += text
        const [, host, port] = SERVING.exec(printed) ?? []
        if (host !== undefined) resolve({ host, port: Number(port), token })
      })
    })
    const node = await Promise.race([serving, died])
    return await Promise.race([work(node), died])
  } finally {
    stopped.abort()
    await end
    await rm(own, { recursive: true, force: true })
  }
}

/** Removes what a control plane that was killed left behind. */
export async function clearPrivateNodes(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true, mode: 0o700 })
}

async function checkRoom(folder: string, { bytes }: PrivateSnapshot): Promise<void> {
  const memory = MEMORY.ownBytes + MEMORY.perFileByte * bytes
  const free = process.availableMemory?.() ?? freemem()
  if (free < memory) {
    throw new PrivateNodeError(`this needs ${mebibytes(memory)} of memory, and ${mebibytes(free)} are free`)
  }
  const disk = DISK.ownBytes + DISK.perFileByte * bytes
  const { bavail, bsize } = await statfs(folder)
  if (bavail * bsize < disk) {
    throw new PrivateNodeError(`this needs ${mebibytes(disk)} of disk, and ${mebibytes(bavail * bsize)} are free`)
  }
}

function mebibytes(bytes: number): string {
  return `${Math.ceil(bytes / MEBIBYTE)} MiB`
}

async function writeFiles(
  own: string,
  { path, bytes, codecs }: PrivateSnapshot,
  limits: ShardLimits,
  token: string,
): Promise<void> {
  const data = join(own, 'data')
  await mkdir(data)
  // A link takes no room; not every file system has them.
  const seed = join(data, 'seed.snapshot')
  await link(path, seed)
    .catch(() => copyFile(path, seed))
    .catch((cause: Error) => {
      throw new PrivateNodeError(`its file cannot be read: ${cause.message}`, { cause })
    })
  await writeFile(join(own, 'codecs.yml'), codecFile(codecs))
  await writeFile(join(own, 'auth.yml'), `tokens:\n  - token: ${token}\n    role: client\n`, { mode: 0o600 })
  const config = {
    ...{ tcp_port: 0, api_port: 0, serving_threads: 1, cpu_watch: false, log_level: 'warn', data_dir: data },
    ...{ snapshot_interval_sec: 0, wal_file_bytes: LOG_FILE_BYTES, tcp_require_login: true, api_public_read: false },
    memory_max_bytes: Math.round(Math.min(DATA_BYTES.max, DATA_BYTES.min + MEMORY.perFileByte * bytes)),
    ...(limits.queryLimit !== null && { query_limit: limits.queryLimit }),
    ...(limits.datesMax !== null && { max_dates_in_query: limits.datesMax }),
  }
  const lines = Object.entries(config).map(([key, value]) => `${key}: ${JSON.stringify(value)}\n`)
  await writeFile(join(own, 'vacancy.yml'), lines.join(''))
}

function argumentsOf(own: string, { shard }: PrivateSnapshot, today: number): string[] {
  return [
    ...['run', '--config', join(own, 'vacancy.yml'), '--codecs', join(own, 'codecs.yml')],
    ...['--auth-file', join(own, 'auth.yml'), '--shard-id', shard],
    ...['--tcp-listen-addr', HOST, '--api-listen-addr', HOST, '--accept-date', formatDay(today)],
    ...['--drain-secs', '0', '--log-format', 'text'],
  ]
}

function lastLine(stderr: string): string {
  return stderr.trim().split('\n').at(-1)?.slice(0, REASON_CHARS) || 'it said nothing'
}
