/**
 * Command lines. A command is a table of flags, which drives parsing, environment variables, --help and exit codes
 * (docs/design/http.md#process-rules).
 */

import { readFileSync, writeSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { assert } from '../assert.ts'
import { EXIT, VacancyError } from '../errors.ts'
import { suggestion } from '../names.ts'
import {
  type Camel,
  type ConfigSchema,
  type ConfigView,
  camelCase,
  faultOf,
  type Given,
  type Kind,
  rangeOf,
  type SettingValue,
  shownValue,
  type ValueOf,
  valueOfText,
} from './config.ts'
import { exitCodeOf, reportOf } from './process.ts'

type FlagBase = {
  /** One sentence for --help. */
  readonly summary: string
  /** Placeholder of the value in --help, e.g. FILE. */
  readonly value?: string
  readonly unit?: string
}

/** One flag. Without `default` and `required` its value may be undefined. An omitted boolean is false. */
export type Flag = FlagBase &
  (
    | (Extract<Kind, { type: 'integer' }> & { readonly default?: number; readonly required?: true })
    | (Extract<Kind, { type: 'text' | 'choice' }> & { readonly default?: string; readonly required?: true })
    | (Extract<Kind, { type: 'boolean' }> & { readonly default?: never; readonly required?: never })
    /** Words separated by commas. Repeated flags add up. */
    | { readonly type: 'list'; readonly default?: readonly string[]; readonly required?: true }
  )

/** What the row of a text has beside its summary: the placeholder of its value. */
export const named = (value: string) => ({ type: 'text', value }) as const

/** Flags by their kebab-case names, without the dashes. */
export type Flags = { readonly [name: string]: Flag }

type FlagValue<F> = F extends { readonly type: 'boolean' }
  ? boolean
  :
      | (F extends { readonly type: 'list' } ? readonly string[] : ValueOf<F>)
      | (F extends { readonly default: unknown } | { readonly required: true } ? never : undefined)

/** The parsed values, under camelCase names. */
export type FlagValues<F extends Flags> = { readonly [K in keyof F & string as Camel<K>]: FlagValue<F[K]> }

export type Parsed<F extends Flags> = {
  readonly flags: FlagValues<F>
  /** Configuration keys given as flags or variables, for loadConfig. */
  readonly given: ReadonlyMap<string, Given>
  /** The flags with their origins, for `GET /config`. */
  readonly view: ConfigView
  readonly operands: readonly string[]
  /** Variables that are not used, and why: to be logged. */
  readonly warnings: readonly string[]
}

export type CommandSpec<F extends Flags> = {
  /** As typed, e.g. `vacancy run`. */
  readonly name: string
  /** The middle of VACANCY_<COMPONENT>_<FLAG>; commands of one program share it. */
  readonly component: string
  readonly summary: string
  readonly flags: F
  /** Configuration keys, each of which is a flag as well. */
  readonly settings?: ConfigSchema
  /** The operands after the flags, e.g. a folder. */
  readonly operands?: { readonly name: string; readonly min: number; readonly max: number; readonly summary: string }
  /** Its log has the warnings; otherwise they are written to stderr. */
  readonly logsWarnings?: true
}

/** A command and its implementation. */
export type Command = CommandSpec<Flags> & {
  /** Resolves when the command is done, or has started its long-running work. A number is the exit code. */
  readonly run: (parsed: Parsed<Flags>) => Promise<number | undefined>
}

/** Builds a command. Ties the type of the flags to that of `run`. */
export function defineCommand<const F extends Flags>(
  command: CommandSpec<F> & { readonly run: (parsed: Parsed<F>) => Promise<number | undefined> },
): Command {
  return command as unknown as Command
}

/** The version of all workspaces. */
export const VERSION = (
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
).version

type Environment = { readonly [name: string]: string | undefined }

/**
 * Runs the command named by the first argument, and sets the exit code; without one, or with --help, lists all. A failure
 * prints one line per problem on stderr, and its error determines the exit code.
 */
export async function runCommands(
  commands: readonly Command[],
  args: readonly string[],
  env: Environment = process.env,
): Promise<void> {
  const [word, ...rest] = args
  const command = commands.find(({ name }) => name.split(' ').at(-1) === word)
  if (command) return await runCommand(command, rest, env, commands)
  if (word === undefined || word === '--help') {
    const words = commands.map(({ name }) => name.split(' '))
    const width = Math.max(...words.map((each) => each.at(-1)?.length ?? 0))
    const rows = commands.map(({ summary }, at) => `  ${(words[at]?.at(-1) ?? '').padEnd(width)}  ${summary}`)
    const usage = `usage: ${words[0]?.slice(0, -1).join(' ')} <command> [flags]`
    print([usage, '', ...rows, '', 'Each has --help.'].join('\n'))
    if (word === undefined) process.exitCode = EXIT.usage
    return
  }
  const known = commands.map(({ name }) => name).join(', ')
  process.exitCode = report(
    'vacancy',
    new VacancyError('usage_error', { reason: `unknown command ${word}; available: ${known}` }),
  )
}

/** Runs a command with its arguments, as runCommands does. */
export async function runCommand(
  command: Command,
  args: readonly string[],
  env: Environment = process.env,
  siblings: readonly Command[] = [],
): Promise<void> {
  try {
    if (args.includes('--help')) {
      print(helpOf(command))
      return
    }
    if (args.includes('--version')) {
      print(VERSION)
      return
    }
    const parsed = parseCommand(command, args, env, siblings)
    if (!command.logsWarnings) for (const warning of parsed.warnings) writeSync(2, `${command.name}: ${warning}\n`)
    const code = await command.run(parsed)
    if (code !== undefined) process.exitCode = code
  } catch (error) {
    // Open threads and sockets must not keep a failed program alive.
    process.exit(report(command.name, error))
  }
}

function report(name: string, error: unknown): number {
  const lines = reportOf(error).split('\n')
  writeSync(2, `${lines.map((line) => `${name}: ${line}`).join('\n')}\n`)
  return exitCodeOf(error)
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

/**
 * Parses arguments and environment by a command's table.
 *
 * @param siblings commands of the same program, whose variables are known too
 * @throws VacancyError usage_error: unknown or missing flags and values out of range, in one line
 */
export function parseCommand<const F extends Flags>(
  command: CommandSpec<F>,
  args: readonly string[],
  env: Environment,
  siblings: readonly CommandSpec<Flags>[] = [],
): Parsed<F> {
  const kinds = kindsOf(command)
  const faults: string[] = []
  const texts = new Map<string, Given>()
  const theirs = siblings.filter(({ component }) => component === command.component)
  const known = new Set(theirs.flatMap((each) => [...kindsOf(each).keys()]))
  const warnings = readEnvironment(command.component, kinds, known, env, texts)
  const operands = readArguments(kinds, args, texts, faults)
  const flags: { [name: string]: unknown } = {}
  const view: { [name: string]: ConfigView[string] } = {}
  for (const [name, flag] of Object.entries<Flag>(command.flags)) {
    const given = texts.get(name)
    if (given === undefined && flag.required) faults.push(`--${name} is required`)
    const value = given === undefined ? defaultOf(flag) : readFlag(flag, given, faults)
    flags[camelCase(name)] = value
    view[name] = { value: shownValue(value), origin: given?.from ?? 'default', at: given?.at ?? '' }
  }
  const { min = 0, max = 0, name = '' } = command.operands ?? {}
  if (operands.length < min) faults.push(`${name} is required`)
  if (operands.length > max) faults.push(`unexpected argument ${JSON.stringify(operands[max])}`)
  if (faults.length > 0) throw new VacancyError('usage_error', { reason: `${faults.join('; ')} (see --help)` })
  const given = new Map<string, Given>()
  for (const key of Object.keys(command.settings ?? {})) {
    const text = texts.get(kebabCase(key))
    if (text) given.set(key, text)
  }
  return { flags: flags as FlagValues<F>, given, view, operands, warnings }
}

/** All flags of a command: its own and its configuration keys. */
function kindsOf<F extends Flags>(command: CommandSpec<F>): ReadonlyMap<string, Flag['type']> {
  const kinds = new Map<string, Flag['type']>()
  for (const [name, flag] of Object.entries<Flag>(command.flags)) kinds.set(name, flag.type)
  for (const [key, setting] of Object.entries(command.settings ?? {})) {
    assert(!kinds.has(kebabCase(key)), 'a name is a flag or a configuration key')
    kinds.set(kebabCase(key), setting.type)
  }
  return kinds
}

/** The programs that read variables, beside those of this table's own commands. */
const COMPONENTS = [
  ...['RUN', 'RUN_CLUSTERED', 'BUILD_SNAPSHOT', 'IMPORT_SOURCE', 'INSPECT', 'BACKUP', 'EXPORT', 'QUARANTINE'],
  ...['CERTS', 'REGISTRY', 'RESOLVER', 'BRIDGE', 'ROUTER', 'PROXY', 'CONTROL_PLANE', 'QUEUE', 'CLUSTER', 'QUERY'],
  ...['QUICKSTART', 'START', 'SAMPLE', 'HEALTH'],
]

const ALL = 'VACANCY_'

/** Variables that are no flags: of development, and of applications that use the client. */
const OTHER_VARIABLES = /^VACANCY_(FROM_SOURCE|STARTER_FD|CONSOLE|SEED|PLANTED|TEST_.*|TOKEN|NODE_TOKEN|PROXY_TOKEN)$/

/** Variables by which platforms tell a container of services, named after a service. */
const OF_SERVICE = /_SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)$|_PORT_\d+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?$/
const SERVICE_URL = /^(tcp|udp|sctp):\/\//

/**
 * Reads the variables of a program. Those that nobody reads are only warnings: a platform makes some from the names of
 * its services.
 */
function readEnvironment(
  component: string,
  kinds: ReadonlyMap<string, Flag['type']>,
  siblings: ReadonlySet<string>,
  env: Environment,
  texts: Map<string, Given>,
): string[] {
  const flags = new Map([...kinds.keys()].map((name) => [variableOf(component, name), name]))
  const known = new Set([...flags.keys(), ...[...siblings].map((name) => variableOf(component, name))])
  const own = variableOf(component, '')
  const prefixes = [own, ...COMPONENTS.map((each) => variableOf(each, ''))]
  const warnings: string[] = []
  const services: string[] = []
  for (const [variable, text] of Object.entries(env)) {
    // An empty variable counts as unset.
    if (!variable.startsWith(ALL) || text === undefined || text === '') continue
    if (SERVICE_URL.test(text) || (OF_SERVICE.test(variable) && !known.has(variable))) {
      if (variable.startsWith(own)) services.push(variable)
      continue
    }
    const name = flags.get(variable)
    if (name !== undefined) texts.set(name, { text, at: variable, from: 'env' })
    if (known.has(variable) || OTHER_VARIABLES.test(variable)) continue
    const owner = prefixes.reduce(
      (most, each) => (variable.startsWith(each) && each.length > most.length ? each : most),
      '',
    )
    if (owner !== '' && owner !== own) continue
    warnings.push(`${variable} is set but unknown: ${own}… is read${suggestionOf(variable, known)}`)
  }
  if (services.length > 0) warnings.push(`ignored as variables of a service of the platform: ${services.join(', ')}`)
  return warnings
}

/** The beginning that all variables share says nothing about which one was meant. */
function suggestionOf(variable: string, known: Iterable<string>): string {
  const names = [...known].map((each) => each.slice(ALL.length))
  return suggestion(variable.slice(ALL.length), names, ALL)
}

/** Splits the arguments into flag texts and returns the operands. */
function readArguments(
  kinds: ReadonlyMap<string, Flag['type']>,
  args: readonly string[],
  texts: Map<string, Given>,
  faults: string[],
): string[] {
  const options = Object.fromEntries(
    [...kinds].map(([name, type]) => [name, { type: type === 'boolean' ? ('boolean' as const) : ('string' as const) }]),
  )
  // Not strict, so that the errors are ours and a value may begin with a dash.
  const { tokens, positionals } = parseArgs({
    args: [...args],
    options,
    strict: false,
    tokens: true,
    allowPositionals: true,
  })
  for (const token of tokens) {
    if (token.kind !== 'option') continue
    const { rawName, name, value, inlineValue } = token
    const type = kinds.get(name)
    if (type === undefined || !rawName.startsWith('--')) {
      faults.push(`unknown flag ${rawName}${suggestion(name, kinds.keys(), '--')}`)
    } else if (type === 'boolean') {
      texts.set(name, { text: value ?? 'true', at: rawName, from: 'flag' })
    } else if (value === undefined || (!inlineValue && value.startsWith('--'))) {
      faults.push(`${rawName} needs a value`)
    } else {
      const before = type === 'list' ? texts.get(name) : undefined
      const text = before?.from === 'flag' ? `${before.text},${value}` : value
      texts.set(name, { text, at: rawName, from: 'flag' })
    }
  }
  return positionals
}

function readFlag(flag: Flag, { text, at }: Given, faults: string[]): SettingValue {
  if (flag.type === 'list') {
    const words = text.split(',').map((word) => word.trim())
    if (words.includes('')) faults.push(`${at}: ${JSON.stringify(text)} is not a list of words separated by commas`)
    return words
  }
  const value = valueOfText(flag, text)
  const fault = faultOf(flag, value)
  if (fault) faults.push(`${at}: ${JSON.stringify(value)} ${fault}`)
  return value
}

function defaultOf(flag: Flag): SettingValue | undefined {
  return flag.type === 'boolean' ? false : flag.default
}

/** `tcp-port` of `RUN` as `VACANCY_RUN_TCP_PORT`. */
export function variableOf(component: string, name: string): string {
  return `${ALL}${component}_${name}`.replaceAll('-', '_').toUpperCase()
}

function kebabCase(key: string): string {
  return key.replaceAll('_', '-')
}

/** One flag as --help and completions show it. */
type FlagRow = {
  readonly flag: string
  /** Of its value; '' without one. */
  readonly placeholder: string
  readonly summary: string
  /** Range, default and where it applies. */
  readonly notes: readonly string[]
  /** All its values, if they are few. */
  readonly words: readonly string[]
  /** Whether it is a key of the configuration file, too. */
  readonly isKey: boolean
}

/** All flags of a command in the order of --help: its own, those of every command, and configuration keys. */
export function flagRows<F extends Flags>({ flags, settings = {} }: CommandSpec<F>): readonly FlagRow[] {
  const own = Object.entries<Flag>(flags).map(([flag, spec]) => ({
    flag,
    placeholder: spec.value ?? PLACEHOLDERS[spec.type],
    summary: spec.summary,
    notes: present(noteOf(spec)),
    words: spec.type === 'choice' ? spec.choices : [],
    isKey: false,
  }))
  const keys = Object.entries(settings).map(([key, setting]) => ({
    flag: kebabCase(key),
    placeholder: PLACEHOLDERS[setting.type],
    summary: setting.summary,
    notes: present([
      rangeOf(setting),
      `default ${String(setting.default) === '' ? 'empty' : setting.default}`,
      setting.appliesTo,
    ]),
    words: setting.type === 'choice' ? setting.choices : [],
    isKey: true,
  }))
  return [...own, ...COMMON_ROWS, ...keys]
}

const COMMON_ROWS: readonly FlagRow[] = [
  { flag: 'help', summary: 'Prints this.' },
  { flag: 'version', summary: 'Prints the version.' },
].map((each) => ({ ...each, placeholder: '', notes: [], words: [], isKey: false }))

const present = (notes: readonly (string | undefined)[]) => notes.filter((note) => note !== undefined)

/** The first line of --help. */
function usageOf<F extends Flags>({ name, operands }: CommandSpec<F>): string {
  return `${name} [flags]${operands ? ` ${operands.min > 0 ? operands.name : `[${operands.name}]`}` : ''}`
}

/** The text of --help, generated from the table. */
export function helpOf<F extends Flags>(command: CommandSpec<F>): string {
  const { component, summary, operands } = command
  const rows = flagRows(command)
  const keys = rows.filter(({ isKey }) => isKey)
  const example = variableOf(component, (rows.find((each) => !COMMON_ROWS.includes(each)) ?? rows[0])?.flag ?? '')
  return [
    `usage: ${usageOf(command)}`,
    '',
    summary,
    ...(operands ? ['', `${operands.name}  ${operands.summary}`] : []),
    '',
    'Flags:',
    ...rows.filter(({ isKey }) => !isKey).map(helpLine),
    ...(keys.length > 0 ? ['', 'Configuration keys, in the file with _ for -:', ...keys.map(helpLine)] : []),
    ...(Object.keys(command.flags).length + keys.length > 0
      ? ['', `Each flag is also an environment variable, such as ${example}.`]
      : []),
  ].join('\n')
}

const PLACEHOLDERS = { integer: 'N', boolean: '', text: 'TEXT', choice: 'WORD', list: 'A,B' } as const
const HELP_COLUMN = 34

function helpLine({ flag, placeholder, summary, notes }: FlagRow): string {
  const head = `  --${flag}${placeholder === '' ? '' : ` ${placeholder}`}`
  const text = `${summary}${notes.length > 0 ? ` (${notes.join('; ')})` : ''}`
  return head.length < HELP_COLUMN ? `${head.padEnd(HELP_COLUMN)}${text}` : `${head}\n${' '.repeat(HELP_COLUMN)}${text}`
}

function noteOf(flag: Flag): readonly (string | undefined)[] {
  const range = flag.type === 'integer' || flag.type === 'choice' ? rangeOf(flag) : undefined
  if (flag.required) return [range, 'required']
  return [range, flag.default === undefined ? undefined : `default ${String(flag.default)}`]
}
