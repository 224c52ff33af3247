'use client'
import clsx from 'clsx'
import { Icon, type IconName } from '../../icons/icon.tsx'
import { counted, duration } from '../../lib/format.ts'
import { useKey } from '../../lib/keys.ts'
import {
  type LiveStatus,
  lastHeardAt,
  pauseLive,
  resumeLive,
  retryLive,
  useLive,
  useLiveStatus,
} from '../../lib/live.ts'
import { Age } from '../../ui/age.tsx'
import { Button } from '../../ui/button.tsx'
import { useNow } from '../../ui/clock.ts'
import { Popover } from '../../ui/popover.tsx'
import { chipOf, type LiveState } from './live-state.ts'

const LOOKS: Record<LiveState, { readonly icon: IconName; readonly colour: string }> = {
  live: { icon: 'dot', colour: 'text-ok' },
  delayed: { icon: 'clock', colour: 'text-warn' },
  stale: { icon: 'hourglass', colour: 'text-crit' },
  offline: { icon: 'plug-off', colour: 'text-crit' },
  paused: { icon: 'pause', colour: 'text-info' },
  polling: { icon: 'refresh', colour: 'text-info' },
}

/** How fresh everything on the screen is; what it opens says who was heard when. */
export function LiveChip() {
  const status = useLiveStatus()
  const now = useNow()
  const { state, says } = chipOf(status, lastHeardAt(), now)
  const look = LOOKS[state]
  useKey('p', () => (status.paused ? resumeLive() : pauseLive()), 'Pause or resume live values')
  return (
    <Popover
      label="Live values"
      trigger={(wire) => (
        <button
          type="button"
          {...wire}
          data-live={state}
          className="inline-flex h-control min-w-6 items-center gap-1.5 whitespace-nowrap rounded-control px-2 text-small text-text-2 tabular-nums hover:bg-sunken"
        >
          <Icon name={look.icon} size={14} className={look.colour} />
          <span className={clsx((state === 'live' || state === 'polling') && 'max-sm:sr-only')}>{says}</span>
        </button>
      )}
    >
      <LivePanel status={status} says={says} />
    </Popover>
  )
}

function LivePanel({ status, says }: { status: LiveStatus; says: string }) {
  const summary = useLive('summary').data
  const heard = lastHeardAt()
  return (
    <div className="flex flex-col gap-3">
      <h2 className="text-section">{says}</h2>
      <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1">
        <dt className="text-text-2">Control plane</dt>
        <dd>{heard > 0 ? <Age at={new Date(heard).toISOString()} suffix=" ago, heard" /> : 'not heard yet'}</dd>
        <dt className="text-text-2">Picture of the cluster</dt>
        <dd>{summary ? <Age at={summary.at} /> : 'not read yet'}</dd>
        {summary && (
          <>
            <dt className="text-text-2">Nodes that answer</dt>
            <dd>
              {summary.counts.nodesAnswering} of {counted(summary.counts.nodes, 'node')}
            </dd>
          </>
        )}
      </dl>
      {summary && summary.missing.length > 0 && (
        <ul className="flex flex-col gap-1 text-small">
          {summary.missing.map((one) => (
            <li key={`${one.source} ${one.code}`} className="break-words">
              <span className="font-mono">{one.source}</span> <span className="text-text-2">{one.message}</span>{' '}
              <Age at={one.since} suffix="" />
            </li>
          ))}
        </ul>
      )}
      <div className="flex flex-wrap gap-2">
        {status.paused ? (
          <Button kind="primary" icon="play" onClick={resumeLive}>
            Resume
          </Button>
        ) : (
          <Button icon="pause" onClick={pauseLive}>
            Pause
          </Button>
        )}
        <Button icon="refresh" onClick={retryLive}>
          Reconnect
        </Button>
      </div>
      <p className="text-small text-text-3">
        Ages count from when a value was told, by the clock of this browser. A pause stops the drawing; values are
        collected on.
      </p>
      {status.link.state === 'offline' && (
        <p className="text-small text-text-2">Disconnected for {duration(Date.now() - status.link.since)}.</p>
      )}
    </div>
  )
}
