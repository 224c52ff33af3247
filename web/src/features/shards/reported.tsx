/**
 * A value that a node reports: struck through when outdated, a dash when missing (docs/design/control-plane.md#collector).
 */

import type { Freshness } from '@vacancy/shared/contract'
import clsx from 'clsx'
import type { ReactNode } from 'react'
import { NONE } from '../../lib/format.ts'
import * as copy from './copy.ts'

type ReportedProps = {
  /** The node that reports it. */
  readonly by: string
  readonly freshness: Freshness
  /** Null and undefined are missing. */
  readonly value: unknown
  readonly children: ReactNode
}

export function Reported({ by, freshness, value, children }: ReportedProps) {
  if (value === null || value === undefined) {
    return (
      <span className="text-text-3" data-tip={copy.common.notReportedBy(by)}>
        {NONE}
        <span className="sr-only">{`, ${copy.common.notReportedBy(by)}`}</span>
      </span>
    )
  }
  const isOld = freshness === 'gone' || freshness === 'never'
  return (
    <span className={clsx(isOld && 'text-text-3 line-through decoration-line-strong decoration-1')}>
      {children}
      {isOld && <span className="sr-only">{copy.common.lastKnown}</span>}
    </span>
  )
}
