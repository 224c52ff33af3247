/** Replicated settings: of stays, and of the day. Every replica follows the values in the log, whatever its configuration. */

import type { StaySettings } from '../status.ts'
import { memoryBudget } from './charge.ts'
import { type CommandReader, readU8, readU32 } from './command.ts'
import { DAY_BEGINS, dayAt } from './day.ts'
import { STATE } from './layout.ts'
import {
  featureLevel,
  INDEX_LEVEL,
  LEDGER_LEVEL,
  type Memory,
  STAYS_LEVEL,
  type Store,
  setState,
  state,
} from './store.ts'

type SettingRow = {
  /** In the log; never reused. */
  readonly key: number
  readonly cell: number
  readonly preset: number
  /** From feature level 4 on. */
  readonly presetNow: number
  readonly min: number
  readonly max: number
  readonly summary: string
}

const STAY_SETTINGS = {
  stays_bytes: {
    key: 1,
    cell: STATE.staysBytesMax,
    preset: 64 << 20,
    presetNow: 256 << 20,
    min: 1 << 20,
    max: 2 ** 31 - 1,
    summary: 'Bytes of records of stays. Beyond it those that have ended are forgotten, then bookings.',
  },
  holds_max: {
    key: 2,
    cell: STATE.holdsMax,
    preset: 200_000,
    presetNow: 200_000,
    min: 1,
    max: 10_000_000,
    summary: 'Stays on hold at a time.',
  },
  holds_max_per_source: {
    key: 3,
    cell: STATE.holdsMaxPerSource,
    preset: 20_000,
    presetNow: 20_000,
    min: 1,
    max: 10_000_000,
    summary: 'Stays on hold at a time of one source.',
  },
  day_begins_minutes: {
    key: 4,
    cell: STATE.dayBeginsMinutes,
    preset: 0,
    presetNow: 0,
    ...DAY_BEGINS,
    summary: 'Minutes after midnight UTC at which the day of the shard begins; 480 for midnight in California.',
  },
} as const satisfies { readonly [name: string]: SettingRow }

export type StaySetting = keyof typeof STAY_SETTINGS

/** The feature level from which on a setting may be changed: older programs do not know it. */
export function levelOfSetting(name: StaySetting): number {
  return name === 'day_begins_minutes' ? INDEX_LEVEL : STAYS_LEVEL
}

export function isStaySetting(name: string): name is StaySetting {
  return Object.hasOwn(STAY_SETTINGS, name)
}

/** What is wrong with a value; '' for nothing. */
export function settingFault(name: string, value: number): string {
  if (!isStaySetting(name)) return `unknown setting ${name}; there are ${Object.keys(STAY_SETTINGS).join(', ')}`
  const { min, max } = STAY_SETTINGS[name]
  return Number.isInteger(value) && value >= min && value <= max ? '' : `${name} must be ${min} to ${max}, got ${value}`
}

export function staySetting(memory: Memory, name: StaySetting): number {
  const { cell, preset, presetNow } = STAY_SETTINGS[name]
  // Of all values only a beginning of the day may be negative.
  const set = state(memory, cell) | 0
  if (set !== 0) return set
  if (featureLevel(memory) < LEDGER_LEVEL) return preset
  const budget = memoryBudget(memory)
  return name === 'stays_bytes' && budget > 0 ? Math.min(presetNow, Math.floor(budget / BUDGET_SHARE)) : presetNow
}

/** Without a setting, what is remembered of stays takes at most this share of a small memory budget. */
const BUDGET_SHARE = 4

export function staySettings(memory: Memory): StaySettings {
  const values = Object.keys(STAY_SETTINGS).map((name) => [name, staySetting(memory, name as StaySetting)])
  return Object.fromEntries(values) as StaySettings
}

const SETTING_BYTES = 5

/** Body of the command that changes a setting. */
export function encodeSetting(name: StaySetting, value: number): Uint8Array {
  const body = new Uint8Array(SETTING_BYTES)
  body[0] = STAY_SETTINGS[name].key
  new DataView(body.buffer).setUint32(1, value, true)
  return body
}

/** Applies the command. A setting that this program does not know changes nothing: it has no effect here. */
export function applySetting(store: Store, reader: CommandReader): void {
  const key = readU8(reader)
  const value = readU32(reader)
  const row = Object.values(STAY_SETTINGS).find((each) => each.key === key)
  if (!row) return
  setState(store, row.cell, value)
  if (row.cell !== STATE.dayBeginsMinutes) return
  // The day may have gone back: its nights are past when it is over again. Dropped ones stay dropped.
  const today = dayAt(store.memory, reader.timeMs)
  if (state(store.memory, STATE.lastMaintenanceDay) > today) setState(store, STATE.lastMaintenanceDay, today)
}
