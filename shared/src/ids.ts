/** Ids of zones, shards and nodes (docs/design/http.md#identifiers). */

import { LIMITS } from './domain.ts'

const COMPONENT_ID = /^[A-Za-z0-9._-]+$/
/** Topics of the job queue that a token is valid for: a name, or the beginning of one followed by `*`. */
export const TOPIC_PATTERN = /^(?:[A-Za-z0-9][A-Za-z0-9._:-]{0,199}[*]?|[*])$/

/** The rule for ids of zones, shards and nodes, for the error that refuses one. */
export const ID_RULE = `1 to ${LIMITS.componentIdBytesMax} characters of A-Z a-z 0-9 . _ -, not "." or ".."`

/** The id of a zone, shard or node; undefined when the text is not valid. */
export function parseId(text: string): string | undefined {
  if (text.length > LIMITS.componentIdBytesMax || text === '.' || text === '..') return undefined
  return COMPONENT_ID.test(text) ? text : undefined
}
