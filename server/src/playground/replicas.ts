/** Runs the same read on every node of a shard and compares the results. */
import { createHash } from 'node:crypto'
import { problem } from '@vacancy/shared/api/errors'
import { ProblemError, type RouteRequest } from '@vacancy/shared/api/route'
import { PLAYGROUND_LIMITS, type QueryCommand, type ReplicasAnswer } from '@vacancy/shared/contract'
import { COMMANDS, type ReplyResult, type RequestFields } from '@vacancy/shared/wire'
import type { NodeAddress } from '../cluster/cluster.ts'
import { type Reach, readFields, send, within } from '../nodes/ask.ts'
import { indexOf, plain, rowCount } from '../nodes/query.ts'
import { targetOf } from '../nodes/target.ts'

const READS_MAX = 4
const PAUSE_MS = 50
const MICROS = 1_000

type Row = ReplicasAnswer['nodes'][number]
type Read = {
  readonly row: Row
  readonly rows: ReadonlyMap<string, string> | undefined
  /** Timed out: it is not read again in later rounds. */
  readonly isSilent: boolean
}

export async function replicas(
  reach: Reach,
  { body, signal }: Pick<RouteRequest<'POST /api/v1/query/replicas'>, 'body' | 'signal'>,
): Promise<ReplicasAnswer> {
  const { command } = body
  if (COMMANDS[command].access !== 'read') {
    throw problem('no-read', { detail: `${command} writes.`, field: 'command' })
  }
  const { shard, nodes } = targetOf(reach.cluster, body)
  const fields = explained(command, readFields(command, body.fields))
  const read = (node: NodeAddress) => readAt(reach, { shard, node, command, fields, signal, waitMs: body.waitMs })
  let results: readonly Read[] = []
  for (let reads = 1; ; reads++) {
    const before = results
    results = await Promise.all(nodes.map((node, i) => (before[i]?.isSilent ? before[i] : read(node))))
    const answered = results.filter(({ row }) => row.hash !== null)
    const equal = new Set(answered.map(({ row }) => row.hash)).size <= 1
    const isOneState = new Set(answered.map(({ row }) => row.index)).size <= 1
    if (!equal && !isOneState && reads < READS_MAX) {
      // Replicas at different indexes may differ temporarily, which is not shown as a difference.
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
      continue
    }
    return {
      shard,
      at: new Date(reach.clients.clock.wallMs()).toISOString(),
      nodes: results.map(({ row }) => row),
      equal: equal && answered.length > 0,
      answered: answered.length,
      queried: nodes.length,
      reads,
      ...differencesOf(results),
    }
  }
}

function explained(command: QueryCommand, fields: RequestFields): RequestFields {
  return COMMANDS[command].fields.some(({ name }) => name === 'explain') ? { ...fields, explain: 1 } : fields
}

type ReadPlan = {
  readonly shard: string
  readonly node: NodeAddress
  readonly command: QueryCommand
  readonly fields: RequestFields
  readonly signal: AbortSignal
  readonly waitMs: number
}

async function readAt(reach: Reach, { shard, node, command, fields, signal, waitMs }: ReadPlan): Promise<Read> {
  const view = reach.cluster.node(shard, node.id)
  const row = {
    node: node.id,
    role: view?.role ?? 'unknown',
    index: null,
    micros: null,
    count: null,
    hash: null,
    error: '',
  }
  try {
    const late = () => problem('node-timeout', { detail: `no response within ${waitMs} ms` })
    const { result, reply } = await within(waitMs, send(reach, [node], command, fields, signal), late)
    const rows = rowsOf(result)
    const sorted = JSON.stringify([...rows].sort(([a], [b]) => (a < b ? -1 : 1)))
    const hash = createHash('sha256').update(sorted).digest('hex')
    const read = { index: indexOf(result), micros: reply.milliseconds * MICROS, count: rowCount(result), hash }
    return { row: { ...row, ...read }, rows, isSilent: false }
  } catch (error) {
    // A silent node is a row of the result.
    if (!(error instanceof ProblemError)) throw error
    return { row: { ...row, error: error.message }, rows: undefined, isSilent: error.code === 'node-timeout' }
  }
}

/** Rows of a result by their key, since their order may differ. */
function rowsOf(result: ReplyResult): Map<string, string> {
  if (result.properties) {
    return new Map(result.properties.map(({ propertyId, days }) => [propertyId, days.map(nightText).join(' · ')]))
  }
  const { explain: _, index: __, ...values } = plain(result)
  const list = result.propertyIds ?? result.dates ?? result.roomTypes
  if (list) return new Map(list.map((entry) => [entry, 'yes']))
  if (result.segments)
    return new Map(result.segments.map(({ segment, propertyCount }) => [segment, String(propertyCount)]))
  return new Map(Object.entries(values).map(([key, value]) => [key, JSON.stringify(value)]))
}

function nightText({
  date,
  availability,
  finalPrice,
  rateFeatures,
}: NonNullable<ReplyResult['properties']>[number]['days'][number]) {
  return `${date} ${finalPrice} ×${availability}${rateFeatures.length === 0 ? '' : ` ${rateFeatures.join(',')}`}`
}

function differencesOf(results: readonly Read[]): Pick<ReplicasAnswer, 'differences' | 'differencesCut'> {
  const answered = results.flatMap(({ rows }) => (rows ? [rows] : []))
  const keys = [...new Set(answered.flatMap((rows) => [...rows.keys()]))].sort()
  const differing = keys.filter((key) => new Set(answered.map((rows) => rows.get(key))).size > 1)
  return {
    differences: differing.slice(0, PLAYGROUND_LIMITS.differencesMax).map((row) => ({
      row,
      values: results.map(({ rows }) => rows?.get(row) ?? null),
    })),
    differencesCut: differing.length > PLAYGROUND_LIMITS.differencesMax,
  }
}
