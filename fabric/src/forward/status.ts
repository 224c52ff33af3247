/**
 * `__status__`: what the other end of a connection is (docs/design/fabric.md#status). Components of this project answer
 * with one text field holding JSON. An existing router answers 404, an existing bridge with a codec list.
 */

import { isUtf8 } from 'node:buffer'
import { MAGIC_FRAME } from '@vacancy/shared/wire'
import { z } from 'zod'
import { writeId } from './frames.ts'

export const STATUS_SEGMENT = '__status__'

const status = z.object({
  component: z.enum(['router', 'bridge']),
  id: z.string(),
  zone: z.string(),
  shard: z.string().optional(),
  mode: z.enum(['edge', 'zone']).optional(),
  version: z.string(),
  /** Shards behind it that do not serve. */
  faults: z.record(z.string(), z.string()).optional(),
  /** False when none does. */
  serves: z.boolean().optional(),
})
export type Status = z.infer<typeof status>

const SUCCESS = 'SUCCESS'
const TYPE_TEXT = 1
/** u8 length, SUCCESS, u16 field count, u16 id, u8 type, u32 length. */
const TEXT_AT = 1 + SUCCESS.length + 2 + 2 + 1 + 4

/** The frame of a reply with one field. */
function oneField(id: number, type: number, data: Buffer): Buffer {
  const frame = Buffer.alloc(9 + TEXT_AT + data.length)
  frame[0] = MAGIC_FRAME
  writeId(frame, 0, id)
  frame.writeUInt32LE(TEXT_AT + data.length, 5)
  frame[9] = SUCCESS.length
  frame.write(SUCCESS, 10, 'latin1')
  frame.writeUInt16LE(1, 17)
  frame.writeUInt16LE(1, 19)
  frame[21] = type
  frame.writeUInt32LE(data.length, 22)
  data.copy(frame, 26)
  return frame
}

export function statusFrame(id: number, own: Status): Buffer {
  return oneField(id, TYPE_TEXT, Buffer.from(JSON.stringify(own)))
}

const REFUSED = Buffer.from('\x05ERROR')

/** The text of an ERROR that refuses this side as a client; '' for any other reply. */
export function readRefusal(payload: Buffer): string {
  // u8 length, ERROR, u16 field count, u16 id, u8 type, u32 length.
  const textAt = REFUSED.length + 2 + 2 + 1 + 4
  if (!payload.subarray(0, REFUSED.length).equals(REFUSED)) return ''
  const text = payload.toString('utf8', textAt, textAt + 200)
  return text.startsWith('AUTH_ERROR') ? text : ''
}

/** @param payload of a reply to `__status__`. @returns undefined when the other end is not of this project */
export function readStatusReply(payload: Buffer): Status | undefined {
  if (payload.length <= TEXT_AT || payload.toString('latin1', 1, 1 + SUCCESS.length) !== SUCCESS) return undefined
  if (payload[TEXT_AT - 5] !== TYPE_TEXT) return undefined
  const text = payload.subarray(TEXT_AT)
  if (!isUtf8(text) || text[0] !== 0x7b) return undefined
  try {
    return status.safeParse(JSON.parse(text.toString())).data
  } catch {
    // Not JSON: some other component, which is a valid answer to the question.
    return undefined
  }
}
