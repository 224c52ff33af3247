/**
 * Planted defects of the log: rules of docs/design/storage.md#data-directory that it breaks on request, to show that
 * the simulation detects the break (docs/design/testing.md#planted-defects). Shipped programs never set one.
 */

export const WAL_DEFECTS = [
  /** docs/design/storage.md#group-commit: a group is reported stored and not synced. */
  'wal/ack-before-sync',
  /**
   * docs/design/consensus.md#when-a-configuration-takes-effect: the commit index does not go with the entries it came
   * with.
   */
  'wal/commit-not-stored',
  /**
   * docs/design/consensus.md#when-a-configuration-takes-effect: a group takes the commit index of the hand-over behind
   * it.
   */
  'wal/commit-of-next',
  /**
   * docs/design/consensus.md#when-a-configuration-takes-effect: behind a refusal the commit index moves on, over
   * entries that were to be replaced.
   */
  'wal/commit-behind-refusal',
  /** What was handed over before a refusal arrived is stored, although the core has taken it back. */
  'wal/stores-taken-back',
  /** docs/design/storage.md#disk-errors: a failed sync is tried again, and believed when it succeeds. */
  'wal/sync-error-retried',
  /** docs/design/storage.md#log-files: the name of a new log file is not synced. */
  'wal/no-directory-sync',
  /** docs/design/storage.md#log-compaction: files go that still hold entries behind the snapshot. */
  'wal/compacts-too-much',
  /** What a refused write left stays in front of the next group. */
  'wal/refused-write-left',
  /** docs/design/storage.md#torn-tail-or-corruption: records of a group that was not finished count. */
  'wal/torn-accepted',
  /** docs/design/storage.md#torn-tail-or-corruption: damage in the middle is cut off like a torn tail. */
  'wal/mid-corruption-truncated',
  /** docs/design/storage.md#log-files: entries that were replaced come back when the log is read. */
  'wal/replaced-entries-read',
  /** docs/design/storage.md#torn-tail-or-corruption: what is left of a torn group is not overwritten. */
  'wal/torn-tail-left',
] as const

export type WalDefect = (typeof WAL_DEFECTS)[number]
export type WalDefects = Readonly<Record<WalDefect, boolean>>

export function readWalDefects(names: ReadonlySet<string> | undefined): WalDefects {
  return Object.fromEntries(WAL_DEFECTS.map((name) => [name, names?.has(name) ?? false])) as WalDefects
}
