import clsx from 'clsx'
import type { ReactNode } from 'react'
import { Icon, type IconName } from '../icons/icon.tsx'
import { duration } from '../lib/format.ts'

export type StepState = 'waiting' | 'running' | 'done' | 'failed' | 'skipped'

const ICONS: Record<StepState, IconName> = {
  waiting: 'ring',
  running: 'play',
  done: 'check',
  failed: 'octagon',
  skipped: 'minus',
}

const COLOURS: Record<StepState, string> = {
  waiting: 'text-text-3',
  running: 'text-info',
  done: 'text-ok',
  failed: 'text-crit',
  skipped: 'text-text-3',
}

type StepperProps = {
  readonly label: string
  readonly steps: readonly {
    readonly id: string
    readonly label: ReactNode
    readonly state: StepState
    readonly note?: ReactNode
    /** Since the start. */
    readonly ms?: number | null
  }[]
  /** In a row, for the steps of a flow. */
  readonly inline?: boolean
}

/** Steps in order, with their states. */
export function Stepper({ label, steps, inline }: StepperProps) {
  return (
    <ol aria-label={label} className={clsx('flex', inline ? 'flex-wrap gap-x-5 gap-y-1' : 'flex-col gap-1')}>
      {steps.map((step) => (
        <li
          key={step.id}
          data-step={step.id}
          data-step-state={step.state}
          data-ms={step.ms ?? undefined}
          aria-current={step.state === 'running' ? 'step' : undefined}
          className="flex min-w-0 items-start gap-2"
        >
          <Icon name={ICONS[step.state]} size={14} className={clsx('mt-[3px]', COLOURS[step.state])} />
          <span
            className={clsx(
              'min-w-0',
              step.state === 'running' && 'font-semibold',
              step.state === 'waiting' && 'text-text-3',
            )}
          >
            {step.label}
            <span className="sr-only"> ({step.state})</span>
          </span>
          {step.ms !== undefined && step.ms !== null && (
            <span className="num min-w-16 shrink-0 text-text-3">{duration(step.ms)}</span>
          )}
          {step.note && <span className="min-w-0 break-words text-text-2">{step.note}</span>}
        </li>
      ))}
    </ol>
  )
}
