/** The state of an operation in colour, shape and word. */

import type { Operation } from '@vacancy/shared/contract'
import type { IconName } from '../../icons/icon.tsx'
import { Badge } from '../../ui/badge.tsx'
import { OPERATION_WORDS } from './operation-view.ts'

const STATE_ICONS: Record<Operation['state'], IconName> = {
  armed: 'hourglass',
  requested: 'clock',
  accepted: 'clock',
  verifying: 'clock',
  done: 'check',
  elsewhere: 'up-right',
  'no-change': 'minus',
  refused: 'stop',
  unconfirmed: 'question',
  cancelled: 'cross',
}

export function OperationStateBadge({ operation }: { readonly operation: Operation }) {
  const words = OPERATION_WORDS[operation.state]
  return (
    <Badge level={words.level} icon={STATE_ICONS[operation.state]}>
      {words.word}
    </Badge>
  )
}
