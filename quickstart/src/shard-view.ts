/** The states of the nodes of a shard, from their HTTP API. */

import { type ClusterInfo, clusterInfoBody, healthzText, readyBody } from '@vacancy/shared/contract'
import type { Place } from './layout.ts'

/** A node that takes longer is stuck, or its thread is busy loading. */
const ANSWER_MS_MAX = 2_000

/** The state of one node. */
export type Seen = {
  readonly node: string
  /** Undefined when it did not respond. */
  readonly info: ClusterInfo | undefined
  readonly health: string
  /** Its own reason for not serving. */
  readonly reasons: readonly string[]
}

/** Polls all nodes concurrently. */
export function lookAt(nodes: ReadonlyMap<string, Place>): Promise<Seen[]> {
  return Promise.all(
    [...nodes].map(async ([node, { host, apiPort }]) => {
      const ask = (path: string) => get(`http://${host}:${apiPort}${path}`)
      const [info, health, ready] = await Promise.all([ask('/cluster/info'), ask('/healthz'), ask('/ready')])
      return {
        node,
        info: parsed(clusterInfoBody, info),
        health: healthzText.safeParse(health).data ?? '',
        // Some reasons are clear from their name.
        reasons:
          parsed(readyBody, ready)?.reasons.map(({ reason, detail }) => detail || reason.replaceAll('_', ' ')) ?? [],
      }
    }),
  )
}

/** The body, with any status; '' without a response. */
async function get(url: string): Promise<string> {
  try {
    return await (await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS_MAX) })).text()
  } catch {
    // Not started yet, or ended: the launcher knows which.
    return ''
  }
}

type Schema<T> = { readonly safeParse: (value: unknown) => { readonly data?: T | undefined } }

function parsed<T>(schema: Schema<T>, text: string): T | undefined {
  try {
    return schema.safeParse(JSON.parse(text)).data
  } catch {
    // A truncated response of a node that is shutting down.
    return undefined
  }
}

/** The leader, by the report of the node that leads in the latest term; undefined without one. */
export function leaderOf(seen: readonly Seen[]): { readonly node: string; readonly term: number } | undefined {
  const leaders = seen
    .flatMap(({ node, info }) => (info && info.leader_id === node ? [{ node, term: info.term }] : []))
    .sort((a, b) => b.term - a.term)
  return leaders[0]
}

/** Describes the state of a node. */
export function stateOf({ info, health, reasons }: Seen): string {
  if (health === 'active_leader') return 'leads'
  if (health === 'active_follower') return 'follows, up to date'
  const [reason] = reasons
  if (info === undefined && reason === undefined) return 'starting'
  return `not yet: ${info?.bootstrap?.why ?? reason ?? 'not up to date'}`
}

export function isServing({ health }: Seen): boolean {
  return health.startsWith('active')
}
