/** Real nodes as processes, for tests of the control plane: one standalone node, or a shard with registry and resolver. */

import { type NodeRun, removeFolder, startNodeProcess, temporaryFolder } from '@vacancy/testkit/node'
import { leaderOf, openShard, PORTS, type ShardNode, takeBlock } from '@vacancy/testkit/shard'

export type TestNode = ShardNode & { readonly id: string; readonly apiUrl: string }

export type ShardPlan = {
  /** All nodes that there may ever be; default n1 to n4. */
  readonly nodes?: readonly string[]
  /** Founders; default the first three. Others join as learners. */
  readonly voters?: readonly string[]
  /** Which are started at once; default all. */
  readonly started?: readonly string[]
}

export type TestShard = {
  readonly registryUrl: string
  readonly resolverUrl: string
  /** Nodes whose processes run. */
  readonly nodes: () => readonly TestNode[]
  readonly node: (id: string) => TestNode
  readonly start: (id: string) => void
  /** The node that leads, once all that run serve and agree on it. */
  readonly leader: () => Promise<TestNode>
  /** Stops the registry and starts it with another list. */
  readonly changeCodecs: (codecs: readonly string[]) => Promise<void>
  /** Kills what runs and removes the folder. */
  readonly close: () => Promise<void>
}

/** Starts a standalone node with the usual ports on an address of its own; resolves when it serves. */
export async function startNode({ config = {}, stuckMs }: Pick<NodeRun, 'config' | 'stuckMs'> = {}) {
  const { guard, prefix } = await takeBlock()
  const folder = temporaryFolder()
  const host = `${prefix}.11`
  const node = await startNodeProcess({
    folder,
    config: { tcp_port: PORTS.tcp, api_port: PORTS.api, memory_max_bytes: 256 << 20, cpu_watch: false, ...config },
    flags: ['--tcp-listen-addr', host, '--api-listen-addr', host],
    ...(stuckMs !== undefined && { stuckMs }),
  })
  return {
    ...node,
    host,
    apiUrl: `http://${host}:${node.apiPort}`,
    async close() {
      await node.kill()
      await new Promise((resolve) => guard.close(resolve))
      removeFolder(folder)
    },
  }
}

/** Starts registry, resolver and nodes; resolves when all of them serve and agree on a leader. */
export async function startShard(plan: ShardPlan = {}): Promise<TestShard> {
  const { nodes = ['n1', 'n2', 'n3', 'n4'], voters = nodes.slice(0, 3), started = nodes } = plan
  const shard = await openShard({ nodes, voters, shardId: 's1', zoneId: 'eu-1' })
  let registry = shard.startRegistry()
  const resolver = shard.startResolver()
  const testNode = (node: ShardNode): TestNode => ({
    ...node,
    id: node.name,
    apiUrl: `http://${node.host}:${node.apiPort}`,
  })
  const test: TestShard = {
    registryUrl: registry.url,
    resolverUrl: resolver.url,
    nodes: () => shard.running().map(testNode),
    node(id) {
      const node = test.nodes().find((running) => running.id === id)
      if (!node) throw new Error(`${id} does not run`)
      return node
    },
    start: (id) => void shard.start(id),
    leader: async () => testNode(await leaderOf(shard)),
    async changeCodecs(codecs) {
      await registry.stop()
      registry = shard.startRegistry(codecs)
    },
    close: shard.close,
  }
  try {
    for (const id of started) shard.start(id)
    if (started.length > 0) await leaderOf(shard)
    return test
  } catch (error) {
    await shard.close()
    throw error
  }
}
