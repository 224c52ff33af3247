'use client'
/** The redrive at a rate of a topic: progress, pause and cancel. It runs in the queue, whether or not it is looked at. */
import type { RedriveState, RedriveView } from '@vacancy/shared/contract'
import { call } from '../../lib/api.ts'
import { useWhyNot } from '../../lib/session.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { useNow } from '../../ui/clock.ts'
import { Failed } from '../../ui/confirm-dialog.tsx'
import { Panel } from '../../ui/panel.tsx'
import { Progress } from '../../ui/progress.tsx'
import * as copy from './copy.ts'
import { useQueueChange, useRedrive } from './queries.ts'

const LEVELS = { running: 'info', paused: 'warn', cancelled: 'unk', done: 'ok' } as const
/** One that has ended is shown for so long. */
const SHOWN_MS = 600_000

export function RedriveStrip({ topic }: { readonly topic: string }) {
  const redrive = useRedrive(topic).data?.redrive
  const now = useNow()
  if (!redrive || (redrive.endedAt !== null && now - Date.parse(redrive.endedAt) > SHOWN_MS)) return null
  return (
    <Panel
      title={copy.running.title(topic)}
      data={{ 'data-redrive-state': redrive.state }}
      actions={
        <>
          <Badge level={LEVELS[redrive.state]}>{copy.running.states[redrive.state]}</Badge>
          {redrive.endedAt === null && <Actions redrive={redrive} />}
        </>
      }
    >
      <Shown redrive={redrive} />
    </Panel>
  )
}

function Shown({ redrive }: { readonly redrive: RedriveView }) {
  const { topic, to, by, ratePerSec, total, left, reason, conflicts, state } = redrive
  const stayed = state === 'done' ? conflicts.length : left
  return (
    <div className="flex flex-col gap-2">
      <p className="break-words text-small text-text-2">{copy.running.facts(ratePerSec, to ?? topic, by)}</p>
      <Progress
        label={copy.running.title(topic)}
        hideLabel
        value={total - left}
        max={total}
        valueText={copy.running.progress(total - left, total)}
      />
      {reason !== '' && <p className="text-warn">{copy.running.pausedBecause(reason)}</p>}
      {redrive.endedAt !== null && stayed > 0 && <p>{copy.running.left(stayed)}</p>}
      {conflicts.length > 0 && (
        <details>
          <summary className="w-fit underline underline-offset-2">
            {copy.redrive.conflicts(conflicts.length, to ?? topic)}
          </summary>
          <ul className="max-h-40 overflow-y-auto pt-1 font-mono text-table">
            {conflicts.map((id) => (
              <li key={id} className="break-all">
                {id}
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  )
}

function Actions({ redrive: { topic, state } }: { readonly redrive: RedriveView }) {
  const why = useWhyNot('operator')
  const change = useQueueChange((next: RedriveState) => {
    const input = { params: { topic } }
    if (next === 'cancelled') return call('POST /api/v1/queue/topics/{topic}/redrive/cancel', input)
    return next === 'paused'
      ? call('POST /api/v1/queue/topics/{topic}/redrive/pause', input)
      : call('POST /api/v1/queue/topics/{topic}/redrive/resume', input)
  })
  const isRunning = state === 'running'
  return (
    <>
      <Button
        icon={isRunning ? 'pause' : 'play'}
        why={why}
        busy={change.isPending}
        onClick={() => change.mutate(isRunning ? 'paused' : 'running')}
      >
        {isRunning ? copy.running.pause : copy.running.resume}
      </Button>
      <Button
        icon="cross"
        why={why}
        busy={change.isPending}
        data-tip={why ?? copy.running.cancelHint}
        onClick={() => change.mutate('cancelled')}
      >
        {copy.running.cancel}
      </Button>
      {change.error && <Failed error={change.error} />}
    </>
  )
}
