/** What the nodes of a shard say of themselves over HTTP, in a word each. */

import { type ClusterInfo, clusterInfoBody, healthzText, readyBody } from '@vacancy/shared/contract'
import type { Place } from './layout.ts'

/** A node that takes longer is stuck, or its thread is busy loading. */
const ANSWER_MS_MAX = 2_000

/** What one node said. */
export type Seen = {
  readonly node: string
  /** Undefined when it did not answer. */
  readonly info: ClusterInfo | undefined
  readonly health: string
  /** Why it does not serve, in its own words. */
  readonly reasons: readonly string[]
}

/** Asks all nodes at once. */
export function lookAt(nodes: ReadonlyMap<string, Place>): Promise<Seen[]> {
  return Promise.all(
    [...nodes].map(async ([node, { host, apiPort }]) => {
      const ask = (path: string) => get(`http://${host}:${apiPort}${path}`)
      const [info, health, ready] = await Promise.all([ask('/cluster/info'), ask('/healthz'), ask('/ready')])
      return {
        node,
        info: parsed(clusterInfoBody, info),
        health: healthzText.safeParse(health).data ?? '',
        // Some reasons say everything by their name.
        reasons:
          parsed(readyBody, ready)?.reasons.map(({ reason, detail }) => detail || reason.replaceAll('_', ' ')) ?? [],
      }
    }),
  )
}

/** The body, whatever the status; '' when nothing answers. */
async function get(url: string): Promise<string> {
  try {
    return await (await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS_MAX) })).text()
  } catch {
    // Not there yet, or not there any more: which, the launcher knows.
    return ''
  }
}

type Schema<T> = { readonly safeParse: (value: unknown) => { readonly data?: T | undefined } }

function parsed<T>(schema: Schema<T>, text: string): T | undefined {
  try {
    return schema.safeParse(JSON.parse(text)).data
  } catch {
    // A half answer of a node that is being ended.
    return undefined
  }
}

/** The leader that the node leading in the latest term says it is; undefined while there is none. */
export function leaderOf(seen: readonly Seen[]): { readonly node: string; readonly term: number } | undefined {
  const leaders = seen
    .flatMap(({ node, info }) => (info && info.leader_id === node ? [{ node, term: info.term }] : []))
    .sort((a, b) => b.term - a.term)
  return leaders[0]
}

/** What a node does, for people. */
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
