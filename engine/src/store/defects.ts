/**
 * Planted defects of the store. Each breaks a rule of docs/design/consensus.md#request-keys or
 * docs/design/consensus.md#apply when enabled, to prove that the simulation detects it
 * (docs/design/testing.md#planted-defects). No released program enables one.
 */

export const STORE_DEFECTS = [
  /** docs/design/consensus.md#promises: a request is identified by its number alone, regardless of its session. */
  'sessions/key-without-session',
  /** docs/design/consensus.md#promises: the retry of a refused request is executed again. */
  'sessions/failed-not-kept',
  /** The session to evict is chosen by the order of a map of this process instead of by the log. */
  'sessions/evicted-by-map',
  /** Sessions of a snapshot are loaded into memory but not indexed. */
  'sessions/lost-at-load',
  /** The digest covers sessions, but not their results. */
  'sessions/results-not-in-digest',
  /** A refusal for lack of memory is stored, so that its retry is refused even if memory is available by then. */
  'sessions/refused-stored',
  /** Whether a command fits is decided by the memory that this replica has allocated. */
  'apply/own-memory-decides',
  /** A replica whose memory has no free block ends as for an internal error. */
  'memory/exhausted-as-fault',
  /** A page changes while a snapshot is written, and the snapshot gets the new content. */
  'cow/pages-not-copied',
  /**
   * docs/design/consensus.md#promises, docs/design/consensus.md#invariants: a decrement is not checked against the
   * rooms left.
   */
  'apply/decrement-unchecked',
  /** docs/design/stays.md#expiry: whether a hold has expired is decided by the clock of this node. */
  'stays/expiry-by-local-clock',
  /** docs/design/stays.md#rules: a release returns the rooms of a stay that has none. */
  'stays/release-unchecked',
  /** docs/design/stays.md#holds-and-absolute-values: rooms that are missing for holds are forgotten. */
  'stays/debt-forgotten',
  /** docs/design/stays.md#as-of: a late absolute value puts rooms back on sale that were sold since. */
  'stays/as-of-ignored',
  /** docs/design/stays.md#ledger: a property inherits the holds of a deleted one with its id. */
  'stays/generation-ignored',
  /** docs/design/stays.md#all-or-none: one of the tables of a stay changes without a version change. */
  'stays/table-unmarked',
  /** docs/design/stays.md#all-or-none: a refused stay has taken the nights before the one that is sold out. */
  'stays/partly-taken',
  /** Stays are not part of the state digest. */
  'stays/not-in-digest',
  /** How much of the ledger is kept is read from the configuration of this node. */
  'stays/settings-from-file',
  /** Tables change without a version change that readers could detect. */
  'version/unmarked',
  /** Memory that a reader may still access is reused. */
  'version/reclaims-early',
] as const

export type StoreDefect = (typeof STORE_DEFECTS)[number]
export type StoreDefects = Readonly<Record<StoreDefect, boolean>>

export function readStoreDefects(names?: ReadonlySet<string>): StoreDefects {
  return Object.fromEntries(STORE_DEFECTS.map((name) => [name, names?.has(name) ?? false])) as StoreDefects
}
