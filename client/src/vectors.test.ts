import { readFileSync } from 'node:fs'
import { assert, createCodecList } from '@vacancy/shared'
import { COMMANDS, type CommandName, type FieldSpec } from '@vacancy/shared/wire'
import { afterEach, expect, test } from 'vitest'
import { connectIn, type VacancyClient } from './client.ts'
import {
  VacancyCallError,
  VacancyClientError,
  VacancyRequestError,
  VacancyRetryError,
  VacancyUnknownOutcomeError,
} from './errors.ts'
import { type ScriptedNode, startScriptedNode } from './testing/scripted-node.ts'
import { turnedWorld } from './testing/turned-world.ts'
import { until } from './testing/until.ts'

type Case = {
  readonly name: string
  readonly hex: string
  readonly unframed?: boolean
  readonly baseYear?: number
  readonly codecs?: string
  readonly client?: { readonly kind: string; readonly code: string }
  readonly json: {
    readonly command: CommandName
    readonly status: 'SUCCESS' | 'ERROR'
    readonly result?: { readonly properties?: { readonly days: { readonly date: string }[] }[] }
    readonly error?: string
  }
}

const vectors = JSON.parse(readFileSync(new URL('../../shared/vectors/responses.json', import.meta.url), 'utf8')) as {
  readonly codecLists: { readonly [name: string]: string[] }
  readonly cases: readonly Case[]
}
const framed = vectors.cases.filter(({ unframed }) => !unframed)

let node: ScriptedNode | undefined
afterEach(() => node?.close())

/** The vector with the correlation id of its request. */
function answerTo(id: number, { hex }: Case): Buffer {
  const bytes = Buffer.from(hex, 'hex')
  bytes.writeUInt32LE(id, 1)
  return bytes
}

const SAMPLES = { text: 'x', list: ['x'], u8: 1, u32: 1, u64: 1, f64: 1, lines: [], names: [], u8s: [], u64s: [] }

function sampleOf(spec: FieldSpec): unknown {
  if (spec.name === 'date') return '2026-12-24'
  return SAMPLES[spec.width]
}

/** Nights as in the vector: packed dates are read relative to those of the request. */
function fieldsFor({ json }: Case): object {
  const fields = COMMANDS[json.command].fields.filter(({ required }) => required)
  const sample = Object.fromEntries(fields.map((spec) => [spec.name, sampleOf(spec)]))
  const dates = json.result?.properties?.[0]?.days.map(({ date }) => date)
  return dates ? { ...sample, dates } : sample
}

async function start(vector: Case) {
  const year = vector.baseYear ?? 2026
  const world = turnedWorld(Date.UTC(year, 6, 1))
  const rateFeatures = vectors.codecLists[vector.codecs ?? 'codecs8']
  assert(rateFeatures, 'the list of the vector is there')
  createCodecList(rateFeatures)
  node = await startScriptedNode({ codecs: (received) => received.answer({ rateFeatures }) })
  const client = await connectIn(world, { port: node.port })
  return { world, client, node }
}

function ask(client: VacancyClient, vector: Case): Promise<unknown> {
  return client.send(vector.json.command as 'PROPEXIST', fieldsFor(vector) as { propertyId: string })
}

test('there are 57 responses, two of them bare text', () => {
  expect(vectors.cases).toHaveLength(57)
  expect(framed).toHaveLength(55)
})

test.each(framed.filter(({ json }) => json.status === 'SUCCESS'))('$name comes out of a call', async (vector) => {
  const { client, node } = await start(vector)

  const result = ask(client, vector)
  const received = await node.next()
  // Byte by byte: the client assembles it.
  for (const byte of answerTo(received.id, vector)) received.peer.socket.write(Uint8Array.of(byte))

  expect(await result).toEqual(vector.json.result)
  await client.close()
})

const CLASSES: { readonly [kind: string]: typeof VacancyCallError } = {
  REQUEST: VacancyRequestError,
  CLIENT: VacancyClientError,
  RETRY: VacancyRetryError,
  // The libraries' `internal` does not determine what to do.
  'INTERNAL 404': VacancyRequestError,
  'INTERNAL 408': VacancyUnknownOutcomeError,
  // The class for a read, which changes nothing even when it fails.
  'INTERNAL 500': VacancyClientError,
  'INTERNAL PARSE_ERROR': VacancyClientError,
}

test.each(framed.filter(({ json }) => json.status === 'ERROR'))('$name is thrown', async (vector) => {
  const { world, client, node } = await start(vector)
  const { error = '', command } = vector.json
  const code = error.split(':')[0] ?? ''
  const kind = vector.client?.kind === 'INTERNAL' ? `INTERNAL ${code}` : (vector.client?.kind ?? '')

  const failure = ask(client, vector).catch((thrown: unknown) => thrown)
  const received = await node.next()
  received.peer.socket.write(answerTo(received.id, vector))
  // Retries wait for their time, and the deadline passes first.
  await until(() => client.status().inFlight === 0)
  if (client.status().unsettled > 0) world.advance(2000)

  const thrown = await failure
  expect(thrown).toBeInstanceOf(CLASSES[kind])
  assert(thrown instanceof VacancyCallError, 'only such errors are thrown')
  expect([thrown.code, thrown.command]).toEqual([code, command])
  if (error.includes(':')) expect(thrown.message).toBe(error.slice(error.indexOf(':') + 1).trim())
  else expect(thrown.message).toMatch(/^[A-Z].*[.]$/)
  await client.close()
})

test.each(vectors.cases.filter(({ unframed }) => unframed))('$name answers LOGIN, in pieces', async (vector) => {
  const bytes = Buffer.from(vector.hex, 'hex')
  node = await startScriptedNode({ login: [bytes.subarray(0, 7), bytes.subarray(7)] })

  const connecting = connectIn(turnedWorld(), { port: node.port, token: 'abc123' })

  if (vector.json.status === 'SUCCESS') {
    const client = await connecting
    expect(client.rateFeatures).toEqual(['breakfast', 'late_checkout', 'sea_view'])
    await client.close()
  } else {
    await expect(connecting).rejects.toMatchObject({ name: 'VacancyClientError', code: 'login_failed' })
  }
})
