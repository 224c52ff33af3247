'use client'
import { useMoment } from '../../lib/address.tsx'
import { clock, counted, duration } from '../../lib/format.ts'
import { type LiveStatus, lastSeenAt, pauseLive, resumeLive, retryLive, useLive } from '../../lib/live.ts'
import { navigate } from '../../lib/navigate.ts'
import { serverNow } from '../../lib/server-time.ts'
import { Age } from '../../ui/age.tsx'
import { Button } from '../../ui/button.tsx'
import { useRecordedFrom } from '../past/queries.ts'
import * as copy from './live-panel-copy.ts'

/** Ages of the sources, sources without response, and actions. */
type LivePanelProps = { readonly status: LiveStatus; readonly title: string; readonly onClose: () => void }

export default function LivePanel({ status, title, onClose }: LivePanelProps) {
  const moment = useMoment()
  const summary = useLive('summary').data
  const seenAt = lastSeenAt()
  return (
    <div className="flex flex-col gap-3">
      <h2 className="text-section">{title}</h2>
      <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1">
        <dt className="text-text-2">{copy.livePanel.controlPlane}</dt>
        <dd>{seenAt > 0 ? <Age at={new Date(seenAt).toISOString()} /> : copy.livePanel.noMessage}</dd>
        <dt className="text-text-2">{copy.livePanel.cluster}</dt>
        <dd>{summary ? <Age at={summary.oldestReadAt ?? summary.at} /> : copy.livePanel.notLoaded}</dd>
        {summary && (
          <>
            <dt className="text-text-2">{copy.livePanel.responding}</dt>
            <dd>{copy.livePanel.respondingOf(summary.counts.nodesAnswering, counted(summary.counts.nodes, 'node'))}</dd>
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
            {copy.livePanel.resume}
          </Button>
        ) : (
          <Button icon="pause" onClick={pauseLive}>
            {copy.livePanel.pause}
          </Button>
        )}
        <Button icon="refresh" onClick={retryLive}>
          {copy.livePanel.reconnect}
        </Button>
        {moment === undefined && <PastButton onClose={onClose} />}
      </div>
      <p className="text-small text-text-3">{copy.livePanel.hint}</p>
      {status.link.state === 'offline' && (
        <p className="text-small text-text-2">
          {copy.livePanel.disconnectedFor(duration(serverNow() - status.link.since))}
        </p>
      )}
    </div>
  )
}

/** Opens the page a few minutes ago, as far as that was recorded. */
function PastButton({ onClose }: { readonly onClose: () => void }) {
  const { data, error } = useRecordedFrom()
  const start = data?.recordedFrom ?? undefined
  const why = data ? copy.livePanel.nothingRecorded : (error?.message ?? copy.livePanel.pastLoading)
  return (
    <>
      <Button
        icon="clock"
        why={start === undefined ? why : undefined}
        onClick={() => {
          // The panel would cover the bar of the past.
          onClose()
          navigate(`${location.pathname}?at=${start}`)
        }}
      >
        {copy.livePanel.past}
      </Button>
      {start !== undefined && start !== data?.from && (
        <p className="basis-full text-small text-text-2">{copy.livePanel.recordedFrom(clock(start))}</p>
      )}
    </>
  )
}
