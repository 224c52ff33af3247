/** `vacancy health` against programs that are ready, that are not, and that do not answer. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { runVacancy } from '@vacancy/testkit/node'
import { afterAll, beforeAll, expect, test } from 'vitest'

const NOT_READY = '{"ready":false,"reasons":[{"name":"database","message":"the database does not respond"}]}'
let address: string
const server = createServer((request, response) => {
  response.statusCode = request.url === '/ready' ? 503 : 200
  response.end(request.url === '/ready' ? NOT_READY : '{"status":"ok"}')
})

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  address = `127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => void server.close())

test('a program that is not ready is exit code 1 with its reasons, one that lives is 0', async () => {
  const ready = await runVacancy(['health', '--address', address])
  expect({ code: ready.code, stderr: ready.stderr }).toEqual({
    code: 1,
    stderr: `vacancy health: ${address} answered 503: ${NOT_READY}\n`,
  })

  const health = await runVacancy(['health', '--address', address, '--path', '/health'])
  expect({ code: health.code, stdout: health.stdout }).toEqual({ code: 0, stdout: '{"status":"ok"}\n' })
})

test('a program that does not answer is exit code 1', async () => {
  const { code, stderr } = await runVacancy(['health', '--address', '127.0.0.1:1'])

  expect(code).toBe(1)
  expect(stderr).toMatch(/^vacancy health: .*127\.0\.0\.1:1.*ECONNREFUSED/)
})
