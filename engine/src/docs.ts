/**
 * Generates the reference pages from their tables: `npm run docs`. A test fails when a committed page differs from
 * its tables.
 */

import {
  assert,
  ERRORS,
  type ErrorName,
  EXIT,
  errorRow,
  kindOf,
  kindOfWireCode,
  LIMITS,
  WIRE_CODES,
} from '@vacancy/shared'
import { NIGHT_LIMITS, NODE_HTTP_LIMITS } from '@vacancy/shared/contract'
import { configTable, limitsTable, metricsTable, variableOf } from '@vacancy/shared/node'
import { COMMAND_LIST, type CommandSpec, type FieldSpec, REPLIES } from '@vacancy/shared/wire'
import { COMPONENTS, CONFIG_FILES, ENGINE_SCHEMA } from './config.ts'
import { EXIT_CODES } from './exit-codes.ts'
import { CLUSTER_REASONS, NODE_REASONS, type ReasonRow } from './http/reasons.ts'
import { METRICS } from './metrics.ts'

const GROUPS = {
  connection: 'Connection',
  shard: 'Shard',
  properties: 'Properties',
  search: 'Search',
  packages: 'Packages',
  availability: 'Availability',
  stays: 'Stays',
} as const satisfies { readonly [group in CommandSpec['group']]: string }

/** All pages by file name. */
export function pages(): { readonly [file: string]: string } {
  return {
    'commands.md': commandsPage(),
    'config.md': configPage(),
    'errors.md': errorsPage(),
    'metrics.md': metricsPage(),
    'reasons.md': reasonsPage(),
  }
}

function page(title: string, source: string, ...blocks: readonly string[]): string {
  const made = `<!-- Generated from ${source} by \`npm run docs\`. Change it there. -->`
  return `${[`# ${title}`, made, ...blocks].join('\n\n').trimEnd()}\n`
}

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(heads), `|${'---|'.repeat(heads.length)}`, ...rows.map(line)].join('\n')
}

/** In so many commands a field is described once. */
const REPEATED_MIN = 4

const hexOf = (id: number) => `0x${id.toString(16).padStart(2, '0')}`
const code = (text: string | number) => `\`${text}\``

function commandsPage(): string {
  const groups = Object.entries(GROUPS).map(([group, title]) => {
    const commands = COMMAND_LIST.filter((command) => command.group === group)
    return [`## ${title}`, ...commands.map(commandBlock)].join('\n\n')
  })
  return page(
    'Commands',
    '`shared/src/wire/commands.ts`',
    'Every request of the data protocol: its fields by id, its reply (without one, SUCCESS has no fields), and its specific errors. Any command can also fail with `VALIDATION_ERROR`, `PARSE_ERROR`, `429`, `503` or `500`; with a login required, `AUTH_ERROR` and `FORBIDDEN`. [errors.md](errors.md) lists the action for each.',
    'Fields with ids from 0x8000 are extensions: existing clients never send them, and other servers refuse them. An ERROR reply means that no data was changed, except after `408` and `500`, where the outcome of a write is unknown.',
    `Fields are required unless marked optional. Types on the wire: ${typesText()}.`,
    '## Common fields',
    'Every read has these. With `minIndex` it can fail with `308`.',
    fieldsList(commonOf('read')),
    'Every write has these. It can fail with `308` on a node that is not the leader, and with `408` when the outcome is unknown. With `wantIndex` the reply also has the index at which the write was applied.',
    fieldsList(commonOf('write')),
    'These names mean the same in every command that says nothing else:',
    table(
      ['Field', 'What it is'],
      [...repeatedSummaries()].map(([summary, name]) => [code(name), summary]),
    ),
    ...groups,
    '## Limits',
    'No configuration changes them.',
    limitsTable(LIMITS, LIMIT_MEANINGS),
  )
}

const LIMIT_MEANINGS: { readonly [name in keyof typeof LIMITS]: string } = {
  featuresMax: 'Rate features of a codec list.',
  roomTypesPerPropertyMax: 'Room types of a property.',
  availabilityMax: 'Rooms left of a night.',
  priceMax: 'Price of a night. As a bound of a search, one more means no bound.',
  priceDecimalsMax: 'Decimals of the prices of an import.',
  starsMin: 'Least stars of a property.',
  starsMax: 'Most stars of a property.',
  latitudeMax: 'Degrees of latitude, north or south.',
  longitudeMax: 'Degrees of longitude, east or west.',
  amenitiesMax: 'Amenities of a property.',
  amenityBytesMax: 'Bytes of an amenity.',
  featureBytesMax: 'Bytes of a rate feature.',
  nameBytesMax: 'Bytes of a segment, area, property type, category or room type.',
  shortIdMax: 'Characters of a property id that is not a UUID.',
  datesInQueryMax: 'Greatest value of the setting `max_dates_in_query`.',
  radiusMetresDefault: 'Radius of a search around a position, in metres, if none is given.',
  radiusMetresMax: 'Greatest radius of a search around a position, in metres.',
  earthRadiusMetres: 'Radius of the Earth by which distances are computed, in metres.',
  requestPayloadBytesMax: 'Bytes of the payload of a request. A larger one is skipped and refused.',
  envelopeOverheadBytesMax: 'Bytes of an envelope beyond the largest payload.',
  skippedPayloadBytesMax: 'Bytes of a frame that is skipped. A larger one closes the connection.',
  errorTextBytesMax: 'Bytes of the text of an ERROR reply.',
  replyPropertiesMax: 'Properties in a reply to SEARCHPROP.',
  replyPropertiesWithExtraMax: 'The same with a trailer.',
  replyStaysMax: 'Properties in a reply to SEARCHAVAIL.',
  replyStaysWithExtraMax: 'The same with a trailer.',
  searchRoomTypesMax: 'Room types that a search names.',
  searchTablesMax: 'Room types of a segment that a search of any room type reads.',
  searchRowNightsMax: 'Rows of their tables together, times the nights of the search.',
  calendarDaysMax: 'Greatest value of the setting `max_calendar_days`.',
  flexibleNightsMax: 'Nights of a flexible stay beyond its least number.',
  calendarRowDaysMax: 'Rows of all tables of a search of several arrival days, times the nights it reads.',
  facetBoundsMax: 'Totals between which a search counts.',
  facetValuesDefault: 'Values of each facet that a search returns, if no number is given.',
  facetValuesMax: 'The most that may be given.',
  mapCellsMax: 'Columns, and rows, of the cells of a box.',
  replySegmentsMax: 'Segments in a reply to GETSEGMENTS.',
  stayLinesMax: 'Lines of a stay.',
  stayNightsMax: 'Nights of a line.',
  stayLineNightsMax: 'Nights of all lines of a stay together.',
  holdSecondsMin: 'Least seconds of a hold.',
  holdSecondsMax: 'Most seconds of a hold.',
  holdSecondsDefault: 'Seconds of a hold, if none are given.',
  sourceBytesMax: 'Bytes of the source of a stay.',
  stayListMax: 'Stays in a reply to LISTSTAYS.',
  componentIdBytesMax: 'Bytes of the id of a zone, shard or node.',
}

function commandBlock(command: CommandSpec): string {
  const { name, access, summary, reply, notFound } = command
  const common = access === 'session' ? [] : commonOf(access)
  const fields = command.fields.filter((field) => !common.includes(field))
  const errors = [
    ...(notFound === undefined ? [] : [`\`NOT_FOUND\` when ${notFound}`]),
    ...(command.errors === undefined ? [] : [command.errors]),
  ]
  return [
    `### ${name}`,
    `${summary} A ${access === 'session' ? 'command of the connection' : access}.`,
    ...(fields.length === 0 ? [] : [fieldsList(fields)]),
    ...(reply === 'empty' ? [] : [`Reply: ${REPLIES[reply]}.`]),
    ...(errors.length === 0 ? [] : [`Errors: ${errors.join('; ')}.`]),
  ].join('\n\n')
}

/** A line for each field: id, name, data, what it is. */
function fieldsList(fields: readonly FieldSpec[]): string {
  const lines = fields.map(({ id, lastId, name, width, required, unless, keepsEmpty, summary }) => {
    const ids = code(lastId > id ? `${hexOf(id)}–${hexOf(lastId)}` : hexOf(id))
    const isFree = required && unless.length > 0
    const presence = isFree
      ? ` unless ${unless.map(code).join(' or ')}`
      : required
        ? ''
        : keepsEmpty
          ? ', optional, may be empty'
          : ', optional'
    return `- ${ids} ${code(name)} ${width}${presence}${repeatedSummaries().has(summary) ? '' : `: ${summary}`}`
  })
  return lines.join('\n')
}

/** The type code of each width of data. */
function typesText(): string {
  const fields = COMMAND_LIST.flatMap((command): readonly FieldSpec[] => command.fields)
  const types = new Map(fields.map(({ width, type }) => [width, type]))
  return [...types].map(([width, type]) => `${code(width)} ${type}`).join(', ')
}

/** Summaries that at least four commands have for a field of their own, with its name. */
function repeatedSummaries(): Map<string, string> {
  const common: readonly FieldSpec[] = [...commonOf('read'), ...commonOf('write')]
  const own = COMMAND_LIST.flatMap(({ fields }): readonly FieldSpec[] => fields).filter(
    (field) => !common.includes(field),
  )
  const repeated = own.filter(({ summary }) => own.filter((field) => field.summary === summary).length >= REPEATED_MIN)
  return new Map(repeated.map(({ summary, name }) => [summary, name]))
}

/** The fields that all reads or all writes share. */
function commonOf(access: 'read' | 'write'): readonly FieldSpec[] {
  const [first, ...others] = COMMAND_LIST.filter((command) => command.access === access)
  assert(first, 'there are commands of each access')
  return first.fields.filter((field) => others.every(({ fields }) => fields.includes(field)))
}

function configPage(): string {
  return page(
    'Configuration of a node',
    '`engine/src/config.ts`',
    `A YAML file of flat keys, each of them optional: the one of \`--config\`, else the first existing of ${CONFIG_FILES.map(code).join(' and ')}, else the defaults. Variables (${Object.values(
      COMPONENTS,
    )
      .map((each) => code(variableOf(each, 'tcp-port')))
      .join(
        ' of `vacancy run`, ',
      )} of \`vacancy run-clustered\`) override the file, and flags (\`--tcp-port\`) override variables. Unknown variables that begin with \`VACANCY_\` are named in the log. \`GET /config\` shows each value in force and its origin.`,
    'A wrong type, a value out of its range or an unknown key stops the start with exit code 64 and one line per error. Across keys: the three ports differ unless 0; `raft_tick_ms` × `raft_election_tick` is 150 to 60000 ms; `raft_heartbeat_tick` is at most half of `raft_election_tick`; `sys_cores_count` is less than the number of cores; `session_table_bytes` is at most half of the memory for data.',
    configTable(ENGINE_SCHEMA),
    '## Limits of the HTTP API',
    'No key changes them. Those of the data protocol are in [commands.md](commands.md#limits).',
    limitsTable(HTTP_LIMITS, HTTP_LIMIT_MEANINGS),
  )
}

const HTTP_LIMITS = { ...NODE_HTTP_LIMITS, ...NIGHT_LIMITS }
const HTTP_LIMIT_MEANINGS: { readonly [name in keyof typeof HTTP_LIMITS]: string } = {
  bodyBytesMax: 'Bytes of a request body.',
  propertyIdsMax: 'Ids in one `GET /properties`.',
  peersMax: 'Node ids in one `POST /peers`.',
  wordsMax: 'Words in one `GET /words`.',
  wordsDefault: 'The same, if no number is given.',
  coverageMax: 'Segments in one `GET /coverage`.',
  nightBytesMax: 'Bytes of the log that one `GET /night` searches; it ends with the part in which it reaches them.',
  nightChangesMax: 'Commands after which it ends, likewise.',
  nightRequestsMax: 'Requests for histories of nights at once. One is served at a time.',
  nightCursorCharsMax: 'Characters of its cursor.',
}

function errorsPage(): string {
  const wire = WIRE_CODES.map((each) => {
    const named = (Object.keys(ERRORS) as ErrorName[]).filter((name) => errorRow(name).wire === each)
    return [code(each), KINDS[kindOfWireCode(each)], named.map(code).join(', ')]
  })
  const rows = (Object.keys(ERRORS) as ErrorName[]).map((name) => {
    const { wire, http, retry, exit, message } = errorRow(name)
    const cells = [
      wire === undefined ? '' : code(wire),
      String(http),
      kindOf(name).replace('_', ' '),
      retry ? 'yes' : 'no',
    ]
    return [code(name), ...cells, exit === undefined ? '' : String(exit), message]
  })
  return page(
    'Errors',
    '`shared/src/errors.ts`',
    'Codes and names are stable; sentences may improve. An ERROR reply of the data protocol is the code alone if it is numeric, else the code, a colon and the sentence. Over HTTP the body is `{"error":"…"}`.',
    '## Codes of ERROR replies',
    table(['Code', 'What to do', 'Names'], wire),
    '## All errors',
    'Kind is the error kind of the client library. Retry means that the call was certainly not executed and may succeed later. Exit codes are in [reasons.md](reasons.md#exit-codes).',
    table(['Name', 'Wire', 'HTTP', 'Kind', 'Retry', 'Exit', 'Sentence'], rows),
  )
}

const KINDS: { readonly [kind in ReturnType<typeof kindOfWireCode>]: string } = {
  request: 'Change the call, or accept the refusal: it was not executed.',
  client: 'Log in on the connection, then repeat.',
  retry: 'Wait a little and repeat, here or on another node: it was not executed.',
  unknown_outcome: 'A write may have been executed: read the state, or repeat it with its request key.',
  internal: 'A bug in a program or damaged data: report it.',
}

function metricsPage(): string {
  return page(
    'Metrics of a node',
    '`engine/src/metrics.ts`',
    '`GET /metrics` returns the text format of Prometheus 0.0.4. Series whose value does not exist yet are left out. There are also `process_*` and `nodejs_*` of prom-client; `nodejs_eventloop_lag_*` other than `_seconds` is the time between two samples, which are 200 ms apart. Metrics of `cluster_*` do not appear in standalone mode.',
    metricsTable(METRICS),
  )
}

function reasonsPage(): string {
  const reasons = (rows: { readonly [name: string]: ReasonRow }) =>
    table(
      ['Reason', 'Stops', 'What it means', 'What to look at', 'What to type'],
      Object.entries(rows).map(([name, { means, lookAt, type, stops }]) => [
        code(name),
        stops === 'all' ? 'everything' : stops,
        means,
        lookAt,
        code(type),
      ]),
    )
  const exits = Object.entries(EXIT).map(([name, number]) => {
    const { means, lookAt, type, restart } = EXIT_CODES[name as keyof typeof EXIT]
    return [String(number), means, lookAt, code(type), restart === 'member' ? 'a member' : restart ? 'yes' : 'no']
  })
  return page(
    'Why a node is unavailable, and how it ended',
    '`engine/src/http/reasons.ts` and `engine/src/exit-codes.ts`',
    '## Reasons in `/ready`',
    '`/healthz` returns `unavailable` (503) while a reason that stops everything holds. `/ready` returns 503 while a reason that stops everything or writes holds, with this text, its start time and details; the log has the same. The metric is `vacancy_unavailable`.',
    reasons(NODE_REASONS),
    '### In clustered mode',
    'Reasons that do not stop the node leave `/ready` at 200: the node does all of its work, but an operator should look.',
    reasons(CLUSTER_REASONS),
    '## Exit codes',
    'All programs use them. A supervisor, such as a [unit of systemd](operators.md#services-of-systemd), starts a program again after those with *yes*, and a member of a shard also after the one with *a member*.',
    table(['Code', 'What it means', 'What to look at', 'What to type', 'Start again'], exits),
  )
}
