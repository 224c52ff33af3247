'use client'
/** The checks of a plan, each with its level as icon, colour and word, and a fix where there is one. */

import type { Plan, PlanRequest } from '@vacancy/shared/contract'
import clsx from 'clsx'
import { Icon, type IconName } from '../../icons/icon.tsx'
import { Button, LinkButton } from '../../ui/button.tsx'
import * as copy from './plan-copy.ts'

const STYLES: Record<Plan['checks'][number]['level'], { icon: IconName; colour: string }> = {
  ok: { icon: 'check', colour: 'text-ok' },
  info: { icon: 'info', colour: 'text-info' },
  warn: { icon: 'triangle', colour: 'text-warn' },
  block: { icon: 'stop', colour: 'text-crit' },
}

type PlanChecksProps = { readonly checks: Plan['checks']; readonly onPlan: (request: PlanRequest) => void }

export function PlanChecks({ checks, onPlan }: PlanChecksProps) {
  return (
    <section className="grid gap-2">
      <h3 className="text-body text-text-2">{copy.plan.checks}</h3>
      <ul aria-label={copy.plan.checks} className="grid gap-x-6 gap-y-1 sm:grid-cols-2">
        {checks.map((check) => {
          const { icon, colour } = STYLES[check.level]
          const isQuiet = check.level === 'ok' || check.level === 'info'
          return (
            <li
              key={check.id}
              data-check={check.id}
              data-level={check.level}
              className={clsx('flex items-start gap-2', !isQuiet && 'sm:col-span-2')}
            >
              <Icon name={icon} className={clsx('mt-0.5', colour)} />
              <span className={clsx('min-w-0 flex-1 break-words', isQuiet ? 'text-text-2' : 'text-text')}>
                <span className="sr-only">{copy.plan.levels[check.level]}: </span>
                {check.text}
              </span>
              {check.fix && <Fix fix={check.fix} onPlan={onPlan} />}
            </li>
          )
        })}
      </ul>
    </section>
  )
}

type FixProps = { readonly fix: NonNullable<Plan['checks'][number]['fix']>; readonly onPlan: PlanChecksProps['onPlan'] }

function Fix({ fix, onPlan }: FixProps) {
  const { plan, href, label } = fix
  if (plan) return <Button onClick={() => onPlan(plan)}>{label}</Button>
  // URLs come from the control plane; only those inside the console are linked.
  return href?.startsWith('/') && !href.startsWith('//') ? <LinkButton href={href}>{label}</LinkButton> : null
}
