'use client'
import { useQueryClient } from '@tanstack/react-query'
import type { SavedView } from '@vacancy/shared/contract'
import { useEffect, useState } from 'react'
import { navigate } from '../../lib/navigate.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { ME_KEY } from '../session/session-gate.tsx'
import { common } from './copy.ts'
import * as copy from './list-copy.ts'
import type { TableLayout } from './table-layout.ts'
import { withView } from './views.ts'

export type PresentView = Omit<SavedView, 'name'>

export type ViewsProps = {
  /** Of the dialog: "Views of the shard list". */
  readonly title: string
  readonly present: PresentView
  readonly layout: Pick<TableLayout, 'views' | 'setViews'>
  readonly hrefOf: (view: PresentView) => string
  /** What a view shows, in a line. */
  readonly textOf: (view: PresentView) => string
}

/** Limits of the contract. */
const NAME_MAX = 64
const FILTER_MAX = 300
const VIEWS_MAX = 20

type ViewsDialogProps = ViewsProps & { readonly onClose: () => void }

export default function ViewsDialog({ title, present, layout, hrefOf, textOf, onClose }: ViewsDialogProps) {
  const { views, setViews } = layout
  const queries = useQueryClient()
  // Another tab may have saved views since this page loaded.
  useEffect(() => void queries.invalidateQueries({ queryKey: ME_KEY }), [queries])
  const [typed, setTyped] = useState('')
  const name = typed.trim()
  const isKnown = views.some((view) => view.name === name)
  const why =
    name === ''
      ? copy.views.nameFirst
      : !isKnown && views.length >= VIEWS_MAX
        ? copy.views.tooMany(VIEWS_MAX)
        : present.filter.length > FILTER_MAX
          ? copy.views.filterTooLong(FILTER_MAX)
          : undefined
  const { filter, sort, columns } = present
  return (
    <Dialog open keep title={title} onClose={onClose} footer={<Button onClick={onClose}>{common.close}</Button>}>
      <div className="flex flex-col gap-4">
        <form
          aria-label={copy.views.save}
          className="flex flex-col gap-3"
          onSubmit={(event) => {
            event.preventDefault()
            if (why !== undefined) return
            setViews(withView(views, { name, filter, sort, columns: columns && [...columns] }))
            setTyped('')
          }}
        >
          <p className="text-text-2">{textOf(present)}</p>
          <TextField
            label={copy.views.name}
            hint={copy.views.nameHint}
            maxLength={NAME_MAX}
            value={typed}
            onChange={setTyped}
          />
          <Button type="submit" kind="primary" className="self-start" why={why}>
            {isKnown ? copy.views.replace(name) : copy.views.save}
          </Button>
        </form>
        {views.length > 0 && (
          <ul aria-label={copy.views.saved} className="flex flex-col">
            {views.map((view) => (
              <li key={view.name} className="flex items-center gap-3 border-line border-t py-2">
                <span className="grid min-w-0 grow">
                  <span className="truncate font-medium">{view.name}</span>
                  <span className="break-words text-small text-text-2">{textOf(view)}</span>
                </span>
                <Button
                  aria-label={copy.views.openNamed(view.name)}
                  onClick={() => {
                    onClose()
                    navigate(hrefOf(view))
                  }}
                >
                  {copy.views.open}
                </Button>
                <IconButton
                  label={copy.views.delete(view.name)}
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
