/**
 * A request as runnable code: TypeScript with the client library, and curl or Go with the query API of the control
 * plane. Tokens come from environment variables and are never in the text.
 */

import { snakeCase } from './names.ts'
import { COMMANDS, type CommandName, type RequestFields } from './wire/commands.ts'
import { fieldsToJson, type JsonFieldValue } from './wire/json.ts'
import { wordsOfSearch } from './wire/search-words.ts'
import type { StayLine } from './wire/stay.ts'

/** In a query in place of the id of a node, which cannot be this: through an edge router. */
export const EDGE_TARGET = '@edge'

const SNIPPET_TOKENS = { proxy: 'VACANCY_PROXY_TOKEN', node: 'VACANCY_NODE_TOKEN', control: 'VACANCY_TOKEN' } as const

/** @param nodes `host:port` of the nodes of the shard, or of the node to query */
export function typescriptOf(command: CommandName, fields: RequestFields, nodes: readonly string[]): string {
  const lines = COMMANDS[command].fields.flatMap(({ name }) => {
    const value = fields[name]
    return value === undefined ? [] : [`    ${name}: ${literal(value)},`]
  })
  return `import { connect } from '@vacancy/client'

const token = process.env['${SNIPPET_TOKENS.node}']
const client = await connect({ nodes: [${nodes.map(quoted).join(', ')}], ...(token ? { token } : {}) })
try {
  const result = await client.send(${quoted(command)}, ${lines.length === 0 ? '{}' : `{\n${lines.join('\n')}\n  }`})
  console.log(JSON.stringify(result, undefined, 2))
} finally {
  await client.close()
}
`
}

/** Commands that run the TypeScript in a new folder: without types, `query.mjs` runs on every Node. @param base address of the control plane */
export function typescriptSetupOf(base: string): string {
  return ['npm init -y', `npm install ${base.replace(/\/+$/, '')}/api/v1/client.tgz`, 'node query.mjs'].join('\n')
}

function literal(value: NonNullable<RequestFields[string]>): string {
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'string') return quoted(value)
  if (typeof value === 'number') return Object.is(value, -0) ? '-0' : String(value)
  return `[${value.map(entryLiteral).join(', ')}]`
}

function entryLiteral(line: string | number | StayLine): string {
  if (typeof line === 'number') return String(line)
  if (typeof line === 'string') return quoted(line)
  const fields = Object.entries(line).map(
    ([name, value]) => `${name}: ${typeof value === 'string' ? quoted(value) : value}`,
  )
  return `{ ${fields.join(', ')} }`
}

/** A TypeScript string in single quotes. */
function quoted(text: string): string {
  const inner = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")
  return `'${inner}'`
}

export type QueryBody = {
  readonly shard?: string | undefined
  /** Without a node, any node that may serve the command. */
  readonly node?: string | undefined
  readonly command: CommandName
  readonly fields: RequestFields
  /** What a delete must repeat. */
  readonly confirm?: string | undefined
}

/** The body of `POST /api/v1/query`. */
function queryBodyOf({ shard, node, command, fields, confirm }: QueryBody) {
  const body: { [name: string]: JsonFieldValue | boolean | { readonly [name: string]: JsonFieldValue } } = {}
  if (shard) body['shard'] = shard
  if (node) body['node'] = node
  body['command'] = command
  body['fields'] = fieldsToJson(command, fields)
  if (COMMANDS[command].access === 'write') body['write'] = true
  if (confirm) body['confirm'] = confirm
  return body
}

/** @param base address of the control plane, such as `https://console.example` */
export function curlOf(base: string, query: QueryBody): string {
  return [
    `curl -sS --fail-with-body ${shellWord(`${base.replace(/\/+$/, '')}/api/v1/query`)}`,
    `  -H "authorization: Bearer $${SNIPPET_TOKENS.control}"`,
    `  -H 'content-type: application/json'`,
    `  --data-raw ${shellWord(JSON.stringify(queryBodyOf(query)))}`,
  ].join(' \\\n')
}

/** @param base address of the HTTP proxy */
export function proxyCurlOf(base: string, command: CommandName, fields: RequestFields): string {
  const body = snakeCased(wordsOfSearch(fieldsToJson(command, fields), snakeCase))
  const segment = typeof fields['segment'] === 'string' ? { segment: fields['segment'] } : {}
  return [
    `curl -sS --fail-with-body ${shellWord(`${base.replace(/\/+$/, '')}/api`)}`,
    `  -H "authorization: Bearer $${SNIPPET_TOKENS.proxy}"`,
    `  -H 'content-type: application/json'`,
    `  --data-raw ${shellWord(JSON.stringify({ command, ...segment, body }))}`,
  ].join(' \\\n')
}

function snakeCased(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(snakeCased)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([name, each]) => [snakeCase(name), snakeCased(each)])
  return Object.fromEntries(entries)
}

/** @param base address of the control plane, such as `https://console.example` */
export function goOf(base: string, query: QueryBody): string {
  return `package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
)

const url = ${JSON.stringify(`${base.replace(/\/+$/, '')}/api/v1/query`)}

const body = ${JSON.stringify(JSON.stringify(queryBodyOf(query)))}

func main() {
	request, err := http.NewRequest("POST", url, strings.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("${SNIPPET_TOKENS.control}"))
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil {
		log.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK {
		log.Fatal(answer.Status, "\\n", string(text))
	}
	fmt.Println(string(text))
}
`
}

/** One word of a POSIX shell, for any content. */
function shellWord(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
