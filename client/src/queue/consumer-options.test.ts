import { hostname } from 'node:os'
import { expect, test } from 'vitest'
import { createConsumer } from './consumer.ts'
import { checkConsumerOptions } from './consumer-options.ts'

test('an invalid option is named', () => {
  const options = { url: 'http://127.0.0.1:1', topic: 'orders', handler: () => undefined }
  expect(() => createConsumer({ ...options, topic: '' })).toThrow(/^topic must/)
  expect(() => createConsumer({ ...options, concurrency: 1_001 })).toThrow(/^concurrency must/)
  expect(() => createConsumer({ ...options, name: '' })).toThrow(/^name must/)
  expect(() => createConsumer({ ...options, handler: 1 as unknown as () => void })).toThrow(/^handler must/)
})

test('the limits of options are 1 and their greatest value; the name has a default', async () => {
  const options = { url: 'http://127.0.0.1:1', topic: 'orders', handler: () => undefined }
  const settings = checkConsumerOptions(options)
  expect(settings).toMatchObject({ concurrency: 10, maxRunMs: 3_600_000, fencing: false, silenceMs: 15_000 })
  expect(settings.name).toBe(`${hostname()}:${process.pid}`)
  for (const [name, least, most] of [
    ['concurrency', 1, 1_000],
    ['maxRunMs', 1, 2 ** 31 - 1],
    ['silenceMs', 1, 2 ** 31 - 1],
  ] as const) {
    for (const value of [least, most]) expect(checkConsumerOptions({ ...options, [name]: value })[name]).toBe(value)
    for (const value of [least - 1, most + 1])
      expect(() => checkConsumerOptions({ ...options, [name]: value })).toThrow(`${name} must be a whole number`)
  }
  expect(checkConsumerOptions({ ...options, name: 'x'.repeat(200) }).name).toHaveLength(200)
  expect(() => checkConsumerOptions({ ...options, name: 'x'.repeat(201) })).toThrow(
    'name must have 1 to 200 characters',
  )
  expect(() => checkConsumerOptions({ ...options, topic: 7 as unknown as string })).toThrow(/^topic must/)
})
