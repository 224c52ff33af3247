/**
 * Disables real clocks, timers and randomness during a simulated run: they throw (docs/design/testing.md#simulation).
 */

type Restore = () => void

const TIMERS = ['setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask'] as const

/** @returns restores them */
export function poison(): Restore {
  const restores: Restore[] = []
  const replace = (owner: object, name: string, value: unknown): void => {
    const before = Object.getOwnPropertyDescriptor(owner, name)
    Object.defineProperty(owner, name, { configurable: true, writable: true, value })
    restores.push(() => {
      if (before) Object.defineProperty(owner, name, before)
      else Reflect.deleteProperty(owner, name)
    })
  }
  const refuse = (name: string) => (): never => {
    throw new Error(`${name} was called in a simulated run: it is not deterministic`)
  }
  const realDate = Date
  const date = function (this: unknown, ...values: readonly unknown[]): unknown {
    // A date with a given time is deterministic.
    if (values.length === 0) return refuse('Date')()
    return Reflect.construct(realDate, values)
  }
  Object.assign(date, { now: refuse('Date.now'), UTC: realDate.UTC, parse: realDate.parse })
  Object.defineProperty(date, 'prototype', { value: realDate.prototype })
  replace(globalThis, 'Date', date)
  replace(performance, 'now', refuse('performance.now'))
  replace(Math, 'random', refuse('Math.random'))
  for (const name of TIMERS) replace(globalThis, name, refuse(name))
  replace(globalThis.crypto, 'getRandomValues', refuse('crypto.getRandomValues'))
  replace(globalThis.crypto, 'randomUUID', refuse('crypto.randomUUID'))
  return () => {
    for (const restore of restores.reverse()) restore()
  }
}
