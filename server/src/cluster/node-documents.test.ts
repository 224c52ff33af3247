/** Reports of a node as its page shows them, the configurations of a shard side by side, and requests with their tokens. */

import { expect, test } from 'vitest'
import type { ClusterModule } from './cluster-state.ts'
import { requestNode, sendToNode } from './node-requests.ts'

function requester(tokens: ClusterModule['config']['tokens']) {
  const requests: unknown[] = []
  let failure: Error | undefined
  const http = {
    async request(url: string, ask: object) {
      requests.push({ url, ...ask })
      if (failure) throw failure
      return { status: 200, type: '', body: '', milliseconds: 1 }
    },
  }
  const module = { config: { tokens }, http } as unknown as ClusterModule
  return {
    ...{ module, requests },
    fail: (error: Error) => {
      failure = error
    },
  }
}
const NODE = { id: 'n1', shard: 's1', zone: '', apiUrl: 'http://n1:8080', tcp: undefined }

test.each([
  ['none', undefined, undefined],
  ['monitoring', 'm', 'a'],
  ['client', 'c', 'a'],
  ['admin', 'a', 'a'],
  [undefined, 'm', 'a'],
] as const)('a request as %s has its token, or that of admins', async (as, all, onlyAdmin) => {
  const full = requester({ monitoring: 'm', client: 'c', admin: 'a' })
  const one = requester({ admin: 'a' })
  const options = as === undefined ? {} : { as }
  await requestNode(full.module, NODE, '/x', options)
  await requestNode(one.module, NODE, '/x', options)
  expect(full.requests).toEqual([
    { url: 'http://n1:8080/x', method: 'GET', body: undefined, token: all, signal: undefined },
  ])
  expect(one.requests).toMatchObject([{ token: onlyAdmin }])
})

test('a change of a node is sent with the admin token', async () => {
  const { module, requests } = requester({ admin: 'a', monitoring: 'm' })
  await sendToNode(module, NODE, '/x', undefined, 5)
  await sendToNode(module, NODE, '/x', { a: 1 }, 6)
  expect(requests).toEqual([
    { url: 'http://n1:8080/x', method: 'POST', body: {}, token: 'a', timeoutMs: 5 },
    { url: 'http://n1:8080/x', method: 'POST', body: { a: 1 }, token: 'a', timeoutMs: 6 },
  ])
})
