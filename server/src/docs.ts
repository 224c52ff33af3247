/**
 * Generates docs/control-plane-reference.md and docs/queue-reference.md from the tables:
 * `node server/src/docs.ts --write`. A test fails when a committed page differs.
 */
import { join } from 'node:path'
import { CONTROL_ROUTES, type ControlRoute, PROGRAM_ROUTES, QUEUE_ROUTES } from '@vacancy/shared/contract'
import { configTable, metricsTable, pagesMain, staleAmong } from '@vacancy/shared/node'
import { CONTROL_SCHEMA } from './config.ts'
import { ERRORS } from './http/errors.ts'
import { CONTROL_METRICS } from './metrics.ts'
import { SERVE_SCHEMA } from './queue/config.ts'
import { QUEUE_METRICS } from './queue/metrics.ts'

const DOCS = join(import.meta.dirname, '../../docs')

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
    '<!-- Generated from `server/src/config.ts`, `server/src/metrics.ts`, `server/src/http/errors.ts` and `shared/src/contract` by `node server/src/docs.ts --write`. Change it there. -->',
    'To set it up and run it, see [control-plane.md](control-plane.md).',
    '## Configuration',
    'Keys of `control-plane.yml`. Each is also a flag, with `-` for `_`, and an environment variable, such as `VACANCY_CONTROL_PLANE_LISTEN_PORT`. A flag overrides its variable, which overrides the file. Secrets (`database_url` and all tokens) are refused as flags, except as `file:PATH`: the path of a file that contains the secret. This form is accepted everywhere.',
    configTable(CONTROL_SCHEMA).trimEnd(),
    '## Metrics',
    '`GET /metrics` responds in the Prometheus text format 0.0.4, with the `process_*` and `nodejs_*` metrics of prom-client besides these.',
    metricsTable(CONTROL_METRICS).trimEnd(),
    'Those of the job queue follow on the same page, see [queue-reference.md](queue-reference.md#metrics).',
    '## Paths',
    'Requests and responses are documented at `/docs` of a running control plane. Roles of people: viewer < operator < admin. A monitoring token has the rights of a viewer, a client token also `query`, and an admin token all rights except `session`, which needs a signed-in person. Tokens with the roles `producer` and `consumer` are for the job queue alone: [queue.md](queue.md).',
    routesTable(CONTROL_ROUTES),
    '## Errors',
    'Errors are `application/problem+json`: `status`, `code`, `title`, `detail`, `hint`, `requestId`, and `field` when one field is invalid. Programs check `code`; `detail` and `hint` may be more specific than this table. Codes of nodes and of the wire protocol ([errors.md](errors.md)) are passed through unchanged, and paths below `/cluster` use the code `cluster`.',
    errorsTable(),
  ])
}

function queuePage(): string {
  return pageOf([
    '# Job queue reference',
    '<!-- Generated from `server/src/queue/config.ts`, `server/src/queue/metrics.ts` and `shared/src/contract/jobs.ts` by `node server/src/docs.ts --write`. Change it there. -->',
    'To use it, see [queue.md](queue.md), which also has the paths of producers, the messages of consumers and the error codes.',
    '## Configuration',
    'Keys of `queue.yml`. Each is also a flag of `vacancy queue serve`, with `-` for `_`, and an environment variable, such as `VACANCY_QUEUE_LISTEN_PORT`. A flag overrides its variable, which overrides the file. `database_url` is refused as a flag, except as `file:PATH`: the path of a file that contains it. Settings of a topic are in [queue.md](queue.md#configure-topics).',
    configTable(SERVE_SCHEMA).trimEnd(),
    '## Metrics',
    '`GET /metrics` responds in the Prometheus text format 0.0.4, with the `process_*` and `nodejs_*` metrics of prom-client besides these. The first 1,000 topics have series of their own; the others are summed as `_other`.',
    metricsTable(QUEUE_METRICS).trimEnd(),
    '## Paths',
    'Access: `open` needs no token. A token with the role `monitoring` may use the paths marked `viewer`, one with the role `admin` all of them. Tokens with the roles `producer` and `consumer` may use the open ones only. Requests and responses are documented at `/docs` of a running queue.',
    routesTable(QUEUE_PAGE_ROUTES),
  ])
}

function pageOf(blocks: readonly string[]): string {
  return `${blocks.join('\n\n')}\n`
}

function routesTable(routes: Routes): string {
  const rows = Object.entries(routes).map(([name, { access, summary }]) => `| \`${name}\` | ${access} | ${summary} |`)
  return ['| Path | Access | Purpose |', '|---|---|---|', ...rows].join('\n')
}

function errorsTable(): string {
  const rows = Object.entries(ERRORS).map(
    ([code, { status, message, hint }]) => `| \`${code}\` | ${status} | ${message} | ${hint} |`,
  )
  return ['| Code | Status | Message | What to do |', '|---|---|---|---|', ...rows].join('\n')
}

/** Pages whose committed text differs from the generated one. */
export function stalePages(folder = DOCS): string[] {
  return staleAmong(pages(), folder)
}

if (import.meta.main) pagesMain(pages(), DOCS)
