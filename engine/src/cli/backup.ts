/**
 * `vacancy backup`: one complete, verified file from a running node or shard. The node writes a snapshot during writes.
 * The command fetches the chunks one by one and compares each with its digest.
 */

import { mkdirSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { EXIT, VacancyError } from '@vacancy/shared'
import { type ClusterInfo, clusterInfoBody, type NodeStatus, statusBody } from '@vacancy/shared/contract'
import { defineCommand, whole } from '@vacancy/shared/node'
import {
  type Access,
  fetchBytes,
  fetchDocument,
  post,
  readAuthorities,
  readToken,
  schemeOf,
  usage,
} from '@vacancy/shared/node-api'
import { isDiskFull, realDisk, unlinkFile } from '../env.ts'
import { BACKUP_PATHS } from '../http/backup.ts'
import {
  CHUNK_BYTES_MAX,
  chunkBytesOf,
  decodeManifest,
  digestText,
  encodeManifest,
  equalBytes,
  hex,
  MANIFEST_BYTES_MAX,
  type Manifest,
  sha256,
  snapshotId,
} from '../snapshot/format.ts'
import { placeChunks, readSeedFile, scrubChunk } from '../snapshot/load.ts'
import { beginSeed } from '../snapshot/seed.ts'
import { SEED_FILE } from '../snapshot/snapshot.ts'

const LOOK_MS = 250
const WAIT_SECONDS = 3_600
/** Interval of progress messages. */
const PROGRESS_MS = 2_000
/** Two newer snapshots can replace the one being fetched. Then the newest is fetched instead. */
const TRIES = 3

export const backupCommand = defineCommand({
  name: 'vacancy backup',
  component: 'BACKUP',
  summary: 'Creates one snapshot file of a running node or shard, from a follower if there is one.',
  flags: {
    node: {
      type: 'list',
      value: 'HOST:PORT,…',
      default: ['127.0.0.1:8080'],
      summary: 'HTTP address of the node, or of any node of the shard; of several, the first that responds is used.',
    },
    'output-path': { type: 'text', value: 'DIR', default: '.', summary: 'Folder that seed.snapshot is written into.' },
    overwrite: { type: 'boolean', summary: 'Replaces an existing seed.snapshot.' },
    'token-file': { type: 'text', value: 'FILE', summary: 'File whose first line is an admin token of the auth file.' },
    'tls-ca': { type: 'text', value: 'FILE', summary: 'CA certificates for the nodes, PEM: TLS is used.' },
    'wait-secs': {
      ...whole(WAIT_SECONDS, 1, 86_400, 'seconds'),
      summary: 'How long to wait for the node to write its snapshot.',
    },
    json: { type: 'boolean', summary: 'One JSON document instead of text.' },
  },
  run: async ({ flags }) => {
    const { outputPath, overwrite, waitSecs, json } = flags
    const path = join(outputPath, SEED_FILE)
    if (realDisk.stat(path) && !overwrite) {
      throw usage(`${path} exists. Choose another folder, or replace it with --overwrite.`)
    }
    const access = { nodes: flags.node, token: readToken(flags.tokenFile), ca: readAuthorities(flags.tlsCa) }
    makeFolder(outputPath)
    const source = await chooseSource(access)
    report(`node ${source.name} at ${source.host}`)
    await snapshotNow(source, waitSecs * 1_000)
    const manifest = await fetchSnapshot(source, path)
    const document = {
      file: path,
      node: source.name,
      shardId: manifest.shardId,
      snapshotId: snapshotId(manifest),
      index: manifest.index,
      digest: digestText(manifest.digest),
      properties: manifest.properties,
      packages: manifest.packages,
      bytes: realDisk.stat(path)?.bytes ?? 0,
    }
    const { shardId, packages, properties, bytes, index } = document
    process.stdout.write(
      json
        ? `${JSON.stringify(document)}\n`
        : `${path}: snapshot ${document.snapshotId} of shard ${shardId} at entry ${index}, ` +
            `${packages} packages of ${properties} properties, ${bytes} bytes, verified\n`,
    )
    return EXIT.ok
  },
})

const report = (line: string) => void process.stderr.write(`vacancy backup: ${line}\n`)

function makeFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true })
  } catch (error) {
    throw usage(`--output-path: ${(error as Error).message}`)
  }
}

type Source = { readonly access: Access; readonly host: string; readonly name: string }

const urlOf = ({ access, host }: Source, path: string) => `${schemeOf(access)}//${host}${path}`

/** A healthy follower, to keep the load off the leader; otherwise the named node. */
async function chooseSource(access: Access): Promise<Source> {
  const faults: string[] = []
  for (const host of access.nodes) {
    if (!/^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):\d{1,5}$/.test(host)) throw usage(`--node: ${host} is not HOST:PORT`)
    const named: Source = { access, host, name: host }
    try {
      const { cluster } = await statusOf(named)
      return cluster ? await chooseFollower(named, cluster.info) : named
    } catch (error) {
      if (!(error instanceof VacancyError) || !isUnreachable(error)) throw error
      faults.push(error.message)
    }
  }
  throw new VacancyError('failure', { reason: faults.join('\n') })
}

const isUnreachable = ({ code }: VacancyError) => code === 'connection_failed' || code === 'connection_lost'

async function chooseFollower(named: Source, info: ClusterInfo): Promise<Source> {
  const own: Source = { ...named, name: info.node_id }
  if (info.leader_id !== info.node_id && info.leader_id !== '') return own
  const port = named.host.slice(named.host.lastIndexOf(':') + 1)
  for (const { id, role, health, host } of info.nodes) {
    if (role !== 'follower' || health !== 'active' || host === '' || id === info.node_id) continue
    // Peers have the API port of this node unless the resolver names another. Unreachable ones are skipped.
    const follower: Source = { ...named, name: id, host: host.includes(':') ? `[${host}]:${port}` : `${host}:${port}` }
    try {
      const about = await fetchDocument(follower.access, urlOf(follower, '/cluster/info'), clusterInfoBody)
      if (about.node_id === id && about.cluster_id === info.cluster_id) return follower
    } catch (error) {
      if (!(error instanceof VacancyError)) throw error
      report(`${id} skipped: ${error.message}`)
    }
  }
  return own
}

function statusOf(source: Source): Promise<NodeStatus> {
  return fetchDocument(source.access, urlOf(source, '/status'), statusBody)
}

/** Has the node write a snapshot of its current applied state, and waits for it. */
async function snapshotNow(source: Source, waitMs: number): Promise<void> {
  const { replica } = await statusOf(source)
  if (!replica) throw new VacancyError('failure', { reason: `${source.name} has not loaded its data: see its /ready.` })
  const wanted = replica.applied_index
  const untilMs = performance.now() + waitMs
  let isRequested = false
  for (;;) {
    const { snapshot, snapshot_running: isRunning, disk } = await statusOf(source)
    if (snapshot && snapshot.last_index >= wanted) return
    if (disk?.full)
      throw new VacancyError('failure', { reason: `The disk of ${source.name} is full: no snapshot can be written.` })
    if (!isRunning && !isRequested) {
      await post(source.access, urlOf(source, '/save-snapshot'), [202, 409])
      report(`writing a snapshot of entry ${wanted} or later`)
    }
    // A snapshot that was already running may be older. Another one is requested after it.
    isRequested = !isRequested && !isRunning
    if (performance.now() >= untilMs) {
      const reason = `${source.name} wrote no snapshot of entry ${wanted} within ${waitMs / 1_000} s. See its log, or wait longer with --wait-secs.`
      throw new VacancyError('failure', { reason })
    }
    await sleep(LOOK_MS)
  }
}

/** Fetches and verifies. The final name only ever holds a complete file. */
async function fetchSnapshot(source: Source, path: string): Promise<Manifest> {
  for (let tries = 1; ; tries++) {
    const bytes = await fetchBytes(source.access, urlOf(source, BACKUP_PATHS.manifest), MANIFEST_BYTES_MAX)
    if (!bytes)
      throw new VacancyError('failure', { reason: `${source.name} has no snapshot, or runs an older version.` })
    const manifest = decodeManifest(bytes, `${source.name}: manifest`)
    expectRoom(path, chunkBytesOf(manifest) + bytes.length)
    try {
      if (await fetchChunks(source, manifest, path)) return verified(path, manifest)
    } catch (error) {
      if (!isDiskFull(error)) throw error
      throw new VacancyError('failure', { reason: `The disk of ${path} is full. No file was left there.` })
    }
    if (tries === TRIES) {
      const reason = `${source.name} replaced its snapshots ${TRIES} times while they were fetched: raise snapshot_interval_sec.`
      throw new VacancyError('failure', { reason })
    }
    report('a newer snapshot replaced this one, fetching the newer one')
  }
}

function expectRoom(path: string, bytes: number): void {
  const { bavail, bsize } = statfsSync(join(path, '..'))
  if (bavail * bsize >= bytes) return
  const reason = `The disk of ${path} has ${bavail * bsize} bytes free, the backup needs ${bytes}.`
  throw new VacancyError('failure', { reason })
}

/** @returns false when the node no longer has a chunk */
async function fetchChunks(source: Source, manifest: Manifest, path: string): Promise<boolean> {
  // A new shard starts from the file, so it names no members.
  const encoded = encodeManifest({ ...manifest, membership: undefined })
  const total = chunkBytesOf(manifest)
  const seed = beginSeed(realDisk, path, encoded.length)
  let done = 0
  let printedMs = performance.now()
  try {
    for (const { parts } of manifest.blocks) {
      for (const { digest, bytes: length } of parts) {
        const url = urlOf(source, `${BACKUP_PATHS.chunk}?digest=${hex(digest)}`)
        const bytes = await fetchBytes(source.access, url, CHUNK_BYTES_MAX)
        if (!bytes) {
          seed.abandon()
          return false
        }
        if (bytes.length !== length || !equalBytes(sha256(bytes), digest)) {
          const reason = `chunk ${hex(digest).slice(0, 12)} of ${source.name} is damaged: run vacancy inspect on its data_dir.`
          throw new VacancyError('failure', { reason })
        }
        seed.put(bytes)
        done += length
        if (performance.now() - printedMs < PROGRESS_MS) continue
        printedMs = performance.now()
        report(`${done} of ${total} bytes`)
      }
    }
    seed.finish(encoded)
    return true
  } catch (error) {
    seed.abandon()
    throw error
  }
}

/** Reads back every byte of the file. */
function verified(path: string, manifest: Manifest): Manifest {
  try {
    const head = readSeedFile(realDisk, path)
    for (const chunk of placeChunks(head)) scrubChunk(realDisk, head, chunk)
    if (equalBytes(head.manifest.contentDigest, manifest.contentDigest)) return head.manifest
    throw new VacancyError('failure', { reason: `${path} does not read back as the fetched snapshot.` })
  } catch (error) {
    unlinkFile(realDisk, path)
    throw error
  }
}
