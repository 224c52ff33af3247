'use client'
/** All imports, the newest first, and uploads that no import has taken. */
import { useQueryClient } from '@tanstack/react-query'
import type { ImportView, UploadView } from '@vacancy/shared/contract'
import { useState } from 'react'
import { call } from '../../lib/api.ts'
import { bytes, count, percent } from '../../lib/format.ts'
import { liveKey, useLive } from '../../lib/live.ts'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { Age } from '../../ui/age.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Button, LinkButton } from '../../ui/button.tsx'
import { Link } from '../../ui/link.tsx'
import { Page } from '../../ui/page.tsx'
import { Panel } from '../../ui/panel.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import { dropUpload, useUploads } from './uploading.ts'
import { STATE_WORDS, shareOf } from './words.ts'

const COLUMNS: readonly Column<ImportView>[] = [
  {
    id: 'name',
    header: 'Import',
    rowHeader: true,
    cell: ({ id, name }) => <Link href={routes.import(id)}>{name}</Link>,
    compare: (a, b) => a.name.localeCompare(b.name),
  },
  { id: 'shard', header: 'Shard', rank: 2, cell: ({ shard }) => <span className="font-mono">{shard}</span> },
  {
    id: 'state',
    header: 'State',
    cell: (view) => <Badge level={STATE_WORDS[view.state].level}>{STATE_WORDS[view.state].word}</Badge>,
  },
  { id: 'progress', header: 'Progress', end: true, cell: (view) => percent(shareOf(view)) },
  {
    id: 'packages',
    header: 'Packages',
    end: true,
    rank: 3,
    cell: ({ counters, progress }) => count(counters?.readBack.packages ?? progress?.records ?? null),
  },
  { id: 'by', header: 'By', rank: 4, cell: ({ by }) => by },
  {
    id: 'created',
    header: 'Begun',
    end: true,
    rank: 2,
    cell: ({ createdAt }) => <Age at={createdAt} />,
    compare: (a, b) => (a.createdAt < b.createdAt ? -1 : 1),
  },
]

export function ImportsPage() {
  const query = useLive('imports')
  const why = useWhyNot('operator')
  const uploads = query.data?.uploads ?? []
  return (
    <Page
      id="imports"
      title="Imports"
      ready={query.data !== undefined || query.isError}
      actions={
        <LinkButton href={routes.newImport()} kind="primary" icon="plus">
          New import
        </LinkButton>
      }
    >
      <Panel
        title="Imports"
        hideTitle
        flush
        query={query}
        isEmpty={({ imports }) => imports.length === 0}
        empty={{
          text: 'Nothing was imported yet. An import makes a snapshot of two CSV files, which a shard can then be given.',
          action: (
            <LinkButton href={routes.newImport()} icon="plus">
              New import
            </LinkButton>
          ),
          code: 'vacancy build-snapshot --shard-id s1 --input-path DIR --output-path DIR',
        }}
      >
        {({ imports }) => (
          <Table
            label="Imports"
            rows={imports}
            columns={COLUMNS}
            rowKey={({ id }) => id}
            href={({ id }) => routes.import(id)}
            rowProps={({ id, state }) => ({ 'data-import': id, 'data-state': state })}
          />
        )}
      </Panel>
      {uploads.length > 0 && (
        <Panel title="Uploads without an import">
          <p className="prose text-text-2">
            They stay for 48 hours after their last byte, and can be used by another import.
          </p>
          <ul className="flex flex-col divide-y divide-line">
            {uploads.map((upload) => (
              <WaitingUpload key={upload.id} upload={upload} why={why} />
            ))}
          </ul>
        </Panel>
      )}
    </Page>
  )
}

function WaitingUpload({ upload, why }: { upload: UploadView; why: string | undefined }) {
  const queries = useQueryClient()
  const isHere = useUploads().has(upload.id)
  const [isBusy, setBusy] = useState(false)
  const drop = async () => {
    setBusy(true)
    try {
      await call('DELETE /api/v1/uploads/{id}', { params: { id: upload.id } })
      dropUpload(upload.id)
      await queries.invalidateQueries({ queryKey: liveKey('imports') })
    } catch (error) {
      toast({ message: (error as Error).message, level: 'crit' })
    } finally {
      setBusy(false)
    }
  }
  return (
    <li className="flex flex-wrap items-center gap-x-4 gap-y-1 py-2">
      <span className="min-w-0 grow break-words">{upload.name}</span>
      <span className="text-text-2 tabular-nums">
        {bytes(upload.offset)} of {bytes(upload.bytes)}
        {!upload.complete && !isHere && ', waits for the file'}
      </span>
      <Button icon="trash" why={why} busy={isBusy} onClick={() => void drop()}>
        Drop {upload.name}
      </Button>
    </li>
  )
}
