'use client'
/** Which columns stand in the table of shards, in which order, and how wide: each by a button of its own. */

import { announce } from '../../ui/announce.ts'
import { Button } from '../../ui/button.tsx'
import { COLUMN_PX, measuredWidths, withWidth } from '../../ui/column-edge.tsx'
import { Checkbox } from '../../ui/field.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { columnIds, movedColumn, SHARD_COLUMNS } from './shard-columns.tsx'
import { SHARDS_TABLE, useShardTable } from './shard-table.ts'

const WIDTH_STEP = 16

export default function ColumnChooser() {
  const table = useShardTable()
  const ids = columnIds(table.columns)
  const others = SHARD_COLUMNS.filter(({ id }) => !ids.includes(id)).map(({ id }) => id)
  const headerOf = (id: string) => SHARD_COLUMNS.find((column) => column.id === id)?.header ?? id

  const toggle = (id: string) => table.setColumns(ids.includes(id) ? ids.filter((one) => one !== id) : [...ids, id])
  const move = (id: string, step: 1 | -1) => {
    const next = movedColumn(ids, id, step)
    table.setColumns(next)
    announce(`${headerOf(id)} is column ${next.indexOf(id) + 1} of ${next.length}`)
  }
  const resize = (id: string, step: number) => {
    const shown = document.querySelector(`#content table[aria-label="${SHARDS_TABLE}"]`)
    const widths = { ...(shown ? measuredWidths(shown) : {}), ...table.widths }
    const next = withWidth(widths, id, (widths[id] ?? COLUMN_PX.usual) + step)
    table.setWidths(next)
    announce(`${headerOf(id)} is ${next[id]} pixels wide`)
  }
  return (
    <div className="flex flex-col gap-2">
      <h2 className="text-section">Columns</h2>
      <p className="text-small text-text-3">Kept for you, on every machine.</p>
      <ul aria-label="Columns" className="flex flex-col">
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
                // The one that names the row always stands, and always first; one more is left beside it.
                disabled={at === 0 || (isShown && ids.length <= 2)}
                onChange={() => toggle(id)}
              />
              {isShown && at > 0 && (
                <>
                  <Small label={`${header} earlier`} icon="chevron-up" isOff={at === 1} act={() => move(id, -1)} />
                  <Small
                    label={`${header} later`}
                    icon="chevron-down"
                    isOff={at === ids.length - 1}
                    act={() => move(id, 1)}
                  />
                </>
              )}
              {isShown && (
                <>
                  <Small label={`${header} narrower`} icon="minus" act={() => resize(id, -WIDTH_STEP)} />
                  <Small label={`${header} wider`} icon="plus" act={() => resize(id, WIDTH_STEP)} />
                </>
              )}
            </li>
          )
        })}
      </ul>
      <div className="flex flex-wrap gap-2">
        <Button onClick={() => table.setColumns(null)}>Usual columns</Button>
        {Object.keys(table.widths).length > 0 && <Button onClick={table.resetWidths}>Usual widths</Button>}
      </div>
    </div>
  )
}

type SmallProps = {
  readonly label: string
  readonly icon: 'chevron-up' | 'chevron-down' | 'minus' | 'plus'
  /** There is no further: it keeps its place and the focus. */
  readonly isOff?: boolean
  readonly act: () => void
}

function Small({ label, icon, isOff = false, act }: SmallProps) {
  return (
    <IconButton
      label={label}
      icon={icon}
      className="!size-6 pointer-coarse:!size-11"
      {...(isOff && { why: 'there is no further' })}
      onClick={act}
    />
  )
}
