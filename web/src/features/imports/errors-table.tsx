'use client'
/**
 * The errors of an import, equal ones together or one row per error, with downloads
 * (docs/design/control-plane.md#imports).
 */
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import type { AlikeErrors, ImportError, ImportView } from '@vacancy/shared/contract'
import dynamic from 'next/dynamic'
import { useState } from 'react'
import { call, pathOf } from '../../lib/api.ts'
import { count, NONE } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { Button, LinkButton } from '../../ui/button.tsx'
import { TextField } from '../../ui/field.tsx'
import { Panel } from '../../ui/panel.tsx'
import { SelectField } from '../../ui/select.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { VirtualTable } from '../../ui/virtual-table.tsx'
import * as copy from './copy.ts'

const AgainDialog = dynamic(() => import('./again-dialog.tsx').then((module) => module.AgainDialog), { ssr: false })

/** IMPORT_LIMITS of the contract. */
const ALIKE_MAX = 200

const DOWNLOADS = ['rejected-properties.csv', 'rejected-packages.csv', 'errors.csv', 'errors.json'] as const

const lineText = ({ line }: { readonly line: number }) => (line === 0 ? NONE : count(line))

/** What an error and several equal ones have. */
const WHAT: readonly Column<Omit<AlikeErrors, 'count'>>[] = [
  { id: 'file', header: copy.errors.file, rank: 2, cell: ({ file }) => file, width: '9rem' },
  {
    id: 'column',
    header: copy.errors.column,
    rank: 3,
    cell: ({ column, name }) => (column === 0 ? NONE : `${column} ${name}`),
    width: '10rem',
  },
  {
    id: 'message',
    header: copy.errors.message,
    cell: ({ value, message }) => (
      <span className="break-words">
        {value !== '' && <code className="me-1 font-mono">{value}</code>}
        {message}
      </span>
    ),
  },
]

const ALIKE: readonly Column<AlikeErrors>[] = [
  {
    id: 'rows',
    header: copy.errors.rows,
    end: true,
    rowHeader: true,
    cell: ({ count: rows }) => count(rows),
    width: '7rem',
  },
  ...WHAT,
  { id: 'line', header: copy.errors.firstLine, end: true, cell: lineText, width: '8rem' },
]

const COLUMNS: readonly Column<ImportError>[] = [
  { id: 'line', header: copy.errors.line, end: true, rowHeader: true, cell: lineText, width: '7rem' },
  ...WHAT,
  {
    id: 'row',
    header: copy.errors.row,
    rank: 4,
    cell: ({ row }) => <code className="block truncate font-mono">{row ?? copy.errors.rowNotKept}</code>,
  },
]

export function ErrorsTable({ view: of }: { view: ImportView }) {
  const { id, errors } = of
  const [view, setView] = useState('alike')
  const [kind, setKind] = useState('')
  const [text, setText] = useState('')
  const query = useInfiniteQuery({
    queryKey: ['GET /api/v1/imports/{id}/errors', id, kind, text],
    initialPageParam: 0,
    queryFn: ({ pageParam, signal }) =>
      call('GET /api/v1/imports/{id}/errors', {
        params: { id },
        query: { cursor: pageParam, ...(kind !== '' && { kind }), ...(text !== '' && { text }) },
        signal,
      }),
    getNextPageParam: ({ next }) => next,
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
  })
  if (!errors) return null
  const kinds = Object.entries(errors.countByKind).sort(([, a], [, b]) => b - a)
  return (
    <Panel
      title={copy.errors.title}
      query={query}
      flush
      actions={downloadsOf(errors).map((file) => (
        <LinkButton
          key={file}
          icon="download"
          download
          href={pathOf('GET /api/v1/imports/{id}/files/{file}', { params: { id, file } })}
        >
          {file}
        </LinkButton>
      ))}
    >
      {({ pages }) => {
        const rows = pages.flatMap((page) => page.errors)
        const { total = 0, alike = [] } = pages[0] ?? {}
        const hasAlike = alike.length < total
        const isEach = !hasAlike || view === 'each'
        return (
          <div className="flex flex-col gap-3 p-4">
            <NextSteps view={of} errors={errors} />
            <div className="flex flex-wrap items-end gap-3">
              <SelectField
                label={copy.errors.kind}
                value={kind}
                onChange={setKind}
                options={[
                  { value: '', label: copy.errors.allKinds(count(errors.count)) },
                  ...kinds.map(([value, many]) => ({ value, label: copy.errors.kindCount(value, count(many)) })),
                ]}
              />
              <TextField
                label={copy.errors.search}
                fieldClassName="grow sm:max-w-80"
                type="search"
                value={text}
                onChange={setText}
              />
              {hasAlike && (
                <SelectField
                  label={copy.errors.views}
                  value={view}
                  onChange={setView}
                  options={(['alike', 'each'] as const).map((value) => ({ value, label: copy.errors[value] }))}
                />
              )}
              <p className="text-small text-text-2">
                {copy.errors.count(total)} {errors.count > errors.kept && copy.errors.ofKept(count(errors.kept))}{' '}
                {!isEach && alike.length === ALIKE_MAX && copy.errors.ofAlike(count(alike.length))}
              </p>
            </div>
            {isEach ? (
              <VirtualTable label={copy.errors.title} rows={rows} columns={COLUMNS} rowKey={keyOf} total={total} />
            ) : (
              <Table label={copy.errors.title} rows={alike} columns={ALIKE} rowKey={keyOf} />
            )}
            {isEach && query.hasNextPage && (
              <Button onClick={() => void query.fetchNextPage()} busy={query.isFetchingNextPage}>
                {copy.errors.more}
              </Button>
            )}
          </div>
        )
      }}
    </Panel>
  )
}

/** Next steps: replace one file and keep the other, or build without the rejected rows. */
function NextSteps({ view, errors }: { view: ImportView; errors: NonNullable<ImportView['errors']> }) {
  const why = useWhyNot('operator')
  const [isOpen, setOpen] = useState(false)
  if (view.state !== 'failed') return null
  const { rows, again } = errors
  return (
    <div className="flex flex-wrap items-center gap-2">
      {(['packages', 'properties'] as const).map((kind) => (
        <LinkButton key={kind} icon="upload" href={routes.newImport({ instead: view.id, replace: kind })}>
          {copy.errors.replace(kind)}
        </LinkButton>
      ))}
      <Button why={why ?? (rows === null ? again : undefined)} onClick={() => setOpen(true)}>
        {rows === null ? copy.errors.buildAgain : copy.errors.buildAgainDialog(rows)}
      </Button>
      {isOpen && rows !== null && <AgainDialog view={view} rows={rows} onClose={() => setOpen(false)} />}
    </div>
  )
}

/** Downloads that are not empty. */
function downloadsOf({ keptOf }: NonNullable<ImportView['errors']>): (typeof DOWNLOADS)[number][] {
  return DOWNLOADS.filter(
    (file) =>
      (file !== 'rejected-properties.csv' || keptOf.properties > 0) &&
      (file !== 'rejected-packages.csv' || keptOf.packages > 0),
  )
}

const keyOf = ({ file, line, column, kind }: Omit<AlikeErrors, 'count'>) => `${file} ${line} ${column} ${kind}`
