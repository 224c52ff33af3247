/**
 * Sends a query to a platform: to the HTTP proxy where there is one, else over the data protocol to the outermost hop of
 * its level. The answer has the form of the proxy's in both cases.
 */

import { connect, VacancyCallError } from '@vacancy/client'
import { VacancyError } from '@vacancy/shared'
import { COMMANDS, type CommandName, fieldsFromJson, isCommandName } from '@vacancy/shared/wire'
import { type Address, type Component, includes, nodesOf, ofKind, type Plan } from './plan.ts'
import { one, urlOf } from './programs.ts'
import type { Answer, Query } from './queries.ts'
import { leaderSeenBy } from './ready.ts'

const ANSWER_MS_MAX = 5_000
const CONNECT_MS_MAX = 2_000
const STATUS_OF: { readonly [code: string]: number } = { '404': 404, '408': 504, '429': 429, '503': 503, '308': 503 }
/** Fields whose JSON name is not that of the wire protocol's table in other letters. */
const FIELD_OF: { readonly [name: string]: string } = { date: 'dates', rate_feature: 'rateFeatures' }

export async function ask(plan: Plan, query: Query): Promise<Answer> {
  if (includes(plan.spec.level, 'full')) return await askProxy(one(plan, 'proxy').main, query)
  if (!isCommandName(query.command)) return failed(400, 'VALIDATION_ERROR', 'unsupported command')
  let targets: readonly Component[]
  try {
    targets = await targetsOf(plan, query)
  } catch (error) {
    if (error instanceof VacancyError) return failed(400, 'VALIDATION_ERROR', error.message)
    // The registry is down: at these levels it alone knows the shard of a segment.
    return failed(503, '503', `registry: ${reasonOf(error)}`)
  }
  if (targets.length === 0) return failed(404, '404', 'unknown segment')
  const answers: Answer[] = []
  for (const target of targets) answers.push(await send(plan, target, query.command, query))
  return merged(answers)
}

async function askProxy(proxy: Address, query: Query): Promise<Answer> {
  try {
    const response = await fetch(`${urlOf(proxy)}/api`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(query),
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    })
    return { status: response.status, body: bodyOf(await response.text()) }
  } catch (error) {
    return failed(503, '503', `proxy: ${reasonOf(error)}`)
  }
}

function reasonOf(error: unknown): string {
  const { cause, message } = error as Error
  return (cause as Error | undefined)?.message ?? message
}

function bodyOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** The hops that know the segment of a query; for a query without one, enough hops to know all segments. */
async function targetsOf(plan: Plan, { command, segment, body }: Query): Promise<readonly Component[]> {
  const { level } = plan.spec
  if (includes(level, 'edge')) return ofKind(plan, 'edge-router').slice(0, 1)
  const alone = ofKind(plan, 'standalone')
  if (alone.length > 0) return alone
  const named = segment || (typeof body['segment'] === 'string' ? body['segment'] : '')
  const isAll = command === 'GETSEGMENTS'
  const owner = isAll ? undefined : await ownerOf(plan, named)
  if (!isAll && owner === undefined) return []
  const wanted = includes(level, 'zone') ? 'zone-router' : includes(level, 'bridge') ? 'bridge' : 'node'
  const keyOf = ({ zone, shard }: Component) => (wanted === 'zone-router' ? zone : shard) ?? ''
  const found = new Map<string, Component>()
  for (const each of ofKind(plan, wanted)) {
    const isWanted =
      owner === undefined || each.shard === owner.shard || (wanted === 'zone-router' && each.zone === owner.zone)
    if (isWanted && !found.has(keyOf(each))) found.set(keyOf(each), each)
  }
  if (wanted !== 'node') return [...found.values()]
  return await Promise.all([...found.values()].map((each) => leaderOf(plan, each)))
}

async function leaderOf(plan: Plan, node: Component): Promise<Component> {
  for (const each of nodesOf(plan, node.shard ?? '')) {
    const leader = await leaderSeenBy(each)
    if (leader !== undefined) return plan.components.find(({ name }) => name === leader.name) ?? node
  }
  return node
}

/** The shard of a segment, from the registry. */
async function ownerOf(plan: Plan, segment: string): Promise<{ shard: string; zone: string } | undefined> {
  if (segment === '') throw new VacancyError('usage_error', { reason: 'the query names no segment' })
  let fault: unknown
  for (const { main } of ofKind(plan, 'registry')) {
    try {
      const url = `${urlOf(main)}/segments/${encodeURIComponent(segment)}`
      const response = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS_MAX) })
      return response.ok ? ((await response.json()) as { shard: string; zone: string }) : undefined
    } catch (error) {
      fault = error
    }
  }
  throw fault
}

async function send(plan: Plan, { main }: Component, command: CommandName, query: Query): Promise<Answer> {
  const isRouter = includes(plan.spec.level, 'bridge')
  try {
    const client = await connect({
      ...main,
      ...(isRouter && { envelope: 'router' as const }),
      requestKeys: false,
      retry: false,
      deadlineMs: ANSWER_MS_MAX,
      connectDeadlineMs: CONNECT_MS_MAX,
    })
    try {
      const fields = fieldsFromJson(command, fieldsOf(command, query.body))
      const result = await client.send(command as 'SEARCHPROP', fields as never, { segment: query.segment ?? '' })
      return { status: 200, body: { status: 'success', ...jsonOf(result) } }
    } finally {
      await client.close()
    }
  } catch (error) {
    if (error instanceof VacancyCallError) return failed(STATUS_OF[error.code] ?? 400, error.code, error.message)
    if (error instanceof VacancyError) return failed(400, 'VALIDATION_ERROR', error.message)
    throw error
  }
}

function failed(status: number, code: string, message: string): Answer {
  return { status, body: { status: 'error', code, message } }
}

/** The fields of the wire protocol's table. A single date is a list of one. */
export function fieldsOf(command: CommandName, body: Query['body']): { [name: string]: unknown } {
  const names = new Set<string>(COMMANDS[command].fields.map(({ name }) => name))
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => {
      const camel = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
      const field = names.has(camel) ? camel : (FIELD_OF[name] ?? camel)
      return [field, field === 'dates' && typeof value === 'string' ? [value] : value]
    }),
  )
}

/** A result with the names of the HTTP proxy. */
function jsonOf(result: unknown): { readonly [name: string]: unknown } {
  const names: { readonly [name: string]: string } = {
    propertyIds: 'properties',
    rateFeatures: 'rate_feature',
    propertyCount: 'prop_count',
  }
  const convert = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(convert)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).flatMap(([name, part]) => {
        if (name === 'numDays') return []
        const snake = names[name] ?? name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
        return [[snake, convert(part)]]
      }),
    )
  }
  return convert(result) as { readonly [name: string]: unknown }
}

/** Of several shards or zones: their segments together; else the one answer. */
function merged(answers: readonly Answer[]): Answer {
  const [first] = answers
  const bad = answers.find(({ status }) => status !== 200)
  if (first === undefined || bad || answers.length === 1) return bad ?? (first as Answer)
  const segments = answers.flatMap(({ body }) => (body as { segments?: unknown[] }).segments ?? [])
  return { status: 200, body: { status: 'success', segments } }
}
