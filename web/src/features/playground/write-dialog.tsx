'use client'
/** A write is shown before it is sent: old → new, and for a delete what goes with it, named again by hand. */
import { useQuery } from '@tanstack/react-query'
import type { PreviewAnswer } from '@vacancy/shared/contract'
import { useState } from 'react'
import { call } from '../../lib/api.ts'
import { counted, NONE } from '../../lib/format.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Field, Input } from '../../ui/field.tsx'
import { Panel } from '../../ui/panel.tsx'
import { Table } from '../../ui/table.tsx'
import { TITLES } from './catalogue.ts'
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
  const query = useQuery({
    queryKey: ['playground-preview', shard, node, command, fields],
    queryFn: ({ signal }) =>
      call('POST /api/v1/query/preview', {
        body: { command, fields: { ...fields } as never, ...(shard && { shard }), ...(node && { node }) },
        signal,
      }),
    gcTime: 0,
    staleTime: 0,
    retry: false,
  })
  const confirm = query.data?.confirm
  const isDelete = command.startsWith('DEL')
  const why =
    query.data === undefined
      ? 'What it changes is not known yet'
      : confirm !== '' && typed !== confirm
        ? `Type ${confirm} first`
        : undefined
  return (
    <Dialog
      open
      onClose={onClose}
      keep
      title={`${TITLES[command]} on ${shard ?? 'the shard'}`}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind={isDelete ? 'danger-filled' : 'primary'} why={why} onClick={() => onWrite(typed)}>
            WRITE {command}
          </Button>
        </>
      }
    >
      <Panel title="What changes" level={3} hideTitle query={query} skeleton={2}>
        {(preview) => <Preview preview={preview} />}
      </Panel>
      {confirm && (
        <Field label={`Type ${confirm} to delete it`} required className="pt-3">
          {(wire) => (
            <Input
              {...wire}
              value={typed}
              autoComplete="off"
              spellCheck={false}
              className="font-mono"
              onChange={({ target }) => setTyped(target.value)}
            />
          )}
        </Field>
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
          title={`Removes ${counted(removes.properties, 'property', 'properties')} and ${counted(removes.packages, 'package')}. There is no way back.`}
        />
      )}
      {changes.length === 0 ? (
        <p>Nothing would change: everything is so already.</p>
      ) : (
        <Table
          label="Changes"
          rows={changes}
          rowKey={({ what }) => what}
          columns={[
            { id: 'what', header: 'what', rowHeader: true, cell: ({ what }) => what },
            { id: 'before', header: 'now', cell: ({ before }) => before ?? NONE },
            { id: 'after', header: 'then', cell: ({ after }) => after ?? 'nothing' },
          ]}
        />
      )}
      <p className="text-small text-text-3">Read on {node}; the node decides when it is sent.</p>
    </div>
  )
}
