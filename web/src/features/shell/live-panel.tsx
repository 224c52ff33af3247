'use client'
import { counted, duration } from '../../lib/format.ts'
import { type LiveStatus, lastSeenAt, pauseLive, resumeLive, retryLive, useLive } from '../../lib/live.ts'
import { Age } from '../../ui/age.tsx'
import { Button } from '../../ui/button.tsx'

/** Who was heard when, who is silent, and what can be done about it. */
export default function LivePanel({ status, says }: { readonly status: LiveStatus; readonly says: string }) {
  const summary = useLive('summary').data
  const heard = lastSeenAt()
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
