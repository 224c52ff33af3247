import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { makeCertificate } from '../testing/certificates.ts'
import { type Access, fetchBytes, fetchDocument, schemeOf, send } from './node-api.ts'

const ACCESS: Access = { nodes: [], token: undefined, ca: undefined }
const schema = z.object({ name: z.string() })

let folder: string
const cleanUp: (() => void)[] = []

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'vacancy-node-api-'))
})

afterEach(() => {
  for (const step of cleanUp.splice(0).reverse()) step()
  rmSync(folder, { recursive: true, force: true })
})

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanUp.push(() => server.close())
  return (server.address() as AddressInfo).port
}

async function serve(handler: RequestListener): Promise<string> {
  const server = createServer(handler)
  cleanUp.push(() => server.closeAllConnections())
  return `http://127.0.0.1:${await listen(server)}/path`
}

const respond = (status: number, body: string) => serve((_request, response) => response.writeHead(status).end(body))

/** Code and text of a failure, with `NODE` in place of the address. */
async function faultOf(running: Promise<unknown>): Promise<string> {
  try {
    await running
  } catch (error) {
    const { code, message } = error as { code: string; message: string }
    return `${code}: ${message.replaceAll(/127\.0\.0\.1:\d+/g, 'NODE')}`
  }
  throw new Error('nothing failed')
}

test.each([
  [
    401,
    '{"error":"no token"}',
    ' 401: no token (give a token of its auth file with --token-file; without an auth file',
  ],
  [403, '{"error":"role client"}', ' 403: role client (the role of the token is below admin)'],
  [500, '{"error":"disk full"}', ' 500: disk full'],
  [201, '{"name":"a"}', ' 201: {"name":"a"}'],
  [502, `<html>${'x'.repeat(300)}`, ` 502: <html>${'x'.repeat(194)}`],
])('a reply with status %i and %s is a failure with its reason', async (status, body, text) => {
  const fault = await faultOf(fetchDocument(ACCESS, await respond(status, body), schema))

  expect(fault.slice(0, 'failure: NODE answered'.length)).toBe('failure: NODE answered')
  expect(fault.slice('failure: NODE answered'.length).slice(0, text.length)).toBe(text)
  if (status >= 500) expect(fault).toBe(`failure: NODE answered${text}`)
})

test('bytes are fetched up to the limit, and are undefined where there are none', async () => {
  const url = await respond(200, '0123456789')

  expect(Buffer.from((await fetchBytes(ACCESS, url, 10)) ?? []).toString()).toBe('0123456789')
  expect(await faultOf(fetchBytes(ACCESS, url, 9))).toMatch(/^connection_lost: .*the response exceeds 9 bytes/)
  expect(await fetchBytes(ACCESS, await respond(404, 'none'), 10)).toBeUndefined()
  expect(await faultOf(fetchBytes(ACCESS, await respond(500, '{"error":"disk full"}'), 100))).toBe(
    'failure: NODE answered 500: disk full',
  )
})

test('a reply has its limit of 4 MiB, or that of the caller', async () => {
  const url = await serve(({ url: path = '' }, response) => {
    response.end(Buffer.alloc(Number(/\d+/.exec(path)?.[0]), 'x'))
  })
  // A response whose last part was one too many used to be passed on without it.
  const sizeOf = async (access: Access, bytes: number) =>
    (await send(access, 'GET', url.replace('path', String(bytes)))).body.length

  expect(await sizeOf(ACCESS, 4_194_304)).toBe(4_194_304)
  expect(await faultOf(sizeOf(ACCESS, 4_194_305))).toContain('the response exceeds 4194304 bytes')
  expect(await sizeOf({ ...ACCESS, answerBytesMax: 5 }, 5)).toBe(5)
  expect(await faultOf(sizeOf({ ...ACCESS, answerBytesMax: 5 }, 6))).toContain('the response exceeds 5 bytes')
})

test('authorities select TLS, and decide which nodes are trusted', async () => {
  const pair = makeCertificate({ subject: 'node' })
  const server = createTlsServer({ cert: pair.cert, key: pair.key }, (_request, response) =>
    response.end('{"name":"a"}'),
  )
  server.on('tlsClientError', () => {})
  cleanUp.push(() => server.closeAllConnections())
  const url = `https://127.0.0.1:${await listen(server)}/`
  const other = makeCertificate({ subject: 'other' })

  expect(await fetchDocument({ ...ACCESS, ca: pair.cert }, url, schema)).toEqual({ name: 'a' })
  expect(await faultOf(send({ ...ACCESS, ca: other.cert }, 'GET', url))).toMatch(/^connection_lost: .*SELF_SIGNED/)
  expect(await faultOf(send(ACCESS, 'GET', url))).toMatch(/^connection_lost: .*SELF_SIGNED/)
  expect([schemeOf(ACCESS), schemeOf({ ...ACCESS, ca: pair.cert })]).toEqual(['http:', 'https:'])
})
