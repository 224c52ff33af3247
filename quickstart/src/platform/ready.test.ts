import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { freePort } from '@vacancy/testkit/free-port'
import { expect, test } from 'vitest'
import { readinessOf, reasonsIn, residentBytes } from './ready.ts'

test('reasons are read from the bodies of all components', () => {
  expect(reasonsIn('{"ready":false,"reasons":[{"name":"tables","message":"no table yet","since":"x"}]}')).toBe(
    'no table yet',
  )
  expect(reasonsIn('{"ready":false,"reasons":[{"reason":"catching_up","stops":"all","detail":""}]}')).toBe(
    'catching up',
  )
  expect(reasonsIn('{"reasons":["no leader","no follower"]}')).toBe('no leader; no follower')
  for (const text of ['', 'OK', '{}', '{"reasons":3}', '[{}]', '{"reasons":[{}, 1, null]}'])
    expect(reasonsIn(text)).toBe('')
})

test('a component that does not listen is not ready, with its address', async () => {
  const address = { host: '127.0.0.1', port: await freePort() }
  const component = { name: 'bridge-0', kind: 'bridge' as const, main: address, api: address, published: [] }

  expect(await readinessOf(component)).toEqual({
    isReady: false,
    text: `nothing listens on 127.0.0.1:${address.port} yet`,
  })
})

test('a component that closed a kept connection is asked over a new one', async () => {
  const asked = new Map<object, number>()
  const server = createServer(({ socket }, response) => {
    const before = asked.get(socket) ?? 0
    asked.set(socket, before + 1)
    if (before < 2) response.end('OK')
    else socket.destroy()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = { host: '127.0.0.1', port: (server.address() as AddressInfo).port }
  const component = { name: 'r', kind: 'registry' as const, main: address, api: address, published: [] }

  for (let at = 0; at < 3; at++) expect(await readinessOf(component)).toEqual({ isReady: true, text: '' })
  expect([...asked.values()]).toEqual([3, 1])
  server.closeAllConnections()
  server.close()
})

test('the memory of this process is known, that of an ended one is not', () => {
  expect(residentBytes(process.pid)).toBeGreaterThan(10 * 1024 ** 2)
  expect(residentBytes(2 ** 30)).toBeUndefined()
})
