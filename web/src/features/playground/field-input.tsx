'use client'
/** The input of one request field, chosen by its row of the command table. */
import { useQuery } from '@tanstack/react-query'
import type { PlaygroundShard } from '@vacancy/shared/contract'
import type { FieldSpec, JsonFieldValue } from '@vacancy/shared/wire'
import { type ReactNode, useEffect, useState } from 'react'
import { Icon } from '../../icons/icon.tsx'
import { call } from '../../lib/api.ts'
import { count } from '../../lib/format.ts'
import { Combobox, type ComboOptions, MultiCombobox } from '../../ui/combobox.tsx'
import { Checkbox, Field, Input } from '../../ui/field.tsx'
import { Select } from '../../ui/select.tsx'
import { labelOf, type QueryCommand, type Widget, type WordKind, widgetOf } from './catalogue.ts'
import * as copy from './copy.ts'
import { DatesField } from './date-range.tsx'
import { boundsOf } from './dates.ts'

export type FieldProps = {
  readonly command: QueryCommand
  readonly spec: FieldSpec
  readonly value: JsonFieldValue | undefined
  readonly onChange: (value: JsonFieldValue | undefined) => void
  readonly shard: PlaygroundShard | null
  /** Segment of the request, for names within it. */
  readonly segment: string | undefined
  readonly error: string | undefined
  /** How many properties match with a value of this field. */
  readonly countOf: (value: string) => number | undefined
}

export function FieldInput(props: FieldProps): ReactNode {
  const { command, spec, value, onChange, shard, segment, error } = props
  const widget = widgetOf(spec)
  const label = labelOf(command, spec.name)
  const bounds = boundsOf(shard)
  const unknown = useUnknown(widget, props)
  const dates = typeof value === 'string' ? [value] : Array.isArray(value) ? value : []
  if (widget.as === 'dates' || widget.as === 'date') {
    const single = widget.as === 'date'
    return (
      <DatesField
        label={label}
        required={spec.required}
        value={dates}
        single={single}
        bounds={bounds}
        segment={segment}
        error={error}
        onChange={(next) => onChange(next.length === 0 ? undefined : single ? next[0] : next)}
      />
    )
  }
  if (widget.as === 'switch') {
    return (
      <Checkbox
        label={label}
        title={spec.summary}
        checked={typeof value === 'number' && value > 0}
        onChange={(event) => onChange(event.target.checked ? widget.on : undefined)}
      />
    )
  }
  if (widget.as === 'bits') {
    const sum = typeof value === 'number' ? value : 0
    const boxes = widget.options.map((option) => ({ ...option, id: option.label, chosen: (sum & option.value) !== 0 }))
    return <Boxes {...props} label={label} boxes={boxes} onToggle={(bit) => onChange(sum ^ bit.value || undefined)} />
  }
  if (widget.as === 'few') return <FewBoxes {...props} label={label} {...widget} />
  if (widget.as === 'words' && widget.kind === 'rate_feature' && shard && shard.rateFeatures.length > 0) {
    return <FeatureBoxes {...props} label={label} features={shard.rateFeatures} />
  }
  return (
    <Field label={label} required={spec.required} error={error} hint={hintOf(widget, spec, props, unknown)}>
      {(wire) => <Control {...props} widget={widget} wire={wire} />}
    </Field>
  )
}

function hintOf(widget: Widget, spec: FieldSpec, { value, shard }: FieldProps, unknown: readonly string[]): string {
  if (widget.as === 'words' || widget.as === 'word') {
    return unknown.length === 0 ? '' : copy.fields.unused(shard?.id, unknown.join(', '))
  }
  if (spec.name === 'limit' && shard?.queryLimit) return copy.fields.limitHint(count(shard.queryLimit))
  return widget.as === 'number' && value === undefined ? spec.summary : ''
}

/** Completions per response of the control plane. */
const WORDS_MAX = 200
const SETTLED_MS = 500
const KNOWN_MS = 60_000
const UNKNOWN_NAMED = 5

/** Values that the data does not contain, shown as a hint. Properties are not checked: there are too many. */
function useUnknown(widget: Widget, { value, shard, segment }: FieldProps): readonly string[] {
  const kind = 'kind' in widget && widget.kind !== 'property' ? widget.kind : undefined
  const [settled, setSettled] = useState(value)
  // Waits for a pause in typing.
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), SETTLED_MS)
    return () => clearTimeout(timer)
  }, [value])
  const given = typeof settled === 'string' ? [settled] : Array.isArray(settled) ? settled : []
  const { data = [] } = useQuery({
    queryKey: ['playground-unknown', shard?.id, kind, segment, given],
    queryFn: async ({ signal }) => {
      if (kind === undefined) return []
      const complete = (prefix: string) =>
        call('GET /api/v1/words', { query: queryOf(shard?.id, kind, segment, prefix), signal })
      const all = await complete('')
      const known = new Set(all.words.map(({ word }) => word))
      const candidates = given.filter((one) => !known.has(one)).slice(0, UNKNOWN_NAMED)
      if (!all.more) return candidates
      // More names than one response holds: look up each as a prefix, where an exact match comes first.
      const isThere = await Promise.all(candidates.map(async (one) => (await complete(one)).words[0]?.word === one))
      return candidates.filter((_, at) => !isThere[at])
    },
    enabled: kind !== undefined && shard !== null && given.length > 0,
    staleTime: KNOWN_MS,
  })
  return settled === value ? data : []
}

type ControlProps = FieldProps & {
  readonly widget: Widget
  readonly wire: Parameters<Parameters<typeof Field>[0]['children']>[0]
}

function Control({ widget, wire, spec, value, onChange, shard, segment, countOf }: ControlProps) {
  if (widget.as === 'word') {
    return (
      <Combobox
        wire={wire}
        free
        value={typeof value === 'string' ? value : ''}
        onChange={(text) => onChange(text === '' ? undefined : text)}
        options={wordsOf(shard?.id, widget.kind, segment, countOf)}
      />
    )
  }
  if (widget.as === 'words' || widget.as === 'list') {
    return (
      <MultiCombobox
        wire={wire}
        free
        values={Array.isArray(value) ? value : []}
        onChange={(next) => onChange(next.length === 0 && !spec.required && !spec.keepsEmpty ? undefined : next)}
        options={widget.as === 'words' ? wordsOf(shard?.id, widget.kind, segment, countOf) : []}
      />
    )
  }
  if (widget.as === 'choice') {
    return (
      <Select
        {...wire}
        options={[
          { value: '', label: copy.searches.default },
          ...widget.options.map((option) => ({ value: String(option.value), label: option.label })),
        ]}
        value={value === undefined ? '' : String(value)}
        onChange={({ target }) => onChange(target.value === '' ? undefined : Number(target.value))}
      />
    )
  }
  if (widget.as === 'lines') return <LinesInput wire={wire} value={value} onChange={onChange} />
  if (widget.as === 'number') return <NumberInput wire={wire} widget={widget} value={value} onChange={onChange} />
  return (
    <Input
      {...wire}
      value={typeof value === 'string' ? value : ''}
      onChange={({ target }) => onChange(target.value === '' ? undefined : target.value)}
    />
  )
}

type NumberProps = {
  readonly wire: ControlProps['wire']
  readonly widget: Extract<Widget, { as: 'number' }>
  readonly value: JsonFieldValue | undefined
  readonly onChange: (value: JsonFieldValue | undefined) => void
}

/** Keeps the typed text until blur, since "1." may become a number. */
function NumberInput({ wire, widget, value, onChange }: NumberProps) {
  const [text, setText] = useState<string>()
  const own = value === undefined ? '' : String(value)
  return (
    <Input
      {...wire}
      inputMode={widget.step === 1 ? 'numeric' : 'decimal'}
      autoComplete="off"
      className="num"
      value={text ?? own}
      onChange={({ target }) => {
        const typed = target.value.trim()
        setText(target.value)
        const number = Number(typed)
        // Text that is not a number stays in the request, whose check reports it.
        onChange(
          typed === '' ? undefined : Number.isNaN(number) || !Number.isSafeInteger(Math.trunc(number)) ? typed : number,
        )
      }}
      onBlur={() => setText(undefined)}
    />
  )
}

/** The lines of a stay as JSON. Keeps the typed text until blur, since unfinished text is not JSON. */
function LinesInput({ wire, value, onChange }: Omit<NumberProps, 'widget'>) {
  const [text, setText] = useState<string>()
  const own = value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value)
  return (
    <Input
      {...wire}
      autoComplete="off"
      placeholder={copy.fields.linesExample}
      value={text ?? own}
      onChange={({ target }) => {
        setText(target.value)
        onChange(target.value.trim() === '' ? undefined : linesOf(target.value))
      }}
      onBlur={() => setText(undefined)}
    />
  )
}

/** Text that is not a list stays in the request, whose check reports it. */
function linesOf(text: string): JsonFieldValue {
  try {
    const parsed: unknown = JSON.parse(text)
    return Array.isArray(parsed) ? (parsed as JsonFieldValue) : text
  } catch {
    return text
  }
}

/** A checkbox as a chip, with a check mark beside the colour. */
const CHIP =
  'relative inline-flex min-h-6 cursor-pointer select-none items-center gap-1 rounded-full border border-line-strong px-2.5 text-small text-text-2 hover:bg-sunken has-checked:border-accent has-checked:bg-info-bg has-checked:text-text has-focus-visible:outline-2 has-focus-visible:outline-focus has-focus-visible:outline-offset-2 pointer-coarse:min-h-11'

type BoxesProps<B> = Pick<FieldProps, 'error' | 'countOf'> & {
  readonly label: string
  readonly boxes: readonly B[]
  readonly onToggle: (box: B) => void
}
/** `id` is the value that is counted. */
type Box = { readonly id: string; readonly label: string; readonly chosen: boolean }

function Boxes<B extends Box>({ label, boxes, onToggle, error, countOf }: BoxesProps<B>) {
  return (
    <fieldset className="min-w-0">
      <legend className="pb-1 font-medium text-small text-text-2">{label}</legend>
      <div className="flex flex-wrap gap-1.5">
        {boxes.map((box) => (
          <label key={box.id} className={CHIP}>
            <input type="checkbox" className="sr-only" checked={box.chosen} onChange={() => onToggle(box)} />
            {box.chosen && <Icon name="check" size={12} />}
            {box.label}
            <BoxCount properties={countOf(box.id)} />
          </label>
        ))}
      </div>
      {error && <p className="text-crit text-small">{error}</p>}
    </fieldset>
  )
}

function BoxCount({ properties }: { readonly properties: number | undefined }) {
  if (properties === undefined) return null
  return (
    <span data-matches={properties} className="num text-text-3">
      <span aria-hidden="true">({count(properties)})</span>
      <span className="sr-only">, {copy.counts.matching(count(properties))}</span>
    </span>
  )
}

type FeatureBoxesProps = FieldProps & { readonly label: string; readonly features: readonly string[] }

function FeatureBoxes({ features, value, onChange, spec, ...props }: FeatureBoxesProps) {
  const chosen = Array.isArray(value) ? value : []
  // Names missing from the codec list are kept; the node reports them.
  const shown = [...features, ...chosen.filter((name) => !features.includes(name))]
  const boxes = shown.map((name) => ({
    id: name,
    label: features.includes(name) ? name : copy.fields.notInCodecs(name),
    chosen: chosen.includes(name),
  }))
  return (
    <Boxes
      {...props}
      boxes={boxes}
      onToggle={(box) => {
        const next = box.chosen ? chosen.filter((other) => other !== box.id) : [...chosen, box.id]
        onChange(next.length === 0 && !spec.keepsEmpty ? undefined : next)
      }}
    />
  )
}

type FewBoxesProps = FieldProps & { readonly label: string; readonly min: number; readonly max: number }

/** At most one is chosen; a given value that is none of them is kept, and its error shown. */
function FewBoxes({ min, max, value, onChange, ...props }: FewBoxesProps) {
  const few: JsonFieldValue[] = Array.from({ length: max - min + 1 }, (_, n) => min + n)
  const boxes = (value === undefined || few.includes(value) ? few : [...few, value]).map((own) => ({
    id: String(own),
    label: String(own),
    chosen: own === value,
    own,
  }))
  return <Boxes {...props} boxes={boxes} onToggle={(box) => onChange(box.chosen ? undefined : box.own)} />
}

/** Completions from live data, with the number of properties that match with each, or that have it. */
export function wordsOf(
  shard: string | undefined,
  kind: WordKind,
  segment: string | undefined,
  countOf: FieldProps['countOf'] = () => undefined,
): ComboOptions {
  return async (prefix, signal) => {
    if (kind === 'property' && !segment) return []
    const { words } = await call('GET /api/v1/words', { query: queryOf(shard, kind, segment, prefix), signal })
    return words.map(({ word, properties }) => {
      const matching = countOf(word)
      if (matching !== undefined) return { value: word, hint: copy.counts.matching(count(matching)) }
      return { value: word, ...(properties !== null && { hint: copy.counts.all(properties) }) }
    })
  }
}

function queryOf(shard: string | undefined, kind: WordKind, segment: string | undefined, prefix: string) {
  const ofSegment = kind !== 'segment' && kind !== 'rate_feature' && segment
  return { kind, prefix, limit: WORDS_MAX, ...(shard && { shard }), ...(ofSegment && { segment }) }
}
