/**
 * Generates the OpenAPI documents in docs/openapi: `node shared/src/node/docs.ts --write`. A test fails when a
 * committed document differs.
 */

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as contract from '../contract/index.ts'
import { controlOperations, nodeOperations, type OpenApi, openApiOf } from '../contract/openapi.ts'

const FOLDER = join(import.meta.dirname, '../../../docs/openapi')
const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../../package.json'), 'utf8'))

/** Text of each document by its file name. */
export function documents(): { readonly [file: string]: string } {
  const { NODE_ROUTES, CONTROL_ROUTES, QUEUE_ROUTES } = contract
  const info = (title: string) => ({ title, version })
  return {
    'node.json': textOf(openApiOf(info('Vacancy node'), nodeOperations(NODE_ROUTES), contract, false)),
    'control-plane.json': textOf(
      openApiOf(info('Vacancy control plane'), controlOperations(CONTROL_ROUTES), contract, true),
    ),
    'queue.json': textOf(openApiOf(info('Vacancy job queue'), controlOperations(QUEUE_ROUTES), contract, true)),
  }
}

/** Documents that differ from the committed files. */
export function staleDocuments(): readonly string[] {
  return Object.entries(documents()).flatMap(([file, text]) =>
    readFileSync(join(FOLDER, file), 'utf8') === text ? [] : [file],
  )
}

/** A line for each operation and each component, so that a change is seen where it is. */
function textOf({ paths, components, ...head }: OpenApi): string {
  const lines = (parts: { readonly [name: string]: unknown }) =>
    Object.entries(parts)
      .map(([name, part]) => `  ${JSON.stringify(name)}: ${JSON.stringify(part)}`)
      .join(',\n')
  const { schemas, ...others } = components
  const start = JSON.stringify({ ...head, components: others }).slice(0, -2)
  return `${start},"schemas": {\n${lines(schemas)}\n}},\n"paths": {\n${lines(paths)}\n}}\n`
}

if (process.argv[1] === import.meta.filename && process.argv.includes('--write')) {
  for (const [file, text] of Object.entries(documents())) writeFileSync(join(FOLDER, file), text)
}
