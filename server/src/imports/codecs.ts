/** The codec list that a snapshot must be made with: that of the nodes, else the registry's. */
import { createCodecList } from '@vacancy/shared'
import { codecsBody } from '@vacancy/shared/contract'
import type { Cluster } from '../cluster/cluster.ts'
import { problem } from '../http/errors.ts'

export type Codecs = { readonly names: string[]; readonly hash: string; readonly source: string }

/**
 * Asks the nodes of a shard first, then any other. Without a shard: whoever answers.
 *
 * @throws ProblemError 503 when nobody does
 */
export type CodecSource = (shard: string | undefined) => Promise<Codecs>

const REQUEST_MS = 3_000

/** @param registry address of the registry, '' without one */
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
    const detail = said.length === 0 ? 'no node and no registry is known' : said.slice(0, 5).join('; ')
    throw problem('no-codec-list', { detail: `The codec list is not to be had: ${detail}.` })
  }
}

/** What the registry tells now; undefined while it does not answer. */
export async function codecsOfRegistry(address: string, token: string): Promise<Codecs | undefined> {
  try {
    return fromBody(await fetchRegistry(address, token), `the registry at ${address}`)
  } catch {
    // Whatever keeps it from telling, its list is not known; that is what is said of it.
    return undefined
  }
}

/** The file that registry, standalone nodes and build-snapshot read. */
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

/** Checked as the engine checks a codec file: what a node says is not believed unseen. */
function fromBody(body: string, source: string): Codecs {
  const { rate_features } = codecsBody.pick({ rate_features: true }).parse(JSON.parse(body))
  const list = createCodecList(rate_features)
  return { names: [...list.names], hash: list.orderedHash, source }
}
