/** Reports of a node, and the configurations of a shard side by side. */
import { type CLUSTER_ROUTES, configBody, type ShardView } from '@vacancy/shared/contract'
import type { z } from 'zod'
import { type ClusterModule, nodeView } from './cluster-state.ts'
import { observationsOf } from './collector.ts'
import { configWarnings } from './config-warnings.ts'
import { time } from './derive.ts'
import { SOURCES } from './observation.ts'

type NodeDocument = z.infer<(typeof CLUSTER_ROUTES)['GET /api/v1/shards/{shard}/nodes/{node}']['response']>

type ConfigDocument = z.infer<(typeof CLUSTER_ROUTES)['GET /api/v1/shards/{shard}/config']['response']>

/** The complete view of a node with the last response of each path, for its page and live topic. */
export function nodeDocument(module: ClusterModule, shard: string, id: string): NodeDocument | undefined {
  const node = nodeView(module, shard, id)
  const observation = observationsOf(module.collector, shard).find(({ address }) => address.id === id)
  if (!node || !observation) return undefined
  const config = observation.sources['/config']
  const read = config?.status === 200 ? readConfig(config.body) : undefined
  return {
    node,
    sources: SOURCES.flatMap((path) => {
      const source = observation.sources[path]
      if (!source) return []
      const { status = null, at, milliseconds = null, error, body } = source
      return [
        {
          ...{ path, status, milliseconds, body },
          at: at === undefined ? null : time(at),
          error: error ? { ...error, since: time(error.since) } : null,
        },
      ]
    }),
    config: read
      ? Object.entries(read).map(([key, { value, origin, at }]) => ({ key, value: String(value), origin, at }))
      : null,
    configError: read ? '' : configFault(config?.status, config?.error?.message),
  }
}

function readConfig(body: string): z.infer<typeof configBody> | undefined {
  try {
    return configBody.safeParse(JSON.parse(body)).data
  } catch {
    // The response is shown unchanged, with the error.
    return undefined
  }
}

function configFault(status: number | undefined, error: string | undefined): string {
  if (error !== undefined) return `The node did not respond: ${error}.`
  if (status === undefined) return 'The node has not been polled yet.'
  if (status === 401 || status === 403) return 'The node requires an admin token for this: set node_admin_token.'
  return status === 200 ? 'The response of the node is not a configuration.' : `The node answered ${status}.`
}

/** The last configuration of each node, at most a minute old. */
export function compareConfig({ collector, deps }: ClusterModule, shard: ShardView): ConfigDocument {
  const observations = [...observationsOf(collector, shard.id)].sort((a, b) => (a.address.id < b.address.id ? -1 : 1))
  const read = observations.map((each) => {
    const source = each.sources['/config']
    return { each, source, config: source?.status === 200 ? readConfig(source.body) : undefined }
  })
  const keys = [...new Set(read.flatMap(({ config }) => Object.keys(config ?? {})))].sort()
  return {
    nodes: read.map(({ each }) => each.address.id),
    keys: keys.map((key) => {
      const values = read.map(({ config }) => {
        const entry = config?.[key]
        return entry ? { value: String(entry.value), origin: entry.origin } : null
      })
      const reported = new Set(values.flatMap((each) => (each ? [each.value] : [])))
      return { key, equal: reported.size <= 1, values }
    }),
    warnings: configWarnings(read.flatMap(({ each, config }) => (config ? [{ node: each.address.id, config }] : []))),
    missing: read.flatMap(({ each, source, config }) =>
      config
        ? []
        : [
            {
              source: `${shard.id}/${each.address.id} /config`,
              code: source?.error?.code ?? 'not-reported',
              message: configFault(source?.status, source?.error?.message),
              since: time(source?.error?.since ?? source?.at ?? deps.clock.wallMs()),
            },
          ],
    ),
  }
}
