'use client'
/** Chooses the columns of a table, their order and widths, by buttons. */

import { announce } from '../../ui/announce.ts'
import { Button } from '../../ui/button.tsx'
import { COLUMN_PX, measuredWidths, withWidth } from '../../ui/column-edge.tsx'
import { Checkbox } from '../../ui/field.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import * as copy from './list-copy.ts'
import { movedColumn, type TableColumns } from './table-columns.ts'
import type { TableLayout } from './table-layout.ts'

const WIDTH_STEP = 16

type ChooserProps = {
  /** Accessible name of the table. */
  readonly label: string
  readonly table: TableLayout
  // The chooser reads headers only, whatever the rows are.
  readonly columns: Pick<TableColumns<never>, 'idsOf' | 'all'>
}

export default function ColumnChooser({ label, table, columns }: ChooserProps) {
  const ids = columns.idsOf(table.columns)
  const others = columns.all.filter(({ id }) => !ids.includes(id)).map(({ id }) => id)
  const headerOf = (id: string) => columns.all.find((column) => column.id === id)?.header ?? id

  const toggle = (id: string) => table.setColumns(ids.includes(id) ? ids.filter((one) => one !== id) : [...ids, id])
  const move = (id: string, step: 1 | -1) => {
    const next = movedColumn(ids, id, step)
    table.setColumns(next)
    announce(copy.chooser.moved(headerOf(id), next.indexOf(id) + 1, next.length))
  }
  const resize = (id: string, step: number) => {
    const shown = document.querySelector(`#content table[aria-label="${label}"]`)
    const widths = { ...(shown ? measuredWidths(shown) : {}), ...table.widths }
    const next = withWidth(widths, id, (widths[id] ?? COLUMN_PX.usual) + step)
    table.setWidths(next)
    announce(copy.chooser.resized(headerOf(id), next[id]))
  }
  return (
    <div className="flex flex-col gap-2">
      <h2 className="text-section">{copy.chooser.title}</h2>
      <p className="text-small text-text-3">{copy.chooser.hint}</p>
      <ul aria-label={copy.chooser.title} className="flex flex-col">
        {[...ids, ...others].map((id) => {
          const at = ids.indexOf(id)
          const isShown = at >= 0
          const header = headerOf(id)
          return (
            <li key={id} data-column={id} className="flex min-h-8 items-center gap-1">
              <Checkbox
                className="grow !items-center"
                label={header}
                checked={isShown}
                // The column that names the row is always shown, and first; at least one more stays beside it.
                disabled={at === 0 || (isShown && ids.length <= 2)}
                onChange={() => toggle(id)}
              />
              {isShown && at > 0 && (
                <>
                  <Small
                    label={copy.chooser.moveLeft(header)}
                    icon="chevron-up"
                    isOff={at === 1}
                    act={() => move(id, -1)}
                  />
                  <Small
                    label={copy.chooser.moveRight(header)}
                    icon="chevron-down"
                    isOff={at === ids.length - 1}
                    act={() => move(id, 1)}
                  />
                </>
              )}
              {isShown && (
                <>
                  <Small label={copy.chooser.narrower(header)} icon="minus" act={() => resize(id, -WIDTH_STEP)} />
                  <Small label={copy.chooser.wider(header)} icon="plus" act={() => resize(id, WIDTH_STEP)} />
                </>
              )}
            </li>
          )
        })}
      </ul>
      <div className="flex flex-wrap gap-2">
        <Button onClick={() => table.setColumns(null)}>{copy.chooser.resetColumns}</Button>
        {Object.keys(table.widths).length > 0 && (
          <Button onClick={table.resetWidths}>{copy.chooser.resetWidths}</Button>
        )}
      </div>
    </div>
  )
}

type SmallProps = {
  readonly label: string
  readonly icon: 'chevron-up' | 'chevron-down' | 'minus' | 'plus'
  /** At the end: it stays in place and focusable. */
  readonly isOff?: boolean
  readonly act: () => void
}

function Small({ label, icon, isOff = false, act }: SmallProps) {
  return (
    <IconButton
      label={label}
      icon={icon}
      className="!size-6 pointer-coarse:!size-11"
      {...(isOff && { why: copy.chooser.atEnd })}
      onClick={act}
    />
  )
}
