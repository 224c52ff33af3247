/** The commands of `vacancy query`: generated from the command table, sent to a node, with results as tables. */

import { readFileSync } from 'node:fs'
import { type ClientOptions, connect, VacancyCallError } from '@vacancy/client'
import { dayOf, EXIT, formatDay, LIMITS, parseDay, suggestion, VacancyError } from '@vacancy/shared'
import {
  type Command,
  count,
  defineCommand,
  type Flag,
  type FlagValues,
  named,
  runCommands,
  tableLines,
  whole,
} from '@vacancy/shared/node'
import {
  COMMAND_LIST,
  COMMANDS,
  type CommandName,
  type FieldSpec,
  type FieldValue,
  hasPages,
  isCommandName,
  type ReplyResult,
  type RequestFields,
  type SearchCommand,
  type StayLine,
  searchFields,
  searchWords,
} from '@vacancy/shared/wire'
import { tableOf } from './table.ts'

/** Shorter names of fields as flags. */
const FLAG_OF: { readonly [field: string]: string } = {
  propertyId: 'property',
  propertyType: 'type',
  availability: 'rooms',
  finalPrice: 'price',
  rateFeatures: 'features',
  radiusMetres: 'radius',
  cursor: 'page',
}
/** Fields of searches that are on or off. */
const SWITCHES = ['explain', 'count', 'compact', 'anyRoomType']
/** First and last arrival day. */
const ARRIVALS: readonly string[] = ['from', 'to']
/** Fields for programs that read from several nodes, only available in `send`. */
const SEND_ONLY = ['maxStalenessMs', 'minIndex', 'linearizable', 'trace']

const CONNECTION_FLAGS = {
  host: { ...named('HOST'), default: '127.0.0.1', summary: 'Address of the node.' },
  port: { ...whole(7777, 1, 65_535), summary: 'Its TCP port.' },
  token: { type: 'text', summary: 'Token to log in with; VACANCY_QUERY_TOKEN keeps it out of the process list.' },
  tls: { type: 'boolean', summary: 'Connects with TLS and trusts the certificates of the system.' },
  'tls-ca': { ...named('FILE'), summary: 'Connects with TLS and trusts these certificates (PEM).' },
  'timeout-ms': { ...whole(10_000, 1, 600_000, 'ms'), summary: 'Timeout.' },
  json: { type: 'boolean', summary: 'The result as one JSON document instead of a table.' },
} as const satisfies { readonly [name: string]: Flag }

const STAY_FLAGS = {
  from: {
    ...named('DATE'),
    summary: 'First night, or +N for N days from today (UTC); with --nights, instead of --dates.',
  },
  nights: { type: 'integer', min: 1, max: LIMITS.datesInQueryMax, summary: 'Number of nights from --from.' },
} as const satisfies { readonly [name: string]: Flag }

type Given = { readonly [flag: string]: unknown }
type Asking = FlagValues<typeof CONNECTION_FLAGS>
type Sent = Exclude<CommandName, 'LOGIN'>

function isSearch(name: Sent): name is SearchCommand {
  return COMMANDS[name].group === 'search'
}

function wordCommand(word: string, name: Sent, summary: string): Command {
  const fields = COMMANDS[name].fields.filter((field) => !SEND_ONLY.includes(field.name))
  const isStay = name === 'SEARCHAVAIL'
  return defineCommand({
    name: `vacancy query ${word}`,
    component: 'QUERY',
    summary,
    flags: {
      ...Object.fromEntries(fields.map((field) => [flagOf(field), flagFor(name, field)])),
      ...(isStay ? STAY_FLAGS : {}),
      ...CONNECTION_FLAGS,
    },
    run: async ({ flags }) => {
      const given: Given = flags
      const request: { [name: string]: FieldValue } = {}
      for (const field of fields) {
        const value = given[camel(flagOf(field))]
        if (value === undefined || value === false) continue
        request[field.name] = valueOfFlag(field, value)
      }
      if (isStay) Object.assign(request, { dates: datesOf(given) })
      for (const field of ARRIVALS) {
        if (!isStay && request[field] !== undefined) request[field] = formatDay(dayOfFlag(field, request[field]))
      }
      await ask(flags as Asking, name, isSearch(name) ? searched(name, request) : request)
      return EXIT.ok
    },
  })
}

/** Words as numbers. A search with an order has a page: the number of matches, and how to get the next one. */
function searched(name: SearchCommand, given: RequestFields): RequestFields {
  try {
    const fields = searchFields(name, { ...given, ...(hasPages(name, given) && { count: true }) }, kebab)
    return fields as RequestFields
  } catch (error) {
    if (error instanceof VacancyError && error.code === 'validation_error') throw usage(`--${error.message}`)
    throw error
  }
}

/** Boolean flags have the field value 1. */
function valueOfFlag(field: FieldSpec, value: unknown): FieldValue {
  const name = `--${flagOf(field)}`
  if (field.width === 'f64') return numberOf(name, String(value))
  if (isNumbers(field.width)) return (value as readonly string[]).map((each) => numberOf(name, each))
  return value === true ? 1 : (value as FieldValue)
}

const LISTS: readonly string[] = ['list', 'names', 'u8s', 'u64s']

function isNumbers(width: FieldSpec['width']): boolean {
  return width === 'u8s' || width === 'u64s'
}

function flagOf({ name }: FieldSpec): string {
  return FLAG_OF[name] ?? kebab(name)
}

function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

function camel(flag: string): string {
  return flag.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

function flagFor(command: Sent, field: FieldSpec): Flag {
  const { name, width, summary } = field
  const isStay = command === 'SEARCHAVAIL'
  // A stay is given by --dates, or by --from and --nights. Checked after parsing all flags.
  const required =
    field.required && field.unless.length === 0 && !(isStay && name === 'dates') ? { required: true as const } : {}
  if (isSearch(command)) {
    const { orders, wants, weekdays, facets } = searchWords(command, kebab)
    if (name === 'facets' || name === 'disjunctiveFacets') {
      const what = name === 'facets' ? 'Counts of all matches by' : 'Some of --facets, as if their filter were absent:'
      return { type: 'list', summary: `${what} ${facets.join(', ')}.` }
    }
    if (name === 'order') return { type: 'text', value: 'WORD', summary: `${orders.join(', ')}; then in pages.` }
    if (name === 'want') return { type: 'list', summary: `Values of each property: ${wants.join(', ')}.` }
    if (name === 'weekdays') return { type: 'list', summary: `Arrivals on these only: ${weekdays.join(', ')}.` }
    if (ARRIVALS.includes(name))
      return { ...required, ...named('DATE'), summary: `${summary} Or +N for N days from today (UTC).` }
    if (SWITCHES.includes(name)) return { type: 'boolean', summary: SWITCH_SUMMARIES[name] ?? summary }
  }
  if (LISTS.includes(width)) return { type: 'list', summary, ...required }
  if (width === 'text') return { type: 'text', summary, ...required }
  if (width === 'f64') return { type: 'text', value: 'DEGREES', summary, ...required }
  return { type: 'integer', min: 0, max: MAX_OF[width as keyof typeof MAX_OF], summary, ...required }
}

const MAX_OF = { u8: 255, u32: 4_294_967_295, u64: Number.MAX_SAFE_INTEGER } as const
const SWITCH_SUMMARIES: { readonly [field: string]: string } = {
  explain: 'Reports the rows examined and the time taken.',
  count: 'Counts all matches; with --order always.',
  compact: 'Without days.',
  anyRoomType: 'Each property once, with its cheapest room type, instead of --room-type.',
}

function datesOf({ dates, from, nights }: Given): readonly string[] {
  if ((dates === undefined) === (from === undefined && nights === undefined) || (dates ?? from) === undefined) {
    throw usage('a stay is --dates DATE,DATE or --from DATE --nights N')
  }
  if (dates !== undefined) return dates as readonly string[]
  const first = dayOfFlag('from', from)
  return Array.from({ length: Number(nights ?? 1) }, (_, night) => formatDay(first + night))
}

function dayOfFlag(flag: string, value: unknown): number {
  const day = dayFrom(String(value))
  if (day === undefined) throw usage(`--${flag}: ${JSON.stringify(value)} is neither a date YYYY-MM-DD nor +N days`)
  return day
}

function dayFrom(text: string): number | undefined {
  const ahead = /^\+(\d{1,3})$/.exec(text)?.[1]
  return ahead === undefined ? parseDay(text) : dayOf(Date.now()) + Number(ahead)
}

function numberOf(name: string, text: string): number {
  const number = Number(text)
  if (text.trim() !== '' && Number.isFinite(number)) return number
  throw usage(`${name}: ${JSON.stringify(text)} is not a number`)
}

function usage(reason: string): VacancyError {
  return new VacancyError('usage_error', { reason })
}

const sendCommand = defineCommand({
  name: 'vacancy query send',
  component: 'QUERY',
  summary: 'Sends any command with its fields, including writes. vacancy query commands lists them.',
  flags: CONNECTION_FLAGS,
  operands: {
    name: 'COMMAND [FIELD=VALUE …]',
    min: 1,
    max: 64,
    summary: 'Lists are comma-separated; FIELD= is an empty list.',
  },
  run: async ({ flags, operands }) => {
    const [word = '', ...pairs] = operands
    const name = commandOf(word)
    await ask(flags, name, fieldsOf(name, pairs))
    return EXIT.ok
  },
})

/** @throws VacancyError usage_error with the nearest name */
function commandOf(word: string): Sent {
  const name = word.toUpperCase()
  if (isCommandName(name) && name !== 'LOGIN') return name
  if (name === 'LOGIN') throw usage('LOGIN is sent by --token')
  const names = COMMAND_LIST.map((command) => command.name)
  throw usage(`unknown command ${word}${suggestion(name, names)} (see vacancy query commands)`)
}

/**
 * `field=value` pairs as the fields of a command.
 *
 * @throws VacancyError usage_error for an unknown field and for a value that does not fit
 */
export function fieldsOf(command: CommandName, pairs: readonly string[]): RequestFields {
  const specs: readonly FieldSpec[] = COMMANDS[command].fields
  const fields: { [name: string]: FieldValue } = {}
  for (const pair of pairs) {
    const equals = pair.indexOf('=')
    if (equals < 1) throw usage(`${JSON.stringify(pair)} is not FIELD=VALUE`)
    const [name, text] = [pair.slice(0, equals), pair.slice(equals + 1)]
    const spec = specs.find((field) => field.name === name)
    if (!spec) throw usage(`${command} has no field ${name}; it has ${specs.map((field) => field.name).join(', ')}`)
    fields[name] = parsedValue(spec, text)
  }
  return fields
}

function parsedValue({ name, width }: FieldSpec, text: string): FieldValue {
  if (width === 'text') return text
  if (isNumbers(width)) return text.split(',').map((each) => numberOf(name, each))
  if (LISTS.includes(width)) return text === '' ? [] : text.split(',')
  if (width === 'lines') return linesOf(name, text)
  if (width === 'u64' && /^\d+$/.test(text)) return BigInt(text)
  return numberOf(name, text)
}

/** The lines of a stay are JSON. Their fields are checked when the request is encoded. */
function linesOf(name: string, text: string): readonly StayLine[] {
  try {
    const lines: unknown = JSON.parse(text)
    if (Array.isArray(lines)) return lines as readonly StayLine[]
  } catch {
    // The reason is enough: the parser's message quotes the text.
  }
  throw usage(`${name} is not a JSON array of lines, such as ${LINES_EXAMPLE}`)
}
const LINES_EXAMPLE = '[{"propertyId":"hotel_123","roomType":"double","arrival":"2026-12-24","nights":3,"rooms":2}]'

const commandsCommand = defineCommand({
  name: 'vacancy query commands',
  component: 'QUERY',
  summary: 'All commands of the protocol with their fields, for vacancy query send. Contacts no node.',
  flags: {},
  run: async () => {
    const rows = COMMAND_LIST.filter(({ name }) => name !== 'LOGIN').map(({ name, access, fields }) => {
      const shown = fields.filter(({ extension }) => !extension)
      return [name, access, shown.map((field) => (field.required ? field.name : `[${field.name}]`)).join(' ')]
    })
    const table = { columns: ['command', 'access', 'fields, optional ones in brackets'], rows, counted: '' }
    print(tableLines(table))
    return EXIT.ok
  },
})

async function ask(flags: Asking, command: Sent, fields: RequestFields): Promise<void> {
  try {
    const client = await connect(optionsOf(flags))
    try {
      const sentMs = performance.now()
      const result: ReplyResult = await client.send(command, fields as RequestFields<Sent>)
      const ms = performance.now() - sentMs
      print(flags.json ? [JSON.stringify(result, bigintAsNumber, 2)] : shown(result, ms))
    } finally {
      await client.close()
    }
  } catch (error) {
    if (error instanceof VacancyCallError) throw reported(error, flags)
    throw error
  }
}

/** One request, sent once: every failure is reported as it is. */
function optionsOf({ host, port, token, tls, tlsCa, timeoutMs }: Asking): ClientOptions {
  return {
    host,
    port,
    ...(token !== undefined && { token }),
    tls: tlsCa === undefined ? tls : { ca: readCa(tlsCa) },
    deadlineMs: timeoutMs,
    connectDeadlineMs: timeoutMs,
    requestKeys: false,
    retry: false,
  }
}

function reported(error: VacancyCallError, { host, port }: Asking): VacancyError {
  const { code, message, cause } = error
  // Refused before it was sent: an error in the arguments.
  if (cause instanceof VacancyError && cause.code === 'validation_error') return usage(cause.message)
  if ((cause as NodeJS.ErrnoException | undefined)?.code === 'ECONNREFUSED') {
    const reason = 'nothing listens there (is the node running?)'
    return new VacancyError('connection_failed', { address: `${host}:${port}`, reason }, { cause })
  }
  if (code === '308') return new VacancyError('failure', { reason: `308: ${NOT_LEADER}` }, { cause: error })
  // Codes of replies are in capitals or numbers; the others are those of the client, whose messages need no code.
  const reason = /^[A-Z0-9_]+$/.test(code) ? `${code}: ${message}` : message
  return new VacancyError('failure', { reason }, { cause: error })
}

const NOT_LEADER = 'this node is not the leader, and nothing was changed: run `vacancy cluster info` to find the leader'

function readCa(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw new VacancyError('usage_error', { reason: `--tls-ca: ${(cause as Error).message}` }, { cause })
  }
}

function bigintAsNumber(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? Number(value) : value
}

function shown(result: ReplyResult, ms: number): string[] {
  const table = tableOf(result)
  const { explain } = result
  const lines = tableLines(table)
  return [
    ...lines,
    ...(lines.length > 0 ? [''] : []),
    ...countedLines(result),
    `${table.counted} in ${ms.toFixed(2)} ms`,
    ...(explain
      ? [
          `${count(explain.rowsExamined, 'row')} examined in ${explain.searchingMicros} µs, at index ${explain.appliedIndex}`,
        ]
      : []),
  ]
}

/** A line for each facet, and for each cell with matches. */
function countedLines({ facets = {}, cells = [] }: ReplyResult): string[] {
  const rangeOf = ({ minTotal, maxTotal }: { minTotal: number; maxTotal?: number }) =>
    `${minTotal} to ${maxTotal ?? '…'}`
  const counts = Object.entries(facets).map(([facet, entries]) => {
    const shown = entries.map((entry) => `${'value' in entry ? entry.value : rangeOf(entry)} (${entry.count})`)
    return `${facet}: ${shown.join(', ')}`
  })
  const shown = cells.map(({ column, row, count: found, lowestTotal, latitude, longitude }) => {
    const total = lowestTotal === undefined ? '' : `, from ${lowestTotal}`
    return `cell ${column}, ${row}: ${found}${total}, around ${latitude}, ${longitude}`
  })
  return [...counts, ...shown]
}

function print(lines: readonly string[]): void {
  process.stdout.write(`${lines.join('\n')}\n`)
}

export const QUERY_COMMANDS: readonly Command[] = [
  ...COMMAND_LIST.flatMap(({ query, name, summary }) =>
    query === undefined ? [] : [wordCommand(query, name as Sent, summary)],
  ),
  sendCommand,
  commandsCommand,
]

/** Runs one command of `vacancy query`; sets the exit code. */
export async function queryMain(args: readonly string[]): Promise<void> {
  const [word] = args
  if (word === undefined || word === '--help') {
    print(help())
    process.exitCode = word === undefined ? EXIT.usage : EXIT.ok
    return
  }
  await runCommands(QUERY_COMMANDS, args)
}

function help(): string[] {
  const rows = QUERY_COMMANDS.map(({ name, summary }) => `  ${(name.split(' ').at(-1) ?? '').padEnd(12)}${summary}`)
  return [
    'usage: vacancy query <command> [flags]',
    '',
    'Queries a running node over TCP and prints the result as a table.',
    '',
    ...rows,
    '',
    'Each has --help. For example:',
    '  vacancy query segments',
    '  vacancy query search --segment tyrol --room-type double --from +7 --nights 2 --price 120',
    '  vacancy query send SETROOMAVL propertyId=alp_000001 roomType=double date=2026-12-04 amount=3',
    '  vacancy query send GETSTAY stayId=order-48121',
  ]
}
