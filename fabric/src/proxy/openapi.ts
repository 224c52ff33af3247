/** `/openapi.json`: the API as OpenAPI 3.1, from the rows that read its requests. */

import { LIMITS } from '@vacancy/shared'
import { type ReplyKind, STAY_STATES } from '@vacancy/shared/wire'
import { JSON_COMMANDS, type JsonCommand, type JsonField, SEARCH_PARTS } from './commands.ts'
import { STATUS_OF_CODE } from './status.ts'

type Schema = { readonly [key: string]: unknown }

const text: Schema = { type: 'string' }
const texts: Schema = { type: 'array', items: text }
const whole: Schema = { type: 'integer', minimum: 0 }
const object = (properties: { readonly [name: string]: Schema }, optional: readonly string[] = []): Schema => ({
  type: 'object',
  properties,
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
})
const night = { date: text, availability: whole, final_price: whole, rate_feature: texts }
const success: Schema = { const: 'success' }
const state: Schema = { enum: STAY_STATES }
const line = {
  property_id: text,
  room_type: text,
  arrival: text,
  nights: { type: 'integer', minimum: 1, maximum: 30 },
  rooms: { type: 'integer', minimum: 1, maximum: 255 },
  uncounted: { type: 'boolean' },
}
const stayLine = object(line, ['uncounted'])
const stayNight = { date: text, left: whole, final_price: whole, rate_feature: texts }
const index: Schema = { type: ['integer', 'string'], description: 'Of the write, where want_index asks for it.' }
const found = {
  property_id: text,
  total: whole,
  distance_metres: whole,
  latitude: { type: 'number' },
  longitude: { type: 'number' },
  room_type: text,
}
/** What only a search returns that asks for it: values of each property, and with an order the page. */
const VALUES = ['total', 'distance_metres', 'latitude', 'longitude', 'room_type']
const page = {
  matches: { ...whole, description: 'Number of all matches, with count.' },
  more: { type: 'boolean', description: 'Whether other properties follow.' },
  cursor: { ...text, description: 'For the next page; empty on the last one.' },
  index: { type: ['integer', 'string'], description: 'Log index of the state that the page was read from.' },
}
const counted = {
  facets: {
    type: 'object',
    description: 'Of each facet, the values with most matches and their counts; of the total, each range.',
    additionalProperties: {
      type: 'array',
      items: object({ value: { oneOf: [text, whole] }, min_total: whole, max_total: whole, count: whole }, [
        ...['value', 'min_total', 'max_total'],
      ]),
    },
  },
  cells: {
    type: 'array',
    description: 'Cells with matches, from the south-western corner of the box.',
    items: object(
      {
        column: whole,
        row: whole,
        count: whole,
        lowest_total: whole,
        latitude: { type: 'number' },
        longitude: { type: 'number' },
      },
      ['lowest_total'],
    ),
  },
}
const explain = object({ rows_examined: whole, waiting_micros: whole, searching_micros: whole, applied_index: index })

/** The content of a 200, by the kind of its reply. */
const RESULTS: { readonly [Kind in Exclude<ReplyKind, 'login'>]: Schema } = {
  empty: object({ status: success, index }, ['index']),
  codecs: object({ status: success, rate_features: texts }),
  segments: object({
    status: success,
    segments: { type: 'array', items: object({ segment: text, prop_count: whole, propCount: whole }, ['propCount']) },
  }),
  properties: object(
    {
      status: success,
      properties: {
        type: 'array',
        items: { oneOf: [text, object({ ...found }, VALUES)] },
        description: 'Ids, or objects where want asks for values.',
      },
      ...page,
      ...counted,
      explain,
    },
    [...Object.keys(page), ...Object.keys(counted), 'explain'],
  ),
  stays: object(
    {
      status: success,
      properties: {
        type: 'array',
        items: object({ ...found, days: { type: 'array', items: object(night) } }, [...VALUES, 'days']),
      },
      ...page,
      ...counted,
      explain,
    },
    [...Object.keys(page), ...Object.keys(counted), 'explain'],
  ),
  calendar: object(
    {
      status: success,
      nights: whole,
      days: {
        type: 'array',
        items: object({ arrival: text, total: whole, properties: whole, best: text }, ['total', 'best']),
        description: 'Each arrival day; total and best where a property fits.',
      },
      explain,
    },
    ['explain'],
  ),
  flexible: object(
    {
      status: success,
      arrival_days: whole,
      properties: {
        type: 'array',
        items: object(
          { ...found, arrival: text, nights: whole },
          VALUES.filter((name) => name !== 'total'),
        ),
      },
      ...page,
      explain,
    },
    ['matches', 'explain'],
  ),
  availability: object({ status: success, availability: whole, index }, ['index']),
  exists: object({ status: success, exists: { type: 'boolean' } }),
  roomTypes: object({ status: success, room_types: texts }),
  dates: object({ status: success, dates: texts }),
  night: object({ status: success, property_id: text, ...night }),
  stay: object(
    {
      status: success,
      state,
      deadline: text,
      total: whole,
      index: { ...index, description: 'Log index at which the stay reached this state.' },
      lines: {
        type: 'array',
        items: object({ ...line, days: { type: 'array', items: object(stayNight) } }, ['uncounted', 'days']),
      },
      applied_index: index,
    },
    ['deadline', 'applied_index'],
  ),
  stayList: object({
    status: success,
    stays: {
      type: 'array',
      items: object(
        {
          stay_id: text,
          state,
          deadline: text,
          index,
          time: text,
          source: text,
          lines: { type: 'array', items: stayLine },
        },
        ['deadline'],
      ),
    },
    cursor: text,
  }),
}

/** The document; `auth` names whether tokens are needed. */
export function openApi(version: string, auth: boolean): object {
  const commands = [...JSON_COMMANDS.values()]
  const page = (summary: string, type: string) => ({
    get: { summary, security: [], responses: { 200: { description: summary, content: { [type]: {} } } } },
  })
  return {
    openapi: '3.1.0',
    info: { title: 'Vacancy HTTP proxy', version, description: 'Commands of Vacancy as JSON over HTTP.' },
    paths: {
      '/api': {
        post: {
          summary: 'Runs one command.',
          requestBody: {
            required: true,
            content: {
              'application/json': { schema: { oneOf: commands.map(({ name }) => ref(`${name}Request`)) } },
            },
          },
          responses: {
            200: {
              description: 'Success, by the command.',
              content: { 'application/json': { schema: { anyOf: commands.map(({ name }) => ref(`${name}Result`)) } } },
            },
            ...errorResponses(),
          },
        },
      },
      '/health': page('Whether the process is alive.', 'application/json'),
      '/ready': page('Whether it can serve requests, and why not.', 'application/json'),
      '/metrics': page('Metrics, Prometheus text format.', 'text/plain'),
      '/config': page('The configuration, each value with its source.', 'application/json'),
      '/debug/slow': page('The last slow requests.', 'application/json'),
    },
    components: {
      schemas: Object.fromEntries([
        ['Error', object({ status: { const: 'error' }, message: text, code: text }, ['code'])],
        ...commands.flatMap((command) => [
          [`${command.name}Request`, requestSchema(command)],
          [`${command.name}Result`, RESULTS[command.spec.reply as Exclude<ReplyKind, 'login'>]],
        ]),
      ]),
      ...(auth && { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } }),
    },
    ...(auth && { security: [{ bearer: [] }] }),
  }
}

const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` })

function errorResponses(): { readonly [status: string]: object } {
  const codes = new Map<number, string[]>([
    [400, ['PARSE_ERROR']],
    [401, ['AUTH_ERROR']],
    [413, ['TOO_LARGE']],
  ])
  for (const [code, row] of Object.entries(STATUS_OF_CODE)) {
    codes.set(row.status, [...(codes.get(row.status) ?? []), row.code ?? code])
  }
  return Object.fromEntries(
    [...codes].map(([status, names]) => [
      status,
      {
        description: `Code ${[...new Set(names)].join(', ')}.`,
        content: { 'application/json': { schema: ref('Error') } },
      },
    ]),
  )
}

const degrees = (most: number): Schema => ({ type: 'number', minimum: -most, maximum: most })
const PARTS: { readonly [part in (typeof SEARCH_PARTS)[number]]: Schema } = {
  stay: {
    ...object({ arrival: text, nights: { type: 'integer', minimum: 1, maximum: LIMITS.datesInQueryMax } }),
    description: 'The nights from arrival, instead of date.',
  },
  box: {
    ...object({ south: degrees(90), west: degrees(180), north: degrees(90), east: degrees(180) }),
    description: 'Properties in this box, inclusive; west of more than east crosses 180 degrees.',
  },
}

function isAlwaysRequired({ required, unless, spec }: JsonField, names: JsonCommand['names']): boolean {
  return required && unless.length === 0 && !(spec.name === 'dates' && names.has('stay'))
}

function requestSchema({ name, names, spec, fields, isWrite }: JsonCommand): Schema {
  const body = {
    type: 'object',
    properties: Object.fromEntries([
      ...fields.filter(({ isInPart }) => !isInPart).map((field) => [field.name, fieldSchema(field)]),
      ...SEARCH_PARTS.flatMap((part) => (names.has(part) ? [[part, PARTS[part]]] : [])),
    ]),
    required: fields.filter((field) => isAlwaysRequired(field, names)).map((field) => field.name),
  }
  return {
    type: 'object',
    description: `${spec.summary} ${isWrite ? 'A write.' : 'A read.'}`,
    properties: {
      command: { const: name },
      segment: { type: 'string', description: 'For a router, where the body has none.' },
      body,
    },
    required: body.required.length > 0 ? ['command', 'body'] : ['command'],
  }
}

/** Of fields that are numbers on the wire. */
const SUMMARIES: { readonly [field: string]: string } = {
  order: 'The reply then has the page: more, cursor, index.',
  want: 'Values of each property, beside those of its order.',
  facets: 'Counts of all matches by value: those of the total between bounds, as {"total":[10000,20000]}.',
  disjunctiveFacets: 'Some of facets: counted as if their own filter were absent.',
  count: 'true = the page has the exact number of matches; false = a page without it.',
}

const cellsSide = { type: 'integer', minimum: 1, maximum: LIMITS.mapCellsMax }

/** Words; the total with its bounds. */
function facetSchema(words: readonly string[]): Schema {
  const plain = { enum: words.filter((word) => word !== 'total') }
  if (!words.includes('total')) return plain
  const total = { type: 'array', minItems: 1, maxItems: LIMITS.facetBoundsMax, items: { type: 'integer', minimum: 1 } }
  return { oneOf: [plain, { ...object({ total }), required: ['total'] }] }
}

function fieldSchema({ kind, words, min, max, spec, aliases }: JsonField): Schema {
  const also = aliases.length > 0 ? ` Also ${aliases.join(', ')}.` : ''
  const described = { description: `${SUMMARIES[spec.name] ?? spec.summary}${also}` }
  switch (kind) {
    case 'text':
      return { ...described, type: 'string', minLength: 1 }
    case 'list':
      return { ...described, ...texts }
    case 'texts':
      return { ...described, oneOf: [text, texts] }
    case 'lines':
      return { ...described, type: 'array', minItems: 1, maxItems: 16, items: stayLine }
    case 'names':
      return { ...described, ...texts, minItems: 1, maxItems: LIMITS.searchRoomTypesMax }
    case 'word':
      return { ...described, enum: words }
    case 'words':
      return { ...described, type: 'array', items: { enum: words } }
    case 'facets':
      return { ...described, type: 'array', items: facetSchema(words) }
    case 'wholes':
      return { ...described, type: 'array', minItems: 2, maxItems: 2, items: cellsSide }
    case 'flag':
      return { ...described, enum: [true, false, 0, 1] }
    case 'whole':
      return { ...described, type: 'integer', minimum: min, maximum: max }
    case 'number':
      return { ...described, type: 'number', minimum: min, maximum: max }
  }
}
