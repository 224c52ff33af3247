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

test('the memory of this process is known, that of an ended one is not', () => {
  expect(residentBytes(process.pid)).toBeGreaterThan(10 * 1024 ** 2)
  expect(residentBytes(2 ** 30)).toBeUndefined()
})
