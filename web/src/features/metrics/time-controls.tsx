'use client'
/** The time range of the charts of a page: presets, a typed range, zooming, the pinned time, and the marked events. */
import type { ClusterEvent } from '@vacancy/shared/contract'
import { type SubmitEvent, useId, useState } from 'react'
import { clock, utc } from '../../lib/format.ts'
import { useKey } from '../../lib/keys.ts'
import { routes } from '../../lib/routes.ts'
import { serverNow } from '../../lib/server-time.ts'
import { useMe } from '../../lib/session.ts'
import { addRecent, parseRange, rangeText } from '../../lib/time-range.ts'
import { Chip } from '../../ui/badge.tsx'
import { event as eventCopy } from '../../ui/data-copy.ts'
import { EventList } from '../../ui/event-list.tsx'
import { Input } from '../../ui/field.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { Link } from '../../ui/link.tsx'
import { useSavePreferences } from '../settings/preferences.ts'
import * as copy from './copy.ts'
import { MARK_KINDS, type MarkKind } from './marks.ts'
import type { TimeState } from './time-state.ts'

const PRESETS = ['now-5m', 'now-15m', 'now-1h', 'now-6h', 'now-24h'] as const

type TimeControlsProps = TimeState & {
  readonly shard?: string | undefined
  /** Presets and zooming only, for a panel among others. */
  readonly isCompact?: boolean
}

export function TimeControls({ range, control, pinned, choose, shard, isCompact = false }: TimeControlsProps) {
  useKey('Backspace', control.onZoomOut, copy.time.zoomOut)
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset would draw a box around chips. */}
      <div role="group" aria-label={copy.time.range} className="flex gap-1">
        {PRESETS.map((from) => (
          <Chip
            key={from}
            pressed={range.from === from && range.to === 'now'}
            onClick={() => choose({ from, to: 'now' })}
          >
            {copy.time.presets[from]}
          </Chip>
        ))}
      </div>
      {!isCompact && <TypedRange range={range} choose={choose} />}
      <div className="flex">
        <IconButton icon="chevron-left" label={copy.time.earlier} onClick={() => control.onStep('earlier')} />
        <IconButton icon="chevron-right" label={copy.time.later} onClick={() => control.onStep('later')} />
        <IconButton icon="plus" label={copy.time.zoomIn} onClick={() => control.onStep('in')} />
        <IconButton icon="minus" label={copy.time.zoomOut} onClick={control.onZoomOut} />
      </div>
      {pinned === undefined ? (
        !isCompact && <span className="text-small text-text-3 max-md:sr-only">{copy.time.hint}</span>
      ) : (
        <span className="flex items-center gap-2" data-pin={pinned}>
          <Chip removeLabel={copy.time.unpin} onRemove={() => control.onPin(undefined)}>
            <span data-tip={utc(pinned)}>{copy.time.pinned(clock(pinned))}</span>
          </Chip>
          <Link href={shard === undefined ? routes.overview({ at: pinned }) : routes.shard(shard, { at: pinned })}>
            {copy.time.open}
          </Link>
        </span>
      )}
    </div>
  )
}

type TypedProps = Pick<TimeState, 'range' | 'choose'>

/** A text field that suggests the last five typed ranges. */
function TypedRange({ range, choose }: TypedProps) {
  const id = useId()
  const { ranges } = useMe().preferences
  const save = useSavePreferences()
  const [typed, setTyped] = useState<string>()
  const [isInvalid, setInvalid] = useState(false)
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    if (typed === undefined) return
    const parsed = parseRange(typed, serverNow())
    setInvalid(parsed === undefined)
    if (!parsed) return
    setTyped(undefined)
    choose(parsed)
    save({ ranges: [...addRecent(ranges, typed.trim().slice(0, TYPED_MAX))] })
  }
  return (
    <form onSubmit={submit} className="min-w-0">
      <Input
        aria-label={copy.time.typed}
        aria-invalid={isInvalid || undefined}
        aria-describedby={isInvalid ? `${id}-error` : undefined}
        data-tip={copy.time.typed}
        list={`${id}-recent`}
        autoComplete="off"
        spellCheck={false}
        maxLength={TYPED_MAX}
        value={typed ?? rangeText(range)}
        onChange={(event) => setTyped(event.target.value)}
        onFocus={(event) => event.target.select()}
        onBlur={() => {
          setTyped(undefined)
          setInvalid(false)
        }}
        className="!w-72 max-w-full !text-table tabular-nums"
      />
      <datalist id={`${id}-recent`}>
        {ranges.map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
      {isInvalid && (
        <p id={`${id}-error`} role="alert" className="max-w-66 text-crit text-small">
          {copy.time.invalid}
        </p>
      )}
    </form>
  )
}

const TYPED_MAX = 64

type MarksProps = {
  readonly events: readonly ClusterEvent[]
  readonly kinds: readonly MarkKind[]
  readonly onToggle: (kind: MarkKind) => void
}

/** Which events are on the charts, and their list, where each opens the cluster at its time. */
export function MarkControls({ events, kinds, onToggle }: MarksProps) {
  const [isOpen, setOpen] = useState(false)
  const shown = events.filter(({ kind }) => kinds.includes(kind))
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset would draw a box around chips. */}
      <div role="group" aria-label={copy.time.events} className="flex flex-wrap gap-1">
        {MARK_KINDS.map((kind) => {
          const count = events.filter((event) => event.kind === kind).length
          return (
            <Chip key={kind} pressed={kinds.includes(kind)} onClick={() => onToggle(kind)}>
              {eventCopy.kinds[kind]} {count}
            </Chip>
          )
        })}
      </div>
      <details className="text-table open:basis-full" onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary className="w-fit cursor-pointer rounded-control text-small text-text-2">
          {copy.time.list(shown.length)}
        </summary>
        {/* Hundreds of rows whose ages tick: only while they are seen. */}
        {isOpen && (
          <div className="max-h-72 overflow-y-auto pt-1">
            {shown.length === 0 ? (
              <p className="text-small text-text-3">{copy.time.none}</p>
            ) : (
              <EventList label={copy.time.list(shown.length)} events={shown} isLinked />
            )}
          </div>
        )}
      </details>
    </div>
  )
}
