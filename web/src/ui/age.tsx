'use client'
import type { Freshness } from '@vacancy/shared/contract'
import clsx from 'clsx'
import { age, duration, isKnownTime, NONE, utc } from '../lib/format.ts'
import { useNow } from './clock.ts'
import * as copy from './copy.ts'

type AgeProps = {
  /** RFC 3339; null when never reported. */
  readonly at: string | null | undefined
  readonly suffix?: string
  readonly fresh?: Freshness
  /** Shown when there is no time at all. */
  readonly none?: string
  readonly className?: string
}

/** The age of a time, updated each second; the full UTC time is in the tooltip and read by screen readers. */
export function Age({ at, suffix = copy.age.suffix, fresh, none = copy.age.never, className }: AgeProps) {
  const now = useNow()
  if (!at || !isKnownTime(at)) return <span className={clsx('text-text-3', className)}>{none}</span>
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
      {text === 'now' ? copy.age.now : `${text}${suffix}`}
      <span className="sr-only">{`, ${utc(at)}`}</span>
    </time>
  )
}

/** The time since `from`, updated each second. */
export function Duration({ from }: { readonly from: string | null }) {
  const now = useNow()
  if (!from) return <span className="text-text-3">{NONE}</span>
  return <span className="tabular-nums">{duration(Math.max(0, now - Date.parse(from)))}</span>
}
