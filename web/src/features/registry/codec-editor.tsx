'use client'
/** Edits the codec list and shows the plan of the change. It changes nothing. */
import { useQueryClient } from '@tanstack/react-query'
import type { CodecPlan } from '@vacancy/shared/contract'
import { useRef, useState } from 'react'
import { flushSync } from 'react-dom'
import { call } from '../../lib/api.ts'
import { useWhyNot } from '../../lib/session.ts'
import { announce } from '../../ui/announce.ts'
import { Button } from '../../ui/button.tsx'
import { missingConfirmation, ReasonField, TypedField } from '../../ui/confirm-fields.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { Panel } from '../../ui/panel.tsx'
import { SubmitProblem, useSubmit } from '../session/submit.tsx'
import { PlanView } from './codec-change.tsx'
import {
  added,
  changeOf,
  type Draft,
  draftOf,
  ENTRIES_MAX,
  type Entry,
  faultOf,
  isSame,
  moved,
  removed,
  renamed,
} from './codec-list.ts'
import * as copy from './copy.ts'

type EditorProps = { readonly names: readonly string[]; readonly onClose: () => void }

export function CodecEditor({ names, onClose }: EditorProps) {
  const why = useWhyNot('admin')
  // The list at the start of editing: updates never overwrite typed text.
  const [before] = useState(names)
  const [draft, setDraft] = useState<Draft>(() => draftOf(names))
  const [plan, setPlan] = useState<CodecPlan>()
  const [isTracking, setTracking] = useState(false)
  const body = { entries: draft.entries.map(({ name, was }) => ({ name, was })) }
  const { busy, error, submit } = useSubmit(async () => {
    setPlan(await call('POST /api/v1/registry/codec-plan', { body }))
    announce(copy.editor.planReady, 'polite')
  })
  const change = (next: Draft) => {
    setDraft(next)
    // The plan belongs to the list it was made for.
    setPlan(undefined)
  }
  const faults = draft.entries.filter((entry) => faultOf(draft, entry) !== '').length
  const blocked =
    why ??
    (draft.entries.length === 0
      ? copy.editor.atLeastOne
      : faults > 0
        ? copy.editor.invalidEntries(faults)
        : isSame(draft, before)
          ? copy.editor.noChanges
          : undefined)
  return (
    <>
      <Panel
        title={copy.editor.title}
        data={{ 'data-editor': 'codecs' }}
        actions={
          <>
            <Button
              onClick={() => change(draftOf(before))}
              why={isSame(draft, before) ? copy.editor.noChanges : undefined}
            >
              {copy.editor.discard}
            </Button>
            <Button onClick={onClose}>{copy.editor.close}</Button>
          </>
        }
      >
        <form aria-label={copy.editor.form} onSubmit={submit} className="flex flex-col gap-3">
          <EntryList draft={draft} before={before} onChange={change} />
          <SubmitProblem error={error} waitSeconds={0} />
          <div>
            <Button type="submit" kind="primary" busy={busy} why={blocked}>
              {copy.editor.showPlan}
            </Button>
          </div>
        </form>
      </Panel>
      {plan && (
        <Panel
          title={copy.editor.planTitle}
          data={{ 'data-plan': plan.after.hash }}
          actions={
            <Button kind="primary" why={why} onClick={() => setTracking(true)}>
              {copy.editor.track}
            </Button>
          }
        >
          <PlanView plan={plan} />
        </Panel>
      )}
      {plan && isTracking && (
        <TrackDialog plan={plan} body={body} onClose={() => setTracking(false)} onTracked={onClose} />
      )}
    </>
  )
}

type EntryListProps = {
  readonly draft: Draft
  readonly before: readonly string[]
  readonly onChange: (draft: Draft) => void
}

function EntryList({ draft, before, onChange }: EntryListProps) {
  const list = useRef<HTMLOListElement>(null)
  const { entries } = draft
  const move = (entry: Entry, by: number) => {
    onChange(moved(draft, entry.key, by))
    announce(copy.editor.moved(entry.name || copy.editor.unnamed, entries.indexOf(entry) + by), 'polite')
  }
  const add = () => {
    // Rendered at once, so that the next key goes into the new field.
    flushSync(() => onChange(added(draft)))
    list.current?.querySelector<HTMLInputElement>('li:last-child input')?.focus()
  }
  return (
    <>
      <ol ref={list} aria-label={copy.editor.entries} className="flex flex-col gap-2">
        {entries.map((entry, at) => {
          const fault = faultOf(draft, entry)
          const change = changeOf(entry, at, before)
          return (
            <li key={entry.key} data-entry={at} className="flex flex-wrap items-start gap-2">
              <TextField
                label={copy.editor.position(at)}
                error={fault === '' ? undefined : fault}
                fieldClassName="min-w-0 grow sm:max-w-80"
                autoComplete="off"
                spellCheck={false}
                value={entry.name}
                onChange={(text) => onChange(renamed(draft, entry.key, text))}
              />
              <span className="flex gap-1 pt-5">
                <IconButton
                  icon="chevron-up"
                  label={copy.editor.moveUp(entry.name || copy.editor.unnamed)}
                  why={at === 0 ? copy.editor.isFirst : undefined}
                  onClick={() => move(entry, -1)}
                />
                <IconButton
                  icon="chevron-down"
                  label={copy.editor.moveDown(entry.name || copy.editor.unnamed)}
                  why={at === entries.length - 1 ? copy.editor.isLast : undefined}
                  onClick={() => move(entry, 1)}
                />
                <IconButton
                  icon="trash"
                  label={copy.editor.remove(entry.name || copy.editor.unnamed)}
                  onClick={() => onChange(removed(draft, entry.key))}
                />
              </span>
              {change !== '' && <span className="pt-6 text-small text-warn">{change}</span>}
            </li>
          )
        })}
      </ol>
      <div>
        <Button
          icon="plus"
          why={entries.length >= ENTRIES_MAX ? copy.editor.full(ENTRIES_MAX) : undefined}
          onClick={add}
        >
          {copy.editor.add}
        </Button>
      </div>
    </>
  )
}

const SHORT = 12

type TrackProps = {
  readonly plan: CodecPlan
  readonly body: { entries: { name: string; was: string | null }[] }
  readonly onClose: () => void
  readonly onTracked: () => void
}

/** Requires the hash and a reason: the tracked change removes data, although tracking itself does not. */
function TrackDialog({ plan, body, onClose, onTracked }: TrackProps) {
  const queries = useQueryClient()
  const [typed, setTyped] = useState('')
  const [reason, setReason] = useState('')
  const short = plan.after.hash.slice(0, SHORT)
  const { busy, error, submit } = useSubmit(async () => {
    await call('POST /api/v1/registry/codec-change', { body: { ...body, reason, confirm: plan.after.hash } })
    await queries.invalidateQueries({ queryKey: ['GET /api/v1/registry/codec-change'] })
    onTracked()
  })
  return (
    <Dialog
      open
      keep
      onClose={onClose}
      title={copy.trackDialog.title}
      footer={
        <>
          <Button onClick={onClose}>{copy.common.cancel}</Button>
          <Button
            type="submit"
            form="track-codec-plan"
            kind="primary"
            busy={busy}
            why={missingConfirmation({ text: short, typed, reason })}
          >
            {copy.trackDialog.confirm}
          </Button>
        </>
      }
    >
      <form id="track-codec-plan" onSubmit={submit} className="flex flex-col gap-4">
        <p className="prose">{copy.trackDialog.text}</p>
        <TypedField text={short} value={typed} onChange={setTyped} />
        <ReasonField value={reason} onChange={setReason} />
        <SubmitProblem error={error} waitSeconds={0} />
      </form>
    </Dialog>
  )
}
