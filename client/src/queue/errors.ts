/** Error classes of producers and consumers, by what a caller can do about them. */

import type { SubmittedJob } from './job.ts'

/** The common base of all errors of producers and consumers. */
export class VacancyQueueError extends Error {
  /** A code of the queue, such as `topic_not_found`, or one of the client, such as `deadline_exceeded`. */
  readonly code: string
  readonly topic: string

  constructor(code: string, topic: string, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = new.target.name
    this.code = code
    this.topic = topic
  }
}

/** An error of one submitted job. */
class JobError extends VacancyQueueError {
  readonly id: string

  constructor(code: string, job: { readonly topic: string; readonly id: string }, message: string, cause?: unknown) {
    super(code, job.topic, message, cause)
    this.id = job.id
  }
}

/** The job is not stored, and submitting it again does not help: correct the job, the topic or the token. */
export class VacancyJobRefusedError extends JobError {
  /**
   * What is invalid in the job: `invalid_id`, `invalid_base64`, `payload_too_large`, `topic_mismatch`,
   * `invalid_option`, `unknown_field` or `invalid_data`. Undefined for other codes than `invalid_request`.
   */
  readonly reason: string | undefined

  constructor(
    code: string,
    job: { readonly topic: string; readonly id: string },
    message: string,
    reason?: string,
    cause?: unknown,
  ) {
    super(code, job, message, cause)
    this.reason = reason
  }
}

/** The job is not stored. The same submission may succeed later. */
export class VacancyJobRetryError extends JobError {}

/** The job may be stored or not. Submit it again with the same id, which is harmless. */
export class VacancyJobUnknownError extends JobError {}

/** Some jobs of one call failed. The others are stored. */
export class VacancyJobsError extends VacancyQueueError {
  /** One error for each job that failed. */
  readonly errors: readonly VacancyQueueError[]
  readonly stored: readonly SubmittedJob[]

  constructor(errors: readonly [VacancyQueueError, ...VacancyQueueError[]], stored: readonly SubmittedJob[]) {
    const [first] = errors
    const count = errors.length + stored.length
    super(first.code, first.topic, `${errors.length} of ${count} jobs failed. The first one: ${first.message}`)
    this.errors = errors
    this.stored = stored
  }
}

/** A consumer lost its connection, or cannot continue. */
export class VacancyConsumerError extends VacancyQueueError {}

/**
 * Thrown by a handler to choose what happens to its job. Without options the job becomes dead at once; with `delayMs`
 * it is delivered again after that time. Any other error has the job delivered again after the backoff of its topic.
 */
export class RejectJob extends Error {
  override readonly name = 'RejectJob'
  readonly requeue: boolean
  readonly delayMs: number | undefined

  /** @param message is stored as the job's last error */
  constructor(message: string, options: { readonly requeue?: boolean; readonly delayMs?: number } = {}) {
    super(message)
    this.requeue = options.requeue ?? options.delayMs !== undefined
    this.delayMs = options.delayMs
  }
}
