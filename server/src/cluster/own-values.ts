/** Figures of the control plane itself, for the metrics of the cluster. */
import type { Values } from '../history/series.ts'
import { liveCounts } from '../live/live.ts'
import type { ClusterModule } from './cluster-state.ts'
import { collectorCounts } from './collector.ts'

type Totals = {
  readonly at: number
  readonly requests: number
  readonly failures: number
  readonly frames: number
  readonly bytes: number
}

/** @returns reads the figures; rates are those since the read before */
export function ownValues({ collector, deps }: ClusterModule): () => Values {
  let before: Totals | undefined
  return () => {
    const { requests, failures, roundMs } = collectorCounts(collector)
    const { clients, frames, bytes } = liveCounts(deps.live)
    const now: Totals = { at: deps.clock.monotonicMs(), requests, failures, frames, bytes }
    const last = before
    before = now
    const rate = (name: 'requests' | 'failures' | 'frames' | 'bytes') =>
      last && now.at > last.at ? ((now[name] - last[name]) / (now.at - last.at)) * 1_000 : null
    return {
      control_polls: rate('requests'),
      control_failures: rate('failures'),
      control_round: roundMs,
      control_clients: clients,
      control_frames: rate('frames'),
      control_bytes: rate('bytes'),
      control_memory: process.memoryUsage.rss(),
    }
  }
}
