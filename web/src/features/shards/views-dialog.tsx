'use client'
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { navigate } from '../../lib/navigate.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Field, Input } from '../../ui/field.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { ME_KEY } from '../session/session-gate.tsx'
import { columnIds } from './shard-columns.tsx'
import { useShardTable } from './shard-table.ts'
import { viewHref, withView } from './views.ts'
import type { PresentView } from './views-menu.tsx'

/** As the contract bounds them. */
const NAME_MAX = 64
const FILTER_MAX = 300
const VIEWS_MAX = 20

type ViewsDialogProps = { readonly present: PresentView; readonly onClose: () => void }

export default function ViewsDialog({ present, onClose }: ViewsDialogProps) {
  const { views, setViews } = useShardTable()
  const queries = useQueryClient()
  // Another tab may have saved some since this page came.
  useEffect(() => void queries.invalidateQueries({ queryKey: ME_KEY }), [queries])
  const [typed, setTyped] = useState('')
  const name = typed.trim()
  const isKnown = views.some((view) => view.name === name)
  const why =
    name === ''
      ? 'Give it a name first'
      : !isKnown && views.length >= VIEWS_MAX
        ? `There are ${VIEWS_MAX} views already: delete one first`
        : present.filter.length > FILTER_MAX
          ? `The filter is longer than ${FILTER_MAX} characters`
          : undefined
  const { filter, sort, columns } = present
  return (
    <Dialog
      open
      keep
      title="Views of the table of shards"
      onClose={onClose}
      footer={<Button onClick={onClose}>Close</Button>}
    >
      <div className="flex flex-col gap-4">
        <form
          aria-label="Save this view"
          className="flex flex-col gap-3"
          onSubmit={(event) => {
            event.preventDefault()
            if (why !== undefined) return
            setViews(withView(views, { name, filter, sort, columns: columns && [...columns] }))
            setTyped('')
          }}
        >
          <p className="text-text-2">{viewSays(present)}</p>
          <Field label="Name" hint="Only you see it. It is kept on the server, for every machine.">
            {(wire) => (
              <Input {...wire} maxLength={NAME_MAX} value={typed} onChange={({ target }) => setTyped(target.value)} />
            )}
          </Field>
          <Button type="submit" kind="primary" className="self-start" why={why}>
            {isKnown ? `Replace ${name}` : 'Save this view'}
          </Button>
        </form>
        {views.length > 0 && (
          <ul aria-label="Saved views" className="flex flex-col">
            {views.map((view) => (
              <li key={view.name} className="flex items-center gap-3 border-line border-t py-2">
                <span className="grid min-w-0 grow">
                  <span className="truncate font-medium">{view.name}</span>
                  <span className="break-words text-small text-text-2">{viewSays(view)}</span>
                </span>
                <Button
                  aria-label={`Open ${view.name}`}
                  onClick={() => {
                    onClose()
                    navigate(viewHref(view))
                  }}
                >
                  Open
                </Button>
                <IconButton
                  label={`Delete ${view.name}`}
                  icon="trash"
                  onClick={() => setViews(views.filter((one) => one !== view))}
                />
              </li>
            ))}
          </ul>
        )}
      </div>
    </Dialog>
  )
}

function viewSays({ filter, sort, columns }: PresentView): string {
  const [column, direction] = sort.split(':')
  return [
    filter === '' ? 'all shards' : filter,
    ...(column ? [`by ${column}${direction === 'down' ? ', largest first' : ''}`] : []),
    columns === null ? 'the usual columns' : `${columnIds(columns).length} columns`,
  ].join(' · ')
}
