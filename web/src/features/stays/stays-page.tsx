'use client'
/** The stays of a shard: figures, one by its id, and those of a property or a night. */
import type { StayRecord as Stay, StayFigures, StayListEntry } from '@vacancy/shared/contract'
import { type FormEvent, type ReactNode, useState } from 'react'
import { dayOf } from '../../lib/days.ts'
import { bytes, count } from '../../lib/format.ts'
import { ApiProblem } from '../../lib/problem.ts'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { useSetUrl, useUrlParam } from '../../lib/url.ts'
import { Button, LinkButton } from '../../ui/button.tsx'
import { FactRow } from '../../ui/facts.tsx'
import { TextField } from '../../ui/field.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { Panel } from '../../ui/panel.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { ShardFrame } from '../shards/shard-page.tsx'
import * as copy from './copy.ts'
import { DayDialog, dayBegins } from './day-dialog.tsx'
import { Oversold } from './oversold.tsx'
import { type StaysOf, useStay, useStayFigures, useStayList } from './queries.ts'
import { Countdown, nightsText, roomsOf, roomsText, StayCard, stayColumns } from './stay-parts.tsx'
import { StayRecord } from './stay-record.tsx'

export function StaysPage({ id }: { readonly id: string }) {
  return (
    <ShardFrame id={id} tab="stays">
      {() => <Stays shard={id} />}
    </ShardFrame>
  )
}

function Stays({ shard }: { readonly shard: string }) {
  const figures = useStayFigures(shard)
  return (
    <>
      {figures.data && <Oversold figures={figures.data} />}
      <Panel title={copy.figures.title} hideTitle query={figures} skeleton={2}>
        {(now) => <Figures figures={now} />}
      </Panel>
      <FindStay shard={shard} />
      <ListStays shard={shard} />
    </>
  )
}

function Figures({ figures }: { readonly figures: StayFigures }) {
  const { shard, node, role, held, settings, nextDeadline, records, oversoldNights } = figures
  const begins = settings.day_begins_minutes
  const why = useWhyNot('operator')
  const [isChanging, setChanging] = useState(false)
  const facts: readonly (readonly [name: string, value: ReactNode])[] = [
    [copy.figures.held, copy.figures.heldOf(held, settings.holds_max)],
    [copy.figures.next, nextDeadline === null ? copy.figures.none : <Countdown key="next" to={nextDeadline} />],
    [
      copy.figures.records,
      <span key="records" data-tip={copy.figures.recordsTip}>
        {count(records)}
      </span>,
    ],
    [copy.figures.space, `${bytes(figures.bytes)} / ${bytes(settings.stays_bytes)}`],
    [
      copy.figures.oversold,
      <span key="oversold" className={oversoldNights > 0 ? 'font-semibold text-warn' : ''}>
        {count(oversoldNights)}
      </span>,
    ],
    ...(begins === null
      ? []
      : [
          [
            copy.figures.day,
            <span key="day" data-tip={copy.figures.dayTip}>
              {dayBegins(begins)}
            </span>,
          ] as const,
        ]),
  ]
  return (
    <div data-held={held} data-oversold-nights={oversoldNights} className="flex flex-wrap items-end gap-x-8 gap-y-3">
      <FactRow facts={facts} isLarge />
      <div className="ms-auto flex flex-wrap items-center gap-x-4 gap-y-2">
        <p className="text-small text-text-3">{copy.figures.read(node, role)}</p>
        {begins !== null && (
          <Button icon="clock" why={why} onClick={() => setChanging(true)}>
            {copy.figures.changeDay}
          </Button>
        )}
        {begins !== null && isChanging && (
          <DayDialog shard={shard} minutes={begins} onClose={() => setChanging(false)} />
        )}
        <LinkButton icon="metrics" href={routes.dashboard('engine', { shard })}>
          {copy.figures.charts}
        </LinkButton>
      </div>
    </div>
  )
}

function FindStay({ shard }: { readonly shard: string }) {
  const [id] = useUrlParam('stay')
  const setUrl = useSetUrl()
  const [typed, setTyped] = useTyped(id)
  const query = useStay(shard, id)
  const answer = answerOf(query.error)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (typed.trim() === '') return
    if (typed.trim() === id) void query.refetch()
    else setUrl({ stay: typed.trim() }, { push: true })
  }
  return (
    <Panel title={copy.find.title}>
      <form aria-label={copy.find.title} onSubmit={submit} className="flex flex-wrap items-start gap-x-3 gap-y-2">
        <TextField
          label={copy.find.id}
          hint={copy.find.hint}
          fieldClassName="w-full max-w-96"
          type="search"
          autoComplete="off"
          spellCheck={false}
          maxLength={64}
          className="font-mono"
          value={typed}
          onChange={setTyped}
        />
        <Button
          type="submit"
          kind="primary"
          icon="search"
          className="sm:mt-5"
          busy={id !== '' && query.isLoading}
          why={typed.trim() === '' ? copy.find.empty : undefined}
        >
          {copy.find.submit}
        </Button>
      </form>
      {id !== '' && (
        <Panel
          title={copy.record.title(query.data?.id ?? id)}
          level={3}
          className="mt-4"
          {...(answer ? {} : { query })}
          skeleton={6}
          data={{ 'data-find': id }}
          actions={
            <IconButton label={copy.find.close} icon="cross" onClick={() => setUrl({ stay: null }, { push: true })} />
          }
        >
          {answer ? <Answer problem={answer} /> : (stay: Stay) => <StayRecord stay={stay} />}
        </Panel>
      )}
    </Panel>
  )
}

/** Errors that are answers: no such stay, no stays at all, or no id. */
const ANSWERS = ['stay-not-found', 'stays-unsupported', 'invalid-stay-id']

function answerOf(error: unknown): ApiProblem | undefined {
  return error instanceof ApiProblem && ANSWERS.includes(error.code) ? error : undefined
}

function Answer({ problem }: { readonly problem: ApiProblem }) {
  return (
    <div role="status" data-answer={problem.code} className="flex flex-col gap-1">
      <p className="break-words font-medium">{problem.message}</p>
      <p className="prose text-text-2">{problem.hint}</p>
    </div>
  )
}

/** What is typed, until a link or the history replaces it. */
function useTyped(inUrl: string): readonly [string, (value: string) => void] {
  const [typed, setTyped] = useState({ inUrl, value: inUrl })
  if (typed.inUrl !== inUrl) setTyped({ inUrl, value: inUrl })
  return [typed.value, (value) => setTyped({ inUrl, value })]
}

function ListStays({ shard }: { readonly shard: string }) {
  const [property] = useUrlParam('property')
  const [room] = useUrlParam('room')
  const [date] = useUrlParam('date')
  const of = { property, room, date }
  const query = useStayList(shard, of)
  const isPart = room !== '' || date !== ''
  return (
    <Panel title={copy.list.title} {...(query.data ? { at: () => query.data?.pages[0]?.at ?? null } : {})}>
      <ListForm key={`${property} ${room} ${date}`} of={of} />
      {property === '' ? (
        <p className="prose pt-3 text-text-2">{copy.list.start}</p>
      ) : (
        <Panel
          title={copy.list.label}
          level={3}
          hideTitle
          flush
          className="mt-4 overflow-clip max-sm:-mx-3 max-sm:border-0"
          query={query}
          skeleton={6}
          isEmpty={({ pages }) => pages.every(({ stays }) => stays.length === 0)}
          empty={{
            text: isPart ? copy.list.noneOf : copy.list.none(property),
            ...(isPart && {
              action: <LinkButton href={routes.stays(shard, { property })}>{copy.list.all}</LinkButton>,
            }),
          }}
        >
          {({ pages }) => {
            const rows = pages.flatMap(({ stays }) => stays)
            return (
              <>
                <Table
                  label={copy.list.label}
                  rows={rows}
                  rowKey={({ id }) => id}
                  rowProps={({ id, state }) => ({ 'data-stay': id, 'data-state': state })}
                  href={({ id }) => routes.stays(shard, { ...of, stay: id })}
                  columns={columnsOf(shard, of)}
                  card={(stay) => <StayCard href={routes.stays(shard, { ...of, stay: stay.id })} stay={stay} />}
                />
                {query.hasNextPage && (
                  <div className="p-4">
                    <Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
                      {copy.list.more}
                    </Button>
                  </div>
                )}
              </>
            )
          }}
        </Panel>
      )}
    </Panel>
  )
}

function ListForm({ of }: { readonly of: StaysOf }) {
  const setUrl = useSetUrl()
  const [typed, setTyped] = useState(of)
  const [property, date] = [typed.property.trim(), typed.date.trim()]
  const isNight = date === '' || dayOf(date) !== undefined
  const why = property === '' ? copy.list.first : isNight ? undefined : copy.list.nightInvalid
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (why === undefined) setUrl({ property, room: typed.room.trim(), date }, { push: true })
  }
  const input = (name: keyof StaysOf, label: string, more: { placeholder?: string; className?: string } = {}) => (
    <TextField
      label={label}
      fieldClassName={name === 'date' ? 'w-40' : 'w-full max-w-56'}
      {...more}
      autoComplete="off"
      spellCheck={false}
      value={typed[name]}
      onChange={(text) => setTyped({ ...typed, [name]: text })}
    />
  )
  return (
    <form aria-label={copy.list.title} onSubmit={submit} className="flex flex-wrap items-end gap-3">
      {input('property', copy.list.property, { className: 'font-mono' })}
      {input('room', copy.list.room, { placeholder: copy.list.anyRoom })}
      {input('date', copy.list.night, { placeholder: copy.list.nightFormat })}
      <Button type="submit" why={why}>
        {copy.list.submit}
      </Button>
    </form>
  )
}

function columnsOf(shard: string, of: StaysOf): Column<StayListEntry>[] {
  const { stay, state, deadline, source, since } = stayColumns((id) => routes.stays(shard, { ...of, stay: id }))
  return [
    stay,
    state,
    deadline,
    { id: 'rooms', header: copy.list.rooms, end: true, cell: ({ lines }) => count(roomsOf(lines)) },
    { id: 'type', header: copy.list.room, rank: 3, cell: roomsText },
    {
      id: 'nights',
      header: copy.list.nights,
      rank: 2,
      className: 'whitespace-nowrap',
      cell: ({ lines: [line] }) => line && nightsText(line),
    },
    { ...source, rank: 3 },
    { ...since, rank: 3 },
  ]
}
