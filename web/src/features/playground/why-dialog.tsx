'use client'
/** Why a property is, or is not, in the result; and which single filter is in the way of an empty one. */
import { useMutation } from '@tanstack/react-query'
import type { RelaxAnswer, WhyAnswer } from '@vacancy/shared/contract'
import clsx from 'clsx'
import { useState } from 'react'
import { Icon } from '../../icons/icon.tsx'
import { call } from '../../lib/api.ts'
import { count, counted, day } from '../../lib/format.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Combobox } from '../../ui/combobox.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Field } from '../../ui/field.tsx'
import { ErrorState } from '../../ui/panel.tsx'
import { labelOf } from './catalogue.ts'
import { wordsOf } from './field-input.tsx'
import type { Draft } from './request.ts'

type WhyProps = {
  readonly draft: Draft
  readonly shard: string | undefined
  /** To begin with. */
  readonly property: string
  readonly onClose: () => void
}

export function WhyDialog({ draft, shard, property, onClose }: WhyProps) {
  const [id, setId] = useState(property)
  const { command, fields, node } = draft
  const segment = fields['segment']
  const ask = useMutation({
    mutationFn: (wanted: string) =>
      call('POST /api/v1/query/why-not', {
        body: {
          command,
          fields: { ...fields } as never,
          property: wanted,
          ...(shard && { shard }),
          ...(node && { node }),
        },
      }),
  })
  return (
    <Dialog open onClose={onClose} title="Why is a property here, or not?" wide typing>
      <form
        className="flex items-end gap-2"
        onSubmit={(event) => {
          event.preventDefault()
          if (id.trim()) ask.mutate(id.trim())
        }}
      >
        <Field label="Property" className="grow">
          {(wire) => (
            <Combobox
              wire={wire}
              free
              value={id}
              onChange={setId}
              options={wordsOf(shard, 'property', typeof segment === 'string' ? segment : undefined)}
            />
          )}
        </Field>
        <Button
          type="submit"
          kind="primary"
          busy={ask.isPending}
          why={id.trim() === '' ? 'Name a property first' : undefined}
        >
          Ask why
        </Button>
      </form>
      {ask.error && <ErrorState error={ask.error} />}
      {ask.data && <WhyResult answer={ask.data} command={command} />}
    </Dialog>
  )
}

const LEVELS = {
  'in-result': 'ok',
  'beyond-limit': 'warn',
  filtered: 'info',
  elsewhere: 'info',
  nowhere: 'unk',
  unsettled: 'warn',
} as const
const VERDICTS = {
  'in-result': 'in the result',
  'beyond-limit': 'past the limit',
  filtered: 'left out',
  elsewhere: 'in another shard',
  nowhere: 'does not exist',
  unsettled: 'unsettled',
} as const

function WhyResult({ answer, command }: { readonly answer: WhyAnswer; readonly command: Draft['command'] }) {
  const dates = [...new Set(answer.checks.flatMap(({ date }) => date ?? []))]
  const ofDate = (date: string | null) => answer.checks.filter((check) => check.date === date)
  return (
    <div data-verdict={answer.verdict} className="flex flex-col gap-3 pt-3">
      <p className="flex flex-wrap items-center gap-2">
        <span className="font-medium font-mono">{answer.property}</span>
        <Badge level={LEVELS[answer.verdict]}>{VERDICTS[answer.verdict]}</Badge>
        <span>{answer.message}</span>
      </p>
      {answer.checks.length > 0 && (
        <ul aria-label="Conditions" className="flex flex-col gap-1">
          {ofDate(null).map((check) => (
            <Check
              key={`${check.field} ${check.message}`}
              ok={check.ok}
              label={labelOf(command, check.field)}
              says={check.message}
            />
          ))}
          {dates.map((date) => {
            const checks = ofDate(date)
            return (
              <Check
                key={date}
                ok={checks.every(({ ok }) => ok)}
                label={day(date)}
                says={checks.map(({ ok, message }) => (ok ? message : `✗ ${message}`)).join(' · ')}
              />
            )
          })}
        </ul>
      )}
      {answer.wouldMatchIf.length > 0 && <p>It would match if {answer.wouldMatchIf.join(', and ')}.</p>}
      {answer.missing.length > 0 && (
        <p className="text-warn">
          Did not answer: {answer.missing.map(({ source, message }) => `${source} (${message})`).join(', ')}
        </p>
      )}
      <p className="text-small text-text-3">
        Read {answer.index !== null && `at index ${count(Number(answer.index))} `}on {answer.node}, and held against its
        own answer.
      </p>
    </div>
  )
}

function Check({ ok, label, says }: { readonly ok: boolean; readonly label: string; readonly says: string }) {
  return (
    <li
      data-ok={ok}
      className={clsx('grid grid-cols-[1.25rem_8rem_minmax(0,1fr)] items-start gap-x-1', !ok && 'font-medium')}
    >
      <span className={clsx('pt-0.5', ok ? 'text-ok' : 'text-crit')}>
        <Icon name={ok ? 'check' : 'cross'} size={14} />
        <span className="sr-only">{ok ? 'holds' : 'does not hold'}</span>
      </span>
      <span className="text-text-2">{label}</span>
      <span className="min-w-0 break-words">{says}</span>
    </li>
  )
}

/** Asked for only when a search found nothing and somebody wants to know. */
export function Relax({
  draft,
  shard,
  onDrop,
}: {
  readonly draft: Draft
  readonly shard: string | undefined
  readonly onDrop: (tried: RelaxAnswer['tried'][number]) => void
}) {
  const { command, fields, node } = draft
  const ask = useMutation({
    mutationFn: () =>
      call('POST /api/v1/query/relax', {
        body: { command, fields: { ...fields } as never, ...(shard && { shard }), ...(node && { node }) },
      }),
  })
  const helpful = ask.data?.tried.filter((tried) => tried.count > 0) ?? []
  return (
    <div className="flex flex-col items-start gap-2">
      <Button icon="filter" busy={ask.isPending} onClick={() => ask.mutate()}>
        Which filter is in the way?
      </Button>
      {ask.error && <ErrorState error={ask.error} />}
      {ask.data && helpful.length === 0 && <p>No single filter is: without any one of them there is nothing either.</p>}
      <ul className="flex flex-col gap-1">
        {helpful.map((tried) => (
          <li key={`${tried.field} ${tried.entry}`} className="flex items-center gap-2">
            <span>
              without <strong>{tried.entry ?? labelOf(command, tried.field).toLowerCase()}</strong>:{' '}
              {counted(tried.count, 'property', 'properties')}
              {tried.limited && ' or more'}
            </span>
            <Button kind="quiet" onClick={() => onDrop(tried)}>
              Leave it out
            </Button>
          </li>
        ))}
      </ul>
    </div>
  )
}
