'use client'
/** One property: attributes, and its packages by room type and night from one node or all of them. */
import type { PropertyCalendar as Calendar, CalendarNight, CalendarReplicas } from '@vacancy/shared/contract'
import { Suspense, useId, useMemo, useState } from 'react'
import { count, counted, day, micros, month, NONE, price } from '../../lib/format.ts'
import { useLive } from '../../lib/live.ts'
import { ApiProblem } from '../../lib/problem.ts'
import { useWhyNotOn } from '../../lib/quorum.ts'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { useSetUrl, useUrlChoice, useUrlParam } from '../../lib/url.ts'
import { useWriteMode } from '../../lib/write-mode.ts'
import { Badge } from '../../ui/badge.tsx'
import { Banner } from '../../ui/banner.tsx'
import { Button, LinkButton } from '../../ui/button.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { FactRow } from '../../ui/facts.tsx'
import { RadioGroup, Switch } from '../../ui/field.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { late } from '../../ui/late.tsx'
import { Page } from '../../ui/page.tsx'
import { EmptyState, Panel, type PanelQuery } from '../../ui/panel.tsx'
import { Select } from '../../ui/select.tsx'
import { Table } from '../../ui/table.tsx'
import { common } from '../shards/copy.ts'
import { NightStays } from '../stays/night-stays.tsx'
import { useStayNights } from '../stays/queries.ts'
import {
  addMonths,
  type CalendarGrid,
  datesBetween,
  figuresOf,
  gridOf,
  type Nights,
  viewWith,
} from './calendar-model.ts'
import * as copy from './copy.ts'
import { queryNights } from './open-query.ts'
import { cellKey, type Metric, type NightStaysCount, PropertyCalendar } from './property-calendar.tsx'
import { useCalendar, useReplicas } from './queries.ts'

const NightHistory = late(async () => (await import('./night-history.tsx')).NightHistory)
const EditDialog = late(async () => (await import('./edit-dialog.tsx')).EditDialog)

const METRICS = ['price', 'availability', 'features'] as const
const NO_CELLS: ReadonlySet<string> = new Set()
/** Dates of "Query this" without a selection. */
const QUERY_NIGHTS = 2

type PropertyProps = { readonly shard: string; readonly segment: string; readonly id: string }

export function PropertyPage({ shard, segment: given, id }: PropertyProps) {
  const [from] = useUrlParam('from')
  const [node] = useUrlParam('node')
  const [atLeast, setAtLeast] = useState('')
  const query = useCalendar({ shard, property: id, from, node }, atLeast)
  const { data, error } = query
  const [isWriting, setWriting] = useWriteMode()
  // The address may name another segment, for example after the property was moved.
  const segment = data?.property.segment ?? given
  const isUnknown = data === undefined && error instanceof ApiProblem && error.code === 'property-not-found'
  return (
    <Page
      id="property"
      title={id}
      where={segment}
      ready={data !== undefined || error !== null}
      crumbs={[
        { href: routes.shards(), label: common.shards },
        { href: routes.shard(shard), label: shard },
        { href: routes.segments(shard), label: copy.segments.title },
        { href: routes.segment(shard, segment), label: segment },
      ]}
      badge={<CopyButton text={id} label={id} />}
      lead={data && <Attributes property={data.property} />}
      actions={
        data && (
          <Button icon="playground" onClick={() => void queryNights(shard, firstNights(data))}>
            {copy.property.query}
          </Button>
        )
      }
    >
      {isUnknown ? (
        <EmptyState
          text={copy.property.unknown(id, shard)}
          action={<LinkButton href={routes.segment(shard, segment)}>{copy.property.openSegment(segment)}</LinkButton>}
        />
      ) : (
        <>
          {isWriting && <Banner level="warn" title={copy.writeMode.on(shard)} />}
          <Panel title={copy.calendar.title} hideTitle query={query} skeleton={10}>
            {(calendar) => (
              <Workspace calendar={calendar} isWriting={isWriting} onWriting={setWriting} onWritten={setAtLeast} />
            )}
          </Panel>
        </>
      )}
    </Page>
  )
}

function Attributes({ property }: Pick<Calendar, 'property'>) {
  const { area, type, category, stars, latitude, longitude, amenities } = property
  return (
    <p className="min-w-0 break-words">
      {[copy.property.area(area), type, category, copy.property.stars(stars)].join(' · ')}
      {' · '}
      <span className="tabular-nums">{`${latitude.toFixed(6)}, ${longitude.toFixed(6)}`}</span>
      {' · '}
      {amenities.join(', ') || copy.property.noAmenities}
    </p>
  )
}

/** A search that finds the property: the first nights with rooms of its first room type. */
function firstNights({ property, rooms, from }: Calendar) {
  const room = rooms.find(({ nights }) => nights.length > 0) ?? rooms[0]
  const free = (room?.nights ?? []).filter(({ availability }) => availability > 0).map(({ date }) => date)
  return {
    segment: property.segment,
    propertyId: property.id,
    roomType: room?.room ?? '',
    dates: free.length === 0 ? [from] : free.slice(0, QUERY_NIGHTS),
  }
}

type WorkspaceProps = {
  readonly calendar: Calendar
  readonly isWriting: boolean
  readonly onWriting: (on: boolean) => void
  /** The index of an acknowledged write. */
  readonly onWritten: (index: string) => void
}

function Workspace({ calendar, isWriting, onWriting, onWritten }: WorkspaceProps) {
  const { shard, property } = calendar
  const setUrl = useSetUrl()
  const [metric, setMetric] = useUrlChoice('metric', METRICS)
  const [selected, setSelected] = useSelection()
  const [isOpen, setOpen] = useState(selected !== undefined)
  const [isCompared, setCompared] = useState(false)
  const [isEditing, setEditing] = useState(false)
  const whyNoMode = useWhyNot('operator')
  const whyNoWrite = useWhyNotOn(shard, 'operator', 'write')
  const grid = useMemo(() => gridOf(calendar), [calendar])
  const replicas = useReplicas(shard, property.id, calendar.from, isCompared)
  const differing = useMemo(
    () => new Set(replicas.data?.differences.map(({ room, date }) => cellKey(room, date))),
    [replicas.data],
  )
  const taken = useStayNights(shard, property.id, calendar.from, calendar.nights)
  const stays = useMemo(
    () => new Map(taken.data?.nights.map((night) => [cellKey(night.room, night.date), night])),
    [taken.data],
  )
  const goTo = (from: string) => setUrl({ from })
  const written = (index: string) => {
    onWritten(index)
    if (isCompared) void replicas.refetch()
  }
  return (
    <div className="flex min-w-0 flex-col gap-3">
      <div className="flex flex-wrap items-end gap-x-5 gap-y-2">
        <ReadFrom calendar={calendar} />
        <Months calendar={calendar} onGoTo={goTo} />
        <RadioGroup<Metric>
          label={copy.property.metric}
          inline
          value={metric}
          onChange={(next) => setMetric(next, { push: true })}
          options={METRICS.map((value) => ({ value, label: copy.property.metrics[value] }))}
        />
        <div className="ms-auto flex flex-wrap items-center gap-2">
          <Button
            icon="not-equal"
            aria-pressed={isCompared}
            busy={replicas.isFetching}
            onClick={() => (isCompared ? void replicas.refetch() : setCompared(true))}
          >
            {copy.property.compare}
          </Button>
        </div>
      </div>
      {isCompared && <ReplicasPanel query={replicas} onClose={() => setCompared(false)} />}
      {calendar.more && <Banner level="info" title={copy.property.more(calendar.rooms.length)} />}
      {calendar.rooms.length === 0 ? (
        <EmptyState
          text={copy.calendar.noRooms}
          action={<LinkButton href={routes.playground()}>{copy.calendar.setPackage}</LinkButton>}
        />
      ) : (
        <PropertyCalendar
          property={property.id}
          grid={grid}
          metric={metric}
          selected={selected}
          differing={isCompared ? differing : NO_CELLS}
          stays={stays}
          onSelect={(nights, opens) => {
            setSelected(nights)
            if (opens || nights.from !== nights.to) setOpen(true)
          }}
          onLeave={(nights) => {
            setSelected(nights)
            const target = nights.from < calendar.from ? nights.from : nights.to
            goTo(viewWith(target, calendar))
          }}
        />
      )}
      <StaysNote query={taken} />
      {isOpen && selected && (
        <NightPanel
          shard={shard}
          property={property.id}
          grid={grid}
          taken={selected.from === selected.to ? stays.get(cellKey(selected.room, selected.from)) : undefined}
          selected={selected}
          onQuery={(dates) =>
            void queryNights(shard, {
              segment: property.segment,
              propertyId: property.id,
              roomType: selected.room,
              dates,
            })
          }
          onEdit={() => setEditing(true)}
          whyNoEdit={whyNoWrite ?? (isWriting ? undefined : copy.night.writeModeFirst)}
        />
      )}
      <Switch
        label={copy.writeMode.label}
        hint={copy.writeMode.hint}
        checked={isWriting}
        onChange={onWriting}
        why={whyNoMode}
      />
      <Suspense fallback={null}>
        {isEditing && selected && (
          <EditDialog
            shard={shard}
            property={property.id}
            nights={selected}
            rateFeatures={calendar.rateFeatures}
            onClose={() => setEditing(false)}
            onWritten={written}
          />
        )}
      </Suspense>
    </div>
  )
}

/** Why stays are not marked, or not all of them. */
function StaysNote({ query: { data, error } }: { readonly query: ReturnType<typeof useStayNights> }) {
  const text = data?.more ? copy.stays.more : data === undefined && error ? copy.stays.failed(error.message) : undefined
  return text && <p className="text-small text-text-3">{text}</p>
}

const DATE = /^\d{4}-\d{2}-\d{2}$/

/** The selected nights, in the URL. */
function useSelection(): readonly [Nights | undefined, (nights: Nights) => void] {
  const [room] = useUrlParam('room')
  const [first] = useUrlParam('night')
  const [last] = useUrlParam('to')
  const setUrl = useSetUrl()
  const to = last === '' ? first : last
  const isValid =
    room !== '' && DATE.test(first) && DATE.test(to) && first <= to && datesBetween(first, to).length < 367
  return [
    isValid ? { room, from: first, to } : undefined,
    (nights) => setUrl({ room: nights.room, night: nights.from, to: nights.to === nights.from ? null : nights.to }),
  ]
}

function ReadFrom({ calendar: { shard, node, role, index } }: { readonly calendar: Calendar }) {
  const [chosen, setChosen] = useUrlParam('node')
  const view = useLive(`shard:${shard}`)
  const id = useId()
  const known = view.data?.nodes ?? []
  const isKnown = chosen === '' || known.some((each) => each.id === chosen)
  const at =
    index === null
      ? ''
      : index.from === index.to
        ? copy.property.at(count(Number(index.from)))
        : copy.property.between(count(Number(index.from)), count(Number(index.to)))
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <span className="flex items-center gap-2 text-small">
        <label htmlFor={id} className="font-medium text-text-2">
          {copy.property.readFrom}
        </label>
        <Select
          id={id}
          value={chosen}
          onChange={({ target }) => setChosen(target.value, { push: true })}
          options={[
            { value: '', label: copy.property.auto },
            ...known.map((each) => ({ value: each.id, label: `${each.id} · ${each.role}` })),
            ...(isKnown ? [] : [{ value: chosen, label: chosen }]),
          ]}
        />
      </span>
      <p data-read-from={node} data-index={index?.to} className="text-small text-text-3">
        {copy.property.read(node, role)}
        {at}
      </p>
    </div>
  )
}

function Months({ calendar, onGoTo }: { readonly calendar: Calendar; readonly onGoTo: (from: string) => void }) {
  const { from, window } = calendar
  return (
    <div className="flex items-center gap-1">
      <IconButton
        label={copy.calendar.previousMonth}
        icon="chevron-left"
        kind="default"
        onClick={() => onGoTo(addMonths(from, -1))}
      />
      <span className="min-w-36 text-center font-medium tabular-nums" data-tip={window ? daysText(window) : undefined}>
        {month(from.slice(0, 7))}
      </span>
      <IconButton
        label={copy.calendar.nextMonth}
        icon="chevron-right"
        kind="default"
        onClick={() => onGoTo(addMonths(from, 1))}
      />
      <Button kind="quiet" onClick={() => onGoTo('')}>
        {copy.calendar.today}
      </Button>
    </div>
  )
}

function daysText({ from, to }: { readonly from: string; readonly to: string }): string {
  return `${day(from)} – ${day(to)}, ${counted(datesBetween(from, to).length, 'night')}`
}

type NightProps = {
  readonly grid: CalendarGrid
  readonly selected: Nights
  readonly onQuery: (dates: string[]) => void
  readonly onEdit: () => void
  readonly whyNoEdit: string | undefined
  /** Rooms on hold and booked of a single night. */
  readonly taken: NightStaysCount | undefined
  readonly shard: string
  readonly property: string
}

/** The selected night, or the figures of several. */
function NightPanel(props: NightProps) {
  const { grid, selected, onQuery, onEdit, whyNoEdit, taken, shard, property } = props
  const { room, from, to } = selected
  const isRange = from !== to
  const { nights, sold, soldOut, sum, min, max } = figuresOf(grid, selected)
  const night = isRange ? undefined : grid.night(room, from)
  const [node] = useUrlParam('node')
  const [history, setHistory] = useUrlParam('history')
  const isHistory = history !== '' && !isRange
  return (
    <section
      aria-label={copy.night.label}
      data-nights={nights}
      data-sum={sum}
      className="flex flex-wrap items-start gap-x-6 gap-y-3 rounded-control border border-line bg-sunken px-4 py-3"
    >
      <div className="flex min-w-0 flex-col gap-2">
        <h3 aria-live="polite" className="font-semibold text-body">
          {isRange ? copy.night.range(room, day(from), day(to, true)) : copy.night.one(room, day(from, true))}
        </h3>
        {isRange && (
          <FactRow
            facts={[
              [copy.night.nights, copy.night.nightsOf(sold, nights)],
              ...(sold > 0
                ? [
                    [copy.night.sum, price(sum)] as const,
                    [copy.night.min, price(min)] as const,
                    [copy.night.max, price(max)] as const,
                    [copy.night.soldOut, price(soldOut)] as const,
                  ]
                : []),
            ]}
          />
        )}
        {!isRange && !night && <p className="text-text-2">{copy.night.none}</p>}
        {night && (
          <FactRow
            facts={[
              [copy.night.price, price(night.price)],
              [copy.night.rooms, night.availability === 0 ? copy.calendar.noneLeft : price(night.availability)],
              ...(taken
                ? [
                    [copy.stays.held, count(taken.held)] as const,
                    [copy.stays.booked, count(taken.booked)] as const,
                    ...(taken.owed > 0 ? [[copy.stays.owed, count(taken.owed)] as const] : []),
                  ]
                : []),
              [copy.night.features, night.features.join(', ') || copy.night.noFeatures],
            ]}
          />
        )}
      </div>
      <div className="ms-auto flex flex-wrap gap-2">
        {!isRange && (
          <Button icon="clock" aria-expanded={isHistory} onClick={() => setHistory(isHistory ? '' : 'open')}>
            {copy.history.open}
          </Button>
        )}
        <Button icon="playground" onClick={() => onQuery(datesBetween(from, to))}>
          {copy.night.query}
        </Button>
        <Button icon="edit" why={whyNoEdit} onClick={onEdit}>
          {copy.night.edit}
        </Button>
      </div>
      {!isRange && taken && <NightStays shard={shard} property={property} room={room} date={from} />}
      {isHistory && (
        <Suspense fallback={null}>
          <NightHistory shard={shard} node={node} of={{ property, room, date: from }} />
        </Suspense>
      )}
    </section>
  )
}

type ReplicasProps = { readonly query: PanelQuery<CalendarReplicas>; readonly onClose: () => void }

/** The packages of a property on each node, and the cells that differ. */
function ReplicasPanel({ query, onClose }: ReplicasProps) {
  return (
    <Panel
      title={copy.replicas.title}
      level={3}
      query={query}
      skeleton={4}
      at={({ at }) => at}
      actions={
        <>
          <Button kind="quiet" icon="refresh" busy={query.isFetching} onClick={() => void query.refetch()}>
            {copy.replicas.again}
          </Button>
          <Button kind="quiet" icon="cross" onClick={onClose}>
            {copy.replicas.close}
          </Button>
        </>
      }
    >
      {(answer) => <Compared answer={answer} />}
    </Panel>
  )
}

function Compared({ answer }: { readonly answer: CalendarReplicas }) {
  const { nodes, equal, answered, reads, differences, differencesCut } = answer
  const level = answered === 0 ? 'unk' : equal ? 'ok' : 'crit'
  const word = answered === 0 ? copy.replicas.incomplete : equal ? copy.replicas.equal : copy.replicas.different
  return (
    <div className="flex min-w-0 flex-col gap-3">
      <p role="status" data-equal={equal}>
        <Badge level={level}>{word}</Badge>{' '}
        {answered === 0
          ? copy.replicas.nothing
          : equal
            ? copy.replicas.equalCount(answered, nodes.length)
            : copy.replicas.differ(differences.length)}
        {reads > 1 && copy.replicas.reads(reads)}
      </p>
      <Table
        label={copy.replicas.table}
        rows={nodes}
        rowKey={({ node }) => node}
        rowProps={({ node, index }) => ({ 'data-node': node, 'data-index': index?.to })}
        columns={[
          { id: 'node', header: copy.replicas.node, rowHeader: true, cell: ({ node }) => node },
          { id: 'role', header: copy.replicas.role, rank: 2, cell: ({ role }) => role },
          {
            id: 'index',
            header: copy.replicas.index,
            end: true,
            cell: ({ index }) => (index === null ? NONE : count(Number(index.to))),
          },
          { id: 'time', header: copy.replicas.time, end: true, rank: 2, cell: (row) => micros(row.micros) },
          { id: 'packages', header: copy.replicas.packages, end: true, cell: (row) => count(row.packages) },
          {
            id: 'result',
            header: copy.replicas.result,
            cell: ({ error }) =>
              error === '' ? copy.replicas.read : <span className="whitespace-normal text-crit">{error}</span>,
          },
        ]}
      />
      {differences.length > 0 && (
        <Table
          label={copy.replicas.differences}
          rows={differences}
          rowKey={({ room, date }) => `${date} ${room}`}
          columns={[
            {
              id: 'night',
              header: copy.replicas.night,
              rowHeader: true,
              cell: ({ room, date }) => `${day(date)}, ${room}`,
            },
            ...nodes.map(({ node, error }, at) => ({
              id: node,
              header: node,
              cell: ({ values }: CalendarReplicas['differences'][number]) =>
                error === '' ? nightText(values[at]) : NONE,
            })),
          ]}
        />
      )}
      {differencesCut && <p className="text-small text-text-3">{copy.replicas.cut}</p>}
    </div>
  )
}

function nightText(night: CalendarNight | null | undefined): string {
  if (!night) return copy.replicas.absent
  return copy.replicas.value(price(night.price), night.availability, night.features.join(', '))
}
