/** Jobs as producers submit them and consumers receive them. */

/** A job to submit. */
export type NewJob = {
  readonly topic: string
  /** 1 to 256 bytes of UTF-8 without control characters, unique in its topic. Default: a random UUID. */
  readonly id?: string
  /** A JSON value, or bytes, which are sent as they are. Absent: null. */
  readonly data?: unknown
  /** Instead of `data`: a text that is sent as it is, such as JSON that was serialized before. */
  readonly text?: string
  /** 0 to 9; higher ones are delivered first. */
  readonly priority?: number
  /** Not delivered before this time has passed. */
  readonly delayMs?: number
  /** Not delivered before this time: a Date, or a text in RFC 3339 in UTC. Instead of `delayMs`. */
  readonly runAt?: Date | string
  /** Failures until it is dead, instead of the topic's setting. */
  readonly maxAttempts?: number
  /** How long a consumer may take, instead of the topic's setting. */
  readonly ackDeadlineMs?: number
  /** `traceparent` (W3C trace context) that its consumer gets; the queue ignores a malformed one. */
  readonly traceparent?: string
}

/** A stored job. */
export type SubmittedJob = {
  readonly topic: string
  readonly id: string
  /**
   * `accepted`: stored by this submission. `duplicate`: its topic knew the id, and the earlier payload stays.
   * `stored`: one of the two, for example after a repeated request.
   */
  readonly outcome: 'accepted' | 'duplicate' | 'stored'
}

/** A job as a handler gets it. */
export type Job = {
  readonly topic: string
  readonly id: string
  /** The JSON value; a Buffer if the payload is not JSON; null without a payload. */
  readonly data: unknown
  /** 1 plus the failures so far. */
  readonly attempt: number
  /** Counts this delivery. Above 1, the job may have been processed before. */
  readonly deliveries: number
  /** Length of its lease, which is extended while the handler runs. */
  readonly ackDeadlineMs: number
  /** The `traceparent` it was submitted with. */
  readonly traceparent?: string
}
