/**
 * The network of a chaos run: a proxy for each directed link between two nodes, and one from the clients to each node
 * (proxy.ts). Each node has a view of the resolver that returns the node's own links to the others:
 *
 *   node-1 ──► its view ──► the resolver          "where is node-2?"   → the link from node-1 to node-2
 *   node-1 ──► link 1→2 ──► node-2
 *
 *   .11 + i   node i          .61 + i   its view of the resolver
 *   .200 + i  clients to i    .100 + 7·i + j   link from node i to node j
 */

import { createServer, type Server } from 'node:http'
import { assert } from '@vacancy/shared'
import { type Condition, OPEN, openRelay, type Relay } from '@vacancy/testkit/relay'
import { PORTS } from '@vacancy/testkit/shard'

/** Limited by the address block. */
const NODES_MAX = 7
const RESOLVER_MS = 2_000

export type Network = {
  readonly nodes: readonly string[]
  /** The resolver address of a node. */
  readonly resolverUrl: (node: string) => string
  /** The client address of a node. */
  readonly clientHost: (node: string) => string
  readonly link: (from: string, to: string) => Relay
  readonly clientLink: (node: string) => Relay
  /** Links to an ended process refuse connections, like the node itself would. */
  readonly setUp: (node: string, isUp: boolean) => Promise<void>
  /** Sets the links between two groups, or in one direction only. */
  readonly between: (from: readonly string[], to: readonly string[], condition: Partial<Condition>) => void
  readonly heal: () => void
  readonly close: () => Promise<void>
}

/** Opens all links. @param host address of a node in its block, such as 127.64.1.11 */
export async function openNetwork(nodes: readonly string[], host: (node: string) => string): Promise<Network> {
  assert(nodes.length <= NODES_MAX, 'the links fit in the address block')
  const prefix = (host(nodes[0]).match(/^(\d+\.\d+\.\d+)\./) as RegExpMatchArray)[1]
  const indexOf = (node: string) => {
    const at = nodes.indexOf(node)
    assert(at >= 0, `${node} is a node of this network`)
    return at
  }
  const linkHost = (from: string, to: string) => `${prefix}.${100 + NODES_MAX * indexOf(from) + indexOf(to)}`
  const links = new Map<string, Relay>()
  const clientLinks = new Map<string, Relay>()
  const views: Server[] = []
  for (const node of nodes) {
    const target = { host: host(node), port: PORTS.tcp }
    clientLinks.set(node, await openRelay(target, { host: `${prefix}.${200 + indexOf(node)}`, port: PORTS.tcp }))
    for (const other of nodes) {
      if (other === node) continue
      const at = { host: linkHost(other, node), port: PORTS.quic }
      links.set(`${other} ${node}`, await openRelay({ host: host(node), port: PORTS.quic }, at))
    }
    const resolver = `http://${prefix}.2:${PORTS.resolver}`
    views.push(await openView(`${prefix}.${61 + indexOf(node)}`, resolver, (to) => linkHost(node, to)))
  }
  const network: Network = {
    nodes,
    resolverUrl: (node) => `http://${prefix}.${61 + indexOf(node)}:${PORTS.resolver}`,
    clientHost: (node) => `${prefix}.${200 + indexOf(node)}`,
    link: (from, to) => links.get(`${from} ${to}`) as Relay,
    clientLink: (node) => clientLinks.get(node) as Relay,
    async setUp(node, isUp) {
      const others = nodes.filter((other) => other !== node).map((other) => network.link(other, node))
      for (const link of [...others, network.clientLink(node)]) await link.listen(isUp)
    },
    between(from, to, condition) {
      for (const one of from)
        for (const other of to) if (one !== other) network.link(one, other).set({ ...OPEN, ...condition })
    },
    heal() {
      for (const link of [...links.values(), ...clientLinks.values()]) link.set(OPEN)
    },
    async close() {
      for (const view of views) {
        view.closeAllConnections()
        view.close()
      }
      for (const link of [...links.values(), ...clientLinks.values()]) await link.close()
    },
  }
  return network
}

/** Forwards requests to the resolver, and replaces hosts in responses with the links to these nodes. */
async function openView(host: string, resolver: string, linkTo: (node: string) => string): Promise<Server> {
  const view = createServer((request, response) => {
    const node = decodeURIComponent(request.url?.split('/').at(-1) ?? '')
    fetch(`${resolver}${request.url}`, { signal: AbortSignal.timeout(RESOLVER_MS) }).then(
      async (answer) => {
        const body = await answer.text()
        response.writeHead(answer.status, { 'Content-Type': 'text/plain', 'Cache-Control': 'max-age=5' })
        response.end(answer.ok ? linkTo(node) : body)
      },
      () => response.destroy(),
    )
  })
  await new Promise<void>((resolve, reject) => {
    view.once('error', reject)
    view.listen(PORTS.resolver, host, () => resolve())
  })
  return view
}
