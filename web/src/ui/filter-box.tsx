'use client'
import { Icon } from '../icons/icon.tsx'
import { filterParts, withoutPart } from '../lib/filter.ts'
import { count } from '../lib/format.ts'
import { Chip } from './badge.tsx'
import { Combobox, type ComboOption } from './combobox.tsx'
import * as copy from './data-copy.ts'
import { IconButton } from './icon-button.tsx'

type FilterBoxProps = {
  /** "Filter shards". */
  readonly label: string
  readonly value: string
  readonly onChange: (text: string) => void
  /** Keys for `key:value` filters, each with its known values. */
  readonly keys?: { readonly [key: string]: readonly string[] }
  readonly shown?: number
  readonly total?: number
}

/** Filters by words and `key:value` pairs; pairs show below as removable chips. `/` focuses it. */
export function FilterBox({ label, value, onChange, keys = {}, shown, total }: FilterBoxProps) {
  const parts = [...new Set(filterParts(value))]
  return (
    <search data-filter-box="" className="flex min-w-0 max-w-160 grow flex-wrap items-center gap-x-2 gap-y-1">
      <Icon name="filter" className="text-text-3" />
      <div className="min-w-0 grow">
        <Combobox
          free
          label={label}
          value={value}
          onChange={onChange}
          options={completions(value, keys)}
          placeholder={`${label}  /`}
        />
      </div>
      {value && <IconButton label={copy.filterBox.clear} icon="cross" onClick={() => onChange('')} />}
      {total !== undefined && (
        <span role="status" className="whitespace-nowrap text-small text-text-3 tabular-nums">
          {shown === undefined || shown === total ? count(total) : copy.filterBox.shownOf(count(shown), count(total))}
        </span>
      )}
      {parts.length > 0 && (
        <ul aria-label={copy.filterBox.active(label)} className="flex min-w-0 basis-full flex-wrap gap-1 ps-6">
          {parts.map((part) => (
            <li key={part} className="min-w-0">
              <Chip removeLabel={copy.filterBox.remove(part)} onRemove={() => onChange(withoutPart(value, part))}>
                {part}
              </Chip>
            </li>
          ))}
        </ul>
      )}
    </search>
  )
}

/** Completions of the last word, as whole texts. */
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
