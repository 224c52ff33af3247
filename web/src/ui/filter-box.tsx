'use client'
import { Icon } from '../icons/icon.tsx'
import { count } from '../lib/format.ts'
import { Combobox, type ComboOption } from './combobox.tsx'
import { IconButton } from './icon-button.tsx'

type FilterBoxProps = {
  /** "Filter shards". */
  readonly label: string
  readonly value: string
  readonly onChange: (text: string) => void
  /** Keys that may stand before a colon, and values they are known to have. */
  readonly keys?: { readonly [key: string]: readonly string[] }
  readonly shown?: number
  readonly total?: number
  readonly placeholder?: string
}

/** Words and `key:value`; `/` puts the cursor here. */
export function FilterBox({ label, value, onChange, keys = {}, shown, total, placeholder }: FilterBoxProps) {
  return (
    <search data-filter-box="" className="flex min-w-0 max-w-160 grow items-center gap-2">
      <Icon name="filter" className="text-text-3" />
      <div className="min-w-0 grow">
        <Combobox
          free
          label={label}
          value={value}
          onChange={onChange}
          options={completions(value, keys)}
          placeholder={placeholder ?? `${label}  /`}
        />
      </div>
      {value && <IconButton label="Clear filters" icon="cross" onClick={() => onChange('')} />}
      {total !== undefined && (
        <span role="status" className="whitespace-nowrap text-small text-text-3 tabular-nums">
          {shown === undefined || shown === total ? count(total) : `${count(shown)} of ${count(total)}`}
        </span>
      )}
    </search>
  )
}

/** Whole texts that the last word could become. */
function completions(text: string, keys: NonNullable<FilterBoxProps['keys']>): ComboOption[] {
  const start = text.lastIndexOf(' ') + 1
  const before = text.slice(0, start)
  const word = text.slice(start).toLowerCase()
  const colon = word.indexOf(':')
  if (colon < 0) {
    return Object.keys(keys)
      .filter((key) => key.startsWith(word))
      .map((key) => ({ value: `${before}${key}:`, label: `${before}${key}:` }))
  }
  const key = word.slice(0, colon)
  return (keys[key] ?? [])
    .filter((known) => known.toLowerCase().includes(word.slice(colon + 1)))
    .map((known) => `${before}${key}:${known.includes(' ') ? `"${known}"` : known}`)
    .filter((known) => known !== text)
    .map((known) => ({ value: known }))
}
