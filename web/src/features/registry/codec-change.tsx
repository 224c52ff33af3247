'use client'
/**
 * The cost and steps of a codec list change, also as a checklist with reported progress
 * (docs/design/control-plane.md#codec-list-change).
 */
import type { CodecChange, CodecPlan, CodecStep } from '@vacancy/shared/contract'
import type { ReactNode } from 'react'
import { Icon, type IconName } from '../../icons/icon.tsx'
import { pathOf } from '../../lib/api.ts'
import { bytes } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { Banner } from '../../ui/banner.tsx'
import { LinkButton } from '../../ui/button.tsx'
import { CodeView } from '../../ui/code-view.tsx'
import { Id } from '../../ui/id.tsx'
import { Link } from '../../ui/link.tsx'
import * as copy from './copy.ts'

const SHOWN_MAX = 50

const STATES: Readonly<Record<CodecStep['state'], { icon: IconName; colour: string }>> = {
  hand: { icon: 'person', colour: 'text-text-3' },
  open: { icon: 'ring', colour: 'text-text-2' },
  done: { icon: 'check', colour: 'text-ok' },
  unknown: { icon: 'question', colour: 'text-unk' },
}

/** A plan: changes, invalidated snapshots and queries, steps. */
export function PlanView({ plan }: { plan: CodecPlan }) {
  return (
    <div className="flex flex-col gap-5">
      <Banner level="warn" title={copy.plan.manual}>
        {copy.plan.manualHint}
      </Banner>
      <Part title={copy.plan.changes}>
        <ul className="flex flex-col gap-1">
          {plan.changes.map(({ kind, name, message }) => (
            <li key={`${kind} ${name}`} data-change={kind}>
              <span className="me-2 font-medium">{kind}</span>
              {message}.
            </li>
          ))}
        </ul>
        {plan.changes.every(({ kind }) => kind === 'moved') && plan.changes.length > 0 && (
          <p className="text-text-2">{copy.plan.onlyOrder}</p>
        )}
        <p className="flex flex-wrap items-center gap-x-2">
          {copy.plan.newHash} <Id value={plan.after.hash} label="new codec list" short={16} />
          {copy.plan.insteadOf} <Id value={plan.before.hash} label="codec list in force" short={16} />
        </p>
      </Part>
      <Part title={copy.plan.invalidSnapshots(plan.snapshots.length)}>
        {plan.snapshots.length === 0 ? (
          <p className="text-text-2">{copy.plan.noSnapshots}</p>
        ) : (
          <ul aria-label={copy.plan.snapshotList} className="flex flex-col divide-y divide-line">
            {plan.snapshots.slice(0, SHOWN_MAX).map((snapshot) => (
              <InvalidSnapshot key={snapshot.id} snapshot={snapshot} />
            ))}
          </ul>
        )}
        <More count={plan.snapshots.length} />
      </Part>
      {plan.queries.length + plan.hiddenQueries > 0 && (
        <Part title={copy.plan.queries}>
          <ul className="flex flex-col gap-1">
            {plan.queries.slice(0, SHOWN_MAX).map(({ id, name, owner, uses }) => (
              <li key={id}>
                <Link href={routes.savedQuery(id)}>{name}</Link>
                {copy.plan.queryOf(owner, uses.join(', '))}
              </li>
            ))}
            {plan.hiddenQueries > 0 && <li className="text-text-2">{copy.plan.hiddenQueries(plan.hiddenQueries)}</li>}
          </ul>
          <More count={plan.queries.length} />
        </Part>
      )}
      <Part title={copy.plan.newFile}>
        <CodeView label="codecs.yml" code={plan.file} lines={12} />
        <div>
          <LinkButton
            icon="download"
            download="codecs.yml"
            href={`data:text/yaml;charset=utf-8,${encodeURIComponent(plan.file)}`}
          >
            {copy.plan.downloadFile}
          </LinkButton>
        </div>
      </Part>
      <Part title={copy.plan.steps}>
        <Steps steps={plan.steps} />
      </Part>
    </div>
  )
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="flex min-w-0 flex-col gap-2">
      <h3 className="font-semibold">{title}</h3>
      {children}
    </section>
  )
}

function More({ count }: { count: number }) {
  return count > SHOWN_MAX ? <p className="text-text-3">{copy.common.more(count - SHOWN_MAX)}</p> : null
}

function InvalidSnapshot({ snapshot }: { snapshot: CodecPlan['snapshots'][number] }) {
  const { id, name, shard, stored, heldBy } = snapshot
  return (
    <li data-snapshot={id} className="flex flex-wrap items-center gap-x-4 gap-y-1 py-1">
      <Link href={routes.snapshot(id)} className="min-w-0 break-words">
        {name}
      </Link>
      <span className="text-text-2">{copy.plan.ofShard(shard, bytes(snapshot.bytes), heldBy.join(', '))}</span>
      {stored ? (
        <LinkButton
          kind="quiet"
          icon="download"
          download
          href={pathOf('GET /api/v1/snapshots/{id}/archive', { params: { id } })}
        >
          {copy.plan.download(name)}
        </LinkButton>
      ) : (
        <span className="text-text-3">{copy.plan.onlyOnNodes}</span>
      )}
    </li>
  )
}

function Steps({ steps }: { steps: readonly CodecStep[] }) {
  return (
    <ol aria-label={copy.plan.stepList} className="flex flex-col gap-4">
      {steps.map((step, at) => (
        <Step key={step.id} step={step} number={at + 1} />
      ))}
    </ol>
  )
}

function Step({ step, number }: { step: CodecStep; number: number }) {
  const { id, title, text, commands, state, evidence } = step
  const { icon, colour } = STATES[state]
  return (
    <li data-step={id} data-step-state={state} className="flex min-w-0 gap-3">
      <Icon name={icon} className={`mt-0.5 shrink-0 ${colour}`} />
      <div className="flex min-w-0 grow flex-col gap-2">
        <p className="font-medium">
          {copy.plan.step(number, title)}{' '}
          <span className={`font-normal text-small ${colour}`}>({copy.plan.states[state]})</span>
        </p>
        <p className="prose text-text-2">{text}</p>
        {evidence !== '' && <p className={state === 'done' ? 'text-ok' : ''}>{copy.plan.reported(evidence)}</p>}
        {commands.map(({ label, code }) => (
          <CodeView key={label} label={label} code={code} lines={6} />
        ))}
        {id === 'data' && (
          <p>
            <Link href={routes.newImport()}>{copy.plan.newImport}</Link>
          </p>
        )}
      </div>
    </li>
  )
}

/** The progress of a change, counting reported steps. */
export function progressOf({ plan }: CodecChange): string {
  const reported = plan.steps.filter(({ state }) => state !== 'hand')
  return copy.tracked.progress(reported.filter(({ state }) => state === 'done').length, reported.length)
}
