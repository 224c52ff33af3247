'use client'
/** One property: attributes, and its packages by room type and night from one node or all of them. */
import type { PropertyCalendar as Calendar } from '@vacancy/shared/contract'
import { Suspense, useId, useMemo, useState } from 'react'
import { count, counted, day } from '../../lib/format.ts'
import { useLive } from '../../lib/live.ts'
import { ApiProblem } from '../../lib/problem.ts'
import { useWhyNotOn } from '../../lib/quorum.ts'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { useSetUrl, useUrlChoice, useUrlParam } from '../../lib/url.ts'
import { useWriteMode } from '../../lib/write-mode.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button, LinkButton } from '../../ui/button.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { RadioGroup, Switch } from '../../ui/field.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { late } from '../../ui/late.tsx'
import { Page } from '../../ui/page.tsx'
import { EmptyState, Panel } from '../../ui/panel.tsx'
import { Select } from '../../ui/select.tsx'
import { common } from '../shards/copy.ts'
import { useStayNights } from '../stays/queries.ts'
import { addMonths, datesBetween, gridOf, type Nights, viewWith } from './calendar-model.ts'
import * as copy from './copy.ts'
import { NightPanel } from './night-panel.tsx'
import { queryNights } from './open-query.ts'
import { cellKey, type Metric, monthText, PropertyCalendar } from './property-calendar.tsx'
import { useCalendar, useReplicas } from './queries.ts'
import { ReplicasPanel } from './replicas-panel.tsx'

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
        {monthText(from.slice(0, 7))}
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
