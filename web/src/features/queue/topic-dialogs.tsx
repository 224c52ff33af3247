'use client'
/** Changes of a whole topic that ask first: pause, resume, purge, delete, and deleting dead jobs. */
import type { TopicStats } from '@vacancy/shared/contract'
import { useState } from 'react'
import { call } from '../../lib/api.ts'
import { navigate } from '../../lib/navigate.ts'
import { routes } from '../../lib/routes.ts'
import { serverNow } from '../../lib/server-time.ts'
import { ConfirmDialog } from '../../ui/confirm-dialog.tsx'
import { Checkbox } from '../../ui/field.tsx'
import { toast } from '../../ui/toast.tsx'
import * as copy from './copy.ts'
import { type DeadSelection, selectionBody } from './dead-filter.ts'
import { DownloadDead } from './download-dead.tsx'
import { useDeadCount, useQueueChange } from './queries.ts'

type TopicProps = { readonly topic: TopicStats; readonly onClose: () => void }

export function PauseDialog({ topic: { topic, paused, ready, consumers }, onClose }: TopicProps) {
  // As it was when the dialog opened: the button must not change its meaning.
  const [isPaused] = useState(paused)
  const change = useQueueChange(() =>
    isPaused
      ? call('POST /api/v1/queue/topics/{topic}/resume', { params: { topic } })
      : call('POST /api/v1/queue/topics/{topic}/pause', { params: { topic } }),
  )
  return (
    <ConfirmDialog
      title={isPaused ? copy.pause.resumeTitle(topic) : copy.pause.title(topic)}
      action={isPaused ? copy.pause.resumeConfirm(topic) : copy.pause.confirm(topic)}
      level={1}
      name={topic}
      onClose={onClose}
      run={async () => {
        await change.mutateAsync(undefined)
        toast({ message: isPaused ? copy.pause.resumed(topic) : copy.pause.done(topic) })
      }}
    >
      <p className="prose">{isPaused ? copy.pause.resumeEffect(ready, consumers) : copy.pause.effect(consumers)}</p>
    </ConfirmDialog>
  )
}

const PURGED = ['ready', 'delayed', 'dead'] as const
type Purged = (typeof PURGED)[number]

export function PurgeDialog({ topic, onClose }: TopicProps) {
  const [states, setStates] = useState<readonly Purged[]>([])
  const purge = useQueueChange((reason: string) =>
    call('POST /api/v1/queue/topics/{topic}/purge', {
      params: { topic: topic.topic },
      body: { states: [...states], ...(reason !== '' && { reason }) },
    }),
  )
  const jobs = states.reduce((sum, state) => sum + topic[state], 0)
  return (
    <ConfirmDialog
      title={copy.purge.title(topic.topic)}
      action={copy.purge.confirm(topic.topic)}
      level={3}
      name={topic.topic}
      why={states.length === 0 ? copy.purge.choose : undefined}
      onClose={onClose}
      run={async (reason) => {
        const { removed } = await purge.mutateAsync(reason)
        toast({ message: copy.purge.done(removed) })
      }}
    >
      <fieldset>
        <legend className="pb-1 font-medium text-small text-text-2">{copy.purge.states}</legend>
        {PURGED.map((state) => (
          <Checkbox
            key={state}
            label={copy.purge.option(copy.jobStates[state], topic[state])}
            checked={states.includes(state)}
            onChange={({ target }) =>
              setStates(target.checked ? [...states, state] : states.filter((one) => one !== state))
            }
          />
        ))}
      </fieldset>
      <p className="prose">{states.length === 0 ? copy.purge.choose : copy.purge.effect(jobs)}</p>
      {topic.dead > 0 && states.includes('dead') && (
        <p className="flex flex-wrap items-center gap-2">
          {copy.purge.download} <DownloadDead topic={topic.topic} filter={{}} />
        </p>
      )}
    </ConfirmDialog>
  )
}

export function DeleteDialog({ topic: { topic, ready, delayed, leased, dead }, onClose }: TopicProps) {
  const unfinished = ready + delayed + leased
  const remove = useQueueChange((reason: string) =>
    call('DELETE /api/v1/queue/topics/{topic}', {
      params: { topic },
      // The dialog names the unfinished jobs that are deleted. Some may have arrived since.
      query: { force: '1', ...(reason !== '' && { reason }) },
    }),
  )
  return (
    <ConfirmDialog
      title={copy.remove.title(topic)}
      action={copy.remove.confirm(topic)}
      level={3}
      name={topic}
      onClose={onClose}
      run={async (reason) => {
        const { deletedJobs } = await remove.mutateAsync(reason)
        toast({ message: copy.remove.done(topic, deletedJobs) })
        navigate(routes.queue())
      }}
    >
      <p className="prose">{copy.remove.effect(unfinished, dead)}</p>
      {dead > 0 && (
        <p className="flex flex-wrap items-center gap-2">
          {copy.purge.download} <DownloadDead topic={topic} filter={{}} />
        </p>
      )}
    </ConfirmDialog>
  )
}

/** Jobs that one request deletes. */
const STEP = 10_000

type DeleteDeadProps = { readonly topic: string; readonly selection: DeadSelection; readonly onClose: () => void }

export function DeleteDeadDialog({ topic, selection, onClose }: DeleteDeadProps) {
  const filter = selection.kind === 'filter' ? selection.filter : undefined
  const counted = useDeadCount(topic, filter)
  const [until] = useState(() => new Date(serverNow()).toISOString())
  const remove = useQueueChange((reason: string) =>
    call('DELETE /api/v1/queue/topics/{topic}/dead', {
      params: { topic },
      body: { ...selectionBody(selection, until, STEP), ...(reason !== '' && { reason }) },
    }),
  )
  const jobs = selection.kind === 'ids' ? selection.ids.length : counted.data?.count
  const amount =
    jobs === undefined
      ? copy.redrive.counting
      : selection.kind === 'ids' || counted.data?.exact
        ? copy.common.jobs(jobs)
        : copy.redrive.atLeast(jobs)
  return (
    <ConfirmDialog
      title={copy.deleteDead.title(topic)}
      action={copy.deleteDead.confirm(amount)}
      level={3}
      name={topic}
      why={jobs === undefined ? copy.redrive.counting : jobs === 0 ? copy.redrive.nothing : undefined}
      onClose={onClose}
      run={async (reason) => {
        let sum = 0
        for (;;) {
          const { removed } = await remove.mutateAsync(reason)
          sum += removed
          if (selection.kind === 'ids' || removed < STEP) break
        }
        toast({ message: copy.deleteDead.done(sum) })
      }}
    >
      <p className="prose">{copy.deleteDead.effect(amount)}</p>
      {filter && (
        <p className="flex flex-wrap items-center gap-2">
          {copy.purge.download} <DownloadDead topic={topic} filter={filter} />
        </p>
      )}
    </ConfirmDialog>
  )
}
