'use client'
/** Explains why a property is or is not in the result, and finds the filter that empties a result. */
import { useMutation } from '@tanstack/react-query'
import type { RelaxAnswer, WhyAnswer } from '@vacancy/shared/contract'
import clsx from 'clsx'
import { useState } from 'react'
import { Icon } from '../../icons/icon.tsx'
import { call } from '../../lib/api.ts'
import { count, day } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button, LinkButton } from '../../ui/button.tsx'
import { Combobox } from '../../ui/combobox.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Field } from '../../ui/field.tsx'
import { ErrorState } from '../../ui/panel.tsx'
import { labelOf } from './catalogue.ts'
import * as copy from './copy.ts'
import { wordsOf } from './field-input.tsx'
import type { Draft } from './request.ts'

type WhyProps = {
  readonly draft: Draft
  readonly shard: string | undefined
  /** Initial value of the field. */
  readonly property: string
  readonly onClose: () => void
}

export function WhyDialog({ draft, shard, property, onClose }: WhyProps) {
  const [id, setId] = useState(property)
  const { command, fields, node } = draft
  const segment = fields['segment']
  const explanation = useMutation({
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
    <Dialog open onClose={onClose} title={copy.explain.title} wide>
      <form
        className="flex items-end gap-2"
        onSubmit={(event) => {
          event.preventDefault()
          if (id.trim()) explanation.mutate(id.trim())
        }}
      >
        <Field label={copy.explain.property} className="grow">
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
          busy={explanation.isPending}
          why={id.trim() === '' ? copy.explain.propertyFirst : undefined}
        >
          {copy.explain.submit}
        </Button>
      </form>
      {explanation.error && <ErrorState error={explanation.error} />}
      {explanation.data && <WhyResult answer={explanation.data} draft={draft} />}
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

function WhyResult({ answer, draft: { command, fields } }: { readonly answer: WhyAnswer; readonly draft: Draft }) {
  const dates = [...new Set(answer.checks.flatMap(({ date }) => date ?? []))]
  const ofDate = (date: string | null) => answer.checks.filter((check) => check.date === date)
  return (
    <div data-verdict={answer.verdict} className="flex flex-col gap-3 pt-3">
      <p className="flex flex-wrap items-center gap-2">
        <span className="font-medium font-mono">{answer.property}</span>
        <Badge level={LEVELS[answer.verdict]}>{copy.explain.verdicts[answer.verdict]}</Badge>
        <span>{answer.message}</span>
      </p>
      {answer.checks.length > 0 && (
        <ul aria-label={copy.explain.conditions} className="flex flex-col gap-1">
          {ofDate(null).map((check) => (
            <Check
              key={`${check.field} ${check.message}`}
              ok={check.ok}
              label={labelOf(command, check.field)}
              text={check.message}
            />
          ))}
          {dates.map((date) => {
            const checks = ofDate(date)
            return (
              <Check
                key={date}
                ok={checks.every(({ ok }) => ok)}
                label={day(date)}
                text={checks.map(({ ok, message }) => (ok ? message : `✗ ${message}`)).join(' · ')}
              />
            )
          })}
        </ul>
      )}
      {answer.wouldMatchIf.length > 0 && <p>{copy.explain.wouldMatch(answer.wouldMatchIf.join(', and '))}</p>}
      {answer.missing.length > 0 && (
        <p className="text-warn">
          {copy.explain.missing(answer.missing.map(({ source, message }) => `${source} (${message})`).join(', '))}
        </p>
      )}
      <OpenCalendar answer={answer} fields={fields} />
      <p className="text-small text-text-3">
        {copy.explain.readOn(answer.node, answer.index === null ? undefined : count(Number(answer.index)))}
      </p>
    </div>
  )
}

/** A link to the calendar with the nights of the request, in the shard that has the property. */
function OpenCalendar({ answer, fields }: { readonly answer: WhyAnswer; readonly fields: Draft['fields'] }) {
  const { verdict, shard, foundIn, property } = answer
  if (verdict === 'nowhere') return null
  const { segment, roomType, dates } = fields
  const nights = Array.isArray(dates) ? dates.toSorted() : []
  const query = {
    room: typeof roomType === 'string' ? roomType : undefined,
    from: nights[0],
    night: nights[0],
    to: nights.length > 1 ? nights.at(-1) : undefined,
  }
  const where = verdict === 'elsewhere' ? (foundIn[0] ?? shard) : shard
  return (
    <LinkButton
      icon="calendar"
      className="self-start"
      href={routes.property(where, typeof segment === 'string' ? segment : '', property, query)}
    >
      {copy.results.openCalendar}
    </LinkButton>
  )
}

function Check({ ok, label, text }: { readonly ok: boolean; readonly label: string; readonly text: string }) {
  return (
    <li
      data-ok={ok}
      className={clsx('grid grid-cols-[1.25rem_8rem_minmax(0,1fr)] items-start gap-x-1', !ok && 'font-medium')}
    >
      <span className={clsx('pt-0.5', ok ? 'text-ok' : 'text-crit')}>
        <Icon name={ok ? 'check' : 'cross'} size={14} />
        <span className="sr-only">{ok ? copy.explain.met : copy.explain.notMet}</span>
      </span>
      <span className="text-text-2">{label}</span>
      <span className="min-w-0 break-words">{text}</span>
    </li>
  )
}

/** Shown for an empty result: tries the search without each filter, on request. */
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
  const relaxed = useMutation({
    mutationFn: () =>
      call('POST /api/v1/query/relax', {
        body: { command, fields: { ...fields } as never, ...(shard && { shard }), ...(node && { node }) },
      }),
  })
  const helpful = relaxed.data?.tried.filter((tried) => tried.count > 0) ?? []
  return (
    <div className="flex flex-col items-start gap-2">
      <Button icon="filter" busy={relaxed.isPending} onClick={() => relaxed.mutate()}>
        {copy.explain.findFilter}
      </Button>
      {relaxed.error && <ErrorState error={relaxed.error} />}
      {relaxed.data && helpful.length === 0 && <p>{copy.explain.noSingleFilter}</p>}
      <ul className="flex flex-col gap-1">
        {helpful.map((tried) => (
          <li key={`${tried.field} ${tried.entry}`} className="flex items-center gap-2">
            <span>
              {copy.explain.without}
              <strong>
                {tried.entry ??
                  (tried.field === 'south' ? copy.explain.mapBox : labelOf(command, tried.field).toLowerCase())}
              </strong>
              {copy.explain.matches(tried.count, tried.limited)}
            </span>
            <Button kind="quiet" onClick={() => onDrop(tried)}>
              {copy.explain.removeFilter}
            </Button>
          </li>
        ))}
      </ul>
    </div>
  )
}
