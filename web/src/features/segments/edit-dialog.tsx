'use client'
/** Changes the packages of the selected nights: shows current and new values, then writes night by night. */
import { useQuery } from '@tanstack/react-query'
import type { CalendarNight } from '@vacancy/shared/contract'
import { useRef, useState } from 'react'
import { ApiProblem, call } from '../../lib/api.ts'
import { count, day, price } from '../../lib/format.ts'
import { useLive } from '../../lib/live.ts'
import { announce } from '../../ui/announce.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Checkbox, TextField } from '../../ui/field.tsx'
import { ErrorState, Panel } from '../../ui/panel.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { datesBetween, type Nights } from './calendar-model.ts'
import * as copy from './copy.ts'
import { type Change, type ChangeInput, changeOf, changesOf } from './edit-model.ts'
import { readCalendar } from './queries.ts'

type EditProps = {
  readonly shard: string
  readonly property: string
  readonly nights: Nights
  readonly rateFeatures: readonly string[]
  readonly onClose: () => void
  /** The index of the last acknowledged write. */
  readonly onWritten: (index: string) => void
}

type Progress = {
  readonly state: 'writing' | 'done' | 'stopped' | 'failed'
  /** Acknowledged index by date. */
  readonly acknowledged: ReadonlyMap<string, string>
  readonly failed?: { readonly date: string; readonly error: unknown }
}

const NOTHING: ChangeInput = { availability: '', price: '', features: undefined }

export function EditDialog({ shard, property, nights, rateFeatures, onClose, onWritten }: EditProps) {
  const { room, from, to } = nights
  const dates = datesBetween(from, to)
  const [input, setInput] = useState(NOTHING)
  const [progress, setProgress] = useState<Progress>()
  const isStopped = useRef(false)
  const leader = useLive(`shard:${shard}`).data?.leader ?? ''
  const query = useQuery({
    queryKey: ['property-edit', shard, property, nights, leader],
    queryFn: async ({ signal }) => {
      const { node, rooms } = await readCalendar(
        { shard, property, from, node: leader },
        { nights: dates.length, signal },
      )
      const found = rooms.find((each) => each.room === room)?.nights ?? []
      return { node, nights: new Map<string, CalendarNight>(found.map((night) => [night.date, night])) }
    },
    // Values of the moment of the edit, not of an earlier one; and they stay while it is written.
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  })
  const change = changeOf(input)
  const rows = query.data && change.ok ? changesOf(dates, query.data.nights, change.change) : []
  const writes = rows.filter(({ isChanged }) => isChanged)
  const isWriting = progress?.state === 'writing'

  const write = async () => {
    if (!change.ok) return
    isStopped.current = false
    const acknowledged = new Map<string, string>()
    const show = (state: Progress['state'], failed?: Progress['failed']) =>
      setProgress({ state, acknowledged: new Map(acknowledged), ...(failed && { failed }) })
    show('writing')
    for (const { date } of writes) {
      if (isStopped.current) break
      try {
        acknowledged.set(date, await send(shard, { propertyId: property, roomType: room, date }, change.change))
        show('writing')
      } catch (error) {
        if (!(error instanceof ApiProblem)) throw error
        show('failed', { date, error })
        break
      }
    }
    const last = [...acknowledged.values()].at(-1)
    if (last !== undefined) onWritten(last)
    if (acknowledged.size === writes.length) {
      show('done')
      announce(copy.edit.done(acknowledged.size, last ?? ''))
    } else if (isStopped.current) show('stopped')
  }
  /** What is on its way is written; the nights after it are not sent. */
  const close = () => {
    isStopped.current = true
    onClose()
  }
  const whyNot =
    query.data === undefined
      ? copy.edit.loading
      : change.ok
        ? writes.length === 0
          ? copy.edit.nothing
          : undefined
        : change.reason
  return (
    <Dialog
      open
      onClose={close}
      keep
      wide
      title={copy.edit.title(room, dates.length, property)}
      footer={
        progress === undefined ? (
          <>
            <Button onClick={close}>{copy.edit.cancel}</Button>
            <Button kind="primary" why={whyNot} onClick={() => void write()}>
              {copy.edit.write(writes.length)}
            </Button>
          </>
        ) : isWriting ? (
          <Button
            onClick={() => {
              isStopped.current = true
            }}
          >
            {copy.edit.stop}
          </Button>
        ) : (
          <Button kind="primary" onClick={close}>
            {copy.edit.close}
          </Button>
        )
      }
    >
      {progress ? (
        <Outcome progress={progress} all={writes.length} />
      ) : (
        <ChangeFields input={input} onInput={setInput} rateFeatures={rateFeatures} />
      )}
      <Panel title={copy.edit.changes} level={3} query={query} skeleton={3} className="mt-4 border-0">
        {({ node }) => (
          <div className="flex min-w-0 flex-col gap-2">
            {rows.length > 0 && (
              <Table
                label={copy.edit.changes}
                rows={rows}
                rowKey={({ date }) => date}
                rowProps={({ date, isChanged }) => ({ 'data-date': date, 'data-changed': String(isChanged) })}
                columns={columnsOf(progress?.acknowledged)}
              />
            )}
            {writes.some(({ before }) => before === undefined) && (
              <p className="text-small text-warn">{copy.edit.creates}</p>
            )}
            <p className="text-small text-text-3">{copy.edit.readOn(node)}</p>
          </div>
        )}
      </Panel>
    </Dialog>
  )
}

/** @returns the index at which the write was applied */
async function send(
  shard: string,
  night: { readonly propertyId: string; readonly roomType: string; readonly date: string },
  { availability, price, features }: Change,
): Promise<string> {
  const { result } = await call('POST /api/v1/query', {
    body: {
      shard,
      command: 'SETROOMPKG',
      fields: {
        ...night,
        ...(availability !== undefined && { availability }),
        ...(price !== undefined && { finalPrice: price }),
        ...(features && { rateFeatures: [...features] }),
        wantIndex: 1,
      },
      write: true,
      keep: false,
    },
  })
  return String(result['index'] ?? '')
}

type FieldsProps = {
  readonly input: ChangeInput
  readonly onInput: (input: ChangeInput) => void
  readonly rateFeatures: readonly string[]
}

function ChangeFields({ input, onInput, rateFeatures }: FieldsProps) {
  const change = changeOf(input)
  const errorOf = (field: 'availability' | 'price') => (change.ok || change.field !== field ? undefined : change.reason)
  const { features } = input
  return (
    <div className="grid grid-cols-1 gap-3 sm:grid-cols-2">
      {(['price', 'availability'] as const).map((field) => (
        <TextField
          key={field}
          label={copy.edit[field]}
          hint={copy.edit.keep}
          error={errorOf(field)}
          inputMode="numeric"
          autoComplete="off"
          className="num"
          value={input[field]}
          onChange={(text) => onInput({ ...input, [field]: text })}
        />
      ))}
      <fieldset className="min-w-0 sm:col-span-2">
        <legend className="sr-only">{copy.edit.features}</legend>
        <Checkbox
          label={copy.edit.replaceFeatures}
          checked={features !== undefined}
          onChange={({ target }) => onInput({ ...input, features: target.checked ? [] : undefined })}
        />
        {features && (
          <div className="flex flex-wrap gap-x-4 gap-y-0.5 ps-6">
            {rateFeatures.map((name) => (
              <Checkbox
                key={name}
                label={name}
                checked={features.includes(name)}
                onChange={({ target }) =>
                  onInput({
                    ...input,
                    features: target.checked ? [...features, name] : features.filter((other) => other !== name),
                  })
                }
              />
            ))}
          </div>
        )}
      </fieldset>
    </div>
  )
}

function Outcome({ progress: { state, acknowledged, failed }, all }: { progress: Progress; all: number }) {
  const index = [...acknowledged.values()].at(-1) ?? ''
  return (
    <div data-edit-state={state} data-acknowledged={acknowledged.size} className="flex flex-col gap-3">
      {state === 'writing' && <p role="status">{copy.edit.writing(acknowledged.size, all)}</p>}
      {state === 'done' && <Banner level="ok" title={copy.edit.done(acknowledged.size, count(Number(index)))} />}
      {(state === 'stopped' || state === 'failed') && (
        <Banner level="warn" title={copy.edit.stopped(acknowledged.size, all)} />
      )}
      {failed && (
        <>
          <p className="font-medium">{copy.edit.failed(day(failed.date))}</p>
          <ErrorState error={failed.error} />
        </>
      )}
    </div>
  )
}

type Row = ReturnType<typeof changesOf>[number]

function columnsOf(acknowledged: ReadonlyMap<string, string> | undefined): Column<Row>[] {
  const absent = ({ before }: Row, text: string) => (before ? text : copy.edit.absent)
  const next = (isNew: boolean, text: string) =>
    isNew ? <strong>{text}</strong> : <span className="text-text-3">{copy.edit.unchanged}</span>
  return [
    { id: 'night', header: copy.edit.night, rowHeader: true, cell: ({ date }) => day(date) },
    {
      id: 'price-from',
      header: copy.edit.from(copy.edit.price),
      end: true,
      cell: (row) => absent(row, price(row.before?.price)),
    },
    {
      id: 'price-to',
      header: copy.edit.to(copy.edit.price),
      end: true,
      cell: ({ before, after }) => next(before?.price !== after.price, price(after.price)),
    },
    {
      id: 'rooms-from',
      header: copy.edit.from(copy.edit.availability),
      end: true,
      cell: (row) => absent(row, count(row.before?.availability)),
    },
    {
      id: 'rooms-to',
      header: copy.edit.to(copy.edit.availability),
      end: true,
      cell: ({ before, after }) => next(before?.availability !== after.availability, count(after.availability)),
    },
    {
      id: 'features',
      header: copy.edit.features,
      rank: 2,
      cell: ({ before, after }) => {
        const [old, now] = [featuresText(before), featuresText(after)]
        return old === now ? <span className="text-text-3">{copy.edit.unchanged}</span> : `${old} → ${now}`
      },
    },
    ...(acknowledged
      ? [
          {
            id: 'index',
            header: copy.edit.acknowledged,
            end: true,
            cell: ({ date }: Row) => count(acknowledged.has(date) ? Number(acknowledged.get(date)) : undefined),
          },
        ]
      : []),
  ]
}

function featuresText(night: Pick<CalendarNight, 'features'> | undefined): string {
  return night?.features.join(', ') || copy.night.noFeatures
}
