'use client'
/** Edits the codec list and asks the control plane what that would mean. Nothing is changed from here. */
import { useQueryClient } from '@tanstack/react-query'
import type { CodecPlan } from '@vacancy/shared/contract'
import { useRef, useState } from 'react'
import { flushSync } from 'react-dom'
import { call } from '../../lib/api.ts'
import { counted } from '../../lib/format.ts'
import { useWhyNot } from '../../lib/session.ts'
import { announce } from '../../ui/announce.ts'
import { Button } from '../../ui/button.tsx'
import { missingConfirmation, ReasonField, TypedField } from '../../ui/confirm-fields.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Field, Input } from '../../ui/field.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { Panel } from '../../ui/panel.tsx'
import { SubmitProblem, useSubmit } from '../session/password-form.tsx'
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

type EditorProps = { readonly names: readonly string[]; readonly onClose: () => void }

export function CodecEditor({ names, onClose }: EditorProps) {
  const why = useWhyNot('admin')
  // As it was when the editing began: what is typed is never overwritten.
  const [before] = useState(names)
  const [draft, setDraft] = useState<Draft>(() => draftOf(names))
  const [plan, setPlan] = useState<CodecPlan>()
  const [isKeeping, setKeeping] = useState(false)
  const body = { entries: draft.entries.map(({ name, was }) => ({ name, was })) }
  const { busy, error, submit } = useSubmit(async () => {
    setPlan(await call('POST /api/v1/registry/codec-plan', { body }))
    announce('The plan is below the list', 'polite')
  })
  const change = (next: Draft) => {
    setDraft(next)
    // A plan is of the list that it was made for.
    setPlan(undefined)
  }
  const faults = draft.entries.filter((entry) => faultOf(draft, entry) !== '').length
  const blocked =
    why ??
    (draft.entries.length === 0
      ? 'A list has at least one entry'
      : faults > 0
        ? `First mend ${counted(faults, 'entry', 'entries')}`
        : isSame(draft, before)
          ? 'Nothing is changed yet'
          : undefined)
  return (
    <>
      <Panel
        title="Another codec list"
        data={{ 'data-editor': 'codecs' }}
        actions={
          <>
            <Button
              onClick={() => change(draftOf(before))}
              why={isSame(draft, before) ? 'Nothing is changed yet' : undefined}
            >
              Begin again
            </Button>
            <Button onClick={onClose}>Close editor</Button>
          </>
        }
      >
        <form aria-label="Codec list" onSubmit={submit} className="flex flex-col gap-3">
          <EntryList draft={draft} before={before} onChange={change} />
          <SubmitProblem error={error} waitSeconds={0} />
          <div>
            <Button type="submit" kind="primary" busy={busy} why={blocked}>
              Show the plan
            </Button>
          </div>
        </form>
      </Panel>
      {plan && (
        <Panel
          title="Plan of the change"
          data={{ 'data-plan': plan.after.hash }}
          actions={
            <Button kind="primary" why={why} onClick={() => setKeeping(true)}>
              Follow this plan…
            </Button>
          }
        >
          <PlanView plan={plan} />
        </Panel>
      )}
      {plan && isKeeping && <KeepDialog plan={plan} body={body} onClose={() => setKeeping(false)} onKept={onClose} />}
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
    announce(`${entry.name || 'The entry'} is at place ${entries.indexOf(entry) + by}`, 'polite')
  }
  const add = () => {
    // Drawn at once: a key that is pressed right after belongs to the new field.
    flushSync(() => onChange(added(draft)))
    list.current?.querySelector<HTMLInputElement>('li:last-child input')?.focus()
  }
  return (
    <>
      <ol ref={list} aria-label="Entries, in order" className="flex flex-col gap-2">
        {entries.map((entry, at) => {
          const fault = faultOf(draft, entry)
          const change = changeOf(entry, at, before)
          return (
            <li key={entry.key} data-entry={at} className="flex flex-wrap items-start gap-2">
              <Field
                label={`Place ${at}`}
                error={fault === '' ? undefined : fault}
                className="min-w-0 grow sm:max-w-80"
              >
                {(wire) => (
                  <Input
                    {...wire}
                    autoComplete="off"
                    spellCheck={false}
                    value={entry.name}
                    onChange={({ target }) => onChange(renamed(draft, entry.key, target.value))}
                  />
                )}
              </Field>
              <span className="flex gap-1 pt-5">
                <IconButton
                  icon="chevron-up"
                  label={`Move ${entry.name || 'the entry'} up`}
                  why={at === 0 ? 'It is the first' : undefined}
                  onClick={() => move(entry, -1)}
                />
                <IconButton
                  icon="chevron-down"
                  label={`Move ${entry.name || 'the entry'} down`}
                  why={at === entries.length - 1 ? 'It is the last' : undefined}
                  onClick={() => move(entry, 1)}
                />
                <IconButton
                  icon="trash"
                  label={`Remove ${entry.name || 'the entry'}`}
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
          why={entries.length >= ENTRIES_MAX ? `A list has ${ENTRIES_MAX} entries at most` : undefined}
          onClick={add}
        >
          Add entry
        </Button>
      </div>
    </>
  )
}

const SHORT = 12

type KeepProps = {
  readonly plan: CodecPlan
  readonly body: { entries: { name: string; was: string | null }[] }
  readonly onClose: () => void
  readonly onKept: () => void
}

/** Level 3: what will be carried out removes data, even though nothing happens by this. */
function KeepDialog({ plan, body, onClose, onKept }: KeepProps) {
  const queries = useQueryClient()
  const [typed, setTyped] = useState('')
  const [reason, setReason] = useState('')
  const short = plan.after.hash.slice(0, SHORT)
  const { busy, error, submit } = useSubmit(async () => {
    await call('POST /api/v1/registry/codec-change', { body: { ...body, reason, confirm: plan.after.hash } })
    await queries.invalidateQueries({ queryKey: ['registry', 'codec-change'] })
    onKept()
  })
  return (
    <Dialog
      open
      keep
      onClose={onClose}
      title="Follow the plan of another codec list"
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            type="submit"
            form="keep-codec-plan"
            kind="primary"
            busy={busy}
            why={missingConfirmation({ text: short, typed, reason })}
          >
            Follow the plan
          </Button>
        </>
      }
    >
      <form id="keep-codec-plan" onSubmit={submit} className="flex flex-col gap-4">
        <p className="prose">
          By this nothing happens at registry and nodes. The plan stays on this page for everybody, and its steps tick
          themselves as registry and nodes report the list with the hash that you type here: compare it with what you
          find on the machines.
        </p>
        <TypedField text={short} value={typed} onChange={setTyped} />
        <ReasonField value={reason} onChange={setReason} />
        <SubmitProblem error={error} waitSeconds={0} />
      </form>
    </Dialog>
  )
}
