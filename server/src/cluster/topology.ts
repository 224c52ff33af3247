/** Handlers of the routes of the topology. */

import type { Handlers } from '@vacancy/shared/api/route'
import type { RouteAnswer, TOPOLOGY_ROUTES, TopologyView } from '@vacancy/shared/contract'
import { datasetsOf } from '../fabric/datasets.ts'
import { cutsWithout, deriveFabric, type FabricInput } from '../fabric/derive.ts'
import { routeOfSegment } from '../fabric/route.ts'
import type { ClusterModule } from './cluster-state.ts'
import { shardViews } from './collector.ts'
import { failureMatrix } from './impact.ts'

export function fabricView(module: ClusterModule): TopologyView {
  return deriveFabric(fabricInput(module))
}

function fabricInput({ fabric, collector, deps }: ClusterModule): FabricInput {
  return {
    now: deps.clock.wallMs(),
    registry: collector.discovery.registry,
    components: [...fabric.components.values()],
    shards: shardViews(collector),
  }
}

/** What the loss of each place stops, by the present state. */
function failures(module: ClusterModule): RouteAnswer<'GET /api/v1/failures'> {
  const shards = shardViews(module.collector)
  const input = fabricInput(module)
  return failureMatrix(shards, deriveFabric(input).components, (goes) => cutsWithout(input, goes))
}

export function fabricHandlers(module: ClusterModule): Handlers<typeof TOPOLOGY_ROUTES> {
  const { collector, fabric } = module
  return {
    'GET /api/v1/failures': () => failures(module),
    'GET /api/v1/topology': () => fabricView(module),
    'GET /api/v1/topology/route': ({ query }) => routeOfSegment(fabric, query.segment, shardViews(collector)),
    'GET /api/v1/registry/datasets': ({ query }) => datasetsOf(collector.discovery.registry, query.filter, query.limit),
  }
}
