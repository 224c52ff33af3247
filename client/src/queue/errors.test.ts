import { expect, test } from 'vitest'
import {
  RejectJob,
  VacancyConsumerError,
  VacancyJobRefusedError,
  VacancyJobRetryError,
  VacancyJobsError,
  VacancyQueueError,
} from './errors.ts'

test('an error names its class, code, topic, job and cause', () => {
  const cause = new Error('x')
  const refused = new VacancyJobRefusedError('invalid_request', { topic: 't', id: 'a' }, 'm', 'invalid_id', cause)
  const consumer = new VacancyConsumerError('closed_4401', 't', 'm')

  expect(refused).toBeInstanceOf(VacancyQueueError)
  expect(refused).toMatchObject({ name: 'VacancyJobRefusedError', code: 'invalid_request', topic: 't', id: 'a' })
  expect(refused).toMatchObject({ message: 'm', reason: 'invalid_id', cause })
  expect(consumer).toMatchObject({ name: 'VacancyConsumerError', code: 'closed_4401', topic: 't', message: 'm' })
  expect(Object.hasOwn(consumer, 'cause')).toBe(false)
})

test('the error of several jobs counts them, and has the code of the first one', () => {
  const first = new VacancyJobRetryError('backpressure', { topic: 't', id: 'a' }, 'Full.')
  const second = new VacancyJobRetryError('client_closed', { topic: 'u', id: 'b' }, 'Closed.')
  const stored = [{ topic: 't', id: 'c', outcome: 'accepted' }] as const

  expect(new VacancyJobsError([first, second], stored)).toMatchObject({
    ...{ code: 'backpressure', topic: 't', errors: [first, second], stored },
    message: '2 of 3 jobs failed. The first one: Full.',
  })
})

test.each([
  [undefined, false, undefined],
  [{ delayMs: 0 }, true, 0],
  [{ requeue: true }, true, undefined],
  [{ requeue: false, delayMs: 5 }, false, 5],
])('a rejected job with %j', (options, requeue, delayMs) => {
  expect(new RejectJob('why', options)).toMatchObject({ name: 'RejectJob', message: 'why', requeue, delayMs })
})
