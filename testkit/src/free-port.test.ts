import { createServer } from 'node:net'
import { expect, test } from 'vitest'
import { freePort } from './free-port.ts'

test('ports are free, distinct, and outside the ephemeral range', async () => {
  const ports = await Promise.all(Array.from({ length: 50 }, freePort))

  expect(new Set(ports).size).toBe(50)
  expect(Math.max(...ports)).toBeLessThan(32_768)
  expect(Math.min(...ports)).toBeGreaterThanOrEqual(10_240)
  const server = createServer()
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(ports[0], '127.0.0.1', resolve)
  })
  await new Promise((resolve) => server.close(resolve))
})
