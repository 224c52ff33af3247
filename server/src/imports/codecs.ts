/** The codec list for new snapshots: that of the nodes, else the registry's. */
import { createCodecList } from '@vacancy/shared'
import { problem } from '@vacancy/shared/api/errors'
import { codecsBody } from '@vacancy/shared/contract'
import type { Cluster } from '../cluster/cluster.ts'

export type Codecs = { readonly names: string[]; readonly hash: string; readonly source: string }

/**
 * Queries the nodes of a shard first, then any others. Without a shard, the first node that responds.
 *
 * @throws ProblemError 503 when no node responds
 */
export type CodecSource = (shard: string | undefined) => Promise<Codecs>

const REQUEST_MS = 3_000

/** @param registry address of the registry; '' without one */
export function codecSource(cluster: Cluster, registry: () => string, registryToken: string): CodecSource {
  return async (shard) => {
    const shards = cluster.shards().map(({ id }) => id)
    const order = shard === undefined ? shards : [shard, ...shards.filter((id) => id !== shard)]
    const said: string[] = []
    for (const id of order) {
      for (const node of cluster.addresses(id)) {
        try {
          const { status, body } = await cluster.request(node, '/codecs', { as: 'monitoring', timeoutMs: REQUEST_MS })
          if (status === 200) return fromBody(body, `node ${node.id}`)
          said.push(`${node.id} answered ${status}`)
        } catch (error) {
          said.push((error as Error).message)
        }
      }
    }
    const address = registry()
    if (address !== '') {
      try {
        return fromBody(await fetchRegistry(address, registryToken), 'the registry')
      } catch (error) {
        said.push(`registry: ${(error as Error).message}`)
      }
    }
    const detail = said.length === 0 ? 'no node or registry is known' : said.slice(0, 5).join('; ')
    throw problem('no-codec-list', { detail: `The codec list is unavailable: ${detail}.` })
  }
}

/** The registry's current list; undefined while it does not respond. */
export async function codecsOfRegistry(address: string, token: string): Promise<Codecs | undefined> {
  try {
    return fromBody(await fetchRegistry(address, token), `the registry at ${address}`)
  } catch {
    // Whatever the error is, its list is unknown.
    return undefined
  }
}

/** The codec file for registry, standalone nodes and build-snapshot. */
export function codecFile(names: readonly string[]): string {
  return `rate_features:\n${names.map((name) => `  - ${JSON.stringify(name)}\n`).join('')}`
}

async function fetchRegistry(address: string, token: string): Promise<string> {
  const response = await fetch(new URL('/codecs', address), {
    headers: token === '' ? {} : { authorization: `Bearer ${token}` },
    redirect: 'error',
    signal: AbortSignal.timeout(REQUEST_MS),
  })
  if (!response.ok) throw new Error(`answered ${response.status}`)
  return await response.text()
}

/** Reports of nodes are validated like codec files in the engine. */
function fromBody(body: string, source: string): Codecs {
  const { rate_features } = codecsBody.pick({ rate_features: true }).parse(JSON.parse(body))
  const list = createCodecList(rate_features)
  return { names: [...list.names], hash: list.orderedHash, source }
}
