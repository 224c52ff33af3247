/** A value of a configuration with the unit that its key names: `33.6 MB`, `14 d`. Pure. */
import { bytes, duration } from '../../lib/format.ts'

const UNITS: readonly (readonly [key: RegExp, text: (value: number) => string])[] = [
  [/(_bytes|_buffer_size)$/, bytes],
  [/_ms$/, duration],
  [/_(sec|secs|seconds)$/, (seconds) => duration(seconds * 1_000)],
]

/** @returns the value itself where it is 0, no number, or short enough */
export function configText(key: string, value: string): string {
  const unit = UNITS.find(([of]) => of.test(key))?.[1]
  return unit && /^[1-9]\d{2,14}$/.test(value) ? unit(Number(value)) : value
}
