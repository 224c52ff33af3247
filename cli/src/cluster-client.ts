/** HTTP client for the commands of `vacancy cluster`: reads the state of a shard and requests changes. */

import { VacancyError } from '@vacancy/shared'
import {
  type ClusterInfo,
  type ClusterOperations,
  clusterInfoBody,
  NODE_ROUTES,
  type NodeSetTime,
  operationsBody,
  setTimeBody,
  statusBody,
} from '@vacancy/shared/contract'
import { type Access, fetchDocument, parseReply, refusal, schemeOf, send } from '@vacancy/shared/node-api'

export type Body = { readonly [key: string]: string | number | boolean }

/** Older nodes lack some. */
type Settings = { readonly [name: string]: number | undefined }

export type ClusterClient = {
  /** The node in use, as `http://HOST:PORT`. */
  readonly url: string
  /** The document of the leader, since other nodes know less; that of the node in use if the leader is unreachable. */
  readonly info: () => Promise<ClusterInfo>
  readonly operations: () => Promise<ClusterOperations>
  /** @returns the text of the 202 reply, and its time by the clock of the node */
  readonly change: (path: string, body: Body) => Promise<{ readonly text: string; readonly atMs: number }>
  /** Sets shard time, or returns the plan without `confirm`. Also for a standalone node. */
  readonly setTime: (confirm: boolean) => Promise<NodeSetTime>
  /** Settings that all nodes share, as the node in use has them. Also of a standalone node. */
  readonly settings: () => Promise<Settings>
}

/**
 * Finds the first node that responds.
 *
 * @throws VacancyError failure when none does, with a line per node
 */
export async function openClient(access: Access): Promise<ClusterClient> {
  const faults: string[] = []
  for (const node of access.nodes) {
    const url = `${schemeOf(access)}//${node}`
    try {
      await send(access, 'GET', `${url}/health`)
      return clientOf(access, url)
    } catch (error) {
      if (!(error instanceof VacancyError)) throw error
      faults.push(error.message)
    }
  }
  throw new VacancyError('failure', { reason: faults.join('\n') })
}

function clientOf(access: Access, url: string): ClusterClient {
  const infoFrom = (from: string) => fetchDocument(access, `${from}/cluster/info`, clusterInfoBody)
  // A token sent over TLS must not be sent without.
  const isElsewhere = (info: ClusterInfo) =>
    info.leader_id !== info.node_id && info.leader_url.startsWith(schemeOf(access))
  const orElse = async <T>(first: Promise<T>, second: () => T | Promise<T>): Promise<T> => {
    try {
      return await first
    } catch (error) {
      if (!(error instanceof VacancyError)) throw error
      return await second()
    }
  }
  return {
    url,
    async info() {
      const info = await infoFrom(url)
      return isElsewhere(info) ? await orElse(infoFrom(info.leader_url), () => info) : info
    },
    async operations() {
      const operationsFrom = (from: string) => fetchDocument(access, `${from}/cluster/operations`, operationsBody)
      const info = await infoFrom(url)
      return await (isElsewhere(info)
        ? orElse(operationsFrom(info.leader_url), () => operationsFrom(url))
        : operationsFrom(url))
    },
    async change(path, body) {
      const reply = await send(access, 'POST', `${url}${path}`, JSON.stringify(body))
      if (reply.status !== 202) throw refusal(url, reply)
      return { text: reply.body, atMs: reply.atMs }
    },
    async settings() {
      const { stays } = await fetchDocument(access, `${url}/status`, statusBody)
      if (stays) return stays.settings
      throw new VacancyError('failure', { reason: `${url} has not loaded its data yet, or knows no settings` })
    },
    async setTime(confirm) {
      const at = `${url}${NODE_ROUTES.setTime.path}`
      return parseReply(at, await send(access, 'POST', at, JSON.stringify({ confirm })), setTimeBody)
    },
  }
}
