/** The golden frames: the bytes that existing clients send and understand. */

import { expect, test } from 'vitest'
import { createCodecList } from '../codecs.ts'
import { LIMITS } from '../domain.ts'
import { VacancyError } from '../errors.ts'
import {
  bytesOfHex,
  extensionVectors,
  hexOf,
  type MalformedVector,
  replyVectors,
  requestVectors,
} from '../testing/vectors.ts'
import { COMMAND_LIST, COMMANDS, REPLIES, type ReplyKind } from './commands.ts'
import { createFrameSplitter, splitFrames } from './frame.ts'
import { LOGIN_FAILED, LOGIN_OK } from './login.ts'
import { decodeReply, encodeError, encodeReply } from './reply.ts'
import { decodeRequest, encodeRequest } from './request.ts'
import { decodeEnvelope, encodeKeepalive, FRAME_HEADER_BYTES } from './routing.ts'

const ENGINE = { payloadBytesMax: LIMITS.requestPayloadBytesMax, skipBytesMax: LIMITS.skippedPayloadBytesMax }

type Outcome = { reply: string; connection: string; frames: { payload: Uint8Array; id: number; inEnvelope: boolean }[] }

/** What an engine makes of a stream, without validating values. */
function receive(bytes: Uint8Array): Outcome {
  const outcome: Outcome = { reply: 'none', connection: 'open', frames: [] }
  splitFrames(createFrameSplitter(ENGINE), bytes, {
    frame: (chunk, start, end, id, inEnvelope) => {
      outcome.frames.push({ payload: chunk.slice(start, end), id, inEnvelope })
    },
    refuse: (_id, text) => {
      outcome.reply = text
    },
    fatal: () => {
      outcome.connection = 'closed'
    },
  })
  return outcome
}

test('the vectors of existing clients are all here, and ours only become more', () => {
  expect(requestVectors.cases).toHaveLength(76)
  expect(requestVectors.malformed).toHaveLength(28)
  expect(replyVectors.cases).toHaveLength(57)
  expect(extensionVectors.requests.length).toBeGreaterThanOrEqual(40)
  expect(extensionVectors.replies.length).toBeGreaterThanOrEqual(18)
  expect(extensionVectors.malformed.length).toBeGreaterThanOrEqual(20)
})

test('every kind of reply and every extension field has a vector', () => {
  const kinds = [...replyVectors.cases, ...extensionVectors.replies].map(({ json }) => COMMANDS[json.command].reply)
  const fields = [...requestVectors.cases, ...extensionVectors.requests].flatMap(({ json }) =>
    Object.keys(json.fields ?? {}),
  )
  const extensions = COMMAND_LIST.flatMap((command) => command.fields).filter(({ extension }) => extension)

  expect(Object.keys(REPLIES).filter((kind) => !kinds.includes(kind as ReplyKind))).toEqual([])
  expect(extensions.filter(({ name }) => !fields.includes(name)).map(({ name }) => name)).toEqual([])
})

test('every command that is served has a vector with the fields of its kind', () => {
  const covered = new Set(
    extensionVectors.requests.map(({ json: { command, fields = {} } }) => `${command} ${Object.keys(fields)}`),
  )
  const lacking = COMMAND_LIST.filter(({ access }) => access !== 'session').filter(
    ({ name, access }) =>
      ![...covered].some(
        (c) => c.startsWith(name) && c.includes(access === 'read' ? 'minIndex,linearizable' : 'wantIndex'),
      ),
  )

  expect(lacking.map(({ name }) => name)).toEqual([])
})

test('no vector of existing clients has extension fields', () => {
  const ours = ['maxStalenessMs', 'minIndex', 'linearizable', 'wantIndex']
  const names = requestVectors.cases.flatMap(({ json }) => Object.keys(json.fields ?? {}))

  expect(names.filter((name) => ours.includes(name))).toEqual([])
})

const requests = [...requestVectors.cases, ...extensionVectors.requests]

test.each(requests)('request $name is written byte for byte', ({ json, hex }) => {
  const { command, correlationId, fields = {}, envelope } = json
  const frame = command ? encodeRequest({ command, correlationId, fields, envelope }) : encodeKeepalive(correlationId)

  expect(hexOf(frame)).toBe(hex)
})

test.each(requests)('request $name is decoded', ({ json, hex }) => {
  const { frames, reply, connection } = receive(bytesOfHex(hex))
  const [frame] = frames

  expect({ reply, connection }).toEqual({ reply: 'none', connection: 'open' })
  if (json.command === null) return expect(frames).toEqual([])
  expect(frame).toMatchObject({ id: json.correlationId, inEnvelope: json.envelope !== undefined })
  expect(decodeRequest(frame?.payload ?? new Uint8Array())).toEqual({ command: json.command, fields: json.fields })
})

test.each(requestVectors.cases.filter(({ json }) => json.envelope))('envelope $name opens', ({ json, hex }) => {
  const { frameStart, ...envelope } = decodeEnvelope(bytesOfHex(hex))

  expect(envelope).toEqual(json.envelope)
  expect(hex.slice(frameStart * 2, frameStart * 2 + 2)).toBe('ff')
})

/** Commands that the connection itself refuses: they are valid to the codec. */
function refusalOf({ payload, inEnvelope }: Outcome['frames'][number]): string {
  try {
    const { command } = decodeRequest(payload)
    const isHiddenLogin = COMMANDS[command].access === 'session' && inEnvelope
    return isHiddenLogin ? 'VALIDATION_ERROR: LOGIN in an envelope' : 'none'
  } catch (error) {
    if (!(error instanceof VacancyError)) throw error
    return error.code === 'parse_error' ? `PARSE_ERROR: ${error.message}` : `VALIDATION_ERROR: ${error.message}`
  }
}

test.each<MalformedVector>([...requestVectors.malformed, ...extensionVectors.malformed])(
  'malformed input $name gets the documented error',
  ({ hex, expect: wanted }) => {
    const outcome = receive(bytesOfHex(hex))
    const [frame] = outcome.frames
    const reply = frame ? refusalOf(frame) : outcome.reply

    expect(outcome.connection).toBe(wanted.connection)
    expect(reply.split(':')[0]).toBe(wanted.reply === 'none' ? 'none' : wanted.code)
  },
)

const codecsOf = (name: string | undefined) => createCodecList(replyVectors.codecLists[name ?? 'codecs8'] ?? [])

const replies = [...replyVectors.cases, ...extensionVectors.replies].filter(({ unframed }) => !unframed)

test.each(replies)('reply $name is written byte for byte', (vector) => {
  const { command, correlationId, result, error } = vector.json
  const context = { baseYear: vector.baseYear ?? 2026, codecs: codecsOf(vector.codecs) }
  const frame =
    error === undefined
      ? encodeReply(command, correlationId, result as never, context)
      : encodeError(correlationId, error)

  expect(hexOf(frame)).toBe(vector.hex)
})

test.each(replies)('reply $name is decoded', (vector) => {
  const { command, result, error } = vector.json
  const context = { baseYear: vector.baseYear ?? 2026, codecs: codecsOf(vector.codecs) }
  const reply = decodeReply(command, bytesOfHex(vector.hex).subarray(FRAME_HEADER_BYTES), context)

  if (reply.ok) return expect(reply.result).toEqual(result)
  expect(reply.message === '' ? reply.code : `${reply.code}: ${reply.message}`).toBe(error)
})

test('LOGIN is answered with bare text', () => {
  const [ok, failed] = replyVectors.cases.filter(({ unframed }) => unframed)

  expect(hexOf(LOGIN_OK)).toBe(ok?.hex)
  expect(hexOf(LOGIN_FAILED)).toBe(failed?.hex)
})

test('the error frame of existing routers, whose lengths do not add up, is understood', () => {
  const payload = bytesOfHex('054552524f520100010001040000000300000034 3034'.replace(' ', ''))

  expect(decodeReply('PROPEXIST', payload, { baseYear: 2026, codecs: undefined })).toEqual({
    ok: false,
    code: '404',
    message: '',
  })
})
