import type { Level, NodeState, ShardState } from '@vacancy/shared/contract'
import type { IconName } from '../icons/icon.tsx'
import { Badge } from './badge.tsx'

/**
 * An icon for each state (docs/design/control-plane.md#node-state, docs/design/control-plane.md#shard-state), so that
 * states differ without colour.
 */
export const STATE_ICONS: Record<NodeState | ShardState, IconName> = {
  unreachable: 'plug-off',
  'not-answering': 'hourglass',
  'cores-changed': 'chip',
  unavailable: 'octagon',
  'conflicting-leader': 'two-keys',
  'different-data': 'not-equal',
  'far-behind': 'double-down',
  behind: 'down',
  'catching-up': 'up-right',
  healthy: 'check',
  unknown: 'question',
  forming: 'clock',
  'quorum-lost': 'stop',
  'no-leader': 'octagon',
  electing: 'vote',
  disagree: 'two-keys',
  'cut-off': 'plug-off',
  degraded: 'minus',
  'degraded-last': 'triangle',
  attention: 'down',
  standalone: 'square',
}

type StateProps = { readonly state: NodeState | ShardState; readonly level: Level }

/** The state as colour, icon and text. */
export function StateBadge({ state, level, label }: StateProps & { readonly label: string }) {
  return (
    <Badge level={level} icon={STATE_ICONS[state]}>
      {label}
    </Badge>
  )
}
