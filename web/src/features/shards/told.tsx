/**
 * A value that a node told: as old as it is, and a dash when it was not told (docs/design/control-plane.md#collector).
 */

import type { Freshness } from '@vacancy/shared/contract'
import clsx from 'clsx'
import type { ReactNode } from 'react'
import { NONE } from '../../lib/format.ts'

type ToldProps = {
  /** Who would tell it. */
  readonly by: string
  readonly freshness: Freshness
  /** Null and undefined were not told. */
  readonly value: unknown
  readonly children: ReactNode
}

export function Told({ by, freshness, value, children }: ToldProps) {
  if (value === null || value === undefined) {
    return (
      <span className="text-text-3" data-tip={`${by} does not report this`}>
        {NONE}
        <span className="sr-only">{`, ${by} does not report this`}</span>
      </span>
    )
  }
  const isOld = freshness === 'gone' || freshness === 'never'
  return (
    <span className={clsx(isOld && 'text-text-3 line-through decoration-line-strong decoration-1')}>
      {children}
      {isOld && <span className="sr-only">, as it was when last seen</span>}
    </span>
  )
}
