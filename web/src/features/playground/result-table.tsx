'use client'
/** The rows of a result: a sortable table of any length, with export. */
import type { CommandAnswer, PropertiesAnswer } from '@vacancy/shared/contract'
import type { NightPackage } from '@vacancy/shared/wire'
import clsx from 'clsx'
import { type KeyboardEvent, useMemo } from 'react'
import { count, day, figure, price, weekday } from '../../lib/format.ts'
import { formatSort, parseSort } from '../../lib/sort-link.ts'
import { useUrlParam } from '../../lib/url.ts'
import { Button } from '../../ui/button.tsx'
import { copyText } from '../../ui/copy-button.tsx'
import type { Column, Sort } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import { VirtualTable } from '../../ui/virtual-table.tsx'
import * as copy from './copy.ts'
import { csvOf, gridOf, type Stay, staysOf, totalOf } from './rows.ts'

export type Details = ReadonlyMap<string, PropertiesAnswer['properties'][number]>

type ResultProps = {
  readonly answer: CommandAnswer
  readonly details: Details
  readonly selected: string | undefined
  readonly onSelect: (id: string) => void
}

export function ResultTable({ answer, details, selected, onSelect }: ResultProps) {
  const stays = staysOf(answer)
  const columns = useMemo(() => columnsOf(stays ?? [], details), [stays, details])
  const order = useOrder(columns)
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: handles a key of its focused rows.
    <div className="flex min-w-0 flex-col gap-2" onKeyDown={copyRow}>
      <div className="flex flex-wrap items-center gap-2">
        <Button kind="quiet" icon="download" onClick={() => save(answer, 'csv')}>
          {copy.resultTable.exportCsv}
        </Button>
        <Button kind="quiet" icon="download" onClick={() => save(answer, 'json')}>
          {copy.resultTable.exportJson}
        </Button>
        <span className="text-small text-text-3 max-sm:hidden pointer-coarse:hidden">{copy.resultTable.copyHint}</span>
      </div>
      {stays ? (
        <VirtualTable
          label={copy.resultTable.label}
          rows={stays}
          columns={columns}
          rowKey={({ propertyId }) => propertyId}
          onOpen={({ propertyId }) => onSelect(propertyId)}
          focus={selected}
          {...order}
          rowProps={(stay) => ({ 'data-property': stay.propertyId, 'data-total': totalOf(stay) })}
          height="var(--result-height, min(60vh, 48rem))"
        />
      ) : (
        <PlainTable answer={answer} onSelect={onSelect} />
      )}
    </div>
  )
}

/** Copies the row with tabs between cells. Selected text is left to the browser. */
function copyRow(event: KeyboardEvent): void {
  const { target, key, ctrlKey, metaKey } = event
  if (key !== 'c' || !(ctrlKey || metaKey) || !(target instanceof HTMLTableRowElement)) return
  if (getSelection()?.toString()) return
  event.preventDefault()
  const cells = Array.from(target.cells, (cell) => cell.innerText.trim()).join('\t')
  void copyText(cells).then((isCopied) =>
    toast(isCopied ? { message: copy.resultTable.copied } : { message: copy.actions.copyBlocked, level: 'warn' }),
  )
}

type Detail = PropertiesAnswer['properties'][number]

function columnsOf(stays: readonly Stay[], details: Details): Column<Stay>[] {
  const dates = stays[0]?.days.map(({ date }) => date) ?? []
  const attribute = (id: 'area' | 'stars', header: string): Column<Stay> => {
    const read = ({ propertyId }: Stay): Detail['area' | 'stars'] => details.get(propertyId)?.[id] ?? '–'
    return { id, header, rank: 3, cell: read, compare: (a, b) => compareValues(read(a), read(b)) }
  }
  const text = (id: string, header: string, read: (stay: Stay) => string): Column<Stay> => ({
    ...{ id, header, cell: read, compare: (a: Stay, b: Stay) => compareValues(read(a), read(b)) },
  })
  return [
    {
      id: 'property',
      header: copy.resultTable.property,
      rowHeader: true,
      className: 'font-mono',
      cell: ({ propertyId }) => propertyId,
      compare: (a, b) => compareValues(a.propertyId, b.propertyId),
    },
    ...dates.map(
      (date, n): Column<Stay> => ({
        id: date,
        header: `${weekday(date)} ${day(date)}`,
        end: true,
        cell: ({ days }) => <NightCell night={days[n]} />,
        compare: (a, b) => (a.days[n]?.finalPrice ?? 0) - (b.days[n]?.finalPrice ?? 0),
        tip: copy.resultTable.nightTip,
      }),
    ),
    ...(stays[0]?.roomType === undefined
      ? []
      : [text('roomType', copy.resultTable.roomType, ({ roomType = '' }) => roomType)]),
    ...(stays[0]?.distanceMetres === undefined
      ? []
      : [
          {
            id: 'distance',
            header: copy.resultTable.distance,
            end: true,
            cell: ({ distanceMetres }: Stay) => metres(distanceMetres),
            compare: (a: Stay, b: Stay) => (a.distanceMetres ?? 0) - (b.distanceMetres ?? 0),
          },
        ]),
    {
      id: 'total',
      header: copy.resultTable.total,
      end: true,
      cell: (stay) => price(totalOf(stay)),
      compare: (a, b) => totalOf(a) - totalOf(b),
    },
    ...(details.size === 0
      ? []
      : [attribute('area', copy.resultTable.area), attribute('stars', copy.resultTable.stars)]),
  ]
}

/** "850 m", "12.3 km". */
function metres(value: number | undefined): string {
  if (value === undefined) return '–'
  return value < 1_000 ? `${value} m` : `${figure(value / 1_000)} km`
}

function compareValues(a: string | number, b: string | number): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function NightCell({ night }: { readonly night: NightPackage | undefined }) {
  if (!night) return <span className="text-text-3">·</span>
  const { finalPrice, availability, rateFeatures } = night
  return (
    <span data-tip={rateFeatures.length === 0 ? undefined : rateFeatures.join(', ')}>
      {price(finalPrice)}
      <span className={clsx('text-small', availability === 0 ? 'text-warn' : 'text-text-3')}> ·{availability}</span>
    </span>
  )
}

type Indexed = { readonly at: number; readonly cells: readonly (string | number)[] }

function PlainTable({ answer, onSelect }: Pick<ResultProps, 'answer' | 'onSelect'>) {
  const { columns, rows } = useMemo(() => plainOf(answer), [answer])
  const order = useOrder(columns)
  const isProperties = answer.command === 'SEARCHPROP'
  return (
    <VirtualTable
      label={copy.resultTable.label}
      rows={rows}
      rowKey={({ at }: Indexed) => String(at)}
      {...(isProperties && { onOpen: ({ cells }: Indexed) => onSelect(String(cells[0])) })}
      columns={columns}
      {...order}
      height="var(--result-height, min(60vh, 48rem))"
    />
  )
}

/** The order of the rows, in the URL: a link has it, too. A column that this result lacks does not order it. */
function useOrder(columns: readonly Pick<Column<never>, 'id' | 'compare'>[]) {
  const [text, setText] = useUrlParam('sort')
  const sort = useMemo(() => {
    const sortable = columns.flatMap(({ id, compare }) => (compare ? id : []))
    return parseSort(text, sortable)
  }, [text, columns])
  return { sort, onSort: (next: Sort) => setText(formatSort(next), { push: true }) }
}

function plainOf(answer: CommandAnswer): { columns: Column<Indexed>[]; rows: Indexed[] } {
  const grid = gridOf(answer)
  const columns = grid.columns.map((header, n): Column<Indexed> => {
    const isNumber = typeof grid.rows[0]?.[n] === 'number'
    return {
      id: header,
      header,
      rowHeader: n === 0,
      end: isNumber,
      // Of the cell itself: ten thousand rows need no further element each.
      className: isNumber ? '' : 'font-mono',
      cell: ({ cells }) => {
        const value = cells[n] ?? ''
        return typeof value === 'number' ? count(value) : value
      },
      compare: (a, b) => compareValues(a.cells[n] ?? '', b.cells[n] ?? ''),
    }
  })
  return { columns, rows: grid.rows.map((cells, at) => ({ at, cells })) }
}

function save(answer: CommandAnswer, kind: 'csv' | 'json'): void {
  const text = kind === 'csv' ? csvOf(gridOf(answer)) : JSON.stringify(answer.result, undefined, 2)
  const type = kind === 'csv' ? 'text/csv;charset=utf-8' : 'application/json'
  const url = URL.createObjectURL(new Blob([text], { type }))
  const link = document.createElement('a')
  link.href = url
  link.download = `vacancy-${answer.command.toLowerCase()}-${answer.at.slice(0, 19).replaceAll(':', '')}.${kind}`
  link.click()
  URL.revokeObjectURL(url)
}
