'use client'
/** The result of a run in several views. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { CommandAnswer } from '@vacancy/shared/contract'
import clsx from 'clsx'
import { type ReactNode, Suspense, useMemo } from 'react'
import { call } from '../../lib/api.ts'
import { bytes, count, counted, micros, NONE, price } from '../../lib/format.ts'
import { navigate } from '../../lib/navigate.ts'
import { routes } from '../../lib/routes.ts'
import { useUrlChoice } from '../../lib/url.ts'
import { Chip } from '../../ui/badge.tsx'
import { Banner } from '../../ui/banner.tsx'
import { Button, LinkButton } from '../../ui/button.tsx'
import { CodeView } from '../../ui/code-view.tsx'
import { CopyButton, copyText } from '../../ui/copy-button.tsx'
import { PriceLegend } from '../../ui/heat-legend.tsx'
import { late } from '../../ui/late.tsx'
import { EmptyState, ErrorState, Skeleton } from '../../ui/panel.tsx'
import { scaleOf, stepOf } from '../../ui/price-scale.ts'
import { ViewTabs } from '../../ui/tabs.tsx'
import { toast } from '../../ui/toast.tsx'
import { isSearch, isWrite } from './catalogue.ts'
import * as copy from './copy.ts'
import { RESULTS_KEY } from './keys.ts'
import { shownNow } from './links.ts'
import { type Box, boxOf, bytesOfHex, type Draft, withBox, withField, without } from './request.ts'
import { type Details, ResultTable } from './result-table.tsx'
import { pageOf, type Stay, staysOf, totalOf } from './rows.ts'
import type { Done, Run, Taken } from './run.ts'
import { type Bars, barsOf, sumOf, timesText } from './timing.ts'
import { Relax } from './why-dialog.tsx'
import { WireView } from './wire-view.tsx'

const CalendarView = late(async () => (await import('./calendar-view.tsx')).CalendarView)
const MapScatter = late(async () => (await import('../../ui/map-scatter.tsx')).MapScatter)

const VIEWS = ['table', 'calendar', 'map', 'json', 'wire', 'timing'] as const
const JSON_CHARS_MAX = 400_000
const PROPERTIES_MAX = 1_000

type ResultsProps = {
  readonly run: Run
  readonly before: Done | undefined
  readonly selected: string | undefined
  readonly onSelect: (id: string) => void
  readonly onWhy: (property: string) => void
  readonly onRetry: () => void
  readonly onStop: () => void
  readonly onDraft: (draft: Draft) => void
  /** Puts a request into the form and runs it. */
  readonly onSearch: (draft: Draft) => void
  /** Runs a request that differs from the form in its page. */
  readonly onPage: (draft: Draft) => void
  readonly compared: Compared
  readonly datesMax: number | null
}

/** A run of the history to compare times with. */
export type Compared = Parameters<typeof TimingView>[0]['compared']

export function Results(props: ResultsProps) {
  const { run, before, onRetry, onStop, onDraft, onSearch, onPage, onWhy, datesMax, ...shown } = props
  if (run.state === 'none') {
    return <EmptyState text={copy.results.none} />
  }
  if (run.state === 'failed') {
    return (
      <div data-result-error="">
        <ErrorState error={run.error} onRetry={onRetry} />
      </div>
    )
  }
  if (!before) return <Skeleton rows={6} />
  const { answer, draft, isRepeating } = before
  return (
    <ShownResult
      {...shown}
      taken={before}
      isRunning={run.state === 'running'}
      datesMax={datesMax}
      onWhy={onWhy}
      actions={
        <>
          <BoxChip box={boxOf(draft)} onRemove={() => onSearch(withBox(draft, undefined))} />
          <Pages taken={before} onPage={onPage} />
          {answer.seal !== '' && <SaveResult key={answer.at} done={before} />}
        </>
      }
      onBox={(box) => onSearch(withBox(draft, box))}
      onStop={isRepeating ? onStop : undefined}
      whenEmpty={
        <div className="flex flex-col items-start gap-3">
          <Relax
            draft={draft}
            shard={answer.shard}
            onDrop={({ field, entry }) => onDraft(without(draft, field, entry))}
          />
          <Button icon="question" onClick={() => onWhy('')}>
            {copy.actions.explainDialog}
          </Button>
        </div>
      }
    />
  )
}

/** The map box that the hits are in. */
function BoxChip({ box, onRemove }: { readonly box: Box | undefined; readonly onRemove: () => void }) {
  if (!box) return null
  const [south, north, west, east] = [box.south, box.north, box.west, box.east].map((degrees) => degrees.toFixed(3))
  return (
    <Chip removeLabel={copy.results.removeBox} onRemove={onRemove}>
      {copy.results.box(`${south}`, `${north}`, `${west}`, `${east}`)}
    </Chip>
  )
}

/** The way to the first and the next page of an ordered search. */
function Pages({
  taken: { answer, draft },
  onPage,
}: {
  readonly taken: Taken
  readonly onPage: (draft: Draft) => void
}) {
  const page = pageOf(answer)
  const cursor = draft.fields['cursor']
  return (
    <>
      {cursor !== undefined && (
        <Button onClick={() => onPage(withField(draft, 'cursor', undefined))}>{copy.results.firstPage}</Button>
      )}
      {page?.more && page.cursor !== '' && (
        <Button icon="chevron-right" onClick={() => onPage(withField(draft, 'cursor', page.cursor))}>
          {copy.results.nextPage}
        </Button>
      )}
    </>
  )
}

type ShownProps = {
  readonly taken: Taken
  readonly isRunning: boolean
  readonly selected: string | undefined
  readonly onSelect: (id: string) => void
  readonly compared: Compared
  readonly datesMax: number | null
  /** Opens the explanation of a property; not for saved results. */
  readonly onWhy?: (property: string) => void
  /** Searches in a box of the map; not for saved results. */
  readonly onBox?: (box: Box) => void
  /** Stops running repeats. */
  readonly onStop?: (() => void) | undefined
  readonly actions?: ReactNode
  readonly whenEmpty?: ReactNode
}

/** A result in its views. */
export function ShownResult({
  taken,
  isRunning,
  selected,
  onSelect,
  compared,
  datesMax,
  onWhy,
  onBox,
  onStop,
  actions,
  whenEmpty,
}: ShownProps) {
  const [view, setView] = useUrlChoice('view', VIEWS)
  const { answer, draft, browserMicros, repeats } = taken
  const stays = staysOf(answer)
  const ids = idsOf(answer)
  const details = useDetails(answer, ids)
  const tabs = VIEWS.filter((id) => (id !== 'calendar' || stays) && (id !== 'map' || ids.length > 0))
  const shown = tabs.includes(view) ? view : 'table'
  return (
    <div
      data-result-count={answer.count}
      data-total-us={Math.round(browserMicros)}
      data-result-state={isRunning ? 'running' : 'done'}
      aria-busy={isRunning}
      className="flex min-w-0 flex-col gap-3"
    >
      <div className="flex flex-wrap items-start gap-x-3 gap-y-2">
        <p className="grow text-table text-text-2">{summaryOf(taken, datesMax)}</p>
        {actions && <div className="flex flex-wrap gap-x-3 gap-y-2">{actions}</div>}
      </div>
      {repeats && (
        <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
          <p data-runs={repeats.runs.length} className="text-table">
            {timesText(repeats)}
          </p>
          {onStop && <Button onClick={onStop}>{copy.actions.stop}</Button>}
        </div>
      )}
      {answer.limited && pageOf(answer) === undefined && (
        <Banner level="info" title={copy.results.first(count(answer.limit))} />
      )}
      {answer.count === 0 && isWrite(draft.command) && shown === 'table' && (
        <p className="font-medium">{copy.results.done}</p>
      )}
      {answer.count === 0 && isSearch(draft.command) ? (
        <EmptyState text={copy.results.noMatches} action={whenEmpty} />
      ) : (
        <ViewTabs
          label={copy.results.label}
          value={shown}
          onChange={(id) => setView(id as (typeof VIEWS)[number])}
          tabs={tabs.map((id) => ({ id, label: copy.results.tabs[id] }))}
        >
          <Suspense fallback={<Skeleton rows={6} />}>
            {shown === 'table' && (
              <ResultTable answer={answer} details={details} selected={selected} onSelect={onSelect} />
            )}
            {shown === 'calendar' && stays && (
              <CalendarView
                stays={stays}
                roomType={String(draft.fields['roomType'])}
                selected={selected}
                onSelect={onSelect}
              />
            )}
            {shown === 'map' && (
              <ResultMap
                // Another box shows all of its hits.
                key={JSON.stringify(boxOf(draft))}
                ids={ids}
                details={details}
                stays={stays}
                shard={answer.shard}
                selected={selected}
                onSelect={onSelect}
                onBox={onBox}
              />
            )}
            {shown === 'json' && <JsonView answer={answer} />}
            {shown === 'wire' && <Frames answer={answer} />}
            {shown === 'timing' && <TimingView answer={answer} browserMicros={browserMicros} compared={compared} />}
          </Suspense>
        </ViewTabs>
      )}
      {selected !== undefined && ids.includes(selected) && (
        <Selected shard={answer.shard} id={selected} details={details} onWhy={onWhy} />
      )}
    </div>
  )
}

function summaryOf({ answer, draft, browserMicros }: Taken, datesMax: number | null): string {
  const { dates } = draft.fields
  const nights = Array.isArray(dates) ? dates.length : 0
  const rows = isSearch(draft.command) ? counted(answer.count, 'property', 'properties') : counted(answer.count, 'row')
  const matches = pageOf(answer)?.matches
  return [
    isWrite(draft.command) ? copy.results.written : rows,
    matches === undefined ? '' : copy.results.matches(count(Number(matches))),
    answer.limit === null ? '' : copy.results.limit(count(answer.limit)),
    nights === 0 ? '' : datesMax === null ? counted(nights, 'night') : copy.results.datesOf(nights, datesMax),
    micros(browserMicros),
    copy.results.from(answer.node),
  ]
    .filter(Boolean)
    .join(' · ')
}

/** Saves the result and copies a link to it. */
function SaveResult({ done }: { readonly done: Done }) {
  const queries = useQueryClient()
  const { answer, draft, browserMicros, repeats = null, isRepeating } = done
  const save = useMutation({
    mutationFn: () =>
      call('POST /api/v1/saved-results', {
        body: {
          node: draft.node || null,
          fields: { ...draft.fields } as never,
          answer,
          browserMicros,
          repeats: repeats && { ...repeats, runs: [...repeats.runs] },
        },
      }),
    onSuccess: ({ id }) => {
      void queries.invalidateQueries({ queryKey: RESULTS_KEY })
      return copyLink(id)
    },
  })
  const copyLink = async (id: string) => {
    const isCopied = await copyText(location.origin + routes.savedResult(id, shownNow()))
    toast({
      message: isCopied ? copy.results.shared : copy.results.sharedNotCopied,
      href: { to: routes.savedResult(id), label: copy.actions.open },
    })
  }
  return (
    <>
      <Button
        icon="link"
        busy={save.isPending}
        why={isRepeating ? copy.results.measuring : undefined}
        onClick={() => (save.data ? void copyLink(save.data.id) : save.mutate())}
      >
        {copy.results.shareWithResult}
      </Button>
      {save.error && (
        <div className="basis-full">
          <ErrorState error={save.error} />
        </div>
      )}
    </>
  )
}

function idsOf({ command, result }: CommandAnswer): readonly string[] {
  if (command === 'SEARCHPROP') return (result['propertyIds'] as readonly string[] | undefined) ?? []
  return staysOf({ command, result })?.map(({ propertyId }) => propertyId) ?? []
}

const NO_DETAILS: Details = new Map()

/** Positions and attributes of the properties, fetched after the rows are shown. */
function useDetails(answer: CommandAnswer, ids: readonly string[]): Details {
  const wanted = ids.slice(0, PROPERTIES_MAX)
  const { data } = useQuery({
    queryKey: ['playground-properties', answer.shard, answer.at, wanted.length],
    queryFn: async ({ signal }) => {
      const { properties } = await call('POST /api/v1/query/properties', {
        body: { shard: answer.shard, ids: [...wanted] },
        signal,
      })
      return new Map(properties.map((property) => [property.id, property]))
    },
    enabled: wanted.length > 0,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  })
  return data ?? NO_DETAILS
}

type ResultMapProps = {
  readonly ids: readonly string[]
  readonly details: Details
  readonly stays: readonly Stay[] | undefined
  readonly shard: string
  readonly selected: string | undefined
  readonly onSelect: (id: string) => void
  readonly onBox: ((box: Box) => void) | undefined
}

/** The price of a stay as colour. */
function ResultMap({ ids, details, stays, shard, selected, onSelect, onBox }: ResultMapProps) {
  const places = useMemo(() => ids.flatMap((id) => details.get(id) ?? []), [ids, details])
  const totals = useMemo(() => new Map(stays?.map((stay) => [stay.propertyId, totalOf(stay)])), [stays])
  const scale = useMemo(() => scaleOf([...totals.values()]), [totals])
  const colourOf = useMemo(
    () => (id: string) => {
      const total = totals.get(id)
      return total === undefined ? 'accent' : `price-${stepOf(scale, total)}`
    },
    [totals, scale],
  )
  return (
    <>
      {totals.size > 0 && <PriceLegend scale={scale} isStay hasNone={false} />}
      <MapScatter
        places={places}
        absent={ids.length - places.length}
        colourOf={colourOf}
        describe={(id) => {
          const total = totals.get(id)
          return total === undefined ? '' : copy.results.total(price(total))
        }}
        selected={selected}
        onSelect={onSelect}
        onBox={onBox}
        onOpen={(id) => navigate(routes.property(shard, details.get(id)?.segment ?? '', id))}
      />
    </>
  )
}

function JsonView({ answer }: { readonly answer: CommandAnswer }) {
  const text = JSON.stringify(answer.result, undefined, 2)
  const isCut = text.length > JSON_CHARS_MAX
  return (
    <>
      {isCut && <p className="pb-2 text-small text-text-3">{copy.results.jsonCut(count(JSON_CHARS_MAX))}</p>}
      <CodeView label={copy.results.result} code={isCut ? text.slice(0, JSON_CHARS_MAX) : text} lines={28} />
    </>
  )
}

function Frames({ answer }: { readonly answer: CommandAnswer }) {
  return (
    <div className="flex flex-col gap-4">
      <WireView
        label={copy.results.request}
        bytes={bytesOfHex(answer.requestFrame) ?? new Uint8Array()}
        note={copy.results.requestNote}
      />
      <WireView
        label={copy.results.reply}
        bytes={bytesOfHex(answer.replyFrame) ?? new Uint8Array()}
        note={answer.replyCut ? copy.results.replyCutNote : copy.results.replyNote}
      />
    </div>
  )
}

function Selected({
  shard,
  id,
  details,
  onWhy,
}: {
  readonly shard: string
  readonly id: string
  readonly details: Details
  readonly onWhy: ((property: string) => void) | undefined
}) {
  const of = details.get(id)
  return (
    <section
      aria-label={copy.results.property(id)}
      className="flex flex-wrap items-center gap-x-3 gap-y-1 rounded-control border border-line bg-sunken px-3 py-2"
    >
      <span className="font-medium font-mono">{id}</span>
      <CopyButton text={id} label={copy.results.copyId(id)} />
      {of && (
        <span className="min-w-0 break-words text-text-2">
          {of.area} · {of.type} · {of.category} · {copy.results.stars(of.stars)} ·{' '}
          {of.amenities.join(', ') || copy.results.noAmenities} · {copy.results.rooms(of.room_types.join(', '))}
        </span>
      )}
      <span className="ms-auto flex flex-wrap gap-1">
        {onWhy && (
          <Button kind="quiet" icon="question" onClick={() => onWhy(id)}>
            {copy.actions.explain}
          </Button>
        )}
        {of && (
          <LinkButton kind="quiet" icon="calendar" href={routes.property(shard, of.segment, id)}>
            {copy.results.openCalendar}
          </LinkButton>
        )}
      </span>
    </section>
  )
}

type TimingProps = {
  readonly answer: CommandAnswer
  readonly browserMicros: number
  /** The history entry to compare with. */
  readonly compared: { readonly label: string; readonly micros: number | null } | undefined
}

type BarListProps = {
  readonly label: string
  /** Names the last row. */
  readonly total: string
  readonly bars: Bars['way']
  readonly isOfNode?: boolean
}

/** One bar after the other, on the scale of all of them. */
function BarList({ label, total, bars, isOfNode = false }: BarListProps) {
  const all = sumOf(bars)
  let at = 0
  return (
    <ol aria-label={label} className="flex flex-col gap-1">
      {bars.map((bar) => {
        const start = at
        at += bar.micros ?? 0
        const isReported = bar.micros !== null
        return (
          <li
            key={bar.hop}
            data-hop={bar.hop}
            data-us={bar.micros === null ? undefined : Math.round(bar.micros)}
            className="grid grid-cols-[minmax(0,1fr)_auto] items-center gap-x-3 sm:grid-cols-[15rem_minmax(0,1fr)_5rem]"
          >
            <span className="text-table text-text-2">{bar.label}</span>
            <span
              aria-hidden="true"
              className={clsx(
                'relative h-4 overflow-clip rounded-[2px] max-sm:order-last max-sm:col-span-2',
                isReported ? 'bg-sunken' : 'hatch bg-unk-bg',
              )}
            >
              {isReported && all > 0 && (
                <span
                  data-filled=""
                  className={clsx(
                    'absolute inset-y-0 min-w-0.5',
                    isOfNode || bar.hop === 'node' ? 'bg-accent' : 'bg-series-3',
                  )}
                  style={{
                    insetInlineStart: `min(${(start / all) * 100}%, 100% - 2px)`,
                    width: `${((bar.micros ?? 0) / all) * 100}%`,
                  }}
                />
              )}
            </span>
            <span className="num text-table">{isReported ? micros(bar.micros) : copy.timing.notReported}</span>
          </li>
        )
      })}
      <li className="grid grid-cols-[minmax(0,1fr)_auto] gap-x-3 border-line border-t pt-1 font-medium sm:grid-cols-[15rem_minmax(0,1fr)_5rem]">
        <span>{total}</span>
        <span className="max-sm:hidden" />
        <span className="num">{micros(all)}</span>
      </li>
    </ol>
  )
}

/** The time of a run by hop. */
function TimingView({ answer, browserMicros, compared }: TimingProps) {
  const { way, node } = barsOf(answer, browserMicros)
  return (
    <div className="flex min-w-0 flex-col gap-4">
      <BarList label={copy.timing.label} total={copy.timing.total} bars={way} />
      {node.length > 0 && <BarList label={copy.timing.inNode} total={copy.timing.inNode} bars={node} isOfNode />}
      {node.some(({ hop }) => hop === 'writing') && pageOf(answer) === undefined && (
        <p className="prose text-small text-text-3">{copy.timing.hitsWritten}</p>
      )}
      {answer.hops.some((hop) => hop.micros === null) && (
        <p className="prose text-small text-text-3">
          {answer.command.startsWith('SEARCH') ? copy.timing.explainSearch : copy.timing.explainOther}
        </p>
      )}
      {compared && (
        <p className="text-table">
          {copy.timing.compared(compared.label, micros(compared.micros), micros(answer.totalMicros))}
        </p>
      )}
      <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1 text-table sm:grid-cols-[auto_1fr_auto_1fr]">
        <Fact name={copy.timing.servedBy} value={`${answer.node}, ${answer.role}`} />
        <Fact name={copy.timing.index} value={answer.index === null ? NONE : count(Number(answer.index))} />
        <Fact name={copy.timing.examined} value={count(answer.examined)} />
        <Fact name={copy.timing.returned} value={count(answer.count)} />
        <Fact name={copy.timing.bytesOut} value={bytes(answer.bytesOut)} />
        <Fact name={copy.timing.bytesIn} value={bytes(answer.bytesIn)} />
        <Fact name={copy.timing.attempts} value={count(answer.attempts)} />
      </dl>
    </div>
  )
}

function Fact({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <>
      <dt className="text-text-3">{name}</dt>
      <dd>{value}</dd>
    </>
  )
}
