/**
 * The playground's part of the control plane (docs/design/control-plane.md#playground): requests of the wire protocol
 * as JSON, with the names of the command table; their results and the time of each hop; and why a property is not in
 * a result.
 */

import { z } from 'zod'
import { LIMITS } from '../domain.ts'
import { COMMAND_LIST, type CommandName } from '../wire/commands.ts'
import { LEVELS } from './cluster-view.ts'
import { type ControlRoute, count, missingSource, time } from './control.ts'
import { propertiesBody, WORD_KINDS } from './node.ts'
import { SEGMENT_ROUTES } from './segments.ts'
import { STAY_ROUTES } from './stays.ts'

export { EDGE_TARGET } from '../snippets.ts'

export const PLAYGROUND_LIMITS = {
  /** Runs kept per person. Pinned runs do not count. */
  historyMax: 500,
  pinnedMax: 100,
  savedMax: 2_000,
  nameMax: 80,
  /** JSON of a stored request. */
  requestCharsMax: 65_536,
  /** Bytes of a reply that are shown. */
  replyBytesMax: 16_384,
  /** Differing rows that are listed. */
  differencesMax: 100,
  wordsMax: 200,
  wordsSeconds: 60,
  queryMs: 5_000,
  /** Time after which a silent node is left out of a response that other nodes provide. */
  silentMs: 800,
  /** Ids in one request for attributes. */
  propertiesMax: 1_000,
  /** Filters tried one by one on an empty result. */
  relaxMax: 40,
  /** JSON of a saved result, and how many a person may have. */
  resultBytesMax: 1_048_576,
  resultsMax: 50,
  resultsDays: 30,
  /** Saved results in one response. */
  resultsListed: 200,
  /** Requests behind short links per person, and how long an unopened one is kept. */
  sharedRequestsMax: 500,
  sharedRequestsDays: 365,
  /** Tabs per person whose unsaved requests are kept, and for how long. */
  unsavedMax: 20,
  unsavedDays: 7,
  /** Runs of one measurement. */
  repeatsMax: 100,
} as const

/** The allowed commands. The playground logs in on its own connections, so LOGIN is not among them. */
const QUERY_COMMANDS = COMMAND_LIST.map(({ name }) => name).filter((name) => name !== 'LOGIN')
export type QueryCommand = Exclude<CommandName, 'LOGIN'>

const name = z.string().max(128)
const command = z.enum(QUERY_COMMANDS as [QueryCommand, ...QueryCommand[]])
/** Its values are checked by the command table. */
const stayLine = z.object({
  propertyId: z.string().max(LIMITS.nameBytesMax),
  roomType: z.string().max(LIMITS.nameBytesMax),
  arrival: z.string().max(LIMITS.nameBytesMax),
  nights: z.number(),
  rooms: z.number(),
  uncounted: z.boolean().optional(),
})
const fieldValue = z.union([
  z.string().max(LIMITS.requestPayloadBytesMax),
  z.number(),
  z.array(z.string().max(LIMITS.nameBytesMax)).max(4_096),
  z.array(stayLine).max(LIMITS.stayLinesMax),
  z.array(z.number()).max(LIMITS.facetBoundsMax),
])
/** By the names of the table. Numbers beyond 2^53 − 1 are decimal text. */
const fields = z.record(z.string().max(64), fieldValue)

export { fields as queryFields }

const target = {
  /** May be omitted when there is one shard. */
  shard: name.optional(),
  /** Without a node, any node that may serve the command. */
  node: name.optional(),
}

const queryRequest = z.object({
  ...target,
  command,
  fields,
  /** Must be true for commands that write, to prevent accidental writes. */
  write: z.boolean().default(false),
  /** A delete must name what it removes, as returned by the preview. */
  confirm: z.string().max(256).default(''),
  /** Whether to record the run in the person's history. Measurements are not recorded. */
  keep: z.boolean().default(true),
})
export type QueryRequest = z.input<typeof queryRequest>

/** A read at one node. It cannot write. */
const readRequest = z.object({ ...target, command, fields })
export type ReadRequest = z.input<typeof readRequest>

/** In the node `waiting`, then `searching`, or its three stages. */
const HOPS = ['control-plane', 'network', 'waiting', 'searching', 'planning', 'examining', 'writing'] as const
/** Microseconds of one hop; null where no component reports it. That time is then part of the enclosing hop. */
const hop = z.object({ hop: z.enum(HOPS), micros: z.number().nonnegative().nullable() })
export type Hop = z.infer<typeof hop>

export const commandAnswer = z.object({
  shard: z.string(),
  /** The node that replied. */
  node: z.string(),
  role: z.string(),
  command,
  at: time,
  /** As returned by the client library (`Result` of shared/wire). Numbers beyond 2^53 − 1 are text. */
  result: z.record(z.string(), z.unknown()),
  /** Rows: properties, segments, dates or room types; 1 for a single value, 0 for none. */
  count,
  /** The command's limit of properties, if it has one. `limited`: it was reached, so more may exist. */
  limit: count.nullable(),
  limited: z.boolean(),
  /** Applied index of the reply; null when not reported. */
  index: z.string().nullable(),
  /** Rows examined, reported by searches with `explain: 1`. */
  examined: count.nullable(),
  /** Nodes tried until one replied, including that one. */
  attempts: count,
  totalMicros: z.number().nonnegative(),
  hops: z.array(hop),
  bytesOut: count,
  bytesIn: count,
  /** The wire bytes in hexadecimal. A long reply is truncated after 16 KiB. */
  requestFrame: z.string(),
  replyFrame: z.string(),
  replyCut: z.boolean(),
})
export type CommandAnswer = z.infer<typeof commandAnswer>

const queryAnswer = commandAnswer.extend({
  /** Identifies this result when it is saved; '' for results that cannot be saved. */
  seal: z.string().max(64),
})
export type QueryAnswer = z.infer<typeof queryAnswer>

/** What a write would change. The preview changes nothing. */
const previewAnswer = z.object({
  shard: z.string(),
  node: z.string(),
  /** One row per value: the current and the new one. Null is "nothing". */
  changes: z.array(z.object({ what: z.string(), before: z.string().nullable(), after: z.string().nullable() })),
  removes: z.object({ properties: count, packages: count }).nullable(),
  /** What must be repeated in `confirm`; '' when nothing. */
  confirm: z.string(),
})
export type PreviewAnswer = z.infer<typeof previewAnswer>

const replicasAnswer = z.object({
  shard: z.string(),
  at: time,
  nodes: z.array(
    z.object({
      node: z.string(),
      role: z.string(),
      index: z.string().nullable(),
      micros: z.number().nullable(),
      count: count.nullable(),
      /** SHA-256 of the result with its rows sorted. */
      hash: z.string().nullable(),
      error: z.string(),
    }),
  ),
  /** All nodes that replied have the same result. */
  equal: z.boolean(),
  answered: count,
  /** How many nodes were queried. */
  queried: count,
  /** Number of rounds: the read is repeated while indexes advance. */
  reads: count,
  differences: z.array(z.object({ row: z.string(), values: z.array(z.string().nullable()) })),
  differencesCut: z.boolean(),
})
export type ReplicasAnswer = z.infer<typeof replicasAnswer>

/** One check of the search, in the engine's order. */
const whyCheck = z.object({
  /** Name of the field of the request. */
  field: z.string(),
  /** Of a night. */
  date: z.string().nullable(),
  ok: z.boolean(),
  /** "stars 3, required 4". */
  message: z.string(),
})
export type WhyCheck = z.infer<typeof whyCheck>

const whyAnswer = z.object({
  property: z.string(),
  shard: z.string(),
  node: z.string(),
  index: z.string().nullable(),
  verdict: z.enum(['in-result', 'beyond-limit', 'filtered', 'elsewhere', 'nowhere', 'unsettled']),
  /** The verdict in a sentence. */
  message: z.string(),
  /** Position among all matches; null when unknown. */
  rank: z.object({ place: count, of: count, ofAtLeast: z.boolean(), limit: count }).nullable(),
  checks: z.array(whyCheck),
  /** Relaxing all of these would include the property. */
  wouldMatchIf: z.array(z.string()),
  /** Shards that have the property, when this one does not. */
  foundIn: z.array(z.string()),
  missing: z.array(missingSource),
})
export type WhyAnswer = z.infer<typeof whyAnswer>

/** Results of the same search without one of its filters, most results first. */
const relaxAnswer = z.object({
  shard: z.string(),
  node: z.string(),
  tried: z.array(
    z.object({
      field: z.string(),
      /** The omitted entry of a list; null for the whole field. */
      entry: z.string().nullable(),
      count,
      limited: z.boolean(),
    }),
  ),
})
export type RelaxAnswer = z.infer<typeof relaxAnswer>

/** How many properties a search finds with each value of its filters. */
const countsAnswer = z.object({
  shard: z.string(),
  node: z.string(),
  filters: z.array(
    z.object({
      /** Name of the field of the request. */
      field: z.string(),
      /** Most first. Of a field with one value: with this value in its place; of a list: with this value as well. */
      values: z.array(z.object({ value: z.string(), count })),
      /** There may be more values than these; otherwise others have no match. */
      more: z.boolean(),
    }),
  ),
})
export type CountsAnswer = z.infer<typeof countsAnswer>

/** The lowest total of a search's stay by day of arrival, around that of the search. */
const arrivalsAnswer = z.object({
  shard: z.string(),
  node: z.string(),
  nights: count,
  /** Days of the shard's window only; none when the search is beyond it. */
  days: z.array(
    z.object({
      arrival: z.iso.date(),
      /** Null where no property fits. */
      total: z.number().nullable(),
      properties: count,
    }),
  ),
})
export type ArrivalsAnswer = z.infer<typeof arrivalsAnswer>

/** Attributes of the properties of a result, for maps and columns. */
const propertiesAnswer = z.object({
  shard: z.string(),
  node: z.string(),
  properties: propertiesBody.shape.properties,
  /** Ids of no property, or that could not be looked up. */
  missing: z.array(z.string()),
})
export type PropertiesAnswer = z.infer<typeof propertiesAnswer>

const COMPLETION_KINDS = [...WORD_KINDS, 'rate_feature', 'property'] as const
const completionQuery = z.object({
  shard: name.optional(),
  kind: z.enum(COMPLETION_KINDS),
  segment: z.string().max(LIMITS.nameBytesMax).optional(),
  prefix: z.string().max(LIMITS.nameBytesMax).default(''),
  limit: z.coerce.number().int().min(1).max(PLAYGROUND_LIMITS.wordsMax).default(50),
})
const completionAnswer = z.object({
  shard: z.string(),
  kind: z.enum(COMPLETION_KINDS),
  /** By name; rate features in codec list order. `properties` is null where it is not counted. */
  words: z.array(z.object({ word: z.string(), properties: count.nullable() })),
  more: z.boolean(),
  at: time,
})
export type CompletionAnswer = z.infer<typeof completionAnswer>

const segmentDaysAnswer = z.object({
  shard: z.string(),
  segment: z.string(),
  /** First and last night counted; null when the segment does not exist. */
  window: z.object({ from: z.iso.date(), to: z.iso.date() }).nullable(),
  /** `packages[i]` are those of night `window.from + i`, of all room types. */
  packages: z.array(count),
  at: time,
})
export type SegmentDaysAnswer = z.infer<typeof segmentDaysAnswer>

const playgroundShard = z.object({
  id: z.string(),
  /** In the order of their bits; [] while no node responds. */
  rateFeatures: z.array(z.string()),
  window: z.object({ from: z.iso.date(), to: z.iso.date() }).nullable(),
  /** Null: no node reported it, so the node itself refuses. */
  datesMax: count.nullable(),
  queryLimit: count.nullable(),
  /** For copied code. `tcp` is null while no node reported it. */
  nodes: z.array(z.object({ id: z.string(), role: z.string(), state: z.string(), tcp: z.string().nullable() })),
  segments: count.nullable(),
  /** A search with results; null when none was found. */
  example: z.object({ command, fields }).nullable(),
})
export type PlaygroundShard = z.infer<typeof playgroundShard>

const playgroundAnswer = z.object({
  /** Edge routers as `host:port`: EDGE_TARGET sends through one of them. */
  edges: z.array(z.string()),
  /** HTTP addresses of proxies. */
  proxies: z.array(z.string()),
  shards: z.array(z.object({ id: z.string(), level: z.enum(LEVELS), message: z.string() })),
  /** The requested shard, or the first one that responds; null when there is none. */
  shard: playgroundShard.nullable(),
  missing: z.array(missingSource),
})
export type PlaygroundAnswer = z.infer<typeof playgroundAnswer>

const keptRequest = { shard: z.string(), node: z.string().nullable(), command, fields }

const historyEntry = z.object({
  id: z.string(),
  at: time,
  ...keptRequest,
  ok: z.boolean(),
  count: count.nullable(),
  totalMicros: z.number().nullable(),
  /** Error code and message; '' when there was no error. */
  error: z.string(),
  pinned: z.boolean(),
})
export type HistoryEntry = z.infer<typeof historyEntry>

/** `{{name}}` in a text field is a parameter, shown as an input. */
const savedQuery = z.object({
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

/** Text of people in one line. */
export const oneLine = z
  .string()
  .trim()
  .max(PLAYGROUND_LIMITS.nameMax)
  .regex(/^[^\p{Cc}]*$/u, 'must be one line')
const savedQueryBody = z.object({
  name: oneLine.min(1),
  folder: oneLine.default(''),
  visible: z.enum(['me', 'all']).default('me'),
  shard: name.default(''),
  node: name.nullable().default(null),
  command,
  fields,
})

const request = { shard: name.default(''), node: name.nullable().default(null), command, fields }

/** The request behind a short link, too long for the URL itself. It may be incomplete. */
const sharedRequest = z.object(request)
export type SharedRequest = z.infer<typeof sharedRequest>

/** The unsaved request of a playground tab. */
const unsavedRequest = z.object({
  ...request,
  /** The text of the JSON editor while it is not a valid request; null otherwise. */
  text: z.string().max(PLAYGROUND_LIMITS.requestCharsMax).nullable().default(null),
})

const micros = z.number().nonnegative()
/** The same run repeated: microseconds in the control plane and behind it. */
const repeats = z.object({
  runs: z.array(micros).min(1).max(PLAYGROUND_LIMITS.repeatsMax),
  failed: count.max(PLAYGROUND_LIMITS.repeatsMax),
  wanted: count.max(PLAYGROUND_LIMITS.repeatsMax),
})

const savedResultBody = z.object({
  /** As requested together with the result. */
  node: name.nullable().default(null),
  fields,
  answer: queryAnswer,
  /** Measured by the browser. */
  browserMicros: micros,
  repeats: repeats.nullable().default(null),
})

const savedResultLine = z.object({
  id: z.string(),
  /** The person who ran the request and saved the result. */
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

const savedResult = savedResultLine.extend({
  /** The requested node; null for any. The result names the node that replied. */
  node: z.string().nullable(),
  answer: commandAnswer,
  browserMicros: micros,
  repeats: repeats.nullable(),
})
export type SavedResult = z.infer<typeof savedResult>

const idParams = z.object({ id: z.string().max(64) })
const QUERY_BODY_BYTES_MAX = 262_144
/** Larger than the storage limit, so that the error can name the size. */
const RESULT_BODY_BYTES_MAX = 8 * PLAYGROUND_LIMITS.resultBytesMax

export const PLAYGROUND_ROUTES = {
  ...SEGMENT_ROUTES,
  ...STAY_ROUTES,
  'GET /api/v1/playground': {
    access: 'query',
    summary: 'What a request form needs to know of a shard, and a search with results.',
    query: z.object({ shard: name.optional() }),
    response: playgroundAnswer,
  },
  'POST /api/v1/query': {
    access: 'query',
    summary: 'Sends one command to a shard. Commands that write need the operator role and `write: true`.',
    body: queryRequest,
    bodyBytesMax: QUERY_BODY_BYTES_MAX,
    response: queryAnswer,
  },
  'POST /api/v1/query/preview': {
    access: 'query',
    summary: 'Previews the effect of a command that writes. Changes nothing.',
    body: readRequest,
    bodyBytesMax: QUERY_BODY_BYTES_MAX,
    response: previewAnswer,
  },
  'POST /api/v1/query/replicas': {
    access: 'query',
    summary:
      'Runs the same read on every node of a shard and compares the results. waitMs limits the wait for a silent node.',
    body: readRequest
      .omit({ node: true })
      .extend({ waitMs: z.int().min(0).max(PLAYGROUND_LIMITS.silentMs).default(PLAYGROUND_LIMITS.silentMs) }),
    bodyBytesMax: QUERY_BODY_BYTES_MAX,
    response: replicasAnswer,
  },
  'POST /api/v1/query/why-not': {
    access: 'query',
    summary: 'Explains why a property is, or is not, in the result of a search.',
    body: readRequest.extend({ property: z.string().min(1).max(64) }),
    bodyBytesMax: QUERY_BODY_BYTES_MAX,
    response: whyAnswer,
  },
  'POST /api/v1/query/relax': {
    access: 'query',
    summary: 'Counts the results of a search without each of its filters.',
    body: readRequest,
    bodyBytesMax: QUERY_BODY_BYTES_MAX,
    response: relaxAnswer,
  },
  'POST /api/v1/query/counts': {
    access: 'query',
    summary: 'Counts the results of a search by the values of its filters.',
    body: readRequest,
    bodyBytesMax: QUERY_BODY_BYTES_MAX,
    response: countsAnswer,
  },
  'POST /api/v1/query/arrivals': {
    access: 'query',
    summary: 'The lowest total of the stay of a search by day of arrival, for three weeks around it.',
    body: readRequest,
    bodyBytesMax: QUERY_BODY_BYTES_MAX,
    response: arrivalsAnswer,
  },
  'POST /api/v1/query/properties': {
    access: 'query',
    summary: 'Attributes, positions and room types of properties by id.',
    body: z.object({ ...target, ids: z.array(z.string().min(1).max(64)).min(1).max(PLAYGROUND_LIMITS.propertiesMax) }),
    bodyBytesMax: QUERY_BODY_BYTES_MAX,
    response: propertiesAnswer,
  },
  'GET /api/v1/words': {
    access: 'query',
    summary: 'Names in use, with the number of properties that have them; at most 60 s old.',
    query: completionQuery,
    response: completionAnswer,
  },
  'GET /api/v1/segment-days': {
    access: 'query',
    summary: 'Packages of a segment by night; at most 60 s old.',
    query: z.object({ shard: target.shard, segment: name.min(1) }),
    response: segmentDaysAnswer,
  },
  'GET /api/v1/history': {
    access: 'session',
    summary: 'Your runs of the playground, pinned ones first, then newest first.',
    query: z.object({
      search: z.string().max(256).default(''),
      limit: z.coerce.number().int().min(1).max(PLAYGROUND_LIMITS.historyMax).default(100),
    }),
    response: z.object({ entries: z.array(historyEntry), total: count }),
  },
  'PUT /api/v1/history/{id}': {
    access: 'session',
    summary: 'Pins a run, so that it is kept, or unpins it.',
    params: idParams,
    body: z.object({ pinned: z.boolean() }),
    response: historyEntry,
  },
  'DELETE /api/v1/history': {
    access: 'session',
    summary: 'Deletes your unpinned runs.',
    status: 204,
    response: z.undefined(),
  },
  'GET /api/v1/saved-queries': {
    access: 'viewer',
    summary: 'Your saved queries and the shared ones, by folder and name.',
    response: z.object({ queries: z.array(savedQuery) }),
  },
  'GET /api/v1/saved-queries/{id}': {
    access: 'viewer',
    summary: 'One saved query.',
    params: idParams,
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
    summary: 'Changes one of your saved queries.',
    params: idParams,
    body: savedQueryBody,
    bodyBytesMax: QUERY_BODY_BYTES_MAX,
    response: savedQuery,
  },
  'DELETE /api/v1/saved-queries/{id}': {
    access: 'session',
    summary: 'Deletes one of your saved queries; an admin may delete any.',
    params: idParams,
    status: 204,
    response: z.undefined(),
  },
  'GET /api/v1/saved-results': {
    access: 'session',
    summary: 'Saved results of all people, newest first, without their rows.',
    response: z.object({ results: z.array(savedResultLine), total: count }),
  },
  'GET /api/v1/saved-results/{id}': {
    access: 'session',
    summary: 'One saved result with its rows and times.',
    params: idParams,
    response: savedResult,
  },
  'POST /api/v1/saved-results': {
    access: 'session',
    summary: 'Saves a result of yours, up to 1 MiB, for 30 days. Everyone who may sign in can open it.',
    body: savedResultBody,
    bodyBytesMax: RESULT_BODY_BYTES_MAX,
    status: 201,
    response: savedResultLine,
  },
  'DELETE /api/v1/saved-results/{id}': {
    access: 'session',
    summary: 'Deletes one of your saved results; an admin may delete any.',
    params: idParams,
    status: 204,
    response: z.undefined(),
  },
  'GET /api/v1/shared-requests/{id}': {
    access: 'session',
    summary: 'The request behind a short link.',
    params: idParams,
    response: sharedRequest,
  },
  'POST /api/v1/shared-requests': {
    access: 'session',
    summary: 'Stores a request that is too long for a link. It expires after a year without use.',
    body: sharedRequest,
    bodyBytesMax: QUERY_BODY_BYTES_MAX,
    status: 201,
    response: z.object({ id: z.string() }),
  },
  'GET /api/v1/unsaved-requests/{id}': {
    access: 'session',
    summary: 'The last draft in one of your playground tabs; null when none is stored.',
    params: idParams,
    response: z.object({ request: unsavedRequest.extend({ at: time }).nullable() }),
  },
  'PUT /api/v1/unsaved-requests/{id}': {
    access: 'session',
    summary: 'Stores the draft of a tab for 7 days. Only the 20 most recent tabs are kept.',
    params: idParams,
    body: unsavedRequest,
    bodyBytesMax: QUERY_BODY_BYTES_MAX,
    status: 204,
    response: z.undefined(),
  },
} as const satisfies { readonly [name: string]: ControlRoute }
