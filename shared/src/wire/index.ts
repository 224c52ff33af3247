/** The wire protocol: frames, envelopes, the command table, requests and replies. Pure, so usable in browsers. */

export { cleanErrorText, fitErrorText, textFault } from '../text.ts'
export {
  COMMAND_LIST,
  COMMANDS,
  type CommandGroup,
  type CommandName,
  type CommandSpec,
  type FieldSpec,
  type FieldValue,
  isCommandName,
  type ReplyKind,
  type RequestFields,
} from './commands.ts'
export {
  createRequestScan,
  FIELD_HEADER_BYTES,
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
  type NightPackage,
  type Reply,
  type ReplyResult,
  type Result,
  /** @public exported by the client, which other repositories use */
  type SearchExplained,
} from './reply.ts'
export { type DecodedRequest, decodeRequest, encodeRequest } from './request.ts'
export {
  CODECS_SEGMENT,
  decodeEnvelope,
  type Envelope,
  encodeKeepalive,
  FRAME_HEADER_BYTES,
  MAGIC_ENVELOPE,
  MAGIC_FRAME,
  SEGMENTS_SEGMENT,
} from './routing.ts'
