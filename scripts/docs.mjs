// Writes every generated page: `npm run docs`. With `--openapi DIR` also the OpenAPI documents of a release. A test fails
// when a committed page differs from its tables.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { pages as benchPages } from '../bench/src/pages.ts'
import { pages as enginePages } from '../engine/src/docs.ts'
import { pages as fabricPages } from '../fabric/src/docs.ts'
import { pages as serverPages } from '../server/src/docs.ts'
import * as contract from '../shared/src/contract/index.ts'
import { controlOperations, nodeOperations, openApiOf } from '../shared/src/contract/openapi.ts'
import { alertFiles } from './alerts.mjs'
import { dashboardFiles } from './dashboards.mjs'
import { helmFiles } from './helm.mjs'
import { ROOT } from './pinned-node.mjs'
import { scrapeFiles } from './scrape.mjs'
import { unitFiles } from './units.mjs'

/** Text of every generated page by its path in the repository. */
function pages() {
  const references = Object.assign({}, enginePages(), serverPages(), fabricPages())
  const inDocs = Object.entries(references).map(([file, text]) => [`docs/${file}`, text])
  const deployed = { ...unitFiles(), ...alertFiles(), ...scrapeFiles(), ...dashboardFiles(), ...helmFiles() }
  return { ...Object.fromEntries(inDocs), ...benchPages(), ...deployed }
}

/** Pages whose committed text differs. */
export function stalePages() {
  return Object.entries(pages()).flatMap(([file, text]) =>
    existsSync(path.join(ROOT, file)) && readFileSync(path.join(ROOT, file), 'utf8') === text ? [] : [file],
  )
}

/** The OpenAPI document of each program by its file name. Control plane and queue also serve theirs. */
export function documents() {
  const { version } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'))
  const { NODE_ROUTES, CONTROL_ROUTES, QUEUE_ROUTES } = contract
  const of = (title, operations, isProblem) => openApiOf({ title, version }, operations, contract, isProblem)
  return {
    'node.json': of('Vacancy node', nodeOperations(NODE_ROUTES), false),
    'control-plane.json': of('Vacancy control plane', controlOperations(CONTROL_ROUTES), true),
    'queue.json': of('Vacancy job queue', controlOperations(QUEUE_ROUTES), true),
  }
}

if (process.argv[1] === import.meta.filename) {
  const made = pages()
  const stale = stalePages()
  for (const file of stale) {
    mkdirSync(path.dirname(path.join(ROOT, file)), { recursive: true })
    writeFileSync(path.join(ROOT, file), made[file])
  }
  console.log(stale.length === 0 ? 'All pages are current.' : `Wrote ${stale.join(', ')}.`)
  const at = process.argv.indexOf('--openapi')
  if (at > 0) {
    const folder = path.resolve(process.argv[at + 1] ?? 'openapi')
    mkdirSync(folder, { recursive: true })
    for (const [file, document] of Object.entries(documents()))
      writeFileSync(path.join(folder, file), `${JSON.stringify(document)}\n`)
    console.log(`Wrote ${Object.keys(documents()).join(', ')} in ${folder}.`)
  }
}
