// Loaded before every test file.
import fc from 'fast-check'
import { expect, vi } from 'vitest'

// The seed of a failure repeats its values. Other random tests read it themselves.
const seed = process.env.VACANCY_SEED
if (seed !== undefined) fc.configureGlobal({ seed: Number(seed) })

// A file that starts no program waits for nothing slow: a test that hangs fails soon, also on busy cores.
const isQuick = !/[.](?:program|long)[.]test[.]/.test(expect.getState().testPath ?? '')
if (isQuick) vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })
