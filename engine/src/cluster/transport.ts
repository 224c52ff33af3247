/**
 * How members of a shard reach each other (consensus.md §4): frames of bytes between named nodes, on three streams a
 * pair, so that bulk never delays heartbeats. Production speaks TLS (tls-transport.ts), tests a simulated network;
 * the code above knows only this interface.
 */

/** `control`: votes, heartbeats, reads, transfer, formation. `append`: log entries. `bulk`: snapshot chunks. */
export const STREAMS = ['control', 'append', 'bulk'] as const
export type StreamKind = (typeof STREAMS)[number]

export type TransportEvents = {
  /** A whole frame whose checksum held, from the node that the peer's certificate names. `frame` is the receiver's to keep. */
  onFrame(peer: string, stream: StreamKind, frame: Uint8Array): void
  /** A stream to or from the peer can be used. */
  onOpen(peer: string, stream: StreamKind): void
  /**
   * A stream was lost. `isDead`: it was closed or reset by the peer, and connecting again was refused: the process is
   * gone (E10). Reported once per loss.
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
  /** Bytes that wait for this peer on this stream. */
  queuedBytes(peer: string, stream: StreamKind): number
  /** The nodes to be connected to; connections to others are closed, incoming ones of theirs still accepted. */
  setPeers(peers: readonly string[]): void
  close(): Promise<void>
}

/** Makes a transport: the real one from certificates and an address book, the simulated one from a network. */
export type OpenTransport = (events: TransportEvents) => Promise<Transport>
