/** What clients see, as one state. Pure. */
import type { ClientsSummary, Level } from '@vacancy/shared/contract'
import * as copy from './clients-copy.ts'

/** The worst of it; what was not measured is not green. */
export function verdictOf({ state, failing, partly, unmeasured }: ClientsSummary): {
  readonly level: Level
  readonly badge: string
} {
  if (state === 'off') return { level: 'info', badge: copy.clients.off }
  if (state === 'waiting') return { level: 'unk', badge: copy.clients.waiting }
  if (failing > 0) return { level: 'crit', badge: copy.clients.failing(failing) }
  if (partly > 0) return { level: 'warn', badge: copy.clients.partly(partly) }
  if (unmeasured > 0) return { level: 'unk', badge: copy.clients.unmeasured(unmeasured) }
  return { level: 'ok', badge: copy.clients.answered }
}
