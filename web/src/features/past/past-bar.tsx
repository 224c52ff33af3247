'use client'
/** The bar of a past view: its moment, a scrubber over the events, steps, play, and what changed. */
import clsx from 'clsx'
import { type ReactNode, type SubmitEvent, Suspense, useEffect, useId, useRef, useState } from 'react'
import { Icon } from '../../icons/icon.tsx'
import { setAddress, usePath } from '../../lib/address.tsx'
import { utc } from '../../lib/format.ts'
import { useKey } from '../../lib/keys.ts'
import { AT } from '../../lib/past.ts'
import { serverNow } from '../../lib/server-time.ts'
import { parseRange } from '../../lib/time-range.ts'
import { Button } from '../../ui/button.tsx'
import { preloadDialog } from '../../ui/dialog.tsx'
import { Input } from '../../ui/field.tsx'
import { useIsHydrated } from '../../ui/first-paint.ts'
import { IconButton } from '../../ui/icon-button.tsx'
import { late } from '../../ui/late.tsx'
import { NARROW, useMedia } from '../../ui/media.ts'
import { Select } from '../../ui/select.tsx'
import { toast } from '../../ui/toast.tsx'
import * as copy from './copy.ts'
import { hasPast, shardOf, type Window, windowAround } from './moments.ts'
import { eventBeside, useTimeline } from './queries.ts'

const ChangesDrawer = late(async () => (await import('./changes-drawer.tsx')).default)

const MINUTE_MS = 60_000
const TICK_MS = 1_000
const WINDOWS = ['3600', '21600', '86400', '259200'] as const
const SPEEDS = ['1', '10', '60'] as const

/** Shows another moment, or now. Charts have it as their pinned time. */
function show(at: number | undefined, push: boolean): void {
  const search = new URLSearchParams(location.search)
  if (at === undefined || at >= serverNow()) search.delete(AT)
  else search.set(AT, new Date(at).toISOString())
  search.delete('pin')
  setAddress(search.size === 0 ? location.pathname : `${location.pathname}?${search}`, { push })
}

export default function PastBar({ moment }: { readonly moment: string }) {
  const path = usePath()
  const shard = shardOf(path)
  const at = Date.parse(moment)
  const isHydrated = useIsHydrated()
  const [isPlaying, setPlaying] = useState(false)
  const [speed, setSpeed] = useState<(typeof SPEEDS)[number]>('10')
  const [isComparing, setComparing] = useState(false)
  const stepTo = async (side: 'previous' | 'next') => {
    setPlaying(false)
    const event = await eventBeside(at, side, shard).catch((error: Error) => {
      toast({ message: error.message, level: 'warn' })
      return at
    })
    if (event === undefined) toast({ message: copy.bar.noEvent })
    else if (event !== at) show(event, true)
  }
  const stepBy = (ms: number) => {
    setPlaying(false)
    show(at + ms, true)
  }
  useKey('ArrowLeft', () => stepTo('previous'), copy.bar.previousEvent)
  useKey('ArrowRight', () => stepTo('next'), copy.bar.nextEvent)
  useKey('shift+ArrowLeft', () => stepBy(-MINUTE_MS), copy.bar.earlier)
  useKey('shift+ArrowRight', () => stepBy(MINUTE_MS), copy.bar.later)
  useKey('c', () => setComparing(true), copy.bar.changed)
  usePlay(isPlaying, at, Number(speed))
  const isNarrow = useMedia(NARROW)
  const [seconds, setSeconds] = useState<Seconds>('21600')
  const parts = {
    previous: <IconButton icon="back" label={copy.bar.previousEvent} onClick={() => stepTo('previous')} />,
    earlier: <IconButton icon="chevron-left" label={copy.bar.earlier} onClick={() => stepBy(-MINUTE_MS)} />,
    play: (
      <IconButton
        icon={isPlaying ? 'pause' : 'play'}
        label={isPlaying ? copy.bar.pause : copy.bar.play}
        onClick={() => setPlaying(!isPlaying)}
      />
    ),
    later: <IconButton icon="chevron-right" label={copy.bar.later} onClick={() => stepBy(MINUTE_MS)} />,
    next: <IconButton icon="back" className="-scale-x-100" label={copy.bar.nextEvent} onClick={() => stepTo('next')} />,
    speed: (
      <Select
        aria-label={copy.bar.speed}
        value={speed}
        options={SPEEDS.map((value) => ({ value, label: copy.bar.speeds[value] }))}
        onChange={(event) => setSpeed(SPEEDS.find((one) => one === event.target.value) ?? '10')}
      />
    ),
    // It depends on the current time, which differs on the server.
    scrubber: isHydrated && <Scrubber at={at} shard={shard} seconds={seconds} isBare={isNarrow} />,
    window: (
      <Select
        className="shrink-0"
        aria-label={copy.bar.window}
        value={seconds}
        options={WINDOWS.map((value) => ({ value, label: copy.bar.windows[value] }))}
        onChange={(event) => setSeconds(WINDOWS.find((one) => one === event.target.value) ?? '21600')}
      />
    ),
    changed: (
      <Button onClick={() => setComparing(true)} onPointerEnter={preloadDialog}>
        {copy.bar.changed}
      </Button>
    ),
    back: (
      <Button kind="primary" onClick={() => show(undefined, true)}>
        {copy.bar.back}
      </Button>
    ),
  }
  const Parts = isNarrow ? NarrowParts : WideParts
  return (
    <section aria-label={copy.bar.label} data-past={moment} data-no-print="" className={BAR}>
      <Parts parts={parts} time={utc(moment)} isPart={!hasPast(path)} />
      {isComparing && (
        <Suspense fallback={null}>
          <ChangesDrawer at={at} shard={shard} onClose={() => setComparing(false)} />
        </Suspense>
      )}
    </section>
  )
}

const BAR =
  'top-12 z-20 flex flex-col gap-1 border-line border-b bg-info-bg px-4 py-1.5 md:sticky md:gap-2 md:px-6 md:py-2'

type PartsProps = {
  readonly parts: Record<
    'previous' | 'earlier' | 'play' | 'later' | 'next' | 'speed' | 'scrubber' | 'window' | 'changed' | 'back',
    ReactNode
  >
  /** The moment, as it is shown. */
  readonly time: string
  /** The page itself shows now. */
  readonly isPart: boolean
}

function WideParts({ parts, time, isPart }: PartsProps) {
  return (
    <>
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <Title>{copy.bar.title(time)}</Title>
        <span className="text-small text-text-2">{isPart ? copy.bar.partial : copy.bar.disabled}</span>
        <div className="flex flex-wrap items-center gap-1">
          {parts.previous}
          {parts.earlier}
          {parts.play}
          {parts.later}
          {parts.next}
          {parts.speed}
          <TypedMoment />
        </div>
        <span className="ms-auto flex flex-wrap items-center gap-2">
          {parts.changed}
          {parts.back}
        </span>
      </div>
      <div className="flex min-h-16 items-center gap-3">
        <div className="min-w-0 grow">{parts.scrubber}</div>
        {parts.window}
      </div>
    </>
  )
}

/** Two rows, so that the page itself is in view; the other controls are opened on demand. */
function NarrowParts({ parts, time, isPart }: PartsProps) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <div className="flex items-center justify-between gap-2">
        <Title>{time}</Title>
        {parts.back}
      </div>
      <p className={clsx('text-small text-text-2', !isPart && 'sr-only')}>
        {isPart ? copy.bar.partial : copy.bar.disabled}
      </p>
      <div className="-mx-2 flex items-center">
        {parts.previous}
        {parts.play}
        <div className="min-w-0 grow px-1">{parts.scrubber}</div>
        {parts.next}
        <IconButton
          icon="more"
          label={isOpen ? copy.bar.less : copy.bar.more}
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
        />
      </div>
      {isOpen && (
        <div className="flex flex-wrap items-center gap-2">
          {parts.changed}
          {parts.speed}
          {parts.window}
          <span>
            {parts.earlier}
            {parts.later}
          </span>
          <TypedMoment />
        </div>
      )}
    </>
  )
}

function Title({ children }: { readonly children: string }) {
  return (
    <span className="inline-flex min-w-0 items-center gap-1.5 font-semibold text-info">
      <Icon name="clock" />
      <span className="min-w-0 truncate tabular-nums">{children}</span>
    </span>
  )
}

/** Moves the moment while playing; it ends at now. */
function usePlay(isPlaying: boolean, at: number, speed: number): void {
  const latest = useRef(at)
  useEffect(() => {
    latest.current = at
  }, [at])
  useEffect(() => {
    if (!isPlaying) return
    const timer = setInterval(() => show(latest.current + speed * TICK_MS, false), TICK_MS)
    return () => clearInterval(timer)
  }, [isPlaying, speed])
}

function TypedMoment() {
  const id = useId()
  const [typed, setTyped] = useState('')
  const [isInvalid, setInvalid] = useState(false)
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    const pin = parseRange(typed, serverNow())?.pin
    setInvalid(pin === undefined)
    if (pin === undefined) return
    setTyped('')
    show(Date.parse(pin), true)
  }
  return (
    <form onSubmit={submit} className="flex flex-wrap items-center gap-2">
      <Input
        aria-label={copy.bar.moment}
        aria-invalid={isInvalid || undefined}
        aria-describedby={isInvalid ? `${id}-error` : undefined}
        placeholder={copy.bar.moment}
        value={typed}
        maxLength={64}
        autoComplete="off"
        onChange={(event) => setTyped(event.target.value)}
        className="!w-40 !text-table"
      />
      {isInvalid && (
        <span id={`${id}-error`} role="alert" className="text-crit text-small">
          {copy.bar.invalid}
        </span>
      )}
    </form>
  )
}

type Seconds = (typeof WINDOWS)[number]

type ScrubberProps = {
  readonly at: number
  readonly shard: string | undefined
  /** Length of the shown time. */
  readonly seconds: Seconds
  /** Without the text of its ends. */
  readonly isBare: boolean
}

const BAR_HEIGHT = 24

/** A slider over bars of events; changes of leader are darker. */
function Scrubber({ at, shard, seconds, isBare }: ScrubberProps) {
  const [shown, setShown] = useState<Window>()
  const window = windowAround(at, serverNow(), Number(seconds) * 1_000, shown)
  if (window !== shown) setShown(window)
  const timeline = useTimeline(window, shard).data
  const { from, to } = window
  const sum = (values: readonly number[]) => values.reduce((all, each) => all + each, 0)
  return (
    <div className="min-w-0">
      <div className={clsx(isBare && 'relative')}>
        <Bars window={window} timeline={timeline} className={clsx(isBare && 'absolute inset-0 opacity-60')} />
        <input
          type="range"
          aria-label={copy.bar.scrubber}
          aria-valuetext={utc(new Date(at).toISOString())}
          min={from}
          max={to}
          step={1_000}
          value={at}
          onChange={(event) => show(Number(event.target.value), false)}
          className={clsx('block h-6 w-full accent-accent', isBare && 'relative')}
        />
      </div>
      {!isBare && (
        <p className="flex justify-between gap-2 text-small text-text-2 tabular-nums">
          <span>{utc(new Date(from).toISOString())}</span>
          {timeline && (
            <span className="max-md:sr-only">{copy.bar.events(sum(timeline.events), sum(timeline.leaders))}</span>
          )}
          <span>{utc(new Date(to).toISOString())}</span>
        </p>
      )}
    </div>
  )
}

type BarsProps = {
  readonly window: Window
  readonly timeline: ReturnType<typeof useTimeline>['data']
  readonly className: string
}

/** Events per part of the shown time; the time before the first record is darker. */
function Bars({ window: { from, to }, timeline, className }: BarsProps) {
  const most = Math.max(1, ...(timeline?.events ?? []))
  const steps = timeline?.events.length ?? 1
  const oldest = timeline?.oldest ? Date.parse(timeline.oldest) : undefined
  const unknown = oldest === undefined ? 0 : Math.min(1, Math.max(0, (oldest - from) / (to - from)))
  return (
    <svg
      aria-hidden="true"
      viewBox={`0 0 ${steps} ${BAR_HEIGHT}`}
      preserveAspectRatio="none"
      className={clsx('block h-6 w-full rounded-control bg-surface', className)}
    >
      {unknown > 0 && <rect width={unknown * steps} height={BAR_HEIGHT} className="fill-sunken" />}
      {timeline?.events.map((count, step) => {
        if (count === 0) return null
        const height = 4 + (BAR_HEIGHT - 4) * (count / most)
        const isLeader = (timeline.leaders[step] ?? 0) > 0
        return (
          <rect
            key={step}
            x={step}
            y={BAR_HEIGHT - height}
            width={0.8}
            height={height}
            className={isLeader ? 'fill-accent' : 'fill-text-3'}
          />
        )
      })}
    </svg>
  )
}
