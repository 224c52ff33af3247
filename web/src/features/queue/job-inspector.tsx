'use client'
/** A job beside the list it was opened from; j and k go to the next and the previous one. */
import { useEffect, useId, useRef } from 'react'
import { useKey } from '../../lib/keys.ts'
import { ApiProblem } from '../../lib/problem.ts'
import { routes } from '../../lib/routes.ts'
import { IconButton } from '../../ui/icon-button.tsx'
import { Link } from '../../ui/link.tsx'
import { ErrorState, Skeleton } from '../../ui/panel.tsx'
import * as copy from './copy.ts'
import { JobDetails, UnknownJob } from './job-details.tsx'
import { useJob } from './queries.ts'

type InspectorProps = {
  readonly topic: string
  readonly id: string
  /** Ids of the list, in its order. */
  readonly ids: readonly string[]
  readonly onOpen: (id: string) => void
  readonly onClose: () => void
}

export function JobInspector({ topic, id, ids, onOpen, onClose }: InspectorProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  const label = useId()
  const query = useJob(topic, id)
  const at = ids.indexOf(id)
  const [previous, next] = [at > 0 ? ids[at - 1] : undefined, at >= 0 ? ids[at + 1] : ids[0]]
  // Each job that is opened takes the focus, so that it is read and the keys below work.
  useEffect(() => heading.current?.focus(), [id])
  useKey('j', () => next !== undefined && onOpen(next), copy.job.next)
  useKey('k', () => previous !== undefined && onOpen(previous), copy.job.previous)
  useKey('Escape', onClose, copy.job.close)
  const isUnknown = query.error instanceof ApiProblem && query.error.status === 404
  return (
    <section
      aria-labelledby={label}
      data-inspector={id}
      className="flex min-w-0 flex-col gap-3 self-start rounded-panel border border-line bg-surface p-4"
    >
      <div className="flex items-start gap-1">
        <h2
          ref={heading}
          id={label}
          tabIndex={-1}
          className="me-auto min-w-0 break-all rounded-control text-section outline-none"
        >
          {copy.job.label(id)}
        </h2>
        <Step label={copy.job.previous} icon="chevron-up" to={previous} onOpen={onOpen} />
        <Step label={copy.job.next} icon="chevron-down" to={next} onOpen={onOpen} />
        <IconButton label={copy.job.close} icon="cross" onClick={onClose} />
      </div>
      <p className="text-small">
        <Link href={routes.queueJob(topic, id)}>{copy.job.openPage}</Link>
      </p>
      {isUnknown ? (
        <UnknownJob topic={topic} id={id} />
      ) : query.data ? (
        <JobDetails job={query.data} />
      ) : query.error ? (
        <ErrorState error={query.error} onRetry={query.refetch} busy={query.isFetching} />
      ) : (
        <Skeleton rows={8} />
      )}
    </section>
  )
}

type StepProps = {
  readonly label: string
  readonly icon: 'chevron-up' | 'chevron-down'
  readonly to: string | undefined
  readonly onOpen: (id: string) => void
}

function Step({ label, icon, to, onOpen }: StepProps) {
  return (
    <IconButton
      label={label}
      icon={icon}
      {...(to === undefined && { why: copy.job.none })}
      onClick={() => to !== undefined && onOpen(to)}
    />
  )
}
