/** Live topics: values that browsers follow. The channel itself stands behind this. */

export type Live = {
  /** The whole new value of a topic; what changed is found and sent. Cheap when nobody follows. */
  publish(topic: string, value: unknown): void
  /** A topic whose value is only computed while somebody follows it. */
  offer(pattern: RegExp, read: (topic: string) => unknown): void
  /** Says that an offered topic may have changed. */
  touch(topic: string): void
}
