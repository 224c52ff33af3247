/** Handlers of the routes of the topology. */

import type { Handlers } from '@vacancy/shared/api/route'
import type { TOPOLOGY_ROUTES, TopologyView } from '@vacancy/shared/contract'
import { datasetsOf } from '../fabric/datasets.ts'
import { deriveFabric } from '../fabric/derive.ts'
import { routeOfSegment } from '../fabric/route.ts'
import type { ClusterModule } from './cluster-state.ts'
import { shardViews } from './collector.ts'

export function fabricView({ fabric, collector, deps }: ClusterModule): TopologyView {
  return deriveFabric({
    now: deps.clock.wallMs(),
    registry: collector.discovery.registry,
    components: [...fabric.components.values()],
    shards: shardViews(collector),
  })
}

export function fabricHandlers(module: ClusterModule): Handlers<typeof TOPOLOGY_ROUTES> {
  const { collector, fabric } = module
  return {
    'GET /api/v1/topology': () => fabricView(module),
    'GET /api/v1/topology/route': ({ query }) => routeOfSegment(fabric, query.segment, shardViews(collector)),
    'GET /api/v1/registry/datasets': ({ query }) => datasetsOf(collector.discovery.registry, query.filter, query.limit),
  }
}
