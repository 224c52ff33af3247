/**
 * Planted defects of the store: rules of consensus.md §12 and §13 that it breaks when it is told to, so that the
 * simulation can be shown to notice (reliability.md §7). Nothing that ships sets one.
 */

export const STORE_DEFECTS = [
  /** P2: a request is known by its number alone, whatever session it is of. */
  'sessions/key-without-session',
  /** P2: a request that was refused is executed again when it is repeated. */
  'sessions/failed-not-kept',
  /** Which session goes first depends on the order of a map of this process, not on the log. */
  'sessions/evicted-by-map',
  /** Sessions of a snapshot are in memory and not found there. */
  'sessions/lost-at-load',
  /** P3, A17: what is taken away is not compared with what is left. */
  'apply/decrement-unchecked',
] as const

export type StoreDefect = (typeof STORE_DEFECTS)[number]
export type StoreDefects = Readonly<Record<StoreDefect, boolean>>

export function readStoreDefects(names?: ReadonlySet<string>): StoreDefects {
  return Object.fromEntries(STORE_DEFECTS.map((name) => [name, names?.has(name) ?? false])) as StoreDefects
}
