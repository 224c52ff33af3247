import { afterEach, expect, test } from 'vitest'
import { closeServers, serve } from '../testing/http-server.ts'
import type { ClusterAnswer } from './handle.ts'

afterEach(closeServers)

async function change(body: object, answer: ClusterAnswer = { status: 202, text: 'holds_max = 5 was proposed' }) {
  const sent: unknown[] = []
  const changeSetting = (name: string, value: number) => {
    sent.push([name, value])
    return Promise.resolve(answer)
  }
  const { post } = await serve({ handle: { changeSetting } })
  const response = await post('/admin/settings', body)
  return { status: response.status, text: await response.text(), sent }
}

test('a setting is changed on the leader', async () => {
  expect(await change({ name: 'holds_max', value: 5 })).toEqual({
    status: 202,
    text: '{"message":"holds_max = 5 was proposed"}',
    sent: [['holds_max', 5]],
  })
  expect(await change({ name: 'holds_max', value: 5 }, { status: 503, text: 'no leader' })).toMatchObject({
    status: 503,
  })
})

test.each<[object, string]>([
  [{}, 'name and value are required'],
  [{ name: 'holds_max', value: '5' }, 'name and value are required'],
  [{ name: 'holds_max', value: 0 }, 'holds_max must be 1 to 10000000, got 0'],
  [{ name: 'holds_max', value: 1.5 }, 'holds_max must be 1 to 10000000, got 1.5'],
  [{ name: 'stays_bytes', value: 1 }, 'stays_bytes must be 1048576 to 2147483647, got 1'],
  [{ name: 'toString', value: 5 }, 'unknown setting toString'],
])('%j is refused', async (body, message) => {
  const { status, text, sent } = await change(body)

  expect(status).toBe(400)
  expect(text).toContain(message)
  expect(sent).toEqual([])
})
