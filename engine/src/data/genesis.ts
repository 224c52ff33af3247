/** What a node holds before it is a member, and the genesis of its shard (docs/design/consensus.md#formation). */

import type { Configuration } from '../raft/messages.ts'
import { STATE } from '../store/layout.ts'
import { featureLevel, INDEX_LEVEL, type Store, state } from '../store/store.ts'
import type { Cluster } from './data-directory.ts'

/** What a node holds. `digest` is the content digest, 64 hexadecimal digits. */
export type Held =
  | { readonly state: 'empty' }
  | { readonly state: 'seeded'; readonly digest: string; readonly index: number; readonly term: number }
  | FormedState

/** The genesis of a formed node, and its history since. */
export type FormedState = {
  readonly state: 'formed'
  readonly clusterId: string
  /** Digest of the snapshot it was founded with; '' for an empty shard. */
  readonly digest: string
  readonly index: number
  readonly term: number
  readonly voters: readonly string[]
  readonly isFounder: boolean
  /** It never voted, campaigned or received a message of a leader. */
  readonly isUntouched: boolean
  /** Node id; '' while none is known. */
  readonly leader: string
}

/** What recovery does with a folder once the formation has decided. */
export type Founded =
  /** Write this CLUSTER, start from the held snapshot or empty, and participate. */
  | { readonly kind: 'form'; readonly cluster: Cluster; readonly configuration: Configuration }
  /** Write this CLUSTER as a non-founder and send `join` to `leader`. */
  | {
      readonly kind: 'join'
      readonly via: string
      readonly leader: string
      readonly cluster: Cluster
      /** The held snapshot is the one the shard began with, a prefix of its history, so it may stay. */
      readonly keepsSnapshot: boolean
    }
  /**
   * Move the held snapshot to `quarantine/`, report that with `hold`, and decide again
   * (docs/design/consensus.md#formation).
   */
  | { readonly kind: 'set-aside'; readonly reason: string }
  /** The silence is over: read the folder again, it now has a snapshot. */
  | { readonly kind: 'reread' }

/**
 * The random bits of the shard; zeros before the first entry after the founding snapshot, which has those of another one
 * (docs/design/consensus.md#formation).
 *
 * @param applied index
 */
export function genesisOf(
  {
    store: { memory },
    cluster,
  }: { readonly store: Pick<Store, 'memory'>; readonly cluster: Pick<Cluster, 'baseIndex'> },
  applied: number,
): Uint8Array {
  const genesis = new Uint8Array(16)
  if (applied <= cluster.baseIndex) return genesis
  const view = new DataView(genesis.buffer)
  for (let cell = 0; cell < 4; cell++) view.setUint32(cell * 4, state(memory, STATE.genesis + cell), true)
  return genesis
}

/**
 * What a member shows its peers; zeros fit any. One that joined cannot tell below feature level 5 whether its bits are
 * those of the shard or, before its entry, of the one that the founding snapshot was taken from: with those its peers
 * would refuse it for ever.
 */
export function shownGenesis(
  node: Parameters<typeof genesisOf>[0] & { readonly cluster: Pick<Cluster, 'isFounder'> },
  applied: number,
): Uint8Array {
  const cannotTell = node.cluster.isFounder === false && featureLevel(node.store.memory) < INDEX_LEVEL
  return cannotTell ? new Uint8Array(16) : genesisOf(node, applied)
}

/** The configuration of the genesis: raft ids 1 … n in the order of the names, all unbound. */
export function genesisConfiguration(voters: readonly string[]): Configuration {
  const members = voters.toSorted().map((node, i) => ({ id: i + 1, node, incarnation: '' }))
  const ids = members.map(({ id }) => id)
  return { members, voters: ids, outgoing: [], learners: [], staged: [], autoLeave: false }
}

/**
 * The members at the position of a snapshot, or at the start of the log without one. A snapshot that a shard began with
 * may carry the members of its original shard. They are ignored (docs/design/consensus.md#formation).
 */
export function configurationAt(
  cluster: Cluster,
  snapshot:
    | { readonly index: number; readonly term: number; readonly membership?: Configuration | undefined }
    | undefined,
): Configuration {
  const isBase = snapshot?.index === cluster.baseIndex && snapshot.term === cluster.baseTerm
  // A standalone node writes snapshots without members: its members are always those of the genesis.
  return (isBase ? undefined : snapshot?.membership) ?? genesisConfiguration(cluster.voters)
}
