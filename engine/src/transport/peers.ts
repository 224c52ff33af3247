/**
 * The transport with the frames of this shard: sends frames, and passes on received frames that pass the checks
 * (docs/design/protocol.md#peer-frames). Exists from before the shard is formed to the end of the node; the handler
 * changes on the way.
 */

import { assert } from '@vacancy/shared'
import type { Env } from '../env.ts'
import {
  admitFrame,
  createFrameFaults,
  encodeFrame,
  FRAME_CODEC_HASH_BYTES,
  FRAME_ID_BYTES,
  type FrameFault,
  type FrameFaults,
  type PeerFrame,
  PROTOCOL_VERSION,
  streamOf,
} from './frames.ts'
import type { StreamKind, Transport, TransportEvents } from './transport.ts'

type PeerHandler = {
  onFrame(peer: string, frame: PeerFrame): void
  onOpen?(peer: string, stream: StreamKind): void
  onClosed?(peer: string, stream: StreamKind, isDead: boolean): void
}

export type Peers = {
  readonly self: string
  transport: Transport | undefined
  /** Undefined for a moment between two phases of the node: frames are then dropped like late ones. */
  handler: PeerHandler | undefined
  readonly common: {
    readonly version: number
    clusterId: Uint8Array
    genesis: Uint8Array
    readonly codecHash: Uint8Array
  }
  /** Own raft id; 0 while it is unknown. */
  raftId: number
  nodeOf: (raftId: number) => string | undefined
  readonly faults: FrameFaults
  /** Refusals of peers by reason, and when each was last logged. */
  readonly refused: { [reason: string]: number }
  readonly loggedMs: Map<string, number>
  readonly env: Pick<Env, 'clock' | 'log'> | undefined
  /** Frames that were sent, and those that no connection accepted. */
  sent: number
  unsent: number
  received: number
  wanted: string
  /**
   * Nodes whose bulk stream is open: any of them may have a chunk. Kept here because connections exist before the node
   * is a member and report opening only once.
   */
  readonly connected: Set<string>
}

/**
 * @param codecHash ordered hash of the codec list, hexadecimal
 * @param env logs refusals; absent: they are only counted
 */
export function createPeers(self: string, codecHash: string, env?: Peers['env']): Peers {
  return {
    self,
    transport: undefined,
    handler: undefined,
    common: {
      version: PROTOCOL_VERSION,
      clusterId: new Uint8Array(FRAME_ID_BYTES),
      genesis: new Uint8Array(FRAME_ID_BYTES),
      codecHash: bytesOfHex(codecHash).subarray(0, FRAME_CODEC_HASH_BYTES),
    },
    raftId: 0,
    nodeOf: () => undefined,
    faults: createFrameFaults(),
    refused: {},
    loggedMs: new Map(),
    env,
    sent: 0,
    unsent: 0,
    received: 0,
    wanted: '',
    connected: new Set(),
  }
}

export function bytesOfHex(text: string): Uint8Array {
  assert(/^([0-9a-f]{2})*$/.test(text), 'hexadecimal digits')
  return Uint8Array.from({ length: text.length / 2 }, (_, i) => Number.parseInt(text.slice(2 * i, 2 * i + 2), 16))
}

/** The callbacks of the transport. */
export function eventsOf(peers: Peers): TransportEvents {
  return {
    onFrame(peer, _stream, bytes) {
      const frame = admitFrame(peers, peer, bytes, peers.faults, (fault) => onFault(peers, peer, fault))
      if (!frame) return
      peers.received++
      peers.handler?.onFrame(peer, frame)
    },
    onOpen(peer, stream) {
      if (stream === 'bulk') peers.connected.add(peer)
      peers.handler?.onOpen?.(peer, stream)
    },
    onClosed(peer, stream, isDead) {
      if (stream === 'bulk') peers.connected.delete(peer)
      peers.handler?.onClosed?.(peer, stream, isDead)
    },
  }
}

/**
 * Frames for an earlier member of this node are late, not wrong. All others are a mistake that an operator should know
 * of.
 */
function onFault(peers: Peers, peer: string, fault: FrameFault): void {
  const isFormed = peers.common.clusterId.some((byte) => byte !== 0)
  if (fault === 'addressee' || (fault === 'cluster' && !isFormed)) return
  refusePeer(peers, peer, fault, FAULT_TEXTS[fault])
}

const FAULT_TEXTS: { readonly [fault in FrameFault]: string } = {
  malformed: 'it sends frames that cannot be read',
  version: 'it runs another version of the protocol between nodes',
  kind: 'it sends messages that this version does not support',
  cluster: 'it belongs to another cluster of that name: another one was founded, or restored',
  genesis: 'it belongs to this shard before it was restored',
  codecs: 'its codec list differs',
  addressee: 'it addresses this node as another member',
  sender: 'it sends under the id of another node',
}

/** Counts a refusal of a peer, and logs it at intervals. */
export function refusePeer(peers: Peers, peer: string, reason: string, why: string): void {
  peers.refused[reason] = (peers.refused[reason] ?? 0) + 1
  const { env, loggedMs } = peers
  const key = `${peer} ${reason}`
  const nowMs = env?.clock.monotonicMs() ?? 0
  if (nowMs - (loggedMs.get(key) ?? Number.NEGATIVE_INFINITY) < LOG_AGAIN_MS) return
  if (loggedMs.size >= LOGGED_MAX) loggedMs.clear()
  loggedMs.set(key, nowMs)
  env?.log.warn({ peer, reason }, `peer refused: ${why}`)
}
const LOG_AGAIN_MS = 60_000
const LOGGED_MAX = 256

/** @returns false when it was dropped; raft and the driver send again */
export function sendFrame(peers: Peers, node: string, frame: PeerFrame): boolean {
  assert(node !== peers.self, 'a node does not send to itself')
  const isSent = peers.transport?.send(node, streamOf(frame), encodeFrame(peers.common, frame)) ?? false
  if (isSent) peers.sent++
  else peers.unsent++
  return isSent
}

/** Keeps connections to these nodes; duplicates and this node itself are ignored. */
export function wantPeers(peers: Peers, nodes: readonly string[]): void {
  const others = [...new Set(nodes)].filter((node) => node !== peers.self).sort()
  const wanted = others.join(' ')
  if (wanted === peers.wanted) return
  peers.wanted = wanted
  peers.transport?.setPeers(others)
}
