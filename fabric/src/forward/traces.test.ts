import { encodeError, encodeReply, encodeRequest, withTrace } from '@vacancy/shared/wire'
import { expect, test } from 'vitest'
import { createHop, type Request } from './state.ts'
import { fitTrace, hasTrace, refusesTrace, traceIdOf } from './traces.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const TRACEPARENT = `00-${TRACE}-b7ad6b7169203331-01`
const CONTEXT = { baseYear: 2026, codecs: undefined }
const FIELDS = { propertyId: 'p', roomType: 'r', date: '2026-12-01', amount: 1, wantIndex: 1 }

/** @param inEnvelope as a router gets it */
function requestOf(inEnvelope: boolean, trace?: string): Request {
  const envelope = inEnvelope ? { segment: 'paris', write: true } : undefined
  const frame = encodeRequest({ command: 'DECROOMAVL', correlationId: 7, fields: { ...FIELDS, trace }, envelope })
  return { frame: Buffer.from(frame), inner: inEnvelope ? 12 : 0 } as unknown as Request
}

const UNKNOWN = 'VALIDATION_ERROR: DECROOMAVL has no field 32831'

test.each([false, true])('a request loses its trace and nothing else (in an envelope: %s)', (inEnvelope) => {
  const hop = createHop('n1', undefined, 'node')
  const request = requestOf(inEnvelope, TRACEPARENT)
  expect(traceIdOf(request)).toBe(TRACE)
  fitTrace(request, hop, 1_000)
  expect(traceIdOf(request)).toBe(TRACE)
  const reply = Buffer.from(encodeError(7, UNKNOWN))
  expect(refusesTrace(request, hop, reply, 1_000)).toBe(true)
  expect(request.frame).toEqual(requestOf(inEnvelope).frame)
  expect(hasTrace(request)).toBe(false)
})

test('a hop that refuses traces gets none for a minute', () => {
  const hop = createHop('n1', undefined, 'node')
  const reply = Buffer.from(encodeError(7, UNKNOWN))
  refusesTrace(requestOf(false, TRACEPARENT), hop, reply, 5_000)
  const [early, late] = [requestOf(false, TRACEPARENT), requestOf(false, TRACEPARENT)]
  fitTrace(early, hop, 64_999)
  fitTrace(late, hop, 65_000)
  expect([traceIdOf(early), traceIdOf(late)]).toEqual([null, TRACE])
})

test('a hop that has accepted a trace refuses a request for another reason, unless it names the field', () => {
  const hop = createHop('edge', undefined, 'unknown')
  const refuses = (reply: Uint8Array) => refusesTrace(requestOf(true, TRACEPARENT), hop, Buffer.from(reply), 0)
  expect(refuses(encodeReply('DECROOMAVL', 7, { availability: 4 }, CONTEXT))).toBe(false)
  expect(refuses(encodeError(7, 'VALIDATION_ERROR: amount must be 1 or more'))).toBe(false)
  expect(refuses(encodeError(7, UNKNOWN))).toBe(true)
  // After that it may be any node behind it.
  expect(refuses(encodeError(7, 'PARSE_ERROR: unexpected bytes'))).toBe(true)
  expect(refuses(encodeError(7, 'UNDERFLOW: not enough rooms left, there are 1'))).toBe(false)
})

test('a proxy adds the trace as the last field, as an encoded request has it', () => {
  const without = requestOf(false).frame.subarray(9)
  expect(Buffer.from(withTrace(without, TRACEPARENT))).toEqual(requestOf(false, TRACEPARENT).frame.subarray(9))
})

test('a malformed value at the end is no trace', () => {
  expect(traceIdOf(requestOf(false, TRACEPARENT.toUpperCase()))).toBeNull()
  expect(traceIdOf(requestOf(false, 'short'))).toBeNull()
})
