/** The state of an operation as colour, icon and label. */

import type { Operation } from '@vacancy/shared/contract'
import type { IconName } from '../../icons/icon.tsx'
import { Badge } from '../../ui/badge.tsx'
import { STATE_LEVELS } from './operation-view.ts'
import * as copy from './tray-copy.ts'

const STATE_ICONS: Record<Operation['state'], IconName> = {
  armed: 'hourglass',
  requested: 'clock',
  accepted: 'clock',
  verifying: 'clock',
  done: 'check',
  elsewhere: 'up-right',
  'no-change': 'minus',
  refused: 'stop',
  stopped: 'triangle',
  unconfirmed: 'question',
  cancelled: 'cross',
}

export function OperationStateBadge({ operation }: { readonly operation: Operation }) {
  const { state } = operation
  return (
    <Badge level={STATE_LEVELS[state]} icon={STATE_ICONS[state]}>
      {copy.states[state]}
    </Badge>
  )
}
