/** What nodes tell each other before they form a shard (docs/design/consensus.md#formation). */

export const FORMATION_LIMITS = { voters: 7, peers: 64, members: 256 } as const

/** What a node reports to a peer; the fields of a formation frame. */
export type FormationReport = {
  readonly shard: string
  /** Of the sender's sorted `--initial-voters`, 64 hexadecimal digits; of a formed one those of its genesis. */
  readonly votersDigest: string
  readonly voters: readonly string[]
  readonly codecHash: string
  readonly formatVersion: number
  readonly incarnation: string
  /** Last reported incarnation of the receiver; '' before its first report. */
  readonly echo: string
  readonly formsWithMajority: boolean
  readonly state: 'empty' | 'seeded' | 'formed'
  /** '' without a snapshot; for a formed node the snapshot of its genesis, as index and term. */
  readonly contentDigest: string
  readonly index: number
  readonly term: number
  /** '' unless formed. */
  readonly clusterId: string
  readonly isFounder: boolean
  readonly isUntouched: boolean
  readonly leader: string
  /** Nodes that the sender knows of. */
  readonly members: readonly string[]
}
