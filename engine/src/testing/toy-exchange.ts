/**
 * Snapshots of the toy machine on a simulated disk, and the disk's part of their way between nodes: the counterpart of
 * snapshot/exchange.ts for simulated runs, whose chunks are a few bytes.
 *
 *   <data>/snapshots/toy-<index>-<term>   one file a snapshot: manifest length u32 · manifest · state
 *   <data>/incoming/<digest>.chk          received and verified
 *
 * A manifest is JSON and the 32 bytes of its digest, as the receiver expects of any manifest.
 */

import { createHash } from 'node:crypto'
import { type Disk, isDiskFull, readSmallFile, replaceFile } from '../env.ts'
import type { Configuration } from '../raft/messages.ts'
import type { ChunkName, Exchange, ExchangeAnswer, ExchangeAsk, Newest } from '../snapshot/exchange.ts'

export type ToySnapshot = {
  readonly index: number
  readonly term: number
  readonly configuration: Configuration
  readonly state: Uint8Array
}

type ToyManifest = {
  readonly index: number
  readonly term: number
  readonly configuration: Configuration
  readonly chunks: readonly ChunkName[]
}

export type ToyExchangeParts = {
  readonly disk: Disk
  readonly dataDir: string
  readonly shardId: string
  readonly codecsOrderedHash: string
  readonly chunkBytes: number
  /** Runs it later in the process that asked. */
  readonly later: (run: () => void) => void
}

const BYTES_MAX = 1 << 24

export const sha256 = (bytes: Uint8Array): Uint8Array => new Uint8Array(createHash('sha256').update(bytes).digest())
const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

function chunksOf(state: Uint8Array, chunkBytes: number): Map<string, Uint8Array> {
  const chunks = new Map<string, Uint8Array>()
  for (let at = 0; at < state.length; at += chunkBytes) {
    const bytes = state.slice(at, at + chunkBytes)
    chunks.set(hexOf(sha256(bytes)), bytes)
  }
  return chunks
}

function encodeManifest({ index, term, configuration, state }: ToySnapshot, chunkBytes: number): Uint8Array {
  const chunks: ChunkName[] = []
  for (let at = 0; at < state.length; at += chunkBytes) {
    const bytes = state.subarray(at, at + chunkBytes)
    chunks.push({ digest: hexOf(sha256(bytes)), bytes: bytes.length })
  }
  const text = new TextEncoder().encode(JSON.stringify({ index, term, configuration, chunks } satisfies ToyManifest))
  const manifest = new Uint8Array(text.length + 32)
  manifest.set(text)
  manifest.set(sha256(text), text.length)
  return manifest
}

function decodeManifest(bytes: Uint8Array): ToyManifest {
  return JSON.parse(new TextDecoder().decode(bytes.subarray(0, bytes.length - 32))) as ToyManifest
}

const nameOf = (dataDir: string, index: number, term: number) => `${dataDir}/snapshots/toy-${index}-${term}`

/** @throws the errno error on a full disk; nothing has changed then */
export function writeToySnapshot(parts: ToyExchangeParts, snapshot: ToySnapshot): void {
  const manifest = encodeManifest(snapshot, parts.chunkBytes)
  const bytes = new Uint8Array(4 + manifest.length + snapshot.state.length)
  new DataView(bytes.buffer).setUint32(0, manifest.length, true)
  bytes.set(manifest, 4)
  bytes.set(snapshot.state, 4 + manifest.length)
  replaceFile(parts.disk, nameOf(parts.dataDir, snapshot.index, snapshot.term), bytes)
}

export function readToySnapshot(disk: Disk, path: string): ToySnapshot & { readonly manifest: Uint8Array } {
  const bytes = readSmallFile(disk, path, BYTES_MAX)
  if (!bytes) throw new Error(`${path} is gone`)
  const end = 4 + new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true)
  const manifest = bytes.slice(4, end)
  const { index, term, configuration } = decodeManifest(manifest)
  return { index, term, configuration, state: bytes.slice(end), manifest }
}

/** Newest first. */
export function listToySnapshots(disk: Disk, dataDir: string): string[] {
  const place = (name: string) => Number(name.split('-')[1])
  return disk
    .list(`${dataDir}/snapshots`)
    .filter((name) => /^toy-\d+-\d+$/.test(name))
    .sort((a, b) => place(b) - place(a))
    .map((name) => `${dataDir}/snapshots/${name}`)
}

/** All but the two newest go. */
export function retainToySnapshots({ disk, dataDir }: ToyExchangeParts): void {
  for (const path of listToySnapshots(disk, dataDir).slice(2)) disk.unlink(path)
  disk.syncDirectory(`${dataDir}/snapshots`)
}

export function toyExchange(parts: ToyExchangeParts): Exchange {
  const offered = new Map<string, Uint8Array>()
  return (ask, done) => parts.later(() => done(answerWithin(parts, offered, ask)))
}

function answerWithin(parts: ToyExchangeParts, offered: Map<string, Uint8Array>, ask: ExchangeAsk): ExchangeAnswer {
  try {
    return answer(parts, offered, ask)
  } catch (error) {
    if (isDiskFull(error)) return { state: 'full' }
    throw error
  }
}

function answer(parts: ToyExchangeParts, offered: Map<string, Uint8Array>, ask: ExchangeAsk): ExchangeAnswer {
  const { disk, dataDir, chunkBytes } = parts
  switch (ask.kind) {
    case 'newest': {
      const [path] = listToySnapshots(disk, dataDir)
      if (path === undefined) return { state: 'newest', newest: undefined }
      const { index, term, configuration: membership, manifest } = readToySnapshot(disk, path)
      const manifestDigest = hexOf(manifest.subarray(manifest.length - 32))
      offered.clear()
      offered.set(manifestDigest, manifest)
      const newest: Newest = { index, term, manifest, manifestDigest, membership }
      return { state: 'newest', newest }
    }
    case 'plan': {
      const { chunks } = decodeManifest(ask.manifest)
      const held = chunks.filter(({ digest }) => chunkAt(parts, digest) !== undefined)
      const missing = chunks.filter((chunk) => !held.includes(chunk))
      return {
        state: 'planned',
        shardId: parts.shardId,
        codecsOrderedHash: parts.codecsOrderedHash,
        contentDigest: '',
        packages: 0,
        held: unique(held),
        missing: unique(missing),
        bytesTotal: chunks.reduce((sum, { bytes }) => sum + bytes, 0),
        hasRoom: true,
      }
    }
    case 'verify':
      return { state: chunkAt(parts, ask.chunk.digest)?.length === ask.chunk.bytes ? 'verified' : 'bad' }
    case 'store': {
      if (hexOf(sha256(ask.bytes)) !== ask.digest) return { state: 'bad' }
      if (!disk.stat(`${dataDir}/incoming`)) disk.makeDirectory(`${dataDir}/incoming`)
      const path = `${dataDir}/incoming/${ask.digest}.chk`
      if (!disk.stat(path)) replaceFile(disk, path, ask.bytes)
      return { state: 'stored' }
    }
    case 'read': {
      const manifest = offered.get(ask.digest)
      const bytes = manifest ?? chunkAt(parts, ask.digest)
      return { state: 'read', bytes: bytes?.slice(ask.offset, ask.offset + ask.length) }
    }
    case 'current': {
      const { index, term, configuration, chunks } = decodeManifest(ask.manifest)
      const missing = chunks.filter(({ digest }) => chunkAt(parts, digest) === undefined)
      if (missing.length > 0) return { state: 'lacking', missing: unique(missing) }
      const state = Buffer.concat(chunks.map(({ digest }) => chunkAt(parts, digest) as Uint8Array))
      writeToySnapshot({ ...parts, chunkBytes }, { index, term, configuration, state: new Uint8Array(state) })
      dropIncoming(parts)
      return { state: 'current', path: nameOf(dataDir, index, term) }
    }
    default:
      return { state: 'bad' }
  }
}

function unique(chunks: readonly ChunkName[]): ChunkName[] {
  return [...new Map(chunks.map((chunk) => [chunk.digest, chunk])).values()]
}

/** A chunk that is here: received, or a part of a snapshot of this node. */
function chunkAt({ disk, dataDir, chunkBytes }: ToyExchangeParts, digest: string): Uint8Array | undefined {
  const received = readSmallFile(disk, `${dataDir}/incoming/${digest}.chk`, BYTES_MAX)
  if (received) return received
  for (const path of listToySnapshots(disk, dataDir)) {
    const found = chunksOf(readToySnapshot(disk, path).state, chunkBytes).get(digest)
    if (found) return found
  }
  return undefined
}

function dropIncoming({ disk, dataDir }: ToyExchangeParts): void {
  const folder = `${dataDir}/incoming`
  if (!disk.stat(folder)) return
  for (const name of disk.list(folder)) disk.unlink(`${folder}/${name}`)
}
