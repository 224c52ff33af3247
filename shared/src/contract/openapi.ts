/**
 * The HTTP contracts as OpenAPI 3.1. Schemas that this folder exports by name are components; parameters and bodies of
 * requests stand in their operation, as what a caller may send.
 */

import { z } from 'zod'
import { CONTROL_BODY_BYTES_MAX, type ControlRoute, hasBody } from './control.ts'
import { NODE_HTTP_LIMITS, type NodeRoute } from './node.ts'

type Schema = { readonly [name: string]: unknown }
/** What operations of all contracts have. */
type Operation = {
  readonly summary: string
  readonly access: string
  readonly isOpen: boolean
  readonly params: z.ZodType | undefined
  readonly query: z.ZodType | undefined
  readonly body: z.ZodType | undefined
  /** Largest JSON body. */
  readonly bodyBytesMax: number
  readonly takesBytes: boolean
  readonly status: number
  /** Undefined for a response without a body. */
  readonly response: z.ZodType | undefined
  readonly mediaType: string
}
/** By `METHOD /path`. */
export type Operations = { readonly [name: string]: Operation }

type Info = { readonly title: string; readonly version: string }

export type OpenApi = {
  readonly openapi: '3.1.0'
  readonly info: Info
  readonly paths: { readonly [path: string]: Schema }
  readonly components: {
    readonly securitySchemes: Schema
    readonly schemas: Schema
  }
}

const JSON_TYPE = 'application/json'
const MEDIA_TYPES = { bytes: 'application/octet-stream', text: 'text/plain' } as const
const TOKEN = { type: 'http', scheme: 'bearer' }
const PROBLEM = { $ref: '#/components/schemas/problemBody' }
const SESSION = { type: 'apiKey', in: 'cookie', name: 'vacancy_session' }

/** Operations of the control plane and of the queue. */
export function controlOperations(routes: { readonly [name: string]: ControlRoute }): Operations {
  return mapped(routes, ([name, row]) => [
    name,
    {
      summary: row.summary,
      access: row.access,
      isOpen: row.access === 'open',
      params: row.params,
      query: row.query,
      body: row.body,
      bodyBytesMax: row.bodyBytesMax ?? CONTROL_BODY_BYTES_MAX,
      takesBytes: row.takes === 'bytes',
      status: row.status ?? 200,
      response: hasBody(row) ? row.response : undefined,
      mediaType: row.gives ? MEDIA_TYPES[row.gives] : JSON_TYPE,
    },
  ])
}

/** Operations of a node. */
export function nodeOperations(routes: { readonly [name: string]: NodeRoute }): Operations {
  return mapped(routes, ([, row]) => [
    `${row.method} ${row.path}`,
    {
      summary: row.mode === 'clustered' ? `${row.summary} Clustered mode only.` : row.summary,
      access: row.access,
      isOpen: row.access === 'open',
      params: undefined,
      query: row.query,
      body: row.body,
      bodyBytesMax: NODE_HTTP_LIMITS.bodyBytesMax,
      takesBytes: false,
      status: row.status,
      response: row.response,
      mediaType: row.text ? MEDIA_TYPES.text : JSON_TYPE,
    },
  ])
}

/**
 * @param exported what may become a component: the exports of the contract, of which those that are no schemas are
 *   left out
 * @param hasSessions whether the cookie of a session is accepted in place of a token
 */
export function openApiOf(
  info: Info,
  operations: Operations,
  exported: { readonly [name: string]: unknown },
  hasSessions: boolean,
): OpenApi {
  const names = Object.keys(operations).filter((name) => operations[name]?.response)
  const { components, responses } = outputs(
    new Map(names.map((name) => [name, operations[name]?.response as z.ZodType])),
    exported,
    hasSessions,
  )
  const paths: { [path: string]: Schema } = {}
  for (const [name, operation] of Object.entries(operations)) {
    const [method = '', path = ''] = name.split(' ')
    const found = operationOf(path, operation, responses.get(name), hasSessions)
    paths[path] = { ...paths[path], [method.toLowerCase()]: found }
  }
  return {
    openapi: '3.1.0',
    info,
    paths,
    components: { securitySchemes: { token: TOKEN, ...(hasSessions && { session: SESSION }) }, schemas: components },
  }
}

function operationOf(path: string, operation: Operation, response: Schema | undefined, hasSessions: boolean): Schema {
  const { status, mediaType, body, bodyBytesMax } = operation
  const content = operation.takesBytes
    ? { [MEDIA_TYPES.bytes]: {} }
    : body && { [JSON_TYPE]: { schema: inputOf(body) } }
  return {
    summary: operation.summary,
    tags: [path.split('/')[path.startsWith('/api/v1/') ? 3 : 1]],
    description: `Access: ${operation.access}.`,
    security: operation.isOpen ? [] : [{ token: [] }, ...(hasSessions ? [{ session: [] }] : [])],
    parameters: [...inPath(path, operation.params), ...inQuery(operation.query)],
    ...(content && {
      requestBody: {
        ...(!operation.takesBytes && { description: `At most ${bodyBytesMax} bytes.` }),
        required: true,
        content,
      },
    }),
    responses: {
      [status]: {
        description: response ? 'Success.' : 'Success, without a body.',
        ...(response && { content: { [mediaType]: mediaType === JSON_TYPE ? { schema: response } : {} } }),
      },
      default: {
        description: 'Refused or failed.',
        content: hasSessions ? { 'application/problem+json': { schema: PROBLEM } } : { [MEDIA_TYPES.text]: {} },
      },
    },
  }
}

/** Parameters of the path; those without a schema are any text. */
function inPath(path: string, params: z.ZodType | undefined): Schema[] {
  const { properties } = params ? inputOf(params) : { properties: {} }
  const schemas = properties as { readonly [name: string]: Schema }
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    schema: schemas[name] ?? { type: 'string' },
  }))
}

function inQuery(query: z.ZodType | undefined): Schema[] {
  if (!query) return []
  const { properties, required } = inputOf(query)
  const names = (required ?? []) as readonly string[]
  return Object.entries(properties ?? {}).map(([name, schema]) => ({
    name,
    in: 'query',
    required: names.includes(name),
    schema,
  }))
}

/** Leaves out what says nothing: bounds of any whole number, and the pattern beside the format of a time or date. */
function shorten({ jsonSchema }: { readonly jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
  if (jsonSchema.format !== undefined) delete jsonSchema.pattern
}

const SCHEMA_OPTIONS = { unrepresentable: 'any', override: shorten } as const

function inputOf(schema: z.ZodType): Schema {
  const { $schema, ...rest } = z.toJSONSchema(schema, { ...SCHEMA_OPTIONS, io: 'input' })
  return rest
}

/** Schemas of responses, and the components that they and the errors refer to. */
function outputs(
  responses: ReadonlyMap<string, z.ZodType>,
  exported: { readonly [name: string]: unknown },
  hasSessions: boolean,
) {
  const registry = z.registry<{ id: string }>()
  const isNamed = new Set<string>()
  const add = (id: string, schema: z.ZodType) => {
    if (!registry.has(schema)) registry.add(schema, { id })
  }
  for (const [name, value] of Object.entries(exported)) {
    if (!(value instanceof z.ZodObject)) continue
    add(name, value)
    isNamed.add(name)
  }
  for (const [name, schema] of responses) add(name.replaceAll(/\W+/g, '_'), schema)
  const { schemas } = z.toJSONSchema(registry, {
    ...SCHEMA_OPTIONS,
    uri: (id) => `#/components/schemas/${id}`,
  }) as { readonly schemas: { readonly [id: string]: Schema } }
  const components: { [id: string]: Schema } = {}
  const bodyOf = (id: string): Schema => {
    const { $schema, $id, ...rest } = schemas[id] as Schema
    return rest
  }
  const keep = (part: unknown): void => {
    if (typeof part !== 'object' || part === null) return
    const { $ref } = part as { readonly $ref?: unknown }
    const id = typeof $ref === 'string' ? $ref.slice('#/components/schemas/'.length) : undefined
    if (id !== undefined && components[id] === undefined && schemas[id]) {
      components[id] = bodyOf(id)
      keep(components[id])
    }
    for (const each of Object.values(part)) keep(each)
  }
  const found = new Map<string, Schema>()
  for (const [name, schema] of responses) {
    const { id = '' } = registry.get(schema) ?? {}
    found.set(name, isNamed.has(id) ? { $ref: `#/components/schemas/${id}` } : bodyOf(id))
    keep(found.get(name))
  }
  if (hasSessions) keep(PROBLEM)
  const sorted = Object.fromEntries(Object.entries(components).sort(([a], [b]) => (a < b ? -1 : 1)))
  return { components: sorted, responses: found }
}

function mapped<T>(table: { readonly [name: string]: T }, of: (entry: [string, T]) => [string, Operation]): Operations {
  return Object.fromEntries(Object.entries(table).map(of))
}
