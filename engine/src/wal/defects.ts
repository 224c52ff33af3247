/**
 * Planted defects of the log: rules of consensus.md §15 that it breaks when it is told to, so that the simulation can be
 * shown to notice (reliability.md §7). Nothing that ships sets one.
 */

export const WAL_DEFECTS = [
  /** W1: a group is reported stored and not synced. */
  'wal/ack-before-sync',
  /** M10: the commit index does not go with the entries it came with. */
  'wal/commit-not-stored',
  /** M10: a group takes the commit index of the hand-over behind it. */
  'wal/commit-of-next',
  /** M10: behind a refusal the commit index moves on, over entries that were to be replaced. */
  'wal/commit-behind-refusal',
  /** W2: a failed sync is tried again, and believed when it succeeds. */
  'wal/sync-error-retried',
  /** W3: the name of a new log file is not synced. */
  'wal/no-directory-sync',
  /** §17: files go that still hold entries behind the snapshot. */
  'wal/compacts-too-much',
  /** What a refused write left stays in front of the next group. */
  'wal/refused-write-left',
  /** V1: records of a group that was not finished count. */
  'wal/torn-accepted',
  /** V4: damage in the middle is cut off like a torn tail. */
  'wal/mid-corruption-truncated',
  /** §15.2: entries that were replaced come back when the log is read. */
  'wal/replaced-entries-read',
  /** V3: what is left of a torn group is not overwritten. */
  'wal/torn-tail-left',
] as const

export type WalDefect = (typeof WAL_DEFECTS)[number]
export type WalDefects = Readonly<Record<WalDefect, boolean>>

export function readWalDefects(names: ReadonlySet<string> | undefined): WalDefects {
  return Object.fromEntries(WAL_DEFECTS.map((name) => [name, names?.has(name) ?? false])) as WalDefects
}
