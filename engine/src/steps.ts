/**
 * Asynchronous work as steps. A step yields what it waits for. The caller decides how to wait: production with
 * promises, a simulation in events of its own clock. Steps without waits complete at once.
 */

import { assert } from '@vacancy/shared'

/** Calls back once, with the error or the value, at once or later. */
export type Wait<T> = (done: (error: unknown, value?: T) => void) => void
export type Steps<T> = Generator<Wait<unknown>, T, unknown>

/** A value that may still be pending. */
export function* settled<T>(value: T | Promise<T>): Steps<T> {
  return value instanceof Promise
    ? yield* waited<T>((done) => void value.then((result) => done(undefined, result), done))
    : value
}

export function* waited<T>(wait: Wait<T>): Steps<T> {
  return (yield wait) as T
}

/** Runs steps to their end; errors they throw go to `onError`. */
export function follow<T>(steps: Steps<T>, onEnd: (value: T) => void, onError: (error: unknown) => void): void {
  const advance = (next: () => IteratorResult<Wait<unknown>, T>): void => {
    let step: IteratorResult<Wait<unknown>, T>
    try {
      step = next()
    } catch (error) {
      return onError(error)
    }
    if (step.done) return onEnd(step.value)
    step.value((error, value) => advance(error === undefined ? () => steps.next(value) : () => steps.throw(error)))
  }
  advance(() => steps.next())
}

export function walk<T>(steps: Steps<T>): Promise<T> {
  return new Promise((resolve, reject) => follow(steps, resolve, reject))
}

/** For steps that never wait. */
export function walkAtOnce<T>(steps: Steps<T>): T {
  const step = steps.next()
  assert(step.done, 'the steps never wait')
  return step.value
}
