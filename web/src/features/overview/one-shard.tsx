'use client'
/** What a cluster of one shard has left: voters, memory, connections, disk, and what comes next. */

import type { NodeView, ShardBrief, ShardView } from '@vacancy/shared/contract'
import { bytes, clock, count, day, duration, NONE, percent } from '../../lib/format.ts'
import { useLive } from '../../lib/live.ts'
import { routes } from '../../lib/routes.ts'
import { Age } from '../../ui/age.tsx'
import { LinkButton } from '../../ui/button.tsx'
import { useNow } from '../../ui/clock.ts'
import { FactTiles } from '../../ui/facts.tsx'
import { Panel } from '../../ui/panel.tsx'
import { useShardConfig } from '../shards/queries.ts'
import * as copy from './copy.ts'
import { KeyRack } from './key-rack.tsx'
import { daysLeft, nextMaintenance } from './maintenance.ts'

export function OneShard({ brief }: { readonly brief: ShardBrief }) {
  const shard = useLive(`shard:${brief.id}`).data
  return (
    <Panel
      title={copy.oneShard.title(brief.id)}
      actions={<LinkButton href={routes.shard(brief.id)}>{copy.oneShard.open(brief.id)}</LinkButton>}
    >
      <div className="grid gap-4">
        <KeyRack shards={[brief]} />
        <Headroom brief={brief} nodes={shard?.nodes ?? []} shard={shard} />
      </div>
    </Panel>
  )
}

type HeadroomProps = {
  readonly brief: ShardBrief
  readonly nodes: readonly NodeView[]
  readonly shard: ShardView | undefined
}

function Headroom({ brief, nodes, shard }: HeadroomProps) {
  const now = useNow()
  const config = useShardConfig(brief.id).data
  const hour = config?.keys.find(({ key }) => key === 'maintenance_hour')?.values.find((value) => value !== null)?.value
  const maintenance = nextMaintenance(hour, now)
  const memory = extreme(nodes, (node) => node.memory?.share ?? null, 1)
  const connections = extreme(
    nodes,
    ({ connections: open, connectionsLimit: limit }) =>
      open === null || limit === null || limit === 0 ? null : open / limit,
    1,
  )
  const disk = extreme(nodes, (node) => node.disk?.freeBytes ?? null, -1)
  return (
    <FactTiles
      facts={[
        ...(brief.mode === 'clustered' && brief.spare !== null
          ? [[copy.oneShard.spare, copy.oneShard.spareOf(Math.max(0, brief.spare), brief.voters)] as const]
          : []),
        [copy.oneShard.memory, memory ? copy.oneShard.of(memory.id, percent(memory.memory?.share)) : NONE],
        [
          copy.oneShard.connections,
          connections
            ? copy.oneShard.of(
                connections.id,
                copy.oneShard.connectionsOf(count(connections.connections), count(connections.connectionsLimit)),
              )
            : NONE,
        ],
        [copy.oneShard.disk, disk ? copy.oneShard.of(disk.id, bytes(disk.disk?.freeBytes)) : NONE],
        [copy.oneShard.snapshot, <Age key="snapshot" at={shard?.snapshotAt ?? brief.snapshotAt} />],
        [
          copy.oneShard.maintenance,
          maintenance === undefined
            ? copy.oneShard.noMaintenance
            : copy.oneShard.maintenanceAt(
                clock(new Date(maintenance).toISOString()).slice(0, 5),
                duration(Math.ceil((maintenance - now) / 60_000) * 60_000),
              ),
        ],
        [
          copy.oneShard.window,
          brief.window ? copy.oneShard.windowLeft(day(brief.window.to), daysLeft(brief.window.to, now)) : NONE,
        ],
      ]}
    />
  )
}

/** The node with the highest value, or the lowest for direction -1; undefined when none reports it. */
function extreme(
  nodes: readonly NodeView[],
  read: (node: NodeView) => number | null,
  direction: 1 | -1,
): NodeView | undefined {
  const [first] = nodes
    .filter((node) => (node.freshness === 'live' || node.freshness === 'delayed') && read(node) !== null)
    .toSorted((a, b) => direction * ((read(b) ?? 0) - (read(a) ?? 0)))
  return first
}
