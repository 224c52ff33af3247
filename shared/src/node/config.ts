/**
 * Configuration: a schema of keys, filled from defaults, a YAML file, the environment and flags, in that order. The
 * result is validated as a whole and frozen, and every value has its origin (docs/design/http.md#configuration,
 * docs/design/http.md#process-rules).
 */

import { readFileSync } from 'node:fs'
import { VacancyError } from '../errors.ts'
import { suggestion } from '../names.ts'
import { readYamlKeys } from './yaml.ts'

/** The allowed values of a setting. */
export type Kind =
  | { readonly type: 'integer'; readonly min: number; readonly max: number }
  | { readonly type: 'boolean' }
  | { readonly type: 'text' }
  | { readonly type: 'choice'; readonly choices: readonly string[] }
  /** Texts: a YAML sequence, or comma-separated in a variable or a flag. */
  | { readonly type: 'list' }

type Described = {
  /** One sentence, for --help and the reference page. */
  readonly summary: string
  /** Unit of a number: ms, bytes, seconds, … */
  readonly unit?: string
}

/** One key: its allowed values and its default. */
type Setting = Described & {
  /** Where the key applies, if not everywhere, e.g. `clustered`. */
  readonly appliesTo?: string
  /** Never shown: views and messages mask the value. */
  readonly secret?: boolean
} & (
    | { readonly type: 'integer'; readonly default: number; readonly min: number; readonly max: number }
    | { readonly type: 'boolean'; readonly default: boolean }
    | { readonly type: 'text'; readonly default: string }
    | { readonly type: 'choice'; readonly default: string; readonly choices: readonly string[] }
    | { readonly type: 'list'; readonly default: readonly string[] }
  )

/** What the row of a setting or of a flag has beside its summary: a whole number with its default and bounds. */
export const whole = (value: number, min: number, max: number, unit?: string) =>
  ({ type: 'integer', default: value, min, max, ...(unit !== undefined && { unit }) }) as const

/** The same of a text. */
export const settingText = (value: string) => ({ type: 'text', default: value }) as const

/** The same of one of some words. */
export const choice = <const C extends readonly string[]>(choices: C, value: C[number]) =>
  ({ type: 'choice', choices, default: value }) as const

/** The port of a listener; 0 takes any free one. */
export const port = (value: number) => whole(value, 0, 65_535)

/** Keys in the operator's form, snake_case. */
export type ConfigSchema = { readonly [key: string]: Setting }

export type SettingValue = number | boolean | string | readonly string[]

/** The type of a setting's value. */
export type ValueOf<S> = S extends { readonly choices: readonly (infer C)[] }
  ? C
  : S extends { readonly type: 'integer' }
    ? number
    : S extends { readonly type: 'boolean' }
      ? boolean
      : S extends { readonly type: 'list' }
        ? readonly string[]
        : string

/** The same for a column of values. */
export function shortRangeOf(kind: Kind & { readonly unit?: string }): string {
  if (kind.type === 'list') return 'list'
  if (kind.type === 'choice') return kind.choices.join(', ')
  return kind.type === 'integer' ? rangeOf(kind).replace('a whole number from ', '') : rangeOf(kind)
}

/** `tcp_port` and `tcp-port` as `tcpPort`. */
export type Camel<K extends string> = K extends `${infer A}_${infer B}`
  ? `${A}${Capitalize<Camel<B>>}`
  : K extends `${infer A}-${infer B}`
    ? `${A}${Capitalize<Camel<B>>}`
    : K

/** The values of a schema, under camelCase names. */
export type ConfigValues<S extends ConfigSchema> = { readonly [K in keyof S & string as Camel<K>]: ValueOf<S[K]> }

/** Where a value came from. `at` is the file and line, the variable, or the flag; '' for a default. */
type Origin = { readonly from: 'default' | 'file' | 'env' | 'flag'; readonly at: string }

export type Config<S extends ConfigSchema> = {
  readonly values: ConfigValues<S>
  /** By key, in snake_case. */
  readonly origins: { readonly [K in keyof S]: Origin }
  /** The file that was read; '' if none. */
  readonly file: string
}

/** A value given as text, by a flag or a variable. */
export type Given = { readonly text: string; readonly at: string; readonly from: 'env' | 'flag' }

export type ConfigSources<S extends ConfigSchema> = {
  readonly schema: S
  /** `--config`: must exist. Without it the first existing file of `searched` is read. */
  readonly file?: string | undefined
  readonly searched?: readonly string[]
  /** Values from flags and variables, by key, as parseCommand gives them. */
  readonly given?: ReadonlyMap<string, Given>
  /** Maps another spelling in the file to its key, for names used by older components. */
  readonly alias?: (key: string) => string | undefined
  /** A specific error text for an unknown key of the file. */
  readonly hint?: (key: string, value: unknown) => string | undefined
  /** Checks across keys. Each text names the keys concerned. */
  readonly check?: (values: ConfigValues<S>) => readonly string[]
}

/** Shown instead of a secret. */
const MASK = '********'
/** Longest value a message quotes. */
const QUOTE_MAX = 60

/**
 * Fills a schema from its sources.
 *
 * @throws VacancyError invalid_config, one line per error: position, key, value, range
 */
export function loadConfig<const S extends ConfigSchema>(sources: ConfigSources<S>): Config<S> {
  const { schema } = sources
  const faults: string[] = []
  const values: { [key: string]: SettingValue } = {}
  const origins: { [key: string]: Origin } = {}
  for (const [key, setting] of Object.entries(schema)) {
    values[key] = setting.default
    origins[key] = { from: 'default', at: '' }
  }
  const set = (key: string, value: unknown, origin: Origin): void => {
    const setting = schema[key] as Setting
    const fault = faultOf(setting, value)
    if (fault) faults.push(`${origin.at}: ${key}: ${setting.secret ? MASK : quote(value)} ${fault}`)
    else values[key] = value as SettingValue
    origins[key] = origin
  }
  const file = readFile(sources, set, faults)
  for (const [key, { text, at, from }] of sources.given ?? []) {
    set(key, valueOfText(schema[key] as Setting, text), { from, at })
  }
  const named = Object.freeze(
    Object.fromEntries(Object.entries(values).map(([key, value]) => [camelCase(key), value])),
  ) as ConfigValues<S>
  // Checks across keys need valid values.
  if (faults.length === 0) faults.push(...(sources.check?.(named) ?? []))
  if (faults.length > 0) throw new VacancyError('invalid_config', { reason: faults.join('\n') })
  return Object.freeze({
    values: named,
    origins: Object.freeze(origins) as { readonly [K in keyof S]: Origin },
    file,
  })
}

type Set = (key: string, value: unknown, origin: Origin) => void

/** Reads the file into the values. Returns its name, '' if none. */
function readFile<S extends ConfigSchema>(sources: ConfigSources<S>, set: Set, faults: string[]): string {
  const { schema, file, searched = [], alias, hint } = sources
  for (const candidate of file === undefined ? searched : [file]) {
    let text: string
    try {
      text = readFileSync(candidate, 'utf8')
    } catch (error) {
      if (file === undefined && (error as NodeJS.ErrnoException).code === 'ENOENT') continue
      faults.push(`${candidate}: cannot be read: ${(error as Error).message}`)
      return candidate
    }
    const lines = new Map<string, number>()
    for (const { key: written, line, value } of readYamlKeys(text, candidate, faults)) {
      const key = Object.hasOwn(schema, written) ? written : (alias?.(written) ?? written)
      const at = `${candidate}:${line}`
      const earlier = lines.get(key)
      if (!Object.hasOwn(schema, key)) faults.push(`${at}: ${hint?.(written, value) ?? unknownKey(written, schema)}`)
      else if (earlier !== undefined) faults.push(`${at}: ${written}: is already set in line ${earlier}`)
      else set(key, value, { from: 'file', at })
      lines.set(key, line)
    }
    return candidate
  }
  return ''
}

function unknownKey(key: string, schema: ConfigSchema): string {
  return `${cut(key)}: is not a known key${suggestion(key, Object.keys(schema))}`
}

/** What is wrong with a value, worded to follow it; '' if nothing. */
export function faultOf(kind: Kind & { readonly unit?: string }, value: unknown): string {
  switch (kind.type) {
    case 'integer': {
      const { min, max } = kind
      return Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max
        ? ''
        : `is not ${rangeOf(kind)}`
    }
    case 'boolean':
      return typeof value === 'boolean' ? '' : 'is not true or false'
    case 'text':
      return typeof value === 'string' ? '' : 'is not text; put it in quotes'
    case 'choice':
      return kind.choices.includes(value as string) ? '' : `is not ${rangeOf(kind)}`
    case 'list':
      return Array.isArray(value) && value.every((one) => typeof one === 'string' && one !== '')
        ? ''
        : `is not ${rangeOf(kind)}`
  }
}

/** Parses the text of a variable or a flag. Invalid text is returned unchanged, so that faultOf reports it. */
export function valueOfText(kind: Kind, text: string): SettingValue {
  if (kind.type === 'integer' && /^-?\d{1,15}$/.test(text)) return Number(text)
  if (kind.type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true'
  if (kind.type === 'list') return text.split(',').map((one) => one.trim())
  return text
}

/** The allowed values in words: `a whole number from 0 to 65535`. */
export function rangeOf(kind: Kind & { readonly unit?: string }): string {
  switch (kind.type) {
    case 'integer':
      return `a whole number from ${kind.min} to ${kind.max}${kind.unit ? ` (${kind.unit})` : ''}`
    case 'boolean':
      return 'true or false'
    case 'text':
      return 'text'
    case 'choice':
      return `one of ${kind.choices.join(', ')}`
    case 'list':
      return 'a list of texts'
  }
}

/** `tcp_port` and `tcp-port` as `tcpPort`: the only conversion from the operator's names. */
export function camelCase(name: string): string {
  return name.replaceAll(/[_-]([a-z0-9])/g, (_whole, letter: string) => letter.toUpperCase())
}

function quote(value: unknown): string {
  return cut(value === null ? 'nothing' : (JSON.stringify(value) ?? String(value)))
}

function cut(text: string): string {
  return text.length > QUOTE_MAX ? `${text.slice(0, QUOTE_MAX)}…` : text
}

/** Effective values with their origins, for `GET /config`. An unset value is ''. */
export type ConfigView = {
  readonly [key: string]: {
    readonly value: Exclude<SettingValue, readonly string[]>
    readonly origin: Origin['from']
    readonly at: string
  }
}

/** The view of a schema. Secrets are masked. */
export function configView<S extends ConfigSchema>(schema: S, config: Config<S>): ConfigView {
  const values = config.values as { readonly [name: string]: SettingValue }
  return Object.fromEntries(
    Object.entries(schema).map(([key, setting]) => {
      const { from, at } = config.origins[key] as Origin
      const value = shownValue(values[camelCase(key)])
      return [key, { value: setting.secret && value !== '' ? MASK : value, origin: from, at }]
    }),
  )
}

/** A value as `GET /config` shows it. The user and password of a URL are masked. */
export function shownValue(value: SettingValue | undefined): Exclude<SettingValue, readonly string[]> {
  if (typeof value === 'number' || typeof value === 'boolean') return value
  const text = typeof value === 'object' ? value.join(', ') : (value ?? '')
  return text.replaceAll(/\/\/[^/@\s,]*@/g, `//${MASK}@`)
}

/** The rows of a schema as a Markdown table, for docs/config.md. */
export function configTable(schema: ConfigSchema): string {
  const rows = Object.entries(schema).map(([key, setting]) => {
    const shown = String(setting.default) === '' ? 'empty' : `\`${setting.default}\``
    const note = setting.appliesTo === undefined ? '' : ` (${setting.appliesTo})`
    return `| \`${key}\` | ${shown} | ${shortRangeOf(setting)} | ${setting.summary}${note} |`
  })
  return ['| Key | Default | Values | What it does |', '|---|---|---|---|', ...rows, ''].join('\n')
}
