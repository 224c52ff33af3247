/** Requests to nodes for other modules, each with the token it needs. */

import { problem } from '@vacancy/shared/api/errors'
import { type HttpReply, NodeHttpError } from '../http/node-http.ts'
import type { NodeAddress, NodeAnswer, RequestOptions } from './cluster.ts'
import type { ClusterConfig, ClusterModule } from './cluster-state.ts'

/** One request to a node. @throws ProblemError 502 or 504 with the node's id */
export async function requestNode(
  module: ClusterModule,
  node: NodeAddress,
  path: string,
  options: RequestOptions = {},
): Promise<NodeAnswer> {
  const { as = 'monitoring', method = 'GET', body, timeoutMs, signal } = options
  try {
    if (node.apiUrl === '') throw new NodeHttpError('address', 'its address is unknown')
    const token = tokenOf(module.config.tokens, as)
    return await module.http.request(node.apiUrl + path, {
      method,
      body,
      token,
      signal,
      ...(timeoutMs !== undefined && { timeoutMs }),
    })
  } catch (error) {
    if (!(error instanceof NodeHttpError)) throw error
    const isLate = error.code === 'timeout'
    throw problem(isLate ? 'node-timeout' : 'node-unreachable', {
      detail: `${node.shard}/${node.id}: ${error.message}`,
      hint: `Check ${node.apiUrl || 'its address'}: is the node running, and can this machine reach it?`,
      more: { node: node.id, shard: node.shard, why: error.code },
      cause: error,
    })
  }
}

/** A change of members or leader, with the admin token. @throws NodeHttpError */
export async function sendToNode(
  module: ClusterModule,
  node: NodeAddress,
  path: string,
  body: object | undefined,
  timeoutMs: number,
): Promise<HttpReply> {
  return await module.http.request(node.apiUrl + path, {
    method: 'POST',
    body: body ?? {},
    token: module.config.tokens.admin,
    timeoutMs,
  })
}

function tokenOf(tokens: ClusterConfig['tokens'], as: NonNullable<RequestOptions['as']>): string | undefined {
  switch (as) {
    case 'none':
      return undefined
    case 'monitoring':
      return tokens.monitoring ?? tokens.admin
    case 'client':
      return tokens.client ?? tokens.admin
    case 'admin':
      return tokens.admin
  }
}
