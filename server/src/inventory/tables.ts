/** Columns as both databases keep them: times are UTC milliseconds, truth is 0 or 1, JSON is text. */
export type PlaygroundTables = Record<never, never>
