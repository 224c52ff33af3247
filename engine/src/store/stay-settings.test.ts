/** Replicated settings of stays: defaults, bounds, and the command in the log. */
import { beforeEach, describe, expect, test } from 'vitest'
import { createCommandReader } from './command.ts'
import { STATE } from './layout.ts'
import { applySetting, encodeSetting, isStaySetting, settingFault, staySetting, staySettings } from './stay-settings.ts'
import { createStore, type Store, state } from './store.ts'

let store: Store
beforeEach(() => {
  store = createStore({ memoryBytes: 32 << 20, readers: 1, scratchBytes: 1 << 20, sessionBytesMax: 1 << 20 })
})

function apply(body: Uint8Array): void {
  const reader = createCommandReader()
  reader.bytes = body
  reader.view = new DataView(body.buffer)
  reader.end = body.length
  applySetting(store, reader)
}

test('settings without a value have their defaults', () => {
  expect(staySettings(store.memory)).toEqual({
    stays_bytes: 67_108_864,
    holds_max: 200_000,
    holds_max_per_source: 20_000,
  })
})

describe.each([
  ['stays_bytes', 1, STATE.staysBytesMax, 1_048_576, 2_147_483_647],
  ['holds_max', 2, STATE.holdsMax, 1, 10_000_000],
  ['holds_max_per_source', 3, STATE.holdsMaxPerSource, 1, 10_000_000],
] as const)('%s', (name, key, cell, min, max) => {
  test('is logged by its key, and follows the log', () => {
    const body = encodeSetting(name, 0x0102_0304)
    expect([...body]).toEqual([key, 4, 3, 2, 1])
    apply(body)
    expect([staySetting(store.memory, name), state(store.memory, cell)]).toEqual([0x0102_0304, 0x0102_0304])
    const others = ['stays_bytes', 'holds_max', 'holds_max_per_source'].filter((other) => other !== name)
    for (const other of others) {
      expect(staySettings(store.memory)).toMatchObject({ [other]: staySetting(createEmpty(), other as typeof name) })
    }
  })

  test('has bounds, both included', () => {
    expect([min, max, min + 1].map((value) => settingFault(name, value))).toEqual(['', '', ''])
    for (const value of [min - 1, max + 1, min + 0.5, Number.NaN]) {
      expect(settingFault(name, value)).toBe(`${name} must be ${min} to ${max}, got ${value}`)
    }
  })
})

function createEmpty() {
  return createStore({ memoryBytes: 32 << 20, readers: 1, scratchBytes: 1 << 20, sessionBytesMax: 1 << 20 }).memory
}

test('a setting that this program does not know changes nothing', () => {
  const before = staySettings(store.memory)
  apply(Uint8Array.of(4, 1, 0, 0, 0))
  apply(Uint8Array.of(0, 1, 0, 0, 0))
  expect(staySettings(store.memory)).toEqual(before)
})

test('only names of settings are settings', () => {
  expect(['holds_max', 'stays', 'toString', ''].map(isStaySetting)).toEqual([true, false, false, false])
  expect(settingFault('stays', 1)).toBe('unknown setting stays; there are stays_bytes, holds_max, holds_max_per_source')
})
