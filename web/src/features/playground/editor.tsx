'use client'
/** Edits the request as form, JSON or wire frame: three views of one value. */
import type { PlaygroundShard } from '@vacancy/shared/contract'
import { COMMANDS, type FieldSpec } from '@vacancy/shared/wire'
import clsx from 'clsx'
import { type ReactNode, useState } from 'react'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { Field, TextArea } from '../../ui/field.tsx'
import { ViewTabs } from '../../ui/tabs.tsx'
import type { Counts } from './beside.ts'
import { isFirst } from './catalogue.ts'
import * as copy from './copy.ts'
import { FieldInput } from './field-input.tsx'
import { type Compiled, type Draft, jsonOf, parseRequest, withField } from './request.ts'
import { PasteFrame, WireView } from './wire-view.tsx'

type EditorProps = {
  readonly draft: Draft
  readonly onDraft: (draft: Draft) => void
  readonly compiled: Compiled
  readonly shard: PlaygroundShard | null
  /** A run was attempted: missing fields are shown as errors. */
  readonly isTried: boolean
  /** JSON text that is not a valid request; the form shows the last valid one. */
  readonly text: string | undefined
  readonly onText: (text: string | undefined) => void
  readonly counts: Counts
  readonly belowDates: ReactNode
}

/** Fields that take a whole row. */
const WIDE: ReadonlySet<string> = new Set(['dates', 'rateFeatures'])

const VIEWS = [
  { id: 'form', label: copy.editor.form },
  { id: 'json', label: copy.editor.json },
  { id: 'wire', label: copy.editor.wire },
] as const

export function Editor({ draft, onDraft, compiled, shard, isTried, text, onText, counts, belowDates }: EditorProps) {
  const [view, setView] = useState<string>(text === undefined ? 'form' : 'json')
  const [lit, setLit] = useState('')
  const parsed = text === undefined ? undefined : parseRequest(text)
  const isStuck = parsed !== undefined && !parsed.ok
  const change = (next: Draft) => {
    onText(undefined)
    onDraft(next)
  }
  return (
    <ViewTabs label={copy.editor.label} value={view} onChange={setView} tabs={VIEWS}>
      {isStuck && view !== 'json' && (
        <Banner
          level="warn"
          title={copy.editor.jsonError(parsed.line)}
          className="mb-3"
          actions={<Button onClick={() => onText(undefined)}>{copy.editor.discardJson}</Button>}
        />
      )}
      {view === 'form' && (
        <FormView
          draft={draft}
          onDraft={change}
          shard={shard}
          compiled={compiled}
          isTried={isTried}
          lit={lit}
          onLight={setLit}
          counts={counts}
          belowDates={belowDates}
        />
      )}
      {view === 'json' && (
        <Field
          label={copy.editor.jsonField}
          error={isStuck ? copy.editor.errorAt(parsed.line, parsed.column, parsed.reason) : undefined}
          hint={copy.editor.jsonHint}
        >
          {(wire) => (
            <TextArea
              {...wire}
              rows={18}
              spellCheck={false}
              autoComplete="off"
              className="font-mono text-table"
              value={text ?? jsonOf(draft)}
              onChange={({ target }) => {
                onText(target.value)
                const next = parseRequest(target.value)
                if (next.ok) onDraft({ ...draft, ...next.draft })
              }}
              onBlur={() => {
                if (!isStuck) onText(undefined)
              }}
            />
          )}
        </Field>
      )}
      {view === 'wire' && (
        <>
          {compiled.ok ? (
            <WireView
              label={copy.editor.requestFrame}
              bytes={compiled.frame}
              lit={lit}
              onLight={setLit}
              note={copy.editor.correlationNote}
            />
          ) : (
            <Banner level="warn" title={copy.editor.incomplete(compiled.reason)} />
          )}
          <PasteFrame onRequest={(pasted) => change({ ...draft, ...pasted })} />
        </>
      )}
    </ViewTabs>
  )
}

type FormViewProps = Omit<EditorProps, 'text' | 'onText'> & {
  readonly lit: string
  readonly onLight: (field: string) => void
}

function FormView({ draft, onDraft, shard, compiled, isTried, lit, onLight, counts, belowDates }: FormViewProps) {
  const [isMore, setMore] = useState(false)
  // A trace is of programs.
  const specs: readonly FieldSpec[] = COMMANDS[draft.command].fields.filter(({ name }) => name !== 'trace')
  const isGiven = (name: string) => draft.fields[name] !== undefined
  const first = specs.filter((spec) => isFirst(spec, isGiven(spec.name)))
  const others = specs.filter((spec) => !first.includes(spec))
  const segment = draft.fields['segment']
  const errorOf = ({ name }: FieldSpec) => {
    if (compiled.ok || compiled.field !== name) return undefined
    // An empty field is an error only after an attempt to run.
    return isGiven(name) || isTried ? compiled.reason : undefined
  }
  const input = (spec: FieldSpec) => (
    // biome-ignore lint/a11y/noStaticElementInteractions: highlights the bytes of the field in the wire view.
    <div
      key={spec.name}
      data-field={spec.name}
      onFocus={() => onLight(spec.name)}
      onMouseEnter={() => onLight(spec.name)}
      onMouseLeave={() => onLight('')}
      className={clsx(
        'min-w-0 rounded-control',
        WIDE.has(spec.name) && 'sm:col-span-2',
        lit === spec.name && 'outline-1 outline-accent outline-offset-4',
      )}
    >
      <FieldInput
        command={draft.command}
        spec={spec}
        value={draft.fields[spec.name]}
        onChange={(value) => onDraft(withField(draft, spec.name, value))}
        shard={shard}
        segment={typeof segment === 'string' ? segment : undefined}
        error={errorOf(spec)}
        countOf={(value) => counts.of(spec.name, value)}
      />
      {spec.name === 'dates' && belowDates}
    </div>
  )
  return (
    <div className="grid grid-cols-1 items-start gap-3 sm:grid-cols-2">
      {first.map(input)}
      {first.length === 0 && (
        <p className="text-text-2 sm:col-span-2">
          {COMMANDS[draft.command].summary} {copy.editor.noFields}
        </p>
      )}
      {counts.note !== '' && (
        <p data-counts-note="" className="text-small text-text-3 sm:col-span-2">
          {counts.note}
        </p>
      )}
      {others.length > 0 && (
        <Button
          kind="quiet"
          icon={isMore ? 'chevron-up' : 'chevron-down'}
          aria-expanded={isMore}
          className="justify-self-start sm:col-span-2"
          onClick={() => setMore(!isMore)}
        >
          {isMore ? copy.editor.fewerFields : copy.editor.moreFields(others.length)}
        </Button>
      )}
      {isMore && others.map(input)}
      {!compiled.ok && compiled.field === undefined && (isTried || Object.keys(draft.fields).length > 0) && (
        <p role="status" className="text-crit text-small sm:col-span-2">
          {compiled.reason}
        </p>
      )}
      {compiled.ok && (
        <details className="min-w-0 sm:col-span-2">
          <summary className="py-1 text-small text-text-2">{copy.editor.frameSize(compiled.frame.length)}</summary>
          <WireView label={copy.editor.requestFrame} bytes={compiled.frame} lit={lit} onLight={onLight} />
        </details>
      )}
    </div>
  )
}
