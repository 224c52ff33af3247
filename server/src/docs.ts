/**
 * Makes docs/control-plane-reference.md from the tables: `node server/src/docs.ts --write`. A test fails when the
 * committed page is not what its tables say.
 */
import { join } from 'node:path'
import { CONTROL_ROUTES, type ControlRoute } from '@vacancy/shared/contract'
import { configTable, metricsTable, pagesMain, staleAmong } from '@vacancy/shared/node'
import { CONTROL_SCHEMA } from './config.ts'
import { ERRORS } from './http/errors.ts'
import { CONTROL_METRICS } from './metrics.ts'

const DOCS = join(import.meta.dirname, '../../docs')

/** Every page by its file name. */
export function pages(): { readonly [file: string]: string } {
  return {
    'control-plane-reference.md': `${[
      '# Reference of the control plane',
      '<!-- Made from `server/src/config.ts`, `server/src/metrics.ts`, `server/src/http/errors.ts` and `shared/src/contract` by `node server/src/docs.ts --write`: change it there. -->',
      'How to set it up and run it is in [control-plane.md](control-plane.md).',
      '## Configuration',
      'Keys of `control-plane.yml`. Each is also a flag, with `-` for `_`, and a variable, such as `VACANCY_CONTROL_PLANE_LISTEN_PORT`; a flag goes over its variable, and that over the file. Secrets (`database_url` and all tokens) are refused as flags, unless as `file:PATH`, which names a file that holds the secret and may be used everywhere.',
      configTable(CONTROL_SCHEMA).trimEnd(),
      '## Metrics',
      '`GET /metrics` answers in the text format of Prometheus 0.0.4. Besides these there are `process_*` and `nodejs_*` of prom-client.',
      metricsTable(CONTROL_METRICS).trimEnd(),
      '## Paths',
      'What each takes and gives is at `/docs` of a running control plane. People: viewer < operator < admin; of API tokens, a monitoring token may ask what a viewer may, a client token also `query`, an admin token everything but `session`, which is for people who are signed in.',
      routesTable(),
      '## Errors',
      'A refusal is `application/problem+json`: `status`, `code`, `title`, `detail`, `hint`, `requestId`, and `field` where one field is to blame. Programs tell refusals apart by `code`; `detail` and `hint` may say more of the case than this table. Besides these there are the codes of nodes and of the wire protocol ([errors.md](errors.md)), passed on as they came, and `cluster` for the paths below `/cluster`.',
      errorsTable(),
    ].join('\n\n')}\n`,
  }
}

function routesTable(): string {
  const rows = Object.entries(CONTROL_ROUTES as { readonly [name: string]: ControlRoute }).map(
    ([name, { access, summary }]) => `| \`${name}\` | ${access} | ${summary} |`,
  )
  return ['| Path | Who | What |', '|---|---|---|', ...rows].join('\n')
}

function errorsTable(): string {
  const rows = Object.entries(ERRORS).map(
    ([code, { status, message, hint }]) => `| \`${code}\` | ${status} | ${message} | ${hint} |`,
  )
  return ['| Code | Status | Message | What to do |', '|---|---|---|---|', ...rows].join('\n')
}

/** Pages whose committed text is not what the tables say. */
export function stalePages(folder = DOCS): string[] {
  return staleAmong(pages(), folder)
}

if (import.meta.main) pagesMain(pages(), DOCS)
