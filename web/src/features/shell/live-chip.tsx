'use client'
import clsx from 'clsx'
import { Suspense } from 'react'
import { Icon, type IconName } from '../../icons/icon.tsx'
import { useMoment } from '../../lib/address.tsx'
import { useKey } from '../../lib/keys.ts'
import { lastSeenAt, pauseLive, resumeLive, useLiveStatus } from '../../lib/live.ts'
import { useWallNow } from '../../ui/clock.ts'
import { late } from '../../ui/late.tsx'
import { Popover } from '../../ui/popover.tsx'
import * as copy from './copy.ts'
import { chipOf, type LiveState } from './live-state.ts'

const LivePanel = late(async () => (await import('./live-panel.tsx')).default)

const STYLES: Record<LiveState, { readonly icon: IconName; readonly colour: string }> = {
  live: { icon: 'dot', colour: 'text-ok' },
  delayed: { icon: 'clock', colour: 'text-warn' },
  stale: { icon: 'hourglass', colour: 'text-crit' },
  offline: { icon: 'plug-off', colour: 'text-crit' },
  paused: { icon: 'pause', colour: 'text-info' },
  polling: { icon: 'refresh', colour: 'text-info' },
  past: { icon: 'clock', colour: 'text-info' },
}

const PAST = { state: 'past', text: copy.live.past } as const

/** The freshness of the page; it opens details about sources. */
export function LiveChip() {
  const status = useLiveStatus()
  const now = useWallNow()
  const moment = useMoment()
  const { state, text } = moment === undefined ? chipOf(status, lastSeenAt(), now) : PAST
  const style = STYLES[state]
  useKey('p', () => (status.paused ? resumeLive() : pauseLive()), copy.keys.pause)
  return (
    <Popover
      label={copy.live.title}
      trigger={(wire) => (
        <button
          type="button"
          {...wire}
          data-live={state}
          className="inline-flex h-control min-w-6 items-center gap-1.5 whitespace-nowrap rounded-control px-2 text-small text-text-2 tabular-nums hover:bg-sunken sm:min-w-27"
        >
          <Icon name={style.icon} size={14} className={style.colour} />
          <span className={clsx((state === 'live' || state === 'polling') && 'max-sm:sr-only')}>{text}</span>
        </button>
      )}
    >
      {(close) => (
        <Suspense fallback={null}>
          <LivePanel status={status} title={text} onClose={close} />
        </Suspense>
      )}
    </Popover>
  )
}
