'use client'
/** Own runs, saved queries and saved results, below the editor. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { HistoryEntry, SavedQuery, SavedResultLine } from '@vacancy/shared/contract'
import { useState } from 'react'
import { call } from '../../lib/api.ts'
import { clock, count, counted, day, micros, NONE } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Field, Input } from '../../ui/field.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { Link } from '../../ui/link.tsx'
import { EmptyState, Panel } from '../../ui/panel.tsx'
import { Table } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import { TITLES } from './catalogue.ts'
import { type Draft, differencesOf } from './request.ts'

export const HISTORY_KEY = ['playground-history'] as const
export const RESULTS_KEY = ['saved-results'] as const

/** How a run went: a count of null is a failure. */
type Went = Pick<HistoryEntry, 'count' | 'totalMicros'>

type HistoryProps = {
  readonly draft: Draft
  /** How the last run of the page went. */
  readonly last: Went | undefined
  readonly onUse: (draft: Draft, entry: HistoryEntry) => void
  readonly onCompare: (entry: HistoryEntry) => void
}

/** What an entry asked for, as a request. */
export function draftOf({
  shard,
  node,
  command,
  fields,
}: Pick<HistoryEntry, 'shard' | 'node' | 'command' | 'fields'>): Draft {
  return { shard, node: node ?? '', command, fields }
}

export function HistoryPanel({ draft, last, onUse, onCompare }: HistoryProps) {
  const [search, setSearch] = useState('')
  const [compared, setCompared] = useState<HistoryEntry>()
  const queries = useQueryClient()
  const query = useQuery({
    queryKey: [...HISTORY_KEY, search],
    queryFn: ({ signal }) => call('GET /api/v1/history', { query: { search, limit: 200 }, signal }),
  })
  const refresh = () => queries.invalidateQueries({ queryKey: HISTORY_KEY })
  const fail = (error: Error) => toast({ message: error.message, level: 'crit' })
  const pin = useMutation({
    mutationFn: ({ id, pinned }: HistoryEntry) =>
      call('PUT /api/v1/history/{id}', { params: { id }, body: { pinned: !pinned } }),
    onSuccess: refresh,
    onError: fail,
  })
  const forget = useMutation({ mutationFn: () => call('DELETE /api/v1/history'), onSuccess: refresh, onError: fail })
  return (
    <Panel
      title="History"
      query={query}
      actions={
        <Button kind="quiet" busy={forget.isPending} onClick={() => forget.mutate()}>
          Forget what is not pinned
        </Button>
      }
    >
      {({ entries, total }) => (
        <div className="flex min-w-0 flex-col gap-2">
          <Field label="Search the history" className="max-w-80">
            {(wire) => (
              <Input {...wire} type="search" value={search} onChange={({ target }) => setSearch(target.value)} />
            )}
          </Field>
          {entries.length === 0 ? (
            <EmptyState
              text={
                search === ''
                  ? 'Nothing was run yet. Each run is kept here, without its rows.'
                  : `No run has ${search} in it.`
              }
            />
          ) : (
            <Table
              label="Runs"
              rows={entries}
              total={total}
              rowKey={({ id }) => id}
              onOpen={(entry) => onUse(draftOf(entry), entry)}
              columns={[
                {
                  id: 'at',
                  header: 'when',
                  rank: 2,
                  cell: ({ at }) => <span data-tip={at}>{`${day(at)} ${clock(at)}`}</span>,
                },
                {
                  id: 'query',
                  header: 'query',
                  rowHeader: true,
                  cell: (entry) => (
                    <span className="block max-w-[45vw] truncate sm:max-w-[60ch]">
                      {TITLES[entry.command]} <span className="font-mono text-small text-text-3">{briefOf(entry)}</span>
                    </span>
                  ),
                },
                {
                  id: 'count',
                  header: 'rows',
                  end: true,
                  cell: (entry) =>
                    entry.ok ? (
                      count(entry.count)
                    ) : (
                      <span className="text-crit" data-tip={entry.error}>
                        failed
                      </span>
                    ),
                },
                { id: 'time', header: 'time', end: true, rank: 2, cell: ({ totalMicros }) => micros(totalMicros) },
                {
                  id: 'actions',
                  header: 'actions',
                  rank: 2,
                  cell: (entry) => (
                    <span className="flex">
                      <IconButton
                        label={entry.pinned ? 'Let go' : 'Pin'}
                        icon="star"
                        pressed={entry.pinned}
                        onClick={(event) => stop(event, () => pin.mutate(entry))}
                      />
                      <IconButton
                        label="Compare with the current request"
                        icon="not-equal"
                        onClick={(event) =>
                          stop(event, () => {
                            setCompared(entry)
                            onCompare(entry)
                          })
                        }
                      />
                    </span>
                  ),
                },
              ]}
            />
          )}
          {compared && <DiffDialog entry={compared} draft={draft} last={last} onClose={() => setCompared(undefined)} />}
        </div>
      )}
    </Panel>
  )
}

/** A row opens when it is clicked; its buttons do something else. */
function stop(event: { stopPropagation(): void }, act: () => void): void {
  event.stopPropagation()
  act()
}

function briefOf({ shard, fields }: Pick<HistoryEntry, 'shard' | 'fields'>): string {
  const values = Object.entries(fields).filter(([name]) => name !== 'explain')
  return [shard, ...values.map(([name, value]) => `${name}=${Array.isArray(value) ? value.join('+') : value}`)].join(
    ' ',
  )
}

function DiffDialog({
  entry,
  draft,
  last,
  onClose,
}: {
  readonly entry: HistoryEntry
  readonly draft: Draft
  readonly last: Went | undefined
  readonly onClose: () => void
}) {
  const differences = differencesOf(draftOf(entry), draft)
  return (
    <Dialog open onClose={onClose} title={`The run of ${clock(entry.at)} and the current request`}>
      <p className="pb-3">
        Then {wentText(entry)}; {last ? `the last run here ${wentText(last)}.` : 'nothing was run here yet.'}
      </p>
      {differences.length === 0 ? (
        <p>They ask for the same.</p>
      ) : (
        <Table
          label="Differences"
          rows={differences}
          rowKey={({ what }) => what}
          columns={[
            { id: 'what', header: 'what', rowHeader: true, cell: ({ what }) => what },
            { id: 'from', header: 'then', cell: ({ from }) => from },
            { id: 'to', header: 'now', cell: ({ to }) => to },
          ]}
        />
      )}
    </Dialog>
  )
}

function wentText({ count: rows, totalMicros }: Went): string {
  return rows === null ? 'failed' : `${counted(rows, 'row')} in ${micros(totalMicros)}`
}

export function SavedPanel() {
  const queries = useQueryClient()
  const query = useQuery({
    queryKey: ['saved-queries'],
    queryFn: ({ signal }) => call('GET /api/v1/saved-queries', { signal }),
  })
  const remove = useMutation({
    mutationFn: ({ id }: SavedQuery) => call('DELETE /api/v1/saved-queries/{id}', { params: { id } }),
    onSuccess: (_, { name }) => {
      void queries.invalidateQueries({ queryKey: ['saved-queries'] })
      toast({ message: `${name} was removed` })
    },
    onError: (error) => toast({ message: error.message, level: 'crit' }),
  })
  return (
    <Panel
      title="Saved queries"
      query={query}
      isEmpty={({ queries: saved }) => saved.length === 0}
      empty={{ text: 'No query is saved yet. Save one, and {{name}} in its texts becomes an input.' }}
    >
      {({ queries: saved }) => (
        <Table
          label="Saved queries"
          rows={saved}
          rowKey={({ id }) => id}
          href={({ id }) => routes.savedQuery(id)}
          columns={[
            {
              id: 'folder',
              header: 'folder',
              rank: 2,
              cell: ({ folder }) => folder || NONE,
              compare: (a, b) => (a.folder < b.folder ? -1 : 1),
            },
            {
              id: 'name',
              header: 'name',
              rowHeader: true,
              cell: ({ id, name }) => <Link href={routes.savedQuery(id)}>{name}</Link>,
              compare: (a, b) => (a.name < b.name ? -1 : 1),
            },
            { id: 'command', header: 'command', rank: 3, cell: ({ command }) => TITLES[command] },
            { id: 'owner', header: 'owner', rank: 3, cell: ({ owner, mine }) => (mine ? 'you' : owner) },
            {
              id: 'visible',
              header: 'seen by',
              rank: 2,
              cell: ({ visible }) => (visible === 'all' ? 'everybody' : 'you'),
            },
            {
              id: 'actions',
              header: 'actions',
              cell: (saved) =>
                saved.mine && (
                  <IconButton
                    label={`Remove ${saved.name}`}
                    icon="trash"
                    onClick={(event) => stop(event, () => remove.mutate(saved))}
                  />
                ),
            },
          ]}
        />
      )}
    </Panel>
  )
}

export function SavedResultsPanel() {
  const query = useQuery({
    queryKey: RESULTS_KEY,
    queryFn: ({ signal }) => call('GET /api/v1/saved-results', { signal }),
  })
  return (
    <Panel
      title="Saved results"
      query={query}
      isEmpty={({ results }) => results.length === 0}
      empty={{ text: 'No result is saved. “Share with result” keeps one with its request and times for 30 days.' }}
    >
      {({ results, total }) => (
        <Table
          label="Saved results"
          rows={results}
          total={total}
          rowKey={({ id }) => id}
          href={({ id }) => routes.savedResult(id)}
          columns={[
            {
              id: 'taken',
              header: 'taken',
              rank: 2,
              cell: ({ takenAt }) => <span data-tip={takenAt}>{`${day(takenAt)} ${clock(takenAt)}`}</span>,
              compare: (a, b) => (a.takenAt < b.takenAt ? -1 : 1),
            },
            { id: 'query', header: 'query', rowHeader: true, cell: (line) => <ResultLink line={line} /> },
            { id: 'count', header: 'rows', end: true, cell: (line) => count(line.count) },
            { id: 'time', header: 'time', end: true, rank: 2, cell: ({ totalMicros }) => micros(totalMicros) },
            { id: 'owner', header: 'by', rank: 3, cell: ({ owner, mine }) => (mine ? 'you' : owner) },
            { id: 'expires', header: 'kept until', rank: 3, cell: ({ expiresAt }) => day(expiresAt) },
          ]}
        />
      )}
    </Panel>
  )
}

function ResultLink({ line }: { readonly line: SavedResultLine }) {
  return (
    <span className="block max-w-[45vw] truncate sm:max-w-[60ch]">
      <Link href={routes.savedResult(line.id)}>{TITLES[line.command]}</Link>{' '}
      <span className="font-mono text-small text-text-3">{briefOf(line)}</span>
    </span>
  )
}
