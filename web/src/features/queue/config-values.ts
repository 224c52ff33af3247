/** The configuration of a topic as it is typed: bounds, defaults, and what has changed. Pure. */
import type { TopicConfig } from '@vacancy/shared/contract'
import { count } from '../../lib/format.ts'
import * as copy from './copy.ts'

type Key = keyof TopicConfig
type Numeric = { [K in Key]: TopicConfig[K] extends number ? K : never }[Key]
/** Of keys that were typed; `true` and `false` for switches. */
export type ConfigTexts = { readonly [K in Key]?: string }
export type ConfigFaults = { readonly [K in Key]?: string }

/** Bounds and default. Those of the contract, which is too large for a browser; a test compares them. */
const BOUNDS: Readonly<Record<Numeric, readonly [min: number, max: number, usual: number]>> = {
  ack_deadline_ms: [1_000, 43_200_000, 30_000],
  max_attempts: [1, 100, 5],
  max_deliveries: [1, 1_000, 20],
  retry_base_ms: [0, 86_400_000, 1_000],
  retry_max_ms: [0, 86_400_000, 60_000],
  max_jobs: [1, 100_000_000, 1_000_000],
  max_bytes: [1, 1_099_511_627_776, 1_073_741_824],
  dedup_window_sec: [0, 2_592_000, 0],
  dlq_max_jobs: [0, 10_000_000, 100_000],
  dlq_max_bytes: [0, 1_099_511_627_776, 104_857_600],
  dlq_max_age_ms: [1_000, 31_536_000_000, 1_209_600_000],
  max_leased: [0, 10_000_000, 0],
  rate_per_sec: [0, 1_000_000, 0],
  starvation_guard: [0, 1_000_000, 16],
}

/** `paused` has an action of its own. */
export const CONFIG_KEYS = (Object.keys(copy.config.keys) as Key[]).filter((key) => key !== 'paused')

export const isNumeric = (key: Key): key is Numeric => Object.hasOwn(BOUNDS, key)

export const usualText = (key: Key): string => (isNumeric(key) ? String(BOUNDS[key][2]) : 'false')

/** What is wrong with the typed values. */
export function configFaults(texts: ConfigTexts): ConfigFaults {
  return Object.fromEntries(
    Object.entries(texts).flatMap(([key, text]) => {
      if (!isNumeric(key as Key)) return []
      const [min, max] = BOUNDS[key as Numeric]
      const isNumber = key === 'rate_per_sec' ? /^\d+(?:[.]\d+)?$/.test(text) : /^\d+$/.test(text)
      const isGood = isNumber && Number(text) >= min && Number(text) <= max
      return isGood ? [] : [[key, copy.config.range(count(min), count(max))]]
    }),
  )
}

/** The change to send: the typed keys, without those that have their value already. */
export function configChange(texts: ConfigTexts, present?: TopicConfig): Partial<TopicConfig> {
  return Object.fromEntries(
    Object.entries(texts).flatMap(([key, text]) => {
      const value = isNumeric(key as Key) ? Number(text) : text === 'true'
      return present?.[key as Key] === value ? [] : [[key, value]]
    }),
  )
}
