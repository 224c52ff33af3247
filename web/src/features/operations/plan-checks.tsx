'use client'
/** The checks of a plan, each with its level as icon, colour and word, and a fix where there is one. */

import type { Plan, PlanRequest } from '@vacancy/shared/contract'
import clsx from 'clsx'
import { Icon, type IconName } from '../../icons/icon.tsx'
import { Button, LinkButton } from '../../ui/button.tsx'
import * as copy from './plan-copy.ts'
import { sortChecks } from './plan-view.ts'

const STYLES: Record<Plan['checks'][number]['level'], { icon: IconName; colour: string }> = {
  ok: { icon: 'check', colour: 'text-ok' },
  info: { icon: 'info', colour: 'text-info' },
  warn: { icon: 'triangle', colour: 'text-warn' },
  block: { icon: 'stop', colour: 'text-crit' },
}

type PlanChecksProps = { readonly checks: Plan['checks']; readonly onPlan: (request: PlanRequest) => void }

/** Failed checks, warnings and notes are open and first; passed ones fold to one line. */
export function PlanChecks({ checks, onPlan }: PlanChecksProps) {
  const { open, passed } = sortChecks(checks)
  return (
    <section className="grid gap-2">
      <h3 className="sr-only">{copy.plan.checks}</h3>
      {open.length > 0 && <CheckList label={copy.plan.checks} checks={open} onPlan={onPlan} />}
      {passed.length > 0 && (
        <details>
          <summary className="w-fit text-text-2">
            <Icon name="check" className="me-1.5 inline align-[-2px] text-ok" />
            {copy.plan.passed(passed.length)}
          </summary>
          <CheckList label={copy.plan.passedList} checks={passed} onPlan={onPlan} className="pt-2 sm:grid-cols-2" />
        </details>
      )}
    </section>
  )
}

type CheckListProps = PlanChecksProps & { readonly label: string; readonly className?: string }

const TINTS: Record<Plan['checks'][number]['level'], string> = {
  ok: '',
  info: '',
  warn: 'rounded-control bg-warn-bg px-3 py-1.5',
  block: 'rounded-control bg-crit-bg px-3 py-1.5',
}

function CheckList({ label, checks, onPlan, className }: CheckListProps) {
  return (
    <ul aria-label={label} className={clsx('grid gap-x-6 gap-y-1', className)}>
      {checks.map((check) => {
        const { icon, colour } = STYLES[check.level]
        return (
          <li
            key={check.id}
            data-check={check.id}
            data-level={check.level}
            className={clsx('flex items-start gap-2', TINTS[check.level])}
          >
            <Icon name={icon} className={clsx('mt-0.5', colour)} />
            <span className={clsx('min-w-0 flex-1 break-words', check.level === 'ok' ? 'text-text-2' : 'text-text')}>
              <span className="sr-only">{copy.plan.levels[check.level]}: </span>
              {check.text}
            </span>
            {check.fix && <Fix fix={check.fix} onPlan={onPlan} />}
          </li>
        )
      })}
    </ul>
  )
}

type FixProps = { readonly fix: NonNullable<Plan['checks'][number]['fix']>; readonly onPlan: PlanChecksProps['onPlan'] }

function Fix({ fix, onPlan }: FixProps) {
  const { plan, href, label } = fix
  if (plan) return <Button onClick={() => onPlan(plan)}>{label}</Button>
  // URLs come from the control plane; only those inside the console are linked.
  return href?.startsWith('/') && !href.startsWith('//') ? <LinkButton href={href}>{label}</LinkButton> : null
}
