/**
 * Generates docs/control-plane-reference.md and docs/queue-reference.md from the tables: `npm run docs`. A test fails
 * when a committed page differs.
 */
import { QUEUE_METRICS } from '@vacancy/queue'
import { SERVE_SCHEMA } from '@vacancy/queue/config'
import { ERRORS } from '@vacancy/shared/api/errors'
import {
  ACCESS_LIMITS,
  CONTROL_ROUTES,
  type ControlRoute,
  IMPORT_LIMITS,
  JOB_LIMITS,
  PLAYGROUND_LIMITS,
  PROGRAM_ROUTES,
  QUEUE_ROUTES,
  SEGMENT_LIMITS,
} from '@vacancy/shared/contract'
import { type ConfigSchema, configTable, limitsTable, metricsTable } from '@vacancy/shared/node'
import { CONTROL_SCHEMA } from './config.ts'
import { CONTROL_METRICS } from './metrics.ts'

type Routes = { readonly [name: string]: ControlRoute }

/** Paths of `vacancy queue serve` besides those of producers and consumers. */
export const QUEUE_PAGE_ROUTES: Routes = { ...PROGRAM_ROUTES, ...QUEUE_ROUTES }

/** Every generated page by its file name. */
export function pages(): { readonly [file: string]: string } {
  return { 'control-plane-reference.md': controlPage(), 'queue-reference.md': queuePage() }
}

function controlPage(): string {
  return pageOf([
    '# Control plane reference',
    '<!-- Generated from `server/src/config.ts`, `server/src/metrics.ts`, `shared/src/node/api/errors.ts` and `shared/src/contract` by `npm run docs`. Change it there. -->',
    'To set it up and run it, see [control-plane.md](control-plane.md).',
    '## Configuration',
    'Keys of `control-plane.yml`. Each is also a flag, with `-` for `_`, and an environment variable, such as `VACANCY_CONTROL_PLANE_LISTEN_PORT`. A flag overrides its variable, which overrides the file. Secrets (`database_url` and all tokens) are refused as flags, except as `file:PATH`: the path of a file that contains the secret. This form is accepted everywhere.',
    configTable(controlSchema()).trimEnd(),
    'Settings of the queue are those of [queue-reference.md](queue-reference.md#configuration) with `queue_` in front, such as `queue_max_consumers`.',
    '## Metrics',
    '`GET /metrics` responds in the Prometheus text format 0.0.4, with the `process_*` and `nodejs_*` metrics of prom-client besides these.',
    metricsTable(CONTROL_METRICS).trimEnd(),
    'Those of the job queue follow on the same page, see [queue-reference.md](queue-reference.md#metrics).',
    '## Paths',
    'Requests and responses are documented at `/docs` of a running control plane; `…` is `/api/v1`. Roles of people: viewer < operator < admin. A monitoring token has the rights of a viewer, a client token also `query`, and an admin token all rights except `session`, which needs a signed-in person. Tokens with the roles `producer` and `consumer` are for the job queue alone: [queue.md](queue.md).',
    routesTable(CONTROL_ROUTES),
    '## Errors',
    'Errors are `application/problem+json`: `status`, `code`, `title`, `detail`, `hint`, `requestId`, and `field` when one field is invalid. Programs check `code`; `hint` says what to do; `detail` may be more specific than this table. Codes of nodes and of the wire protocol ([errors.md](errors.md)) are passed through unchanged, and paths below `/cluster` use the code `cluster`.',
    errorsTable(),
    '## Limits',
    'No configuration changes them.',
    '### People and tokens',
    limitsTable(ACCESS_LIMITS, ACCESS_MEANINGS),
    '### Uploads and imports',
    limitsTable(IMPORT_LIMITS, IMPORT_MEANINGS),
    '### Playground',
    limitsTable(PLAYGROUND_LIMITS, PLAYGROUND_MEANINGS),
    '### Segments and properties',
    limitsTable(SEGMENT_LIMITS, SEGMENT_MEANINGS),
  ])
}

/** The keys of a control plane without those that have the text of the queue's own. */
function controlSchema(): ConfigSchema {
  const own: ConfigSchema = SERVE_SCHEMA
  return Object.fromEntries(
    Object.entries<ConfigSchema[string]>(CONTROL_SCHEMA).filter(
      ([key, { summary }]) => own[key.replace('queue_', '')]?.summary !== summary || !key.startsWith('queue_'),
    ),
  )
}

function queuePage(): string {
  return pageOf([
    '# Job queue reference',
    '<!-- Generated from `queue/src/config.ts`, `queue/src/metrics.ts` and `shared/src/contract/jobs.ts` by `npm run docs`. Change it there. -->',
    'To use it, see [queue.md](queue.md), which also has the paths of producers, the messages of consumers and the error codes.',
    '## Configuration',
    'Keys of `queue.yml`. Each is also a flag of `vacancy queue serve`, with `-` for `_`, and an environment variable, such as `VACANCY_QUEUE_LISTEN_PORT`. A flag overrides its variable, which overrides the file. `database_url` is refused as a flag, except as `file:PATH`: the path of a file that contains it. Settings of a topic are in [queue.md](queue.md#configure-topics).',
    configTable(SERVE_SCHEMA).trimEnd(),
    '## Metrics',
    '`GET /metrics` responds in the Prometheus text format 0.0.4, with the `process_*` and `nodejs_*` metrics of prom-client besides these. The 100 topics that accepted and finished most since the start have series of their own; the others are summed as `_other`.',
    metricsTable(QUEUE_METRICS).trimEnd(),
    '## Paths',
    'Access: `open` needs no token. A token with the role `monitoring` may use the paths marked `viewer`, one with the role `admin` all of them. Tokens with the roles `producer` and `consumer` may use the open ones only. Requests and responses are documented at `/docs` of a running queue; `…` is `/api/v1`.',
    routesTable(QUEUE_PAGE_ROUTES),
    '## Limits',
    'No configuration raises them. Those of a topic are in [queue.md](queue.md#configure-topics).',
    limitsTable(JOB_LIMITS, JOB_MEANINGS),
  ])
}

type Meanings<Limits> = { readonly [name in keyof Limits]: string }

const JOB_MEANINGS: Meanings<typeof JOB_LIMITS> = {
  topicNameMax: 'Characters of the name of a topic.',
  topicsMax: 'Topics.',
  jobIdBytesMax: 'Bytes of the id of a job.',
  priorityMax: 'Priority of a job, from 0.',
  delayMsMax: 'Delay of a job, in milliseconds.',
  attemptsMax: 'Attempts of a job.',
  ackDeadlineMsMin: 'Shortest time in which a job is acknowledged, in milliseconds.',
  ackDeadlineMsMax: 'Longest time in which a job is acknowledged, in milliseconds.',
  prefetchMax: 'Jobs that a consumer has at the same time.',
  consumerNameMax: 'Characters of the name of a consumer.',
  acksPerMessage: 'Jobs that one message acknowledges.',
  errorTextMax: 'Characters kept of the error of a job.',
  historyMax: 'Events kept of a job.',
  listedMax: 'Entries listed in `failures`, `duplicateIds`, `missing` and `conflicts`.',
  pageMax: 'Jobs in one page.',
  movedMax: 'Dead jobs that one request moves or deletes.',
  redriveRateMax: 'Jobs a second of a long redrive.',
  listedJobsMax: 'Ready, delayed or leased jobs that can be paged.',
  finishedShownMax: 'Finished jobs that a topic remembers.',
  headBytes: 'Bytes of a payload that lists show.',
  chartedTopicsMax: 'Topics with charts.',
  tailKept: 'Events that a live tail keeps.',
  tailPerSecond: 'Events that a live tail takes a second. Others are counted as skipped.',
  foundMax: 'Jobs of the same id that a search lists.',
  reasonMax: 'Characters of the reason for a change.',
}

const ACCESS_MEANINGS: Meanings<typeof ACCESS_LIMITS> = {
  nameMax: 'Characters of the name of a person.',
  passwordMin: 'Shortest password, in characters.',
  passwordMax: 'Longest password, in characters.',
  reasonMin: 'Shortest reason, in characters.',
  reasonMax: 'Longest reason, in characters.',
  peopleMax: 'People.',
  tokensMax: 'Tokens.',
  tokenTopicsMax: 'Topic patterns of a token.',
}

const IMPORT_MEANINGS: Meanings<typeof IMPORT_LIMITS> = {
  fileBytesMax: 'Bytes of one file, as sent and as unpacked.',
  chunkBytes: 'Bytes of one part of an upload.',
  unpackFactorMax: 'Times that a gzip file grows when it is unpacked.',
  uploadsMax: 'Unfinished uploads, and finished ones that no import uses yet.',
  uploadKeptMs: 'How long they are kept, in milliseconds.',
  importsOpenMax: 'Unfinished imports.',
  nameMax: 'Characters of the name of a snapshot.',
  codecFileCharactersMax: 'Characters of a codec file.',
  folderFilesMax: 'Files listed of the import folder.',
  errorsKept: 'Row errors kept of an import.',
  alikeMax: 'Kinds of equal row errors that are counted together on a page.',
  logLinesMax: 'Log lines kept of an import.',
  ratesMax: 'Rates kept of an import, for its chart.',
  pullMs: 'Time for a node to fetch a snapshot, retries included, in milliseconds.',
}

const PLAYGROUND_MEANINGS: Meanings<typeof PLAYGROUND_LIMITS> = {
  historyMax: 'Runs kept per person, without pinned ones.',
  pinnedMax: 'Pinned runs per person.',
  savedMax: 'Saved requests per person.',
  nameMax: 'Characters of the name of a saved request.',
  requestCharsMax: 'Characters of a stored request as JSON.',
  replyBytesMax: 'Bytes of a reply that are shown.',
  differencesMax: 'Differing rows that are listed.',
  wordsMax: 'Words suggested for a field.',
  wordsSeconds: 'How long suggested words are cached, in seconds.',
  queryMs: 'Longest request, in milliseconds.',
  silentMs: 'Milliseconds after which a silent node is left out of a response that other nodes provide.',
  propertiesMax: 'Ids in one request for attributes.',
  relaxMax: 'Filters tried one by one on an empty result.',
  resultBytesMax: 'Bytes of a saved result as JSON.',
  resultsMax: 'Saved results per person.',
  resultsDays: 'Days that a saved result is kept.',
  resultsListed: 'Saved results in one response.',
  sharedRequestsMax: 'Requests behind short links per person.',
  sharedRequestsDays: 'Days for which an unopened short link is kept.',
  unsavedMax: 'Tabs per person whose unsaved requests are kept.',
  unsavedDays: 'Days that they are kept.',
  repeatsMax: 'Runs of one measurement.',
}

const SEGMENT_MEANINGS: Meanings<typeof SEGMENT_LIMITS> = {
  segmentsMax: 'Segments in one page.',
  propertiesMax: 'Properties in one list. A larger segment is read in parts by its filters.',
  searchesMax: 'Searches behind one list.',
  nightsMax: 'Nights of one calendar.',
  roomTypesMax: 'Room types of one calendar.',
  differencesMax: 'Differing cells that are listed.',
}

function pageOf(blocks: readonly string[]): string {
  return `${blocks.join('\n\n')}\n`
}

const API = /^\/api\/v1(?=\/)/

/** A row for each path with its methods; summaries are at /docs. */
function routesTable(routes: Routes): string {
  const methods = new Map<string, Map<string, string[]>>()
  for (const [name, { access }] of Object.entries(routes)) {
    const [method = '', path = ''] = name.split(' ')
    const ofPath = methods.get(path) ?? new Map<string, string[]>()
    methods.set(path, ofPath.set(access, [...(ofPath.get(access) ?? []), method]))
  }
  const rows = [...methods].map(([path, accesses]) => {
    const texts = [...accesses].map(([access, names]) => `${names.join(' ')} ${access}`)
    return `| \`${path.replace(API, '…')}\` | ${texts.join(', ')} |`
  })
  return ['| Path | Method and access |', '|---|---|', ...rows].join('\n')
}

function errorsTable(): string {
  const rows = Object.entries(ERRORS).map(([code, { status, message }]) => `| \`${code}\` | ${status} | ${message} |`)
  return ['| Code | Status | Message |', '|---|---|---|', ...rows].join('\n')
}
