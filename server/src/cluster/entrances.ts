/** Where clients enter the platform: edge routers and proxies that respond. */

import { judge, tcpOf } from '../fabric/derive.ts'
import type { Fabric, Polled } from '../fabric/fabric.ts'
import type { NodeAddress } from './cluster.ts'

function usable({ components }: Fabric, kind: Polled['kind']): Polled[] {
  return [...components.values()].filter((each) => each.kind === kind && judge(each, true).isUsable === true)
}

export function edgeAddresses(fabric: Fabric): readonly NodeAddress[] {
  return usable(fabric, 'edge').flatMap((edge) => {
    const tcp = tcpOf(edge)
    return tcp ? [{ id: edge.key, shard: '', zone: '', apiUrl: edge.apiUrl, tcp }] : []
  })
}

export function proxyUrls(fabric: Fabric): readonly string[] {
  return usable(fabric, 'proxy').map(({ apiUrl }) => apiUrl)
}
