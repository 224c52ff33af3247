import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { CERTIFICATE, PRIVATE_KEY } from '../testing/certificate.ts'
import { closeEndpoint, createEndpoint, type Endpoint, type EndpointOptions, post } from './endpoint.ts'
import { outcomeOf, outcomesOf } from './submission.ts'

const jobs = (...ids: string[]) => ids.map((id) => ({ id, isRepeated: false }))

test('an id that occurs twice in a request is a duplicate the second time, or both times when it was known', () => {
  expect(outcomesOf(jobs('a', 'a'), ['a'])).toEqual(['accepted', 'duplicate'])
  expect(outcomesOf(jobs('a', 'a'), ['a', 'a'])).toEqual(['duplicate', 'duplicate'])
})

test('when more ids were known than are listed, jobs are stored by this request or before', () => {
  const body = JSON.stringify({ status: 'success', topic: 't', accepted: 0, duplicates: 2, duplicateIds: ['a'] })

  expect(outcomeOf(200, body, 2, undefined)).toEqual({ kind: 'stored', duplicateIds: undefined })
  expect(outcomesOf(jobs('a', 'b'), undefined)).toEqual(['stored', 'stored'])
})

test('a refusal names the time to wait in its body or in its header', () => {
  const body = JSON.stringify({ error: 'queue_full', message: 'full', retryAfterMs: 70 })

  expect(outcomeOf(429, body, 1, 1_000)).toMatchObject({ kind: 'repeat', waitMs: 70, inDoubt: false })
  expect(outcomeOf(429, '', 1, 1_000)).toMatchObject({ kind: 'repeat', code: 'http_429', waitMs: 1_000 })
})

test('failures without a place in the request are ignored', () => {
  const failures = [{ index: 9, id: 'x', reason: 'invalid_id' }, { id: 'y' }]
  const body = JSON.stringify({ error: 'invalid_request', message: 'm', failures })

  expect(outcomeOf(400, body, 1, undefined)).toEqual({
    kind: 'refused',
    code: 'invalid_request',
    message: 'm',
    maySplit: true,
  })
})

describe('an endpoint', () => {
  const endings: (() => unknown)[] = []
  afterEach(async () => {
    for (const end of endings.splice(0).reverse()) await end()
  })

  function endpointOf(options: EndpointOptions): Endpoint {
    const endpoint = createEndpoint(options)
    endings.push(() => closeEndpoint(endpoint))
    return endpoint
  }

  async function serve(listener: RequestListener, server: Server = createServer(listener)) {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    endings.push(() => {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(resolve))
    })
    return (server.address() as AddressInfo).port
  }

  test('a response of exactly one MiB is read', async () => {
    const port = await serve((_, response) => response.end('x'.repeat(1 << 20)))
    const base = `http://127.0.0.1:${port}`
    expect(await post(endpointOf({ url: base }), base, '{}', 5_000)).toMatchObject({ status: 200 })
  })

  test('with https the certificate is verified by the options of the endpoint', async () => {
    const server = createTlsServer({ cert: CERTIFICATE, key: PRIVATE_KEY }, (_, response) => response.end('secure'))
    const port = await serve(() => undefined, server as unknown as Server)
    const url = `https://127.0.0.1:${port}`

    expect(await post(endpointOf({ url, tls: { ca: CERTIFICATE } }), url, '{}', 5_000)).toMatchObject({
      text: 'secure',
    })
    expect(await post(endpointOf({ url }), url, '{}', 5_000)).toMatchObject({
      failure: expect.stringContaining('self-signed'),
    })
  })
})
