/**
 * The playground's part of the control plane (console.md §9): requests of the wire protocol as JSON by the names of the
 * table of commands, what they answered and how long each hop took, and why a property is not among the results.
 */

import { z } from 'zod'
import { LIMITS } from '../domain.ts'
import { COMMAND_LIST, type CommandName } from '../wire/commands.ts'
import { LEVELS } from './cluster-view.ts'
import { type ControlRoute, count, missingSource, time } from './control.ts'
import { propertiesBody, WORD_KINDS } from './node.ts'

export const PLAYGROUND_LIMITS = {
  /** Runs kept a person; pinned ones are not counted. */
  historyMax: 500,
  pinnedMax: 100,
  savedMax: 2_000,
  nameMax: 80,
  /** JSON of a request that is kept. */
  requestCharsMax: 65_536,
  /** Bytes of a reply that are shown. */
  replyBytesMax: 16_384,
  /** Differing rows that are listed. */
  differencesMax: 100,
  wordsMax: 200,
  wordsSeconds: 60,
  queryMs: 5_000,
  /** Ids in one question for attributes. */
  propertiesMax: 1_000,
  /** Filters tried one by one on an empty result. */
  relaxMax: 40,
  /** JSON of a saved result, and how many a person may have. */
  resultBytesMax: 1_048_576,
  resultsMax: 50,
  resultsDays: 30,
  /** Saved results in one answer. */
  resultsListed: 200,
  /** Requests behind short links a person may have made, and how long one is kept that nobody opens. */
  sharedRequestsMax: 500,
  sharedRequestsDays: 365,
  /** Tabs a person whose unsaved requests are kept, and how long. */
  unsavedMax: 20,
  unsavedDays: 7,
  /** Runs of one measurement. */
  repeatsMax: 100,
} as const

/** What can be sent: the playground has connections of its own, so nobody logs in here. */
export const QUERY_COMMANDS = COMMAND_LIST.map(({ name }) => name).filter((name) => name !== 'LOGIN')
export type QueryCommand = Exclude<CommandName, 'LOGIN'>

const name = z.string().max(128)
const command = z.enum(QUERY_COMMANDS as [QueryCommand, ...QueryCommand[]])
const fieldValue = z.union([
  z.string().max(LIMITS.requestPayloadBytesMax),
  z.number(),
  z.array(z.string().max(LIMITS.nameBytesMax)).max(4_096),
])
/** By the names of the table; numbers beyond 2^53 − 1 as decimal text. */
const fields = z.record(z.string().max(64), fieldValue)
export type QueryFields = z.infer<typeof fields>

const target = {
  /** May be left out where there is one shard. */
  shard: name.optional(),
  /** Without one: any that may answer it. */
  node: name.optional(),
}

export const queryRequest = z.object({
  ...target,
  command,
  fields,
  /** Must be true for commands that write: nothing is written by mistake. */
  write: z.boolean().default(false),
  /** A delete names twice what it removes: what the preview told. */
  confirm: z.string().max(256).default(''),
  /** Into the history of the person; measurements are not. */
  keep: z.boolean().default(true),
})
export type QueryRequest = z.input<typeof queryRequest>

/** A read at one place, without a way to write. */
const readRequest = z.object({ ...target, command, fields })
export type ReadRequest = z.input<typeof readRequest>

export const HOPS = ['control-plane', 'network', 'waiting', 'searching'] as const
/** Microseconds of one hop; null where nobody tells, and then its time is part of the hop around it. */
const hop = z.object({ hop: z.enum(HOPS), micros: z.number().nonnegative().nullable() })
export type Hop = z.infer<typeof hop>

export const commandAnswer = z.object({
  shard: z.string(),
  /** Who answered. */
  node: z.string(),
  role: z.string(),
  command,
  at: time,
  /** As the client library returns it (`Result` of shared/wire); numbers beyond 2^53 − 1 as text. */
  result: z.record(z.string(), z.unknown()),
  /** Rows: properties, segments, dates, room types; 1 for a single value, 0 for none. */
  count,
  /** Properties at most, when the command has such a bound; `limited`: it was reached, more may exist. */
  limit: count.nullable(),
  limited: z.boolean(),
  /** Applied index of the answer; null when it did not say. */
  index: z.string().nullable(),
  /** Rows looked at, told by searches with `explain: 1`. */
  examined: count.nullable(),
  /** Nodes asked before one answered, this one included. */
  attempts: count,
  totalMicros: z.number().nonnegative(),
  hops: z.array(hop),
  bytesOut: count,
  bytesIn: count,
  /** Hexadecimal, as it went over the wire; a long reply is cut after 16 KiB. */
  requestFrame: z.string(),
  replyFrame: z.string(),
  replyCut: z.boolean(),
})
export type CommandAnswer = z.infer<typeof commandAnswer>

export const queryAnswer = commandAnswer.extend({
  /** By this the control plane knows its own answer again when it is to be saved; '' for what cannot be. */
  seal: z.string().max(64),
})
export type QueryAnswer = z.infer<typeof queryAnswer>

/** What a write would change; nothing is changed by asking. */
export const previewAnswer = z.object({
  shard: z.string(),
  node: z.string(),
  /** One line a value: what is now and what would be; null is "nothing there". */
  changes: z.array(z.object({ what: z.string(), before: z.string().nullable(), after: z.string().nullable() })),
  removes: z.object({ properties: count, packages: count }).nullable(),
  /** What must be repeated in `confirm`; '' when nothing. */
  confirm: z.string(),
})
export type PreviewAnswer = z.infer<typeof previewAnswer>

export const replicasAnswer = z.object({
  shard: z.string(),
  at: time,
  nodes: z.array(
    z.object({
      node: z.string(),
      role: z.string(),
      index: z.string().nullable(),
      micros: z.number().nullable(),
      count: count.nullable(),
      /** SHA-256 of the result, its rows sorted. */
      hash: z.string().nullable(),
      error: z.string(),
    }),
  ),
  /** All that answered answered the same. */
  equal: z.boolean(),
  answered: count,
  asked: count,
  /** How often it was read: again while indexes moved on. */
  reads: count,
  differences: z.array(z.object({ row: z.string(), values: z.array(z.string().nullable()) })),
  differencesCut: z.boolean(),
})
export type ReplicasAnswer = z.infer<typeof replicasAnswer>

/** One thing that was looked at, in the engine's order. */
export const whyCheck = z.object({
  /** Name of the field of the request. */
  field: z.string(),
  /** Of a night. */
  date: z.string().nullable(),
  ok: z.boolean(),
  /** "stars 3, asked 4". */
  says: z.string(),
})
export type WhyCheck = z.infer<typeof whyCheck>

export const whyAnswer = z.object({
  property: z.string(),
  shard: z.string(),
  node: z.string(),
  index: z.string().nullable(),
  verdict: z.enum(['in-result', 'beyond-limit', 'filtered', 'elsewhere', 'nowhere', 'unsettled']),
  /** The verdict in a sentence. */
  says: z.string(),
  /** Place among all that match; null when unknown. */
  rank: z.object({ place: count, of: count, ofAtLeast: z.boolean(), limit: count }).nullable(),
  checks: z.array(whyCheck),
  /** All of these together would let it in. */
  wouldMatchIf: z.array(z.string()),
  /** Shards that have it, when this one does not. */
  foundIn: z.array(z.string()),
  missing: z.array(missingSource),
})
export type WhyAnswer = z.infer<typeof whyAnswer>

/** Results of the same search without one of its filters, most first. */
export const relaxAnswer = z.object({
  shard: z.string(),
  node: z.string(),
  tried: z.array(
    z.object({
      field: z.string(),
      /** The entry of a list that was left out; null for the whole field. */
      entry: z.string().nullable(),
      count,
      limited: z.boolean(),
    }),
  ),
})
export type RelaxAnswer = z.infer<typeof relaxAnswer>

/** Attributes of properties of a result: what maps and columns show beside it. */
export const propertiesAnswer = z.object({
  shard: z.string(),
  node: z.string(),
  properties: propertiesBody.shape.properties,
  /** Ids of nothing, or that cannot be looked up. */
  missing: z.array(z.string()),
})
export type PropertiesAnswer = z.infer<typeof propertiesAnswer>

export const COMPLETION_KINDS = [...WORD_KINDS, 'rate_feature', 'property'] as const
export const completionQuery = z.object({
  shard: name.optional(),
  kind: z.enum(COMPLETION_KINDS),
  segment: z.string().max(LIMITS.nameBytesMax).optional(),
  prefix: z.string().max(LIMITS.nameBytesMax).default(''),
  limit: z.coerce.number().int().min(1).max(PLAYGROUND_LIMITS.wordsMax).default(50),
})
export const completionAnswer = z.object({
  shard: z.string(),
  kind: z.enum(COMPLETION_KINDS),
  /** By name; rate features in the order of the codec list. `properties` is null where it is not counted. */
  words: z.array(z.object({ word: z.string(), properties: count.nullable() })),
  more: z.boolean(),
  at: time,
})
export type CompletionAnswer = z.infer<typeof completionAnswer>

export const segmentDaysAnswer = z.object({
  shard: z.string(),
  segment: z.string(),
  /** First and last night that is counted; null when the segment is not there. */
  window: z.object({ from: z.iso.date(), to: z.iso.date() }).nullable(),
  /** `packages[i]` are those of night `window.from + i`, of all room types. */
  packages: z.array(count),
  at: time,
})
export type SegmentDaysAnswer = z.infer<typeof segmentDaysAnswer>

export const playgroundShard = z.object({
  id: z.string(),
  /** In the order of their bits; [] while no node answers. */
  rateFeatures: z.array(z.string()),
  window: z.object({ from: z.iso.date(), to: z.iso.date() }).nullable(),
  /** null: no node said, and the node itself is the one that refuses. */
  datesMax: count.nullable(),
  queryLimit: count.nullable(),
  /** For code that is copied. `tcp` is null while nobody said. */
  nodes: z.array(z.object({ id: z.string(), role: z.string(), state: z.string(), tcp: z.string().nullable() })),
  segments: count.nullable(),
  /** A search that finds something; null when nothing was found to begin with. */
  example: z.object({ command, fields }).nullable(),
})
export type PlaygroundShard = z.infer<typeof playgroundShard>

export const playgroundAnswer = z.object({
  shards: z.array(z.object({ id: z.string(), level: z.enum(LEVELS), says: z.string() })),
  /** The shard that was asked for, or the first that answers; null when there is none. */
  shard: playgroundShard.nullable(),
  missing: z.array(missingSource),
})
export type PlaygroundAnswer = z.infer<typeof playgroundAnswer>

const keptRequest = { shard: z.string(), node: z.string().nullable(), command, fields }

export const historyEntry = z.object({
  id: z.string(),
  at: time,
  ...keptRequest,
  ok: z.boolean(),
  count: count.nullable(),
  totalMicros: z.number().nullable(),
  /** Code and sentence of what went wrong; '' when nothing did. */
  error: z.string(),
  pinned: z.boolean(),
})
export type HistoryEntry = z.infer<typeof historyEntry>

/** `{{name}}` in a text of the fields is a parameter: it becomes an input. */
export const savedQuery = z.object({
  id: z.string(),
  name: z.string(),
  folder: z.string(),
  owner: z.string(),
  mine: z.boolean(),
  visible: z.enum(['me', 'all']),
  createdAt: time,
  changedAt: time,
  ...keptRequest,
})
export type SavedQuery = z.infer<typeof savedQuery>

const line = z
  .string()
  .trim()
  .max(PLAYGROUND_LIMITS.nameMax)
  .regex(/^[^\p{Cc}]*$/u, 'must be one line')
export const savedQueryBody = z.object({
  name: line.min(1),
  folder: line.default(''),
  visible: z.enum(['me', 'all']).default('me'),
  shard: name.default(''),
  node: name.nullable().default(null),
  command,
  fields,
})

const request = { shard: name.default(''), node: name.nullable().default(null), command, fields }

/** Behind a link: too long for the address itself. It may be unfinished. */
export const sharedRequest = z.object(request)
export type SharedRequest = z.infer<typeof sharedRequest>

/** What is being written in a tab of the playground. */
export const unsavedRequest = z.object({
  ...request,
  /** Of the JSON editor, while it is no request; null otherwise. */
  text: z.string().max(PLAYGROUND_LIMITS.requestCharsMax).nullable().default(null),
})

const micros = z.number().nonnegative()
/** The same run again and again: microseconds in the control plane and behind it. */
const repeats = z.object({
  runs: z.array(micros).min(1).max(PLAYGROUND_LIMITS.repeatsMax),
  failed: count.max(PLAYGROUND_LIMITS.repeatsMax),
  wanted: count.max(PLAYGROUND_LIMITS.repeatsMax),
})

export const savedResultBody = z.object({
  /** As they were asked with the answer. */
  node: name.nullable().default(null),
  fields,
  answer: queryAnswer,
  /** What the browser measured. */
  browserMicros: micros,
  repeats: repeats.nullable().default(null),
})

export const savedResultLine = z.object({
  id: z.string(),
  /** Who ran the request, and saved what came. */
  owner: z.string(),
  mine: z.boolean(),
  takenAt: time,
  expiresAt: time,
  shard: z.string(),
  command,
  fields,
  count,
  totalMicros: micros,
})
export type SavedResultLine = z.infer<typeof savedResultLine>

export const savedResult = savedResultLine.extend({
  /** The node that was asked for; null: any that may answer. Who answered stands in the answer. */
  node: z.string().nullable(),
  answer: commandAnswer,
  browserMicros: micros,
  repeats: repeats.nullable(),
})
export type SavedResult = z.infer<typeof savedResult>

const idParams = z.object({ id: z.string().max(64) })
const QUERY_BODY_BYTES_MAX = 262_144
/** Above what is kept, so that who saves too much is told how much it is. */
const RESULT_BODY_BYTES_MAX = 8 * PLAYGROUND_LIMITS.resultBytesMax

export const PLAYGROUND_ROUTES = {
  'GET /api/v1/playground': {
    access: 'query',
    summary: 'What a form of requests needs of a shard, and a search that finds something.',
    query: z.object({ shard: name.optional() }),
    status: 200,
    response: playgroundAnswer,
  },
  'POST /api/v1/query': {
    access: 'query',
    summary: 'Sends one command to a shard. Commands that write need the operator role and `write: true`.',
    body: queryRequest,
    bodyBytesMax: QUERY_BODY_BYTES_MAX,
    status: 200,
    response: queryAnswer,
  },
  'POST /api/v1/query/preview': {
    access: 'query',
    summary: 'What a command that writes would change. Changes nothing.',
    body: readRequest,
    bodyBytesMax: QUERY_BODY_BYTES_MAX,
    status: 200,
    response: previewAnswer,
  },
  'POST /api/v1/query/replicas': {
    access: 'query',
    summary: 'The same read at every node of a shard, and where the answers differ.',
    body: readRequest.omit({ node: true }),
    bodyBytesMax: QUERY_BODY_BYTES_MAX,
    status: 200,
    response: replicasAnswer,
  },
  'POST /api/v1/query/why-not': {
    access: 'query',
    summary: 'Why a property is, or is not, in the result of a search.',
    body: readRequest.extend({ property: z.string().min(1).max(64) }),
    bodyBytesMax: QUERY_BODY_BYTES_MAX,
    status: 200,
    response: whyAnswer,
  },
  'POST /api/v1/query/relax': {
    access: 'query',
    summary: 'How many results a search has without one of its filters.',
    body: readRequest,
    bodyBytesMax: QUERY_BODY_BYTES_MAX,
    status: 200,
    response: relaxAnswer,
  },
  'POST /api/v1/query/properties': {
    access: 'query',
    summary: 'Attributes, positions and room types of properties by their ids.',
    body: z.object({ ...target, ids: z.array(z.string().min(1).max(64)).min(1).max(PLAYGROUND_LIMITS.propertiesMax) }),
    bodyBytesMax: QUERY_BODY_BYTES_MAX,
    status: 200,
    response: propertiesAnswer,
  },
  'GET /api/v1/words': {
    access: 'query',
    summary: 'Names in use, with the number of properties that have them; at most 60 s old.',
    query: completionQuery,
    status: 200,
    response: completionAnswer,
  },
  'GET /api/v1/segment-days': {
    access: 'query',
    summary: 'Packages of a segment by night; at most 60 s old.',
    query: z.object({ shard: target.shard, segment: name.min(1) }),
    status: 200,
    response: segmentDaysAnswer,
  },
  'GET /api/v1/history': {
    access: 'session',
    summary: 'Own runs of the playground, newest first, pinned ones before them.',
    query: z.object({
      search: z.string().max(256).default(''),
      limit: z.coerce.number().int().min(1).max(PLAYGROUND_LIMITS.historyMax).default(100),
    }),
    status: 200,
    response: z.object({ entries: z.array(historyEntry), total: count }),
  },
  'PUT /api/v1/history/{id}': {
    access: 'session',
    summary: 'Pins a run, so that it stays, or lets it go.',
    params: idParams,
    body: z.object({ pinned: z.boolean() }),
    status: 200,
    response: historyEntry,
  },
  'DELETE /api/v1/history': {
    access: 'session',
    summary: 'Forgets the own runs that are not pinned.',
    status: 204,
    response: z.undefined(),
  },
  'GET /api/v1/saved-queries': {
    access: 'viewer',
    summary: 'Own saved queries and those that all may see, by folder and name.',
    status: 200,
    response: z.object({ queries: z.array(savedQuery) }),
  },
  'GET /api/v1/saved-queries/{id}': {
    access: 'viewer',
    summary: 'One saved query.',
    params: idParams,
    status: 200,
    response: savedQuery,
  },
  'POST /api/v1/saved-queries': {
    access: 'session',
    summary: 'Saves a query.',
    body: savedQueryBody,
    bodyBytesMax: QUERY_BODY_BYTES_MAX,
    status: 201,
    response: savedQuery,
  },
  'PUT /api/v1/saved-queries/{id}': {
    access: 'session',
    summary: 'Changes an own saved query.',
    params: idParams,
    body: savedQueryBody,
    bodyBytesMax: QUERY_BODY_BYTES_MAX,
    status: 200,
    response: savedQuery,
  },
  'DELETE /api/v1/saved-queries/{id}': {
    access: 'session',
    summary: 'Removes an own saved query; an admin removes any.',
    params: idParams,
    status: 204,
    response: z.undefined(),
  },
  'GET /api/v1/saved-results': {
    access: 'session',
    summary: 'Saved results of everybody, newest first, without their rows.',
    status: 200,
    response: z.object({ results: z.array(savedResultLine), total: count }),
  },
  'GET /api/v1/saved-results/{id}': {
    access: 'session',
    summary: 'One saved result with its rows and times.',
    params: idParams,
    status: 200,
    response: savedResult,
  },
  'POST /api/v1/saved-results': {
    access: 'session',
    summary: 'Saves an own answer as it came, 1 MiB at most, for 30 days and for everybody who may sign in.',
    body: savedResultBody,
    bodyBytesMax: RESULT_BODY_BYTES_MAX,
    status: 201,
    response: savedResultLine,
  },
  'DELETE /api/v1/saved-results/{id}': {
    access: 'session',
    summary: 'Removes an own saved result; an admin removes any.',
    params: idParams,
    status: 204,
    response: z.undefined(),
  },
  'GET /api/v1/shared-requests/{id}': {
    access: 'session',
    summary: 'The request behind a short link.',
    params: idParams,
    status: 200,
    response: sharedRequest,
  },
  'POST /api/v1/shared-requests': {
    access: 'session',
    summary: 'Keeps a request that is too long for a link, until nobody opens it for a year.',
    body: sharedRequest,
    bodyBytesMax: QUERY_BODY_BYTES_MAX,
    status: 201,
    response: z.object({ id: z.string() }),
  },
  'GET /api/v1/unsaved-requests/{id}': {
    access: 'session',
    summary: 'What was last written in an own tab of the playground; null when nothing is kept of it.',
    params: idParams,
    status: 200,
    response: z.object({ request: unsavedRequest.extend({ at: time }).nullable() }),
  },
  'PUT /api/v1/unsaved-requests/{id}': {
    access: 'session',
    summary: 'Keeps what is being written in a tab for 7 days; of the 20 tabs that were written in last.',
    params: idParams,
    body: unsavedRequest,
    bodyBytesMax: QUERY_BODY_BYTES_MAX,
    status: 204,
    response: z.undefined(),
  },
} as const satisfies { readonly [name: string]: ControlRoute }
