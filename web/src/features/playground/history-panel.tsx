'use client'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import type { HistoryEntry, SavedQuery, SavedResultLine } from '@vacancy/shared/contract'
/** Own runs, saved queries and saved results. */
import { COMMANDS } from '@vacancy/shared/wire'
import { useState } from 'react'
import { call } from '../../lib/api.ts'
import { clock, count, day, micros, NONE } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { useRoute } from '../../lib/use-route.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { Link } from '../../ui/link.tsx'
import { EmptyState, Panel } from '../../ui/panel.tsx'
import { Table } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import { useRequest } from '../../ui/use-request.ts'
import { isSearch } from './catalogue.ts'
import { ComparedResults } from './compared-results.tsx'
import * as copy from './copy.ts'
import { HISTORY_KEY, RESULTS_KEY } from './keys.ts'
import { type Draft, differencesOf } from './request.ts'

/** Outcome of a run; a count of null is a failure. */
type Outcome = Pick<HistoryEntry, 'count' | 'totalMicros'>

type HistoryProps = {
  readonly draft: Draft
  /** Outcome of the last run of the page. */
  readonly last: Outcome | undefined
  readonly onUse: (draft: Draft, entry: HistoryEntry) => void
  readonly onCompare: (entry: HistoryEntry) => void
}

/** The request of an entry. */
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
  const query = useRoute('GET /api/v1/history', { query: { search, limit: 200 } }, { group: HISTORY_KEY })
  const refresh = () => void queries.invalidateQueries({ queryKey: HISTORY_KEY })
  const pin = useRequest(({ id, pinned }: HistoryEntry) =>
    call('PUT /api/v1/history/{id}', { params: { id }, body: { pinned: !pinned } }).then(refresh),
  )
  const forget = useRequest(() => call('DELETE /api/v1/history').then(refresh))
  return (
    <Panel
      title={copy.history.title}
      hideTitle
      query={query}
      actions={
        <Button kind="quiet" busy={forget.isPending} onClick={() => forget.mutate()}>
          {copy.history.clearUnpinned}
        </Button>
      }
    >
      {({ entries, total }) => (
        <div className="flex min-w-0 flex-col gap-2">
          <TextField
            label={copy.history.search}
            fieldClassName="max-w-80"
            type="search"
            value={search}
            onChange={setSearch}
          />
          {entries.length === 0 ? (
            <EmptyState text={search === '' ? copy.history.empty : copy.history.noMatch(search)} />
          ) : (
            <Table
              label={copy.history.table}
              rows={entries}
              total={total}
              rowKey={({ id }) => id}
              onOpen={(entry) => onUse(draftOf(entry), entry)}
              columns={[
                {
                  id: 'at',
                  header: copy.history.time,
                  rank: 2,
                  cell: ({ at }) => <span data-tip={at}>{`${day(at)} ${clock(at)}`}</span>,
                },
                {
                  id: 'query',
                  header: copy.history.query,
                  rowHeader: true,
                  cell: (entry) => (
                    <span className="block max-w-[45vw] truncate sm:max-w-[44ch]">
                      {COMMANDS[entry.command].title}{' '}
                      <span className="font-mono text-small text-text-3">{briefOf(entry)}</span>
                    </span>
                  ),
                },
                {
                  id: 'count',
                  header: copy.history.rows,
                  end: true,
                  cell: (entry) =>
                    entry.ok ? (
                      count(entry.count)
                    ) : (
                      <span className="text-crit" data-tip={entry.error}>
                        {copy.history.failed}
                      </span>
                    ),
                },
                {
                  id: 'time',
                  header: copy.history.duration,
                  end: true,
                  rank: 2,
                  className: 'whitespace-nowrap',
                  cell: ({ totalMicros }) => micros(totalMicros),
                },
                {
                  id: 'actions',
                  header: copy.history.actions,
                  rank: 2,
                  cell: (entry) => (
                    <span className="flex">
                      <IconButton
                        label={entry.pinned ? copy.history.unpin : copy.history.pin}
                        icon="star"
                        pressed={entry.pinned}
                        onClick={(event) => stop(event, () => pin.mutate(entry))}
                      />
                      <IconButton
                        label={copy.history.compare}
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

/** Keeps a click on a button from opening its row. */
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
  readonly last: Outcome | undefined
  readonly onClose: () => void
}) {
  const earlier = draftOf(entry)
  const differences = differencesOf(earlier, draft)
  return (
    <Dialog open onClose={onClose} title={copy.history.compareTitle(clock(entry.at))}>
      <p className="pb-3">{copy.history.outcomes(outcomeText(entry), last && outcomeText(last))}</p>
      {differences.length === 0 ? (
        <p>{copy.history.identical}</p>
      ) : (
        <Table
          label={copy.history.differences}
          rows={differences}
          rowKey={({ what }) => what}
          columns={[
            { id: 'what', header: copy.history.field, rowHeader: true, cell: ({ what }) => what },
            { id: 'from', header: copy.history.before, cell: ({ from }) => from },
            { id: 'to', header: copy.history.now, cell: ({ to }) => to },
          ]}
        />
      )}
      {isSearch(earlier.command) && isSearch(draft.command) && <ComparedResults earlier={earlier} current={draft} />}
    </Dialog>
  )
}

function outcomeText({ count: rows, totalMicros }: Outcome): string {
  return copy.history.outcome(rows, micros(totalMicros))
}

export function SavedPanel() {
  const queries = useQueryClient()
  const query = useRoute('GET /api/v1/saved-queries', {}, { group: ['saved-queries'] })
  const remove = useRequest(async ({ id, name }: SavedQuery) => {
    await call('DELETE /api/v1/saved-queries/{id}', { params: { id } })
    void queries.invalidateQueries({ queryKey: ['saved-queries'] })
    toast({ message: copy.savedQueries.deleted(name) })
  })
  return (
    <Panel
      title={copy.savedQueries.title}
      hideTitle
      query={query}
      isEmpty={({ queries: saved }) => saved.length === 0}
      empty={{ text: copy.savedQueries.empty }}
    >
      {({ queries: saved }) => (
        <Table
          label={copy.savedQueries.title}
          rows={saved}
          rowKey={({ id }) => id}
          href={({ id }) => routes.savedQuery(id)}
          columns={[
            {
              id: 'folder',
              header: copy.savedQueries.folder,
              rank: 2,
              cell: ({ folder }) => folder || NONE,
              compare: (a, b) => (a.folder < b.folder ? -1 : 1),
            },
            {
              id: 'name',
              header: copy.savedQueries.name,
              rowHeader: true,
              cell: ({ id, name }) => <Link href={routes.savedQuery(id)}>{name}</Link>,
              compare: (a, b) => (a.name < b.name ? -1 : 1),
            },
            {
              id: 'command',
              header: copy.savedQueries.command,
              rank: 3,
              cell: ({ command }) => COMMANDS[command].title,
            },
            {
              id: 'owner',
              header: copy.savedQueries.owner,
              rank: 3,
              cell: ({ owner, mine }) => (mine ? copy.savedQueries.you : owner),
            },
            {
              id: 'visible',
              header: copy.savedQueries.visible,
              rank: 2,
              cell: ({ visible }) => (visible === 'all' ? copy.savedQueries.everyone : copy.savedQueries.you),
            },
            {
              id: 'actions',
              header: copy.savedQueries.actions,
              cell: (saved) =>
                saved.mine && (
                  <IconButton
                    label={copy.savedQueries.delete(saved.name)}
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
      title={copy.savedResults.title}
      hideTitle
      query={query}
      isEmpty={({ results }) => results.length === 0}
      empty={{ text: copy.savedResults.empty }}
    >
      {({ results, total }) => (
        <Table
          label={copy.savedResults.title}
          rows={results}
          total={total}
          rowKey={({ id }) => id}
          href={({ id }) => routes.savedResult(id)}
          columns={[
            {
              id: 'taken',
              header: copy.savedResults.taken,
              rank: 2,
              cell: ({ takenAt }) => <span data-tip={takenAt}>{`${day(takenAt)} ${clock(takenAt)}`}</span>,
              compare: (a, b) => (a.takenAt < b.takenAt ? -1 : 1),
            },
            {
              id: 'query',
              header: copy.savedResults.query,
              rowHeader: true,
              cell: (line) => <ResultLink line={line} />,
            },
            { id: 'count', header: copy.savedResults.rows, end: true, cell: (line) => count(line.count) },
            {
              id: 'time',
              header: copy.savedResults.duration,
              end: true,
              rank: 2,
              cell: ({ totalMicros }) => micros(totalMicros),
            },
            {
              id: 'owner',
              header: copy.savedResults.owner,
              rank: 3,
              cell: ({ owner, mine }) => (mine ? copy.savedQueries.you : owner),
            },
            { id: 'expires', header: copy.savedResults.expires, rank: 3, cell: ({ expiresAt }) => day(expiresAt) },
          ]}
        />
      )}
    </Panel>
  )
}

function ResultLink({ line }: { readonly line: SavedResultLine }) {
  return (
    <span className="block max-w-[45vw] truncate sm:max-w-[44ch]">
      <Link href={routes.savedResult(line.id)}>{COMMANDS[line.command].title}</Link>{' '}
      <span className="font-mono text-small text-text-3">{briefOf(line)}</span>
    </span>
  )
}
