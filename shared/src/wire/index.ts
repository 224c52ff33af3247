/** The wire protocol: frames, envelopes, the command table, requests and replies. Pure, so usable in browsers. */

export { cleanErrorText, fitErrorText, isUtf8, textFault } from '../text.ts'
export {
  type Access,
  COMMAND_LIST,
  COMMANDS,
  type CommandGroup,
  type CommandName,
  type CommandSpec,
  type FieldSpec,
  type FieldType,
  type FieldValue,
  type FieldWidth,
  findCommand,
  isCommandName,
  type ReplyKind,
  type RequestFields,
} from './commands.ts'
export {
  addBytes,
  addF64,
  addField,
  addText,
  addU8,
  addU16,
  addU32,
  addU64,
  beginFrame,
  createFieldWriter,
  createRequestScan,
  FIELD_HEADER_BYTES,
  type FieldWriter,
  finishFrame,
  type RequestScan,
  readU64,
  scanRequest,
} from './fields.ts'
export {
  createFrameSplitter,
  type FrameLimits,
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
  type ReplyContext,
  type ReplyResult,
  type Result,
  type SearchExplained,
} from './reply.ts'
export { type DecodedRequest, decodeRequest, encodeRequest, type RequestMessage } from './request.ts'
export {
  CODECS_SEGMENT,
  decodeEnvelope,
  type Envelope,
  encodeEnvelope,
  encodeEnvelopeHeader,
  encodeKeepalive,
  FRAME_HEADER_BYTES,
  KEEPALIVE_SEGMENT,
  MAGIC_ENVELOPE,
  MAGIC_FRAME,
  SEGMENTS_SEGMENT,
  STATUS_SEGMENT,
} from './routing.ts'
