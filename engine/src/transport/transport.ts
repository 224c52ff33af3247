/**
 * Communication between members of a shard (docs/design/protocol.md#peer-frames): frames of bytes between named nodes,
 * on three streams per pair, so that bulk data never delays heartbeats. Production uses TLS (tls-transport.ts), tests a
 * simulated network. The callers know only this interface.
 */

/** `control`: votes, heartbeats, reads, transfer, formation. `append`: log entries. `bulk`: snapshot chunks. */
export const STREAMS = ['control', 'append', 'bulk'] as const
export type StreamKind = (typeof STREAMS)[number]

export type TransportEvents = {
  /**
   * A complete frame with a valid checksum, from the node that the peer's certificate names. The receiver owns `frame`.
   */
  onFrame(peer: string, stream: StreamKind, frame: Uint8Array): void
  /** A stream to or from the peer is usable. */
  onOpen(peer: string, stream: StreamKind): void
  /**
   * A stream was lost. `isDead`: the peer closed or reset it, and connecting again was refused, so the process is gone
   * (docs/design/consensus.md#fast-failover). Reported once per loss.
   */
  onClosed(peer: string, stream: StreamKind, isDead: boolean): void
}

export type Transport = {
  /**
   * Queues a frame without waiting.
   *
   * @returns false when it was dropped: no connection, or the bounded queue of that stream is full
   */
  send(peer: string, stream: StreamKind, frame: Uint8Array): boolean
  /** Bytes queued for this peer on this stream. */
  queuedBytes(peer: string, stream: StreamKind): number
  /** The nodes to connect to. Connections to others are closed; incoming ones are still accepted. */
  setPeers(peers: readonly string[]): void
  close(): Promise<void>
}
