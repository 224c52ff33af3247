/** Requests of a data set as frames, and how long the replies to them must be. */
import { encodeRequest } from '@vacancy/shared/wire'
import type { Search, Update } from './queries.ts'

/** What a load needs of its requests: frames without a correlation id, and the length of each answer. */
export type Requests = { frames: Uint8Array[]; replyBytes: number[] }

export function searchRequests(searches: readonly Search[]): Requests {
  return {
    frames: searches.map(({ fields }) => encodeRequest({ command: 'SEARCHAVAIL', correlationId: 0, fields })),
    replyBytes: searches.map(({ fields, hits }) => searchReplyBytes(hits, fields.dates.length)),
  }
}

export function updateRequests(updates: readonly Update[]): Requests {
  return {
    frames: updates.map(({ command, fields }) => encodeRequest({ command, correlationId: 0, fields })),
    replyBytes: updates.map(({ command }) => UPDATE_REPLY_BYTES[command]),
  }
}

/** Frame head, SUCCESS, field count (docs/design/protocol.md#bare-frame, docs/design/protocol.md#payload). */
const SUCCESS_BYTES = 9 + 8 + 2
const FIELD_HEAD_BYTES = 7
const PACKED_ID_BYTES = 16
const DAY_BYTES = 11

/** SETROOMAVL answers with the new availability, SETROOMPKG with nothing (docs/design/protocol.md#successes). */
const UPDATE_REPLY_BYTES = { SETROOMAVL: SUCCESS_BYTES + FIELD_HEAD_BYTES + 1, SETROOMPKG: SUCCESS_BYTES } as const

/** docs/design/protocol.md#searches: the number of days, then an id and a day vector for each property. */
function searchReplyBytes(hits: number, nights: number): number {
  const property = FIELD_HEAD_BYTES + PACKED_ID_BYTES + FIELD_HEAD_BYTES + 2 + nights * DAY_BYTES
  return SUCCESS_BYTES + FIELD_HEAD_BYTES + 2 + hits * property
}
