/** The client of the job queue: `createProducer`, `createConsumer`, and error classes by what can be done. */

export { createConsumer } from './consumer.ts'
export type { Consumer, ConsumerOptions, ConsumerStats, HandlerContext } from './consumer-options.ts'
export {
  RejectJob,
  VacancyConsumerError,
  VacancyJobRefusedError,
  VacancyJobRetryError,
  VacancyJobsError,
  VacancyJobUnknownError,
  VacancyQueueError,
} from './errors.ts'
export type { Job, NewJob, SubmittedJob } from './job.ts'
export { createProducer, type Producer, type ProducerOptions, type ProducerStats } from './producer.ts'
