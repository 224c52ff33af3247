import { topicConfig } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { CONFIG_KEYS, configChange, configFaults, isNumeric, usualText } from './config-values.ts'

const defaults = topicConfig.parse({})

test('every key of a topic but paused can be changed', () => {
  expect([...CONFIG_KEYS, 'paused'].sort()).toEqual(Object.keys(topicConfig.shape).sort())
})

test('bounds and defaults are those of the contract', () => {
  for (const key of CONFIG_KEYS) {
    expect(usualText(key)).toBe(String(defaults[key]))
    if (!isNumeric(key)) continue
    const field = topicConfig.shape[key].unwrap()
    const [min, max] = [field.minValue ?? Number.NaN, field.maxValue ?? Number.NaN]
    expect(configFaults({ [key]: String(min) })).toEqual({})
    expect(configFaults({ [key]: String(max) })).toEqual({})
    expect(configFaults({ [key]: String(max + 1) })).toHaveProperty(key)
    expect(configFaults({ [key]: String(min - 1) })).toHaveProperty(key)
  }
})

test.each(['', ' ', '1e3', '0x10', '-1', '1,000', '5 ', 'Infinity', '1.5'])('%j is no number of attempts', (text) => {
  expect(configFaults({ max_attempts: text })).toHaveProperty('max_attempts')
})

test('a rate may be a fraction', () => {
  expect(configFaults({ rate_per_sec: '0.5' })).toEqual({})
  expect(configChange({ rate_per_sec: '0.5' })).toEqual({ rate_per_sec: 0.5 })
})

test('only what differs is sent', () => {
  expect(configChange({ max_attempts: '5', ordered: 'true', max_leased: '7' }, defaults)).toEqual({
    ordered: true,
    max_leased: 7,
  })
  expect(configChange({ ordered: 'false' })).toEqual({ ordered: false })
})
