'use client'
/** The request in three views of one value: form, JSON, wire. */
import type { PlaygroundShard } from '@vacancy/shared/contract'
import { COMMANDS, type FieldSpec } from '@vacancy/shared/wire'
import clsx from 'clsx'
import { useState } from 'react'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { Field, TextArea } from '../../ui/field.tsx'
import { ViewTabs } from '../../ui/tabs.tsx'
import { isFirst } from './catalogue.ts'
import { FieldInput } from './field-input.tsx'
import { type Compiled, type Draft, jsonOf, parseRequest, withField } from './request.ts'
import { PasteFrame, WireView } from './wire-view.tsx'

type EditorProps = {
  readonly draft: Draft
  readonly onDraft: (draft: Draft) => void
  readonly compiled: Compiled
  readonly shard: PlaygroundShard | null
  /** The run was tried with a request that cannot be sent: what is missing is shown. */
  readonly isTried: boolean
  /** Text of the JSON view that is no request yet: it stays as it is; the form shows the last request that was. */
  readonly text: string | undefined
  readonly onText: (text: string | undefined) => void
}

const VIEWS = [
  { id: 'form', label: 'Form' },
  { id: 'json', label: 'JSON' },
  { id: 'wire', label: 'Wire' },
] as const

export function Editor({ draft, onDraft, compiled, shard, isTried, text, onText }: EditorProps) {
  const [view, setView] = useState<string>(text === undefined ? 'form' : 'json')
  const [lit, setLit] = useState('')
  const parsed = text === undefined ? undefined : parseRequest(text)
  const isStuck = parsed !== undefined && !parsed.ok
  const change = (next: Draft) => {
    onText(undefined)
    onDraft(next)
  }
  return (
    <ViewTabs label="Request as" value={view} onChange={setView} tabs={VIEWS}>
      {isStuck && view !== 'json' && (
        <Banner
          level="warn"
          title={`The JSON is wrong in line ${parsed.line}: this is the last request that could be read.`}
          className="mb-3"
          actions={<Button onClick={() => onText(undefined)}>Drop the JSON text</Button>}
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
        />
      )}
      {view === 'json' && (
        <Field
          label="Request as JSON"
          error={isStuck ? `Line ${parsed.line}, column ${parsed.column}: ${parsed.reason}` : undefined}
          hint="Numbers beyond 9 007 199 254 740 991 are written as text."
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
              label="The frame of the request"
              bytes={compiled.frame}
              lit={lit}
              onLight={setLit}
              note="the correlation id is set when it is sent"
            />
          ) : (
            <Banner level="warn" title={`There are no bytes yet: ${compiled.reason}`} />
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

function FormView({ draft, onDraft, shard, compiled, isTried, lit, onLight }: FormViewProps) {
  const [isMore, setMore] = useState(false)
  const specs: readonly FieldSpec[] = COMMANDS[draft.command].fields
  const isGiven = (name: string) => draft.fields[name] !== undefined
  const first = specs.filter((spec) => isFirst(spec, isGiven(spec.name)))
  const others = specs.filter((spec) => !first.includes(spec))
  const segment = draft.fields['segment']
  const errorOf = ({ name }: FieldSpec) => {
    if (compiled.ok || compiled.field !== name) return undefined
    // What is not filled in yet is no fault until somebody tries to run it.
    return isGiven(name) || isTried ? compiled.reason : undefined
  }
  const input = (spec: FieldSpec) => (
    // biome-ignore lint/a11y/noStaticElementInteractions: lights up the bytes of the field in the wire view.
    <div
      key={spec.name}
      data-field={spec.name}
      onFocus={() => onLight(spec.name)}
      onMouseEnter={() => onLight(spec.name)}
      onMouseLeave={() => onLight('')}
      className={clsx(
        'min-w-0 rounded-control',
        spec.name === 'dates' && 'sm:col-span-2',
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
      />
    </div>
  )
  return (
    <div className="grid grid-cols-1 items-start gap-3 sm:grid-cols-2">
      {first.map(input)}
      {first.length === 0 && (
        <p className="text-text-2 sm:col-span-2">{COMMANDS[draft.command].summary} It needs no fields.</p>
      )}
      {others.length > 0 && (
        <Button
          kind="quiet"
          icon={isMore ? 'chevron-up' : 'chevron-down'}
          aria-expanded={isMore}
          className="justify-self-start sm:col-span-2"
          onClick={() => setMore(!isMore)}
        >
          {isMore ? 'Fewer fields' : `More fields (${others.length})`}
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
          <summary className="py-1 text-small text-text-2">Its bytes ({compiled.frame.length})</summary>
          <WireView label="The frame of the request" bytes={compiled.frame} lit={lit} onLight={onLight} />
        </details>
      )}
    </div>
  )
}
