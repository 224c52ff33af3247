/** Sends one command to the nodes of a shard, records the bytes on the wire, and turns refusals into problems with hints. */
import {
  type AnswerSeen,
  VacancyCallError,
  VacancyRequestError,
  VacancyRetryError,
  VacancyUnknownOutcomeError,
} from '@vacancy/client'
import { traceparentOf, VacancyError } from '@vacancy/shared'
import { problem } from '@vacancy/shared/api/errors'
import { ProblemError } from '@vacancy/shared/api/route'
import {
  errorBody,
  type NodeProperties,
  PLAYGROUND_LIMITS,
  propertiesBody,
  type QueryCommand,
} from '@vacancy/shared/contract'
import { beginCall, currentTrace } from '@vacancy/shared/node'
import { fieldsFromJson, type ReplyResult, type RequestFields, type Result, TRACE_FIELD_ID } from '@vacancy/shared/wire'
import type { Cluster, NodeAddress, NodeAnswer, RequestOptions } from '../cluster/cluster.ts'
import { clientOf, type NodeClients } from './node-clients.ts'

/** Dependencies of the playground. */
export type Reach = { readonly cluster: Cluster; readonly clients: NodeClients }

export type Answered<Name extends QueryCommand = QueryCommand> = {
  readonly result: Result<Name>
  /** The node that replied. */
  readonly node: NodeAddress
  readonly reply: AnswerSeen
  readonly attempts: number
}

/** Parses JSON fields. @throws ProblemError 400 with the field */
export function readFields(command: QueryCommand, given: unknown): RequestFields {
  try {
    return fieldsFromJson(command, given)
  } catch (error) {
    if (!(error instanceof VacancyError)) throw error
    throw problem('invalid-fields', {
      detail: error.message,
      field: 'fields',
      hint: `docs/commands.md lists the fields of ${command}.`,
      cause: error,
    })
  }
}

/**
 * The result of a request, or a problem once it takes longer than `ms`. A result that arrives later is dropped.
 *
 * @throws ProblemError of `late`
 */
export async function within<T>(ms: number, request: Promise<T>, late: () => ProblemError): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const end = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), ms)
  })
  try {
    return await Promise.race([request, end])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Sends a command to one node, or to those of a shard.
 *
 * @throws ProblemError with the code of the wire
 */
export async function send<Name extends QueryCommand>(
  { clients }: Reach,
  nodes: readonly NodeAddress[],
  command: Name,
  fields: RequestFields,
  signal?: AbortSignal,
): Promise<Answered<Name>> {
  const client = await clientOf(clients, nodes)
  const answers: AnswerSeen[] = []
  const trace = beginCall(currentTrace(), command, { command })
  const ask = (traceparent?: string) =>
    client.send(command, fields as unknown as RequestFields<Name>, {
      deadlineMs: PLAYGROUND_LIMITS.queryMs,
      ...(signal && { signal }),
      ...(traceparent !== undefined && { traceparent }),
      watch: (reply) => void answers.push(reply),
    })
  try {
    const result = await (trace === undefined ? ask() : ask(traceparentOf(trace.context)).catch(withoutTrace(ask)))
    const reply = answers.at(-1) as AnswerSeen
    const node = nodeAt(nodes, reply.address)
    trace?.span?.set({ node: node.id, tries: answers.length, index: numberOf(result) })
    trace?.span?.end('')
    return { result, node, reply, attempts: answers.length }
  } catch (error) {
    const last = answers.at(-1)
    trace?.span?.end(error instanceof Error ? error.message : String(error))
    throw problemOf(error, last ? nodeAt(nodes, last.address).id : nodes.map(({ id }) => id).join(', '))
  }
}

/** A node of an earlier version refuses the trace, and has done nothing. */
function withoutTrace<T>(ask: () => Promise<T>): (error: unknown) => Promise<T> {
  return (error) => {
    if (error instanceof VacancyRequestError && error.message.includes(`has no field ${TRACE_FIELD_ID}`)) return ask()
    throw error
  }
}

/** The applied index of a reply that names one. */
function numberOf({ explain, index }: ReplyResult): number | undefined {
  const found = explain?.appliedIndex ?? index
  return found === undefined ? undefined : Number(found)
}

function nodeAt(nodes: readonly NodeAddress[], address: string): NodeAddress {
  const found = nodes.find(({ tcp }) => tcp && addressText(tcp) === address)
  return found ?? (nodes[0] as NodeAddress)
}

export function addressText({ host, port }: { readonly host: string; readonly port: number }): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

const STATUS_OF: { readonly [code: string]: number } = {
  VALIDATION_ERROR: 400,
  NOT_FOUND: 404,
  OVERFLOW: 409,
  UNDERFLOW: 409,
  SOLD_OUT: 409,
  PRICE_CHANGED: 409,
  EXPIRED: 409,
  CONFLICT: 409,
  TOO_OLD: 410,
  UNKNOWN_INDEX: 410,
  FORBIDDEN: 502,
  AUTH_ERROR: 502,
  login_failed: 502,
}

const HINT_OF: { readonly [code: string]: string } = {
  VALIDATION_ERROR: 'Change the request.',
  NOT_FOUND: 'This name is not in use. Completion lists the names in use.',
  OVERFLOW: 'Nothing was changed: a night can have at most 255 rooms.',
  UNDERFLOW: 'Nothing was changed: fewer rooms are left.',
  SOLD_OUT: 'Nothing was taken: that night has too few rooms left.',
  PRICE_CHANGED: 'Nothing was taken: the total is higher now, or a rate feature is gone.',
  EXPIRED: 'The hold passed its deadline. With retake, its rooms are taken again if all are still free.',
  CONFLICT: 'Nothing was changed: the id is used for other lines, or the stay has ended.',
  TOO_OLD: 'Nothing was changed: bookings since that index are no longer remembered.',
  UNKNOWN_INDEX: 'Nothing was changed: the index is of other data, such as those from before a restore.',
  FORBIDDEN: 'The node_client_token of the control plane is not allowed to do this on the nodes.',
  AUTH_ERROR: 'The nodes require a token: set node_client_token of the control plane.',
  login_failed: 'The nodes do not accept the node_client_token of the control plane.',
}

function problemOf(error: unknown, node: string): unknown {
  if (!(error instanceof VacancyCallError)) return error
  const { code, message } = error
  const more = { code, node }
  const wire = `wire-${code.toLowerCase().replaceAll('_', '-')}`
  const hint = HINT_OF[code]
  const status = STATUS_OF[code]
  if (status !== undefined)
    return new ProblemError(status, wire, message, { ...(hint && { hint }), more, cause: error })
  if (error instanceof VacancyUnknownOutcomeError) {
    return problem('unknown-outcome', { detail: message, more, cause: error })
  }
  if (error instanceof VacancyRetryError) {
    return new ProblemError(503, wire, message, {
      hint: `${node} executed nothing: repeat the request.`,
      more,
      cause: error,
    })
  }
  const isInvalid = error instanceof VacancyRequestError
  return new ProblemError(isInvalid ? 400 : 502, wire, message, {
    hint: isInvalid ? 'Change the request.' : `Check the page and the log of ${node}.`,
    more,
    cause: error,
  })
}

/** Whether a problem means that the object does not exist. */
function isNotFound(error: unknown): boolean {
  return error instanceof ProblemError && error.code === 'wire-not-found'
}

/** A read for which "does not exist" is a valid result. */
export async function orNothing<T>(request: Promise<T>): Promise<T | undefined> {
  try {
    return await request
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}

export type PropertyAttributes = ReturnType<typeof propertiesBody.parse>['properties'][number]

const NODE_TRIES_MAX = 4
const AGAIN_MS = 25

/**
 * A request to a node's HTTP API while a person waits: its timeout is longer than that of polls, because the machine
 * may be busy. It is repeated once when the node responds with 503 because its data changed during the read.
 */
export async function requestNode(
  { cluster }: Reach,
  node: NodeAddress,
  path: string,
  options: Pick<RequestOptions, 'as' | 'signal'>,
): Promise<NodeAnswer> {
  for (let tries = 1; ; tries++) {
    const answer = await cluster.request(node, path, { ...options, timeoutMs: PLAYGROUND_LIMITS.queryMs })
    if (answer.status !== 503 || tries === NODE_TRIES_MAX) return answer
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS * tries))
  }
}

/** Attributes and room types of a property, from the node's HTTP API. */
export async function propertyAt(
  reach: Reach,
  node: NodeAddress,
  id: string,
  signal?: AbortSignal,
): Promise<PropertyAttributes | undefined> {
  const { properties } = await propertiesAt(reach, node, [id], signal)
  return properties[0]
}

/** @param ids at most as many as a node accepts */
export async function propertiesAt(
  reach: Reach,
  node: NodeAddress,
  ids: readonly string[],
  signal?: AbortSignal,
): Promise<NodeProperties> {
  const path = `/properties?ids=${ids.map(encodeURIComponent).join(',')}`
  const { status, body } = await requestNode(reach, node, path, { as: 'client', ...(signal && { signal }) })
  if (status === 400) {
    throw problem('invalid-id', { detail: reasonOf(body) })
  }
  if (status !== 200) throw refusedBy(node, path, status, body)
  const parsed = propertiesBody.safeParse(parseJson(body))
  if (!parsed.success) throw refusedBy(node, path, status, 'the response is not a list of properties')
  // Older nodes take an id with a comma for two others.
  const asked = new Set(ids)
  return { ...parsed.data, properties: parsed.data.properties.filter(({ id }) => asked.has(id)) }
}

/** The error of a response of a node. */
export function reasonOf(body: string): string {
  const parsed = errorBody.safeParse(parseJson(body))
  return (parsed.success ? parsed.data.error : body).slice(0, BODY_CHARS)
}

const BODY_CHARS = 300

/** Error for an unexpected HTTP response of a node. */
export function refusedBy(
  node: NodeAddress,
  path: string,
  status: number,
  body: string,
  token = 'node_client_token',
): ProblemError {
  const [bare] = path.split('?')
  return problem('node-answer', {
    detail: `${node.id} answered ${status} to ${bare}: ${body.slice(0, BODY_CHARS)}`,
    hint: status === 401 || status === 403 ? `Check ${token} of the control plane.` : `See the log of ${node.id}.`,
  })
}

/** @returns undefined for invalid JSON, which schemas refuse */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
