/**
 * The handshake of a connection between nodes: the dialler sends its identity, the node it means and the stream; the
 * acceptor replies with its identity or a refusal (tls-transport.ts). Each message is one frame:
 *
 *   magic u32 · protocol u8 · kind u8 · fields
 */

import { bytesOf, createWriter, type Field, hex, id, type Reader, record, u8, u32, word } from './frame-fields.ts'
import { STREAMS, type StreamKind } from './transport.ts'

export const INSTANCE_BYTES = 16
/** Two ids of the largest size and the rest. */
export const HELLO_BYTES_MAX = 320
/** Version of the stream protocol; frames have a version of their own. */
const PROTOCOL = 1
/** `VPEH` */
const MAGIC = 0x48455056

export type Hello = {
  readonly stream: StreamKind
  /** Identifies the process: 32 hexadecimal digits. */
  readonly instance: string
  readonly from: string
  readonly to: string
}
export type Welcome = { readonly instance: string; readonly node: string }

/** Reasons that matter to the operator of the dialler. New ones are appended. */
export const REFUSALS = ['addressee', 'duplicate', 'self', 'crowded', 'certificate', 'identity'] as const
export type Refusal = (typeof REFUSALS)[number]

const KIND = { hello: 1, welcome: 2, refusal: 3 } as const
const HEAD = record<{ magic: number; protocol: number; kind: number }>({ magic: u32, protocol: u8, kind: u8 })
const HELLO = record<Hello>({ stream: word(STREAMS), instance: hex(INSTANCE_BYTES), from: id, to: id })
const WELCOME = record<Welcome>({ instance: hex(INSTANCE_BYTES), node: id })
const REFUSAL = record<{ refusal: Refusal }>({ refusal: word(REFUSALS) })

export const encodeHello = (hello: Hello): Uint8Array => encode(KIND.hello, HELLO, hello)
export const encodeWelcome = (welcome: Welcome): Uint8Array => encode(KIND.welcome, WELCOME, welcome)
export const encodeRefusal = (refusal: Refusal): Uint8Array => encode(KIND.refusal, REFUSAL, { refusal })

/** @returns undefined for other bytes */
export const decodeHello = (bytes: Uint8Array): Hello | undefined => decode(bytes, KIND.hello, HELLO)

/** Decodes the reply of the acceptor. @returns undefined for other bytes */
export function decodeAnswer(bytes: Uint8Array): Welcome | { readonly refusal: Refusal } | undefined {
  return decode(bytes, KIND.welcome, WELCOME) ?? decode(bytes, KIND.refusal, REFUSAL)
}

function encode<T>(kind: number, field: Field<T>, value: T): Uint8Array {
  const writer = createWriter(HELLO_BYTES_MAX)
  HEAD.put(writer, { magic: MAGIC, protocol: PROTOCOL, kind })
  field.put(writer, value)
  return bytesOf(writer)
}

function decode<T>(bytes: Uint8Array, kind: number, field: Field<T>): T | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const reader: Reader = { bytes, view, at: 0, isBad: false }
  const head = HEAD.take(reader, {})
  if (head.magic !== MAGIC || head.protocol !== PROTOCOL || head.kind !== kind) return undefined
  const value = field.take(reader, {})
  return reader.isBad || reader.at !== bytes.length ? undefined : value
}
