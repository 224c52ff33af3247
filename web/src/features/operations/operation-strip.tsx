'use client'
/**
 * One operation: its steps with times and what showed them, how it ended, and what can be done next
 * (docs/design/control-plane.md#running-an-operation).
 */

import type { Operation } from '@vacancy/shared/contract'
import clsx from 'clsx'
import { useEffect } from 'react'
import { Icon, type IconName } from '../../icons/icon.tsx'
import { useLive } from '../../lib/live.ts'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { Age } from '../../ui/age.tsx'
import { Button, LinkButton } from '../../ui/button.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { Id } from '../../ui/id.tsx'
import { Progress } from '../../ui/progress.tsx'
import { dismissOperation } from './followed.ts'
import { OperationStateBadge } from './operation-state.tsx'
import { isRunning, OPERATION_WORDS, operationText, planAgain, timesSay } from './operation-view.ts'
import { useOpenPlan } from './plan-host.tsx'
import { useCancelOperation } from './queries.ts'

const STEP_ICONS: Record<Operation['steps'][number]['state'], { icon: IconName; label: string; colour: string }> = {
  waiting: { icon: 'minus', label: 'waiting', colour: 'text-text-3' },
  running: { icon: 'clock', label: 'running', colour: 'text-info' },
  done: { icon: 'check', label: 'done', colour: 'text-ok' },
  failed: { icon: 'cross', label: 'failed', colour: 'text-crit' },
  skipped: { icon: 'chevron-right', label: 'skipped', colour: 'text-text-3' },
}
/** The strip of an operation that is known by its id alone. */
export function LiveOperationStrip({ id }: { readonly id: string }) {
  const { data: operation } = useLive(`op:${id}`)
  const hasEnded = operation !== undefined && !isRunning(operation)
  useEffect(() => {
    // Its end is seen here: the tray need not show it any more.
    if (hasEnded) dismissOperation(id)
  }, [hasEnded, id])
  return operation ? <OperationStrip operation={operation} /> : null
}

export function OperationStrip({ operation, isPage }: { readonly operation: Operation; readonly isPage?: boolean }) {
  const running = isRunning(operation)
  return (
    <section
      aria-label={`Operation ${operation.id}`}
      data-op-state={operation.state}
      className="rounded-panel border border-line bg-surface"
    >
      <header className="flex flex-wrap items-center gap-x-4 gap-y-1 border-line border-b px-4 py-2">
        <h2 className="text-section">{operation.title}</h2>
        <OperationStateBadge operation={operation} />
        <span className="text-small text-text-3">
          by {operation.by}, <Age at={operation.createdAt} />
        </span>
        <Id value={operation.id} label="operation" />
        {operation.reason !== '' && <span className="text-text-2">“{operation.reason}”</span>}
      </header>
      <div className="grid gap-3 px-4 py-3">
        <Steps steps={operation.steps} />
        {operation.progress && (
          <Progress
            label={`Progress of ${operation.title}`}
            value={operation.progress.done}
            max={operation.progress.total}
            valueText={`${operation.progress.done} of ${operation.progress.total} ${operation.progress.unit}`}
          />
        )}
        <p className={clsx('prose', running ? 'text-text-2' : 'text-text')}>
          {operation.message} <span className="text-text-3">{OPERATION_WORDS[operation.state].means}</span>
        </p>
        {operation.notice !== '' && running && (
          <p className="flex items-center gap-2 text-warn">
            <Icon name="clock" />
            {operation.notice}
          </p>
        )}
        {timesSay(operation) !== '' && <p className="text-small text-text-3">{timesSay(operation)}</p>}
        {operation.answer !== '' && (
          <p className="text-small text-text-2">
            Answer of the cluster: <code className="break-all font-mono">{operation.answer}</code>
          </p>
        )}
        <Actions operation={operation} isPage={isPage ?? false} />
      </div>
    </section>
  )
}

function Steps({ steps }: { readonly steps: Operation['steps'] }) {
  return (
    <ol aria-label="Steps" className="grid gap-1">
      {steps.map((step) => {
        const { icon, label, colour } = STEP_ICONS[step.state]
        const milliseconds = step.milliseconds === null ? null : Math.round(step.milliseconds)
        return (
          <li
            key={step.id}
            data-step={step.id}
            data-step-state={step.state}
            data-ms={milliseconds ?? undefined}
            className="grid grid-cols-[16px_minmax(0,1fr)_auto] items-baseline gap-x-2 sm:grid-cols-[16px_minmax(0,14rem)_5rem_minmax(0,1fr)]"
          >
            <span className={clsx('self-center', colour)}>
              <Icon name={icon} />
              <span className="sr-only">{label}: </span>
            </span>
            <span className={step.state === 'waiting' || step.state === 'skipped' ? 'text-text-3' : 'text-text'}>
              {step.text}
            </span>
            <span className="num text-small text-text-2">{milliseconds === null ? '' : `${milliseconds} ms`}</span>
            <span className="col-start-2 col-end-[-1] break-words text-small text-text-3 sm:col-start-4">
              {step.evidence}
            </span>
          </li>
        )
      })}
    </ol>
  )
}

function Actions({ operation, isPage }: { readonly operation: Operation; readonly isPage: boolean }) {
  const openPlan = useOpenPlan()
  const cancel = useCancelOperation()
  const why = useWhyNot('admin')
  const again = planAgain(operation)
  const { undo } = operation
  return (
    <div className="flex flex-wrap items-center gap-2">
      {operation.cancellable && (
        <Button why={why} busy={cancel.isPending} onClick={() => cancel.mutate(operation.id)}>
          Cancel operation
        </Button>
      )}
      {again && <Button onClick={() => openPlan(again)}>Plan again…</Button>}
      {undo && !isRunning(operation) && <Button onClick={() => openPlan(undo)}>Undo…</Button>}
      {!isPage && (
        <LinkButton kind="quiet" href={routes.operation(operation.id)}>
          Open operation
        </LinkButton>
      )}
      <CopyButton text={operationText(operation)} label="Copy operation as text" />
      {cancel.error && <p className="text-crit">{`${cancel.error.message} ${cancel.error.hint}`}</p>}
    </div>
  )
}
