import type { GoldenOutcome } from '@vacancy/shared/contract'
import { Badge } from '../../ui/badge.tsx'
import * as copy from './copy.ts'

const LEVELS = { passed: 'ok', slow: 'warn', failed: 'crit' } as const

/** Whether a golden search passes, and what it finds. */
export function Verdict({ outcome }: { readonly outcome: Pick<GoldenOutcome, 'verdict' | 'message'> }) {
  const { verdict, message } = outcome
  return (
    <span data-verdict={verdict} className="flex min-w-0 flex-wrap items-baseline gap-x-2">
      <Badge level={LEVELS[verdict]}>{copy.verdicts[verdict]}</Badge>
      <span className="min-w-0 break-words">{message}</span>
    </span>
  )
}
