/** Probing of the whole cluster: follows its ways in, and answers what clients see. */
import { connect } from '@vacancy/client'
import type { Clock } from '@vacancy/shared'
import { type ControlModule, moduleOf } from '@vacancy/shared/api/route'
import { PROBE_ROUTES } from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import type { Cluster } from '../cluster/cluster.ts'
import type { ClientsSeen } from '../cluster/cluster-state.ts'
import { closeProbeClients, createProbeClients, forgetWay, type ProbeClients, probe } from './probe.ts'
import { clientsView, createProber, type Prober, setWays, startProber, stopProber } from './prober.ts'
import type { Outcome, ProbeResult } from './results.ts'
import { waysIn } from './ways.ts'

/** How often ways in are read from the cluster, and results summed up. */
const FOLLOW_MS = 2_000

export type Probes = {
  readonly cluster: Cluster
  readonly prober: Prober
  readonly clients: ProbeClients
  timer: NodeJS.Timeout | undefined
  view: ClientsSeen
}

type ProbesOptions = {
  /** 0: off. */
  readonly intervalMs: number
  readonly token: string | undefined
  readonly cluster: Cluster
  readonly clock: Clock
  readonly log: Log
  /** @param seconds to the answer; undefined: it failed */
  readonly onProbe: (request: 'search' | 'hold', seconds: number | undefined) => void
}

export function createProbes({ intervalMs, token, cluster, clock, log, onProbe }: ProbesOptions): Probes {
  const clients = createProbeClients({ connect, clock, token })
  const prober = createProber({
    ...{ intervalMs, clock, log, random: Math.random },
    probe: (way) => probe(clients, way, cluster.shard(way.shard)?.leader ?? undefined),
    forget: (way) => forgetWay(clients, way),
    onResult: (result) => report(result, onProbe),
  })
  return { cluster, prober, clients, timer: undefined, view: clientsView(prober) }
}

function report({ search, hold }: ProbeResult, onProbe: ProbesOptions['onProbe']): void {
  const each = (request: 'search' | 'hold', outcome: Outcome | undefined) => {
    if (outcome?.kind === 'answered') onProbe(request, outcome.ms / 1_000)
    else if (outcome?.kind === 'failed') onProbe(request, undefined)
  }
  each('search', search)
  each('hold', hold)
}

/** Takes over what is known of shards, edge routers and nodes now. */
function followWays(probes: Probes): void {
  const { cluster, prober } = probes
  const shards = cluster.shards().map(({ id }) => id)
  setWays(
    prober,
    waysIn({ shards, segmentOf: cluster.segmentOf, edges: cluster.entrances(), nodesOf: cluster.addresses }),
  )
  probes.view = clientsView(prober)
}

/** Shards by what clients see, for metrics. */
export function countClients({ view }: Probes): readonly (readonly [state: string, shards: number])[] {
  const { answered, partly, failing, unmeasured } = view.clients
  return Object.entries({ answered, partly, failing, unmeasured })
}

export function probesModule(probes: Probes): ControlModule {
  return moduleOf(
    'probes',
    PROBE_ROUTES,
    {
      'GET /api/v1/clients': () => ({ clients: probes.view.clients, shards: [...probes.view.shards] }),
    },
    {
      async start() {
        followWays(probes)
        startProber(probes.prober)
        probes.timer = setInterval(() => followWays(probes), FOLLOW_MS)
      },
      async stop() {
        clearInterval(probes.timer)
        stopProber(probes.prober)
        await closeProbeClients(probes.clients)
      },
    },
  )
}
