/**
 * The nodes of a shard from a list instead of registry and resolver: a file, or an HTTP endpoint with the same content,
 * in the form of existing proxies (docs/proxy.md#cluster-mode). It is read again and again; a list that cannot be used
 * changes nothing.
 */

import { readFile } from 'node:fs/promises'
import type { Schedule } from '@vacancy/shared'
import type { HttpCaller, Log, Resolution } from '@vacancy/shared/node'
import { readYamlKeys } from '@vacancy/shared/node'
import { z } from 'zod'
import type { DiscoveryOptions } from '../bridge/discovery.ts'
import { startLoop } from '../loop.ts'

/** What discovery needs to know of nodes before it calls them. */
export type NodeSource = Pick<DiscoveryOptions, 'registry' | 'resolver'> & { readonly close: () => Promise<void> }

const NODES_MAX = 1_000
const BYTES_MAX = 1_048_576
/** `port` is that of the HTTP API, as existing proxies use it. */
const nodeList = z
  .array(
    z.object({
      node_id: z.string().min(1).max(255),
      addr: z.string().regex(/^[^\s/]{1,255}$/),
      port: z.int().min(1).max(65_535).optional(),
    }),
  )
  .max(NODES_MAX)

type Places = ReadonlyMap<string, { readonly host: string; readonly apiPort?: number }>

/**
 * Parses a list: YAML or JSON with the key `nodes`.
 *
 * @throws Error with the reason
 */
export function parseNodeList(text: string, name: string): Places {
  const faults: string[] = []
  const keys = readYamlKeys(text, name, faults)
  if (faults.length > 0) throw new Error(faults.join('; '))
  const nodes = nodeList.safeParse(keys.find(({ key }) => key === 'nodes')?.value)
  if (!nodes.success) {
    const [issue] = nodes.error.issues
    throw new Error(`${name}: nodes${issue?.path.map((part) => `.${String(part)}`).join('') ?? ''}: ${issue?.message}`)
  }
  return new Map(
    nodes.data.map(({ node_id, addr, port }) => [
      node_id,
      { host: addr, ...(port !== undefined && { apiPort: port }) },
    ]),
  )
}

export type NodeListOptions = {
  /** The ids to begin with; the nodes name the others. */
  readonly seedIds: readonly string[]
  readonly from:
    | { readonly kind: 'static'; readonly file: string }
    | { readonly kind: 'http'; readonly url: string; readonly caller: HttpCaller; readonly timeoutMs: number }
  readonly refreshMs: number
  readonly schedule: Schedule
  readonly log: Log
}

export function openNodeList(options: NodeListOptions): NodeSource {
  const { seedIds, from, refreshMs, schedule, log } = options
  const name = from.kind === 'static' ? from.file : from.url
  let places: Places | undefined
  let fault = ''
  const first = Promise.withResolvers<void>()
  const loop = startLoop(schedule, async () => {
    try {
      places = parseNodeList(await read(from), name)
      fault = ''
    } catch (error) {
      const reason = (error as Error).message
      if (reason !== fault) log.warn({ reason }, 'node list cannot be used')
      fault = reason
    }
    first.resolve()
    return refreshMs
  })
  const find = async (id: string): Promise<Resolution> => {
    await first.promise
    const address = places?.get(id)
    if (address) return { kind: 'found', address }
    return places ? { kind: 'unknown', reason: `${name} has no node ${id}` } : { kind: 'failed', reason: fault }
  }
  return {
    registry: {
      get: async (_path, schema) => {
        const body = schema.parse({ version: 1, nodes: seedIds }) as z.infer<typeof schema>
        return { kind: 'ok', body, etag: '' }
      },
    },
    resolver: { find: ({ id }) => find(id), again: ({ id }) => find(id) },
    async close() {
      await loop.stop()
      if (from.kind === 'http') from.caller.close()
    },
  }
}

async function read(from: NodeListOptions['from']): Promise<string> {
  if (from.kind === 'static') return await readFile(from.file, 'utf8')
  const { caller, timeoutMs } = from
  const url = new URL(from.url)
  const request = { method: 'GET', path: url.pathname + url.search, timeoutMs, bytesMax: BYTES_MAX } as const
  const result = await new Promise<Parameters<Parameters<HttpCaller['request']>[2]>[0]>((resolve) => {
    caller.request(url.origin, request, resolve)
  })
  if (result.kind === 'failed') throw new Error(`${from.url}: ${result.reason}`)
  if (result.status !== 200) throw new Error(`${from.url}: status ${result.status}`)
  return result.body
}
