import { HTTP_LIMITS } from '@vacancy/shared/api/options'
import { expect, test } from 'vitest'
import { sendBytes, startTestControlPlane } from '../testing/control-plane.ts'

test('a connection that never ends its headers is closed while others are served', async () => {
  const plane = await startTestControlPlane()
  const began = performance.now()
  const slow = sendBytes(plane.url, 'GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nx-slow: ')

  expect((await plane.anonymous().call('GET', '/health')).status).toBe(200)
  const answer = await slow

  expect(answer).toMatch(/^HTTP\/1.1 408 /)
  expect(answer).toContain('request-timeout')
  expect(performance.now() - began).toBeGreaterThan(HTTP_LIMITS.headersMs - 1_000)
  await plane.stop()
})
