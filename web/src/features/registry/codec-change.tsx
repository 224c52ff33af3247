'use client'
/**
 * What another codec list costs and how it is brought into force, and the same as a checklist that ticks itself
 * (docs/design/control-plane.md#codec-list-change).
 */
import type { CodecChange, CodecPlan, CodecStep } from '@vacancy/shared/contract'
import type { ReactNode } from 'react'
import { Icon, type IconName } from '../../icons/icon.tsx'
import { pathOf } from '../../lib/api.ts'
import { bytes, counted } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { Banner } from '../../ui/banner.tsx'
import { LinkButton } from '../../ui/button.tsx'
import { CodeView } from '../../ui/code-view.tsx'
import { Id } from '../../ui/id.tsx'
import { Link } from '../../ui/link.tsx'

const SHOWN_MAX = 50

const STATES: Readonly<Record<CodecStep['state'], { icon: IconName; word: string; colour: string }>> = {
  hand: { icon: 'person', word: 'by hand, nobody reports it', colour: 'text-text-3' },
  open: { icon: 'ring', word: 'not done yet', colour: 'text-text-2' },
  done: { icon: 'check', word: 'done', colour: 'text-ok' },
  unknown: { icon: 'question', word: 'not known', colour: 'text-unk' },
}

/** A plan from top to bottom: what differs, what is lost, what is to be done. */
export function PlanView({ plan }: { plan: CodecPlan }) {
  return (
    <div className="flex flex-col gap-5">
      <Banner level="warn" title="The console cannot make this change">
        The registry takes its list from its file when it starts, and all nodes must have the same one. This is the
        rehearsal: what it costs, and the steps in their order. It ends all service from the second step to the fifth.
      </Banner>
      <Part title="What differs">
        <ul className="flex flex-col gap-1">
          {plan.changes.map(({ kind, name, message }) => (
            <li key={`${kind} ${name}`} data-change={kind}>
              <span className="me-2 font-medium">{kind}</span>
              {message}.
            </li>
          ))}
        </ul>
        {plan.changes.every(({ kind }) => kind === 'moved') && plan.changes.length > 0 && (
          <p className="text-text-2">
            Only the order differs, and that is a change like any other: a feature is its place.
          </p>
        )}
        <p className="flex flex-wrap items-center gap-x-2">
          New ordered hash <Id value={plan.after.hash} label="new codec list" short={16} />
          instead of <Id value={plan.before.hash} label="codec list in force" short={16} />
        </p>
      </Part>
      <Part title={`${counted(plan.snapshots.length, 'snapshot')} will be invalid`}>
        {plan.snapshots.length === 0 ? (
          <p className="text-text-2">None is known, neither here nor on a node that answers.</p>
        ) : (
          <ul aria-label="Snapshots that will be invalid" className="flex flex-col divide-y divide-line">
            {plan.snapshots.slice(0, SHOWN_MAX).map((snapshot) => (
              <InvalidSnapshot key={snapshot.id} snapshot={snapshot} />
            ))}
          </ul>
        )}
        <More count={plan.snapshots.length} />
      </Part>
      {plan.queries.length + plan.hiddenQueries > 0 && (
        <Part title="Saved queries that name an entry that goes">
          <ul className="flex flex-col gap-1">
            {plan.queries.slice(0, SHOWN_MAX).map(({ id, name, owner, uses }) => (
              <li key={id}>
                <Link href={routes.savedQuery(id)}>{name}</Link> of {owner}: {uses.join(', ')}
              </li>
            ))}
            {plan.hiddenQueries > 0 && (
              <li className="text-text-2">
                {counted(plan.hiddenQueries, 'private query', 'private queries')} of others
              </li>
            )}
          </ul>
          <More count={plan.queries.length} />
        </Part>
      )}
      <Part title="The new file">
        <CodeView label="codecs.yml" code={plan.file} lines={12} />
        <div>
          <LinkButton
            icon="download"
            download="codecs.yml"
            href={`data:text/yaml;charset=utf-8,${encodeURIComponent(plan.file)}`}
          >
            Download codecs.yml
          </LinkButton>
        </div>
      </Part>
      <Part title="Steps">
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
  return count > SHOWN_MAX ? <p className="text-text-3">and {count - SHOWN_MAX} more</p> : null
}

function InvalidSnapshot({ snapshot }: { snapshot: CodecPlan['snapshots'][number] }) {
  const { id, name, shard, stored, heldBy } = snapshot
  return (
    <li data-snapshot={id} className="flex flex-wrap items-center gap-x-4 gap-y-1 py-1">
      <Link href={routes.snapshot(id)} className="min-w-0 break-words">
        {name}
      </Link>
      <span className="text-text-2">
        of {shard}, {bytes(snapshot.bytes)}
        {heldBy.length > 0 && `, on ${heldBy.join(', ')}`}
      </span>
      {stored ? (
        <LinkButton
          kind="quiet"
          icon="download"
          download
          href={pathOf('GET /api/v1/snapshots/{id}/archive', { params: { id } })}
        >
          Download {name}
        </LinkButton>
      ) : (
        <span className="text-text-3">only on nodes: export it there</span>
      )}
    </li>
  )
}

function Steps({ steps }: { steps: readonly CodecStep[] }) {
  return (
    <ol aria-label="Steps of the change" className="flex flex-col gap-4">
      {steps.map((step, at) => (
        <Step key={step.id} step={step} number={at + 1} />
      ))}
    </ol>
  )
}

function Step({ step, number }: { step: CodecStep; number: number }) {
  const { id, title, text, commands, state, evidence } = step
  const { icon, word, colour } = STATES[state]
  return (
    <li data-step={id} data-step-state={state} className="flex min-w-0 gap-3">
      <Icon name={icon} className={`mt-0.5 shrink-0 ${colour}`} />
      <div className="flex min-w-0 grow flex-col gap-2">
        <p className="font-medium">
          {number}. {title} <span className={`font-normal text-small ${colour}`}>({word})</span>
        </p>
        <p className="prose text-text-2">{text}</p>
        {evidence !== '' && <p className={state === 'done' ? 'text-ok' : ''}>Reported: {evidence}.</p>}
        {commands.map(({ label, code }) => (
          <CodeView key={label} label={label} code={code} lines={6} />
        ))}
        {id === 'data' && (
          <p>
            <Link href={routes.newImport()}>New import</Link>
          </p>
        )}
      </div>
    </li>
  )
}

/** How far a change is: what is done of what reports itself. */
export function progressOf({ plan }: CodecChange): string {
  const watched = plan.steps.filter(({ state }) => state !== 'hand')
  return `${watched.filter(({ state }) => state === 'done').length} of ${watched.length} reported steps are done`
}
