/** What golden searches say in the plan of an install. Pure. */
import { GOLDEN_LIMITS, type GoldenCheck, type GoldenResult, type PlanCheck } from '@vacancy/shared/contract'
import type { GoldenOfPlan } from '../imports/install.ts'

const ID = 'golden'

/** @param isElsewhere they run on another snapshot now, and those of this one follow */
export function goldenPlan(check: GoldenCheck, isElsewhere: boolean): GoldenOfPlan {
  const { state, results } = check
  switch (state) {
    case 'none':
      return { checks: [], isGrave: false, found: '' }
    case 'running':
      return waiting(`golden searches are being run on this snapshot: ${check.done} of ${check.of}`)
    case 'due':
      if (isElsewhere) return waiting('golden searches are being run on another snapshot first')
      return unknown(`${check.of} golden searches were not run on this snapshot: a plan of an admin runs them`)
    case 'not-run':
      return unknown(`golden searches were not run: ${check.message}`)
    case 'done':
      return judged(results)
  }
}

function waiting(text: string): GoldenOfPlan {
  return { checks: [{ id: ID, level: 'block', text }], isGrave: false, found: '' }
}

function unknown(text: string): GoldenOfPlan {
  return { checks: [{ id: ID, level: 'warn', text }], isGrave: true, found: 'unknown' }
}

function judged(results: readonly GoldenResult[]): GoldenOfPlan {
  const failed = results.filter(({ verdict }) => verdict === 'failed')
  const slow = results.filter(({ verdict }) => verdict === 'slow')
  const isOne = results.length === 1
  const first: PlanCheck =
    failed.length > 0
      ? { id: ID, level: 'warn', text: `${failed.length} of ${results.length} golden searches lose their results` }
      : slow.length > 0
        ? {
            id: ID,
            level: 'warn',
            text: `${slow.length} of ${results.length} golden searches are slower than expected`,
          }
        : {
            id: ID,
            level: 'ok',
            text: isOne ? 'the golden search passes' : `all ${results.length} golden searches pass`,
          }
  const named = [...failed, ...slow].slice(0, GOLDEN_LIMITS.namedMax)
  const more = failed.length + slow.length - named.length
  return {
    checks: [
      first,
      ...named.map(
        ({ id, name, message }): PlanCheck => ({ id: `${ID}-${id}`, level: 'warn', text: `${name}: ${message}` }),
      ),
      ...(more > 0
        ? [{ id: `${ID}-more`, level: 'warn' as const, text: `${more} more golden searches do not pass` }]
        : []),
    ],
    isGrave: failed.length > 0,
    found: failed.map(({ id }) => id).join(),
  }
}
