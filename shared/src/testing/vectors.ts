/** The golden frames of shared/vectors, typed. */

import { readFileSync } from 'node:fs'
import type { CommandName, Envelope, ReplyResult, RequestFields } from '../wire/index.ts'

export type RequestVector = {
  readonly name: string
  readonly hex: string
  readonly json: {
    readonly command: CommandName | null
    readonly correlationId: number
    readonly fields?: RequestFields
    readonly envelope?: Envelope
  }
}

export type MalformedVector = {
  readonly name: string
  readonly hex: string
  readonly expect: { readonly reply: 'none' | 'ERROR'; readonly code?: string; readonly connection: 'open' | 'closed' }
}

export type ReplyVector = {
  readonly name: string
  readonly hex: string
  readonly unframed?: true
  readonly baseYear?: number
  readonly codecs?: string
  readonly client?: { readonly kind: string; readonly code: string }
  readonly json: {
    readonly command: CommandName
    readonly correlationId: number
    readonly status: 'SUCCESS' | 'ERROR'
    readonly result?: ReplyResult
    readonly error?: string
  }
}

function read<Content>(file: string): Content {
  return JSON.parse(readFileSync(new URL(`../../vectors/${file}`, import.meta.url), 'utf8'))
}

export const requestVectors = read<{ cases: RequestVector[]; malformed: MalformedVector[] }>('requests.json')

export const replyVectors = read<{
  codecLists: { readonly [name: string]: string[] }
  tables: {
    propertyIds: { id: string; packed: string }[]
    refusedPropertyIds: string[]
    packedDates: { date: string; baseYear: number; value: number; bytes: string }[]
    rateFeatureMasks: { codecs: string; rateFeatures: string[]; value: number; bytes: string }[]
  }
  cases: ReplyVector[]
}>('responses.json')

/**
 * Fields that only Vacancy's own clients send to a shard of several nodes (docs/design/protocol.md#extension-fields).
 */
export const extensionVectors = read<{
  requests: RequestVector[]
  replies: ReplyVector[]
  malformed: MalformedVector[]
}>('extensions.json')

export function bytesOfHex(hex: string): Uint8Array {
  return Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
}

export function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** The codec list of the sample data, docs/design/http.md#sample-codec-list. */
export const SAMPLE_FEATURES = [
  'free_cancellation',
  'non_refundable',
  'pay_at_property',
  'includes_breakfast',
  'free_wifi',
  'no_prepayment',
  'partial_refund',
  'instant_confirmation',
]
