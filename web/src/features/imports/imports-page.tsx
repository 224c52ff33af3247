'use client'
/** All imports, newest first, and unused uploads. */
import { useQueryClient } from '@tanstack/react-query'
import type { ImportView, UploadView } from '@vacancy/shared/contract'
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
import { useRequest } from '../../ui/use-request.ts'
import * as copy from './copy.ts'
import { STATE_LEVELS, shareOf } from './states.ts'
import { dropUpload, useUploads } from './uploading.ts'

const COLUMNS: readonly Column<ImportView>[] = [
  {
    id: 'name',
    header: copy.list.name,
    rowHeader: true,
    cell: ({ id, name }) => <Link href={routes.import(id)}>{name}</Link>,
    compare: (a, b) => a.name.localeCompare(b.name),
  },
  { id: 'shard', header: copy.list.shard, rank: 2, cell: ({ shard }) => <span className="font-mono">{shard}</span> },
  {
    id: 'state',
    header: copy.list.state,
    cell: (view) => <Badge level={STATE_LEVELS[view.state]}>{copy.states[view.state]}</Badge>,
  },
  { id: 'progress', header: copy.list.progress, end: true, cell: (view) => percent(shareOf(view)) },
  {
    id: 'packages',
    header: copy.list.packages,
    end: true,
    rank: 3,
    cell: ({ counters, progress }) => count(counters?.readBack.packages ?? progress?.records ?? null),
  },
  { id: 'by', header: copy.list.by, rank: 4, cell: ({ by }) => by },
  {
    id: 'created',
    header: copy.list.started,
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
      title={copy.common.imports}
      ready={query.data !== undefined || query.isError}
      actions={
        <LinkButton href={routes.newImport()} kind="primary" icon="plus">
          {copy.common.newImport}
        </LinkButton>
      }
    >
      <Panel
        title={copy.common.imports}
        hideTitle
        flush
        query={query}
        isEmpty={({ imports }) => imports.length === 0}
        empty={{
          text: copy.list.empty,
          action: (
            <LinkButton href={routes.newImport()} icon="plus">
              {copy.common.newImport}
            </LinkButton>
          ),
          code: 'vacancy build-snapshot --shard-id s1 --input-path DIR --output-path DIR',
        }}
      >
        {({ imports }) => (
          <Table
            label={copy.common.imports}
            rows={imports}
            columns={COLUMNS}
            rowKey={({ id }) => id}
            href={({ id }) => routes.import(id)}
            rowProps={({ id, state }) => ({ 'data-import': id, 'data-state': state })}
          />
        )}
      </Panel>
      {uploads.length > 0 && (
        <Panel title={copy.list.unusedUploads}>
          <p className="prose text-text-2">{copy.list.unusedUploadsHint}</p>
          <ul className="flex flex-col divide-y divide-line">
            {uploads.map((upload) => (
              <UnusedUpload key={upload.id} upload={upload} why={why} />
            ))}
          </ul>
        </Panel>
      )}
    </Page>
  )
}

function UnusedUpload({ upload, why }: { upload: UploadView; why: string | undefined }) {
  const queries = useQueryClient()
  const isHere = useUploads().has(upload.id)
  const drop = useRequest(async () => {
    await call('DELETE /api/v1/uploads/{id}', { params: { id: upload.id } })
    dropUpload(upload.id)
    await queries.invalidateQueries({ queryKey: liveKey('imports') })
  })
  return (
    <li className="flex flex-wrap items-center gap-x-4 gap-y-1 py-2">
      <span className="min-w-0 grow break-words">{upload.name}</span>
      <span className="text-text-2 tabular-nums">
        {copy.list.receivedOf(bytes(upload.offset), bytes(upload.bytes))}
        {!upload.complete && !isHere && copy.list.incomplete}
      </span>
      <Button icon="trash" why={why} busy={drop.isPending} onClick={() => drop.mutate()}>
        {copy.list.delete(upload.name)}
      </Button>
    </li>
  )
}
