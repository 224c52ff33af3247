/** The wire door: frames, fields, the table of commands, requests and replies. Pure: runs in a browser, too. */

export {
  COMMAND_LIST,
  COMMANDS,
  type CommandName,
  type CommandSpec,
  type FieldSpec,
  type FieldWidth,
  isCommandName,
  type ReplyKind,
} from './commands.ts'
export { cleanErrorText, createRequestScan, type RequestScan, scanRequest, textFault } from './fields.ts'
export {
  createFrameSplitter,
  ENGINE_FRAME_LIMITS,
  ENVELOPE_EXTRA_BYTES,
  FRAME_HEADER_BYTES,
  type FrameSink,
  type FrameSplitter,
  MAGIC_ENVELOPE,
  MAGIC_FRAME,
  resumeFrames,
  splitFrames,
} from './frame.ts'
export { LOGIN_FAILED, LOGIN_OK } from './login.ts'
export {
  type DayResult,
  type DecodedReply,
  decodeReply,
  type ExplainResult,
  encodeError,
  encodeReply,
  type ReplyContext,
  type ReplyResult,
  type SegmentResult,
  type StayResult,
} from './reply.ts'
export {
  type DecodedRequest,
  decodeRequest,
  encodeRequest,
  type FieldValue,
  type RequestFields,
  type RequestMessage,
  splitList,
} from './request.ts'
export { type Envelope, keepaliveEnvelope, unwrapFrame, wrapFrame } from './routing.ts'
