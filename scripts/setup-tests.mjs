// Loaded before every test file.
import fc from 'fast-check'
import { expect, vi } from 'vitest'

// The seed of a failure repeats its values. Other random tests read it themselves.
const seed = process.env.VACANCY_SEED
if (seed !== undefined) fc.configureGlobal({ seed: Number(seed) })

// A file that starts no program waits for nothing slow: a test that hangs fails soon, also on busy cores.
const isQuick = !/[.](?:program|long)[.]test[.]/.test(expect.getState().testPath ?? '')
if (isQuick) vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

// Tests of the console talk to stubs: a request that none answers is an error of its test, not a connection.
if (typeof window !== 'undefined') {
  const refuse = (name) =>
    function refused(url) {
      throw new Error(`tests of components open no connection: ${name} ${url}`)
    }
  for (const name of ['fetch', 'WebSocket', 'EventSource', 'XMLHttpRequest']) globalThis[name] = refuse(name)
}
