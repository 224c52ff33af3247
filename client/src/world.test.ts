import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { CERTIFICATE, PRIVATE_KEY } from './testing/certificate.ts'
import { until } from './testing/until.ts'
import { systemWorld } from './world.ts'

const open: Server[] = []
afterEach(async () => {
  for (const server of open.splice(0)) {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
})

async function serve(listener: RequestListener, server: Server = createServer(listener)): Promise<number> {
  open.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}
const PLAIN = { token: undefined, tls: undefined, answerMs: 30_000 }
const get = (port: number, more: Partial<typeof PLAIN | { token: string }> = {}) =>
  systemWorld.getText(new URL(`http://127.0.0.1:${port}/page`), { ...PLAIN, ...more })

test('a page is read with any status, with the token if there is one', async () => {
  const seen: unknown[] = []
  const port = await serve(({ url, headers }, response) => {
    seen.push([url, headers.authorization])
    response.writeHead(503).write('é')
    response.end('nd')
  })

  expect([await get(port), await get(port, { token: 'secret' })]).toEqual(['énd', 'énd'])
  expect(seen).toEqual([
    ['/page', undefined],
    ['/page', 'Bearer secret'],
  ])
})

test('a page of more than 64 KiB, without an end, or without a server is an error', async () => {
  const long = await serve((_, response) => response.end('x'.repeat(65_537)))
  const whole = await serve((_, response) => response.end('x'.repeat(65_536)))
  const silent = await serve(() => undefined)
  const half = await serve((_, response) => {
    response.writeHead(200, { 'content-length': 10 })
    response.write('12345', () => response.destroy())
  })

  await expect(get(long)).rejects.toThrow('more than 65536 bytes')
  expect(await get(whole)).toHaveLength(65_536)
  await expect(get(silent, { answerMs: 50 })).rejects.toThrow()
  await expect(get(half)).rejects.toThrow()
})

test('over TLS the certificate is verified by the options', async () => {
  const server = createTlsServer({ cert: CERTIFICATE, key: PRIVATE_KEY }, (_, response) => response.end('secure'))
  const port = await serve(() => undefined, server as unknown as Server)
  const url = new URL(`https://127.0.0.1:${port}/`)

  expect(await systemWorld.getText(url, { ...PLAIN, tls: { ca: CERTIFICATE } })).toBe('secure')
  await expect(systemWorld.getText(url, PLAIN)).rejects.toThrow('self-signed')
})

test('a timer runs once, unless it was cancelled; random values are in their range', async () => {
  let runs = 0
  const cancel = systemWorld.after(1, () => (runs = 100))
  systemWorld.after(1, () => runs++)
  cancel()
  await until(() => runs > 0)

  expect(runs).toBe(1)
  const values = Array.from({ length: 50 }, () => systemWorld.random())
  expect(values.every((value) => value >= 0 && value < 1)).toBe(true)
  expect(new Set(values).size).toBeGreaterThan(1)
  expect(systemWorld.randomBytes(5)).toHaveLength(5)
})
