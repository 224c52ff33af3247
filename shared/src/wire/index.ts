/** The wire protocol: frames, envelopes, the command table, requests and replies. Pure, so usable in browsers. */

export { cleanErrorText, cutToBytes, fitErrorText, textFault } from '../text.ts'
export {
  COMMAND_LIST,
  COMMANDS,
  type CommandGroup,
  type CommandName,
  type CommandSpec,
  type FieldSpec,
  type FieldValue,
  isCommandName,
  REPLIES,
  type ReplyKind,
  type RequestFields,
  TRACE_FIELD_ID,
} from './commands.ts'
export {
  createRequestScan,
  FIELD_HEADER_BYTES,
  LINES_PLACE,
  type RequestScan,
  scanRequest,
} from './fields.ts'
export {
  createFrameSplitter,
  type FrameSink,
  type FrameSplitter,
  readU32,
  resumeFrames,
  splitFrames,
} from './frame.ts'
export { fieldsFromJson, fieldsToJson, type JsonFields, type JsonFieldValue } from './json.ts'
export { encodeLogin, LOGIN_FAILED, LOGIN_OK, readLoginAnswer } from './login.ts'
export { type FramePart, outlineFrame } from './outline.ts'
export {
  decodeReply,
  encodeError,
  encodeReply,
  type Reply,
  type ReplyResult,
  type Result,
  /** @public exported by the client, which other repositories use */
  type SearchExplained,
  type StayEntry,
  type StayResult,
} from './reply.ts'
/** @public exported by the client, which other repositories use */
export type { CalendarDay, FlexibleStay } from './reply-calendar.ts'
/** @public exported by the client, which other repositories use */
export type { FacetCount, MapCell, SearchFacets, TotalCount } from './reply-facets.ts'
/** @public exported by the client, which other repositories use */
export type { NightPackage, SearchPage, SearchValues } from './reply-search.ts'
export { type DecodedRequest, decodeRequest, encodeRequest } from './request.ts'
export {
  CODECS_SEGMENT,
  decodeEnvelope,
  ENVELOPE_HEADER_BYTES,
  type Envelope,
  encodeKeepalive,
  FRAME_HEADER_BYTES,
  MAGIC_ENVELOPE,
  MAGIC_FRAME,
  SEGMENTS_SEGMENT,
} from './routing.ts'
export { HIT_FIELDS, PROPERTY_FACETS, SEARCH_FACETS, SEARCH_ORDERS, SEARCH_WANTS } from './search.ts'
export {
  hasPages,
  type SearchBox,
  type SearchCommand,
  type SearchFacet,
  type SearchNear,
  type SearchOrder,
  type SearchStay,
  type SearchWant,
  type SearchWeekday,
  searchFields,
  searchWords,
} from './search-words.ts'
export {
  createStayLineScan,
  LINE_FLAGS,
  STAY_STATE,
  STAY_STATES,
  type StayLine,
  type StayState,
  scanStayLine,
} from './stay.ts'
export { addToCount, endsWithTrace, TRACE_FIELD_BYTES, traceAtEnd, withTrace } from './trace-field.ts'
