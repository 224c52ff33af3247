/**
 * Generates docs/control-plane-reference.md from the tables: `node server/src/docs.ts --write`. A test fails when the
 * committed page differs.
 */
import { join } from 'node:path'
import { CONTROL_ROUTES, type ControlRoute } from '@vacancy/shared/contract'
import { configTable, metricsTable, pagesMain, staleAmong } from '@vacancy/shared/node'
import { CONTROL_SCHEMA } from './config.ts'
import { ERRORS } from './http/errors.ts'
import { CONTROL_METRICS } from './metrics.ts'

const DOCS = join(import.meta.dirname, '../../docs')

/** Every generated page by its file name. */
export function pages(): { readonly [file: string]: string } {
  return {
    'control-plane-reference.md': `${[
      '# Control plane reference',
      '<!-- Generated from `server/src/config.ts`, `server/src/metrics.ts`, `server/src/http/errors.ts` and `shared/src/contract` by `node server/src/docs.ts --write`. Change it there. -->',
      'To set it up and run it, see [control-plane.md](control-plane.md).',
      '## Configuration',
      'Keys of `control-plane.yml`. Each is also a flag, with `-` for `_`, and an environment variable, such as `VACANCY_CONTROL_PLANE_LISTEN_PORT`. A flag overrides its variable, which overrides the file. Secrets (`database_url` and all tokens) are refused as flags, except as `file:PATH`: the path of a file that contains the secret. This form is accepted everywhere.',
      configTable(CONTROL_SCHEMA).trimEnd(),
      '## Metrics',
      '`GET /metrics` responds in the Prometheus text format 0.0.4, with the `process_*` and `nodejs_*` metrics of prom-client besides these.',
      metricsTable(CONTROL_METRICS).trimEnd(),
      '## Paths',
      'Requests and responses are documented at `/docs` of a running control plane. Roles of people: viewer < operator < admin. A monitoring token has the rights of a viewer, a client token also `query`, and an admin token all rights except `session`, which needs a signed-in person.',
      routesTable(),
      '## Errors',
      'Errors are `application/problem+json`: `status`, `code`, `title`, `detail`, `hint`, `requestId`, and `field` when one field is invalid. Programs check `code`; `detail` and `hint` may be more specific than this table. Codes of nodes and of the wire protocol ([errors.md](errors.md)) are passed through unchanged, and paths below `/cluster` use the code `cluster`.',
      errorsTable(),
    ].join('\n\n')}\n`,
  }
}

function routesTable(): string {
  const rows = Object.entries(CONTROL_ROUTES as { readonly [name: string]: ControlRoute }).map(
    ([name, { access, summary }]) => `| \`${name}\` | ${access} | ${summary} |`,
  )
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
