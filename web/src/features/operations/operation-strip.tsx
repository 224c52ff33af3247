'use client'
/**
 * One operation: steps with times and evidence, outcome, and next actions
 * (docs/design/control-plane.md#running-an-operation).
 */

import type { Operation } from '@vacancy/shared/contract'
import clsx from 'clsx'
import { useEffect } from 'react'
import { Icon, type IconName } from '../../icons/icon.tsx'
import { dismissOperation } from '../../lib/followed-operations.ts'
import { duration } from '../../lib/format.ts'
import { useLive } from '../../lib/live.ts'
import { useWhyNotOn } from '../../lib/quorum.ts'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { Age } from '../../ui/age.tsx'
import { Button, LinkButton } from '../../ui/button.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { Id } from '../../ui/id.tsx'
import { Progress } from '../../ui/progress.tsx'
import * as copy from './copy.ts'
import { OperationStateBadge } from './operation-state.tsx'
import { operationText, timesText } from './operation-text.ts'
import { isRunning, planAgain } from './operation-view.ts'
import { useOpenPlan } from './plan-host.tsx'
import { useCancelOperation } from './queries.ts'

const STEP_ICONS: Record<Operation['steps'][number]['state'], { icon: IconName; colour: string }> = {
  waiting: { icon: 'minus', colour: 'text-text-3' },
  running: { icon: 'clock', colour: 'text-info' },
  done: { icon: 'check', colour: 'text-ok' },
  failed: { icon: 'cross', colour: 'text-crit' },
  skipped: { icon: 'chevron-right', colour: 'text-text-3' },
}
/** The strip of an operation by id. */
export function LiveOperationStrip({ id }: { readonly id: string }) {
  const { data: operation } = useLive(`op:${id}`)
  const hasEnded = operation !== undefined && !isRunning(operation)
  useEffect(() => {
    // The outcome is shown here, so the tray need not show it.
    if (hasEnded) dismissOperation(id)
  }, [hasEnded, id])
  return operation ? <OperationStrip operation={operation} /> : null
}

export function OperationStrip({ operation, isPage }: { readonly operation: Operation; readonly isPage?: boolean }) {
  const running = isRunning(operation)
  return (
    <section
      aria-label={copy.operation.label(operation.id)}
      data-operation={operation.id}
      data-op-state={operation.state}
      tabIndex={-1}
      className="rounded-panel border border-line bg-surface"
    >
      <header className="flex flex-wrap items-center gap-x-4 gap-y-1 border-line border-b px-4 py-2">
        {/* A page has both above. */}
        {!isPage && (
          <>
            <h2 className="text-section">{operation.title}</h2>
            <OperationStateBadge operation={operation} />
          </>
        )}
        <span className="text-small text-text-3">
          {copy.operation.by(operation.by)} <Age at={operation.createdAt} />
        </span>
        <Id value={operation.id} label="operation" />
        {operation.reason !== '' && <span className="text-text-2">“{operation.reason}”</span>}
      </header>
      <div className="grid gap-3 px-4 py-3">
        <Steps steps={operation.steps} />
        {operation.progress && (
          <Progress
            label={copy.operation.progress(operation.title)}
            value={operation.progress.done}
            max={operation.progress.total}
            valueText={copy.operation.progressOf(
              operation.progress.done,
              operation.progress.total,
              operation.progress.unit,
            )}
          />
        )}
        <p className={clsx('prose', running ? 'text-text-2' : 'text-text')}>
          {operation.message}
          {/* That of a proven outcome is the badge. */}
          {operation.state !== 'done' && <span className="text-text-3"> {copy.meanings[operation.state]}</span>}
        </p>
        {operation.notice !== '' && running && (
          <p className="flex items-center gap-2 text-warn">
            <Icon name="clock" />
            {operation.notice}
          </p>
        )}
        {timesText(operation) !== '' && <p className="text-small text-text-3">{timesText(operation)}</p>}
        {operation.answer !== '' && (
          <p className="text-small text-text-2">
            {copy.operation.response} <code className="break-all font-mono">{operation.answer}</code>
          </p>
        )}
        <Actions operation={operation} isPage={isPage ?? false} />
      </div>
    </section>
  )
}

function Steps({ steps }: { readonly steps: Operation['steps'] }) {
  return (
    <ol aria-label={copy.operation.steps} className="grid gap-1">
      {steps.map((step) => {
        const { icon, colour } = STEP_ICONS[step.state]
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
              <span className="sr-only">{copy.operation.stepStates[step.state]}: </span>
            </span>
            <span className={step.state === 'waiting' || step.state === 'skipped' ? 'text-text-3' : 'text-text'}>
              {step.text}
            </span>
            <span className="num text-small text-text-2">{milliseconds === null ? '' : duration(milliseconds)}</span>
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
  const whyNoPlan = useWhyNotOn(operation.shard, 'admin', 'change')
  const again = planAgain(operation)
  const { undo } = operation
  return (
    <div className="flex flex-wrap items-center gap-2">
      {operation.cancellable && (
        <Button why={why} busy={cancel.isPending} onClick={() => cancel.mutate(operation.id)}>
          {copy.operation.cancel}
        </Button>
      )}
      {again && (
        <Button why={whyNoPlan} onClick={() => openPlan(again)}>
          {operation.rest ? copy.operation.planRest : copy.operation.planAgain}
        </Button>
      )}
      {undo && !isRunning(operation) && (
        <Button why={whyNoPlan} onClick={() => openPlan(undo)}>
          {copy.operation.undo}
        </Button>
      )}
      {!isPage && (
        <LinkButton kind="quiet" href={routes.operation(operation.id)}>
          {copy.operation.open}
        </LinkButton>
      )}
      <CopyButton text={operationText(operation)} label={copy.operation.copy} />
      {cancel.error && <p className="text-crit">{`${cancel.error.message} ${cancel.error.hint}`}</p>}
    </div>
  )
}
