'use client'
import type { Freshness } from '@vacancy/shared/contract'
import clsx from 'clsx'
import { age, duration, isTold, NONE, utc } from '../lib/format.ts'
import { useNow } from './clock.ts'

type AgeProps = {
  /** RFC 3339; null was never told. */
  readonly at: string | null | undefined
  readonly suffix?: string
  readonly fresh?: Freshness
  /** Said when there is no time at all. */
  readonly none?: string
  readonly className?: string
}

/** How long ago, counting on; the whole time in UTC in the tooltip and for screen readers. */
export function Age({ at, suffix = ' ago', fresh, none = 'never', className }: AgeProps) {
  const now = useNow()
  if (!at || !isTold(at)) return <span className={clsx('text-text-3', className)}>{none}</span>
  const text = age(now - Date.parse(at))
  return (
    <time
      dateTime={at}
      data-tip={utc(at)}
      className={clsx(
        'whitespace-nowrap tabular-nums',
        fresh === 'delayed' ? 'text-warn' : fresh === 'gone' ? 'text-crit' : 'text-text-3',
        className,
      )}
    >
      {text === 'now' ? 'now' : `${text}${suffix}`}
      <span className="sr-only">{`, ${utc(at)}`}</span>
    </time>
  )
}

/** How long something has gone on, counting. */
export function Duration({ from, to }: { readonly from: string | null; readonly to?: string | null }) {
  const now = useNow()
  if (!from) return <span className="text-text-3">{NONE}</span>
  return <span className="tabular-nums">{duration(Math.max(0, (to ? Date.parse(to) : now) - Date.parse(from)))}</span>
}
