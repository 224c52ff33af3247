/** What a shard loses when its data are replaced. Pure. */
import { groupDigits, parseDay } from '@vacancy/shared'
import type { PlanCheck } from '@vacancy/shared/contract'

/** Data of a shard or snapshot. `segments` is undefined where only the totals are known. */
export type Held = {
  readonly packages: number
  readonly properties: number
  readonly segments: readonly string[] | undefined
  readonly window: { readonly from: string; readonly to: string } | null
}

/** Shares of packages or properties that are named, and that need the name of the shard in every environment. */
const SHARES = { named: 0.05, heavy: 0.5 } as const
const SEGMENTS_NAMED = 5

/** @param recorded stays of the shard, and how many of them are on hold */
export function lossChecks(
  live: Held,
  next: Held,
  recorded: { readonly stays: number; readonly held: number },
): { readonly checks: PlanCheck[]; readonly isHeavy: boolean } {
  const gone = (live.segments ?? []).filter((name) => next.segments !== undefined && !next.segments.includes(name))
  const nights = nightsLost(live.window, next.window)
  const shares = [shareLost(live.packages, next.packages), shareLost(live.properties, next.properties)]
  const worst = Math.max(...shares)
  const isHeavy = worst > SHARES.heavy || (gone.length > 0 && gone.length * 2 >= (live.segments?.length ?? 0))
  const losses = [
    amount(live.packages, next.packages, 'packages'),
    amount(live.properties, next.properties, 'properties'),
    ...(gone.length > 0 ? [`${gone.length} of ${live.segments?.length} segments (${named(gone)})`] : []),
    ...(nights > 0 ? [`the last ${nights} ${nights === 1 ? 'night' : 'nights'}`] : []),
  ].filter((text) => text !== '')
  const now = `${groupDigits(live.packages)} packages of ${groupDigits(live.properties)} properties`
  const after = `${groupDigits(next.packages)} of ${groupDigits(next.properties)}`
  const isNamed = worst > SHARES.named || gone.length > 0 || nights > 0
  const loss: PlanCheck =
    losses.length === 0
      ? {
          id: 'loss',
          level: 'info',
          text: `has no less data: ${now} now, ${after} afterwards. Whether they are the same properties is not compared`,
        }
      : {
          id: 'loss',
          level: isNamed ? 'warn' : 'info',
          text: `removes ${losses.join(', ')}: ${now} now, ${after} afterwards`,
        }
  const stays: PlanCheck[] =
    recorded.stays > 0 && live.properties > 0 && (shares[1] as number) > 0
      ? [
          {
            id: 'stays',
            level: 'warn',
            text: `${groupDigits(recorded.stays)} stays are recorded, ${groupDigits(recorded.held)} of them on hold: those of removed properties have no rooms any more`,
          },
        ]
      : []
  return { checks: [loss, ...stays], isHeavy }
}

const shareLost = (live: number, next: number) => (live === 0 ? 0 : Math.max(0, (live - next) / live))

function amount(live: number, next: number, what: string): string {
  if (next >= live) return ''
  return `${groupDigits(live - next)} of ${groupDigits(live)} ${what} (${percentOf(shareLost(live, next))})`
}

/** "3 %"; what is not all is never 100 %. */
function percentOf(share: number): string {
  if (share === 1) return 'all'
  return share < 0.01 ? 'under 1 %' : `${Math.min(99, Math.round(share * 100))} %`
}

function named(names: readonly string[]): string {
  const more = names.length - SEGMENTS_NAMED
  return `${names.slice(0, SEGMENTS_NAMED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

/** Nights at the end of the live window that the other one does not reach. */
function nightsLost(live: Held['window'], next: Held['window']): number {
  const [first, last] = [parseDay(live?.from ?? ''), parseDay(live?.to ?? '')]
  if (first === undefined || last === undefined) return 0
  return Math.max(0, last - Math.max(first - 1, parseDay(next?.to ?? '') ?? first - 1))
}
