'use client'
/** Preview of a write: old and new values. A delete shows what it includes and requires its name to be typed. */
import type { PreviewAnswer } from '@vacancy/shared/contract'
import { COMMANDS } from '@vacancy/shared/wire'
import { useState } from 'react'
import { NONE } from '../../lib/format.ts'
import { useRoute } from '../../lib/use-route.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Panel } from '../../ui/panel.tsx'
import { Table } from '../../ui/table.tsx'
import * as copy from './copy.ts'
import type { Draft } from './request.ts'

type WriteProps = {
  readonly draft: Draft
  readonly shard: string | undefined
  readonly onClose: () => void
  readonly onWrite: (confirm: string) => void
}

export function WriteDialog({ draft, shard, onClose, onWrite }: WriteProps) {
  const { command, fields, node } = draft
  const [typed, setTyped] = useState('')
  const query = useRoute(
    'POST /api/v1/query/preview',
    { body: { command, fields: { ...fields } as never, ...(shard && { shard }), ...(node && { node }) } },
    { gcTime: 0, staleTime: 0, retry: false },
  )
  const confirm = query.data?.confirm
  const isDelete = command.startsWith('DEL')
  const why =
    query.data === undefined
      ? copy.writeDialog.loading
      : confirm !== '' && typed !== confirm
        ? copy.writeDialog.typeFirst(confirm ?? '')
        : undefined
  return (
    <Dialog
      open
      onClose={onClose}
      keep
      title={copy.writeDialog.title(COMMANDS[command].title, shard ?? copy.page.anyShard)}
      footer={
        <>
          <Button onClick={onClose}>{copy.actions.cancel}</Button>
          <Button kind={isDelete ? 'danger-filled' : 'primary'} why={why} onClick={() => onWrite(typed)}>
            {copy.writeDialog.run(command)}
          </Button>
        </>
      }
    >
      <Panel title={copy.writeDialog.panel} level={3} hideTitle query={query} skeleton={2}>
        {(preview) => <Preview preview={preview} />}
      </Panel>
      {confirm && (
        <TextField
          label={copy.writeDialog.typeToDelete(confirm)}
          required
          fieldClassName="pt-3"
          value={typed}
          autoComplete="off"
          spellCheck={false}
          className="font-mono"
          onChange={setTyped}
        />
      )}
    </Dialog>
  )
}

function Preview({ preview: { changes, removes, node } }: { readonly preview: PreviewAnswer }) {
  return (
    <div className="flex flex-col gap-3">
      {removes && (
        <Banner
          level={removes.properties + removes.packages > 0 ? 'warn' : 'info'}
          title={copy.writeDialog.deletes(removes.properties, removes.packages)}
        />
      )}
      {changes.length === 0 ? (
        <p>{copy.writeDialog.noChange}</p>
      ) : (
        <Table
          label={copy.writeDialog.changes}
          rows={changes}
          rowKey={({ what }) => what}
          columns={[
            { id: 'what', header: copy.writeDialog.field, rowHeader: true, cell: ({ what }) => what },
            { id: 'before', header: copy.writeDialog.before, cell: ({ before }) => before ?? NONE },
            { id: 'after', header: copy.writeDialog.after, cell: ({ after }) => after ?? copy.writeDialog.nothing },
          ]}
        />
      )}
      <p className="text-small text-text-3">{copy.writeDialog.note(node)}</p>
    </div>
  )
}
