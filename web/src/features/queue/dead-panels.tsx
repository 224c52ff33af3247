'use client'
/** Dead jobs: groups by error, and the jobs of a group or filter, to redrive, delete or download. */
import type { DeadGroup, JobView, TopicStats } from '@vacancy/shared/contract'
import dynamic from 'next/dynamic'
import { type ReactNode, useState } from 'react'
import { useSearch } from '../../lib/address.tsx'
import { count } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { useSetUrl, useUrlTyped } from '../../lib/url.ts'
import { Age } from '../../ui/age.tsx'
import { Chip } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { TextField } from '../../ui/field.tsx'
import { Link } from '../../ui/link.tsx'
import { Panel, type PanelQuery } from '../../ui/panel.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import * as copy from './copy.ts'
import { DEAD_FIELDS, type DeadQuery, type DeadSelection, isFiltering, timeOf } from './dead-filter.ts'
import { DownloadDead } from './download-dead.tsx'
import { JobsTable } from './jobs-table.tsx'
import { useDeadGroups } from './queries.ts'

const RedriveDialog = dynamic(() => import('./redrive-dialog.tsx').then((module) => module.RedriveDialog), {
  ssr: false,
})
const DeleteDeadDialog = dynamic(() => import('./topic-dialogs.tsx').then((module) => module.DeleteDeadDialog), {
  ssr: false,
})

type DeadProps = {
  readonly topic: TopicStats
  readonly filter: DeadQuery
  readonly jobs: readonly JobView[]
  readonly href: (id: string) => string
  readonly open: string
  readonly more: ReactNode
  readonly query: PanelQuery<unknown>
}

type Layer = { readonly kind: 'redrive' | 'delete'; readonly selection: DeadSelection }

export function DeadPanels({ topic, filter, jobs, href, open, more, query }: DeadProps) {
  const setUrl = useSetUrl()
  const [layer, setLayer] = useState<Layer>()
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  // Jobs that left the list are not selected any more.
  const ids = jobs.map(({ id }) => id).filter((id) => selected.has(id))
  const name = topic.topic
  const close = () => {
    setLayer(undefined)
    setSelected(new Set())
  }
  const clear = () => setUrl(Object.fromEntries(DEAD_FIELDS.map((field) => [field, null])), { push: true })
  const isFiltered = isFiltering(filter)
  const selection: DeadSelection = ids.length > 0 ? { kind: 'ids', ids } : { kind: 'filter', filter }
  return (
    <>
      <Groups
        topic={name}
        filter={filter}
        onRedrive={(group) => setLayer({ kind: 'redrive', selection: { kind: 'filter', filter: { group } } })}
      />
      <Filters />
      <Panel
        title={copy.jobs.titles.dead}
        flush
        query={query}
        isEmpty={() => jobs.length === 0}
        empty={{ text: copy.jobs.empty.dead }}
        filtered={
          isFiltered && query.data !== undefined && jobs.length === 0
            ? { text: copy.dead.filtered, onClear: clear }
            : undefined
        }
        actions={
          jobs.length > 0 && (
            <Actions selected={ids.length} onOpen={(kind) => setLayer({ kind, selection })}>
              <DownloadDead topic={name} filter={filter} />
            </Actions>
          )
        }
        skeleton={8}
      >
        <JobsTable
          state="dead"
          jobs={jobs}
          total={isFiltered ? jobs.length : Math.max(topic.dead, jobs.length)}
          href={href}
          open={open}
          selected={selected}
          onSelect={setSelected}
        />
        {more}
      </Panel>
      {layer?.kind === 'redrive' && <RedriveDialog topic={name} selection={layer.selection} onClose={close} />}
      {layer?.kind === 'delete' && <DeleteDeadDialog topic={name} selection={layer.selection} onClose={close} />}
    </>
  )
}

type ActionsProps = {
  readonly selected: number
  readonly onOpen: (kind: Layer['kind']) => void
  readonly children: ReactNode
}

function Actions({ selected, onOpen, children }: ActionsProps) {
  const operator = useWhyNot('operator')
  const admin = useWhyNot('admin')
  return (
    <>
      {children}
      <Button icon="refresh" why={operator} onClick={() => onOpen('redrive')}>
        {selected > 0 ? copy.dead.redriveSelected(selected) : copy.dead.redriveShown}
      </Button>
      <Button icon="trash" kind="danger" why={admin} onClick={() => onOpen('delete')}>
        {selected > 0 ? copy.dead.deleteSelected(selected) : copy.dead.deleteMatching}
      </Button>
    </>
  )
}

type GroupsProps = {
  readonly topic: string
  readonly filter: DeadQuery
  readonly onRedrive: (group: string) => void
}

/** The largest group first. Opening one lists its jobs below. */
function Groups({ topic, filter, onRedrive }: GroupsProps) {
  const groups = useDeadGroups(topic)
  const search = useSearch()
  const why = useWhyNot('operator')
  const href = ({ group }: DeadGroup) =>
    routes.topic(topic, { ...Object.fromEntries(search), group: group === filter.group ? '' : group, job: '' })
  const columns: readonly Column<DeadGroup>[] = [
    {
      id: 'group',
      header: copy.dead.group,
      rowHeader: true,
      cell: (one) => (
        <Link
          href={href(one)}
          aria-current={one.group === filter.group ? 'true' : undefined}
          className="line-clamp-2 max-w-120 break-words"
        >
          {one.group || copy.dead.noText}
        </Link>
      ),
    },
    {
      id: 'count',
      header: copy.dead.count,
      end: true,
      cell: (one) => count(one.count),
      compare: (a, b) => a.count - b.count,
    },
    {
      id: 'first',
      header: copy.dead.first,
      rank: 3,
      cell: ({ first }) => <Age at={first} />,
      compare: (a, b) => (a.first < b.first ? -1 : 1),
    },
    {
      id: 'last',
      header: copy.dead.last,
      rank: 2,
      cell: ({ last }) => <Age at={last} />,
      compare: (a, b) => (a.last < b.last ? -1 : 1),
    },
    {
      id: 'actions',
      header: copy.dead.actions,
      end: true,
      cell: ({ group }) => (
        <Button kind="quiet" why={why} onClick={() => onRedrive(group)}>
          {copy.dead.redriveGroup} <span className="sr-only">{group}</span>
        </Button>
      ),
    },
  ]
  if (groups.data?.groups.length === 0) return null
  return (
    <Panel title={copy.dead.groups} flush query={groups} skeleton={3}>
      {(data) => (
        <>
          <p className="px-4 pb-1 text-small text-text-3">{copy.dead.groupsHint}</p>
          <Table
            label={copy.dead.groups}
            rows={data.groups}
            columns={columns}
            rowKey={({ group }) => group}
            href={href}
            focus={filter.group ?? null}
            rowProps={(one) => ({ 'data-group': one.group, 'data-count': one.count })}
            className="relative max-h-96 overflow-y-auto"
          />
        </>
      )}
    </Panel>
  )
}

function Filters() {
  const setUrl = useSetUrl()
  const search = useSearch()
  const [error, setError] = useUrlTyped('error')
  const [failures, setFailures] = useUrlTyped('failures')
  const [after, setAfter] = useUrlTyped('after')
  const [before, setBefore] = useUrlTyped('before')
  const group = search.get('group') ?? ''
  /** Once what was typed is in the URL. */
  const timeField = (name: 'after' | 'before') => {
    const text = search.get(name) ?? ''
    return {
      fieldClassName: 'sm:w-44',
      placeholder: copy.dead.timeFormat,
      maxLength: copy.dead.timeFormat.length,
      error: text !== '' && timeOf(text) === undefined ? copy.dead.timeInvalid : undefined,
    }
  }
  const isSet = DEAD_FIELDS.some((field) => (search.get(field) ?? '') !== '')
  const clear = () => {
    for (const set of [setError, setFailures, setAfter, setBefore]) set('')
    setUrl(Object.fromEntries(DEAD_FIELDS.map((field) => [field, null])), { push: true })
  }
  return (
    <search
      data-filter-box=""
      aria-label={copy.dead.filter}
      className="grid grid-cols-1 items-end gap-3 sm:flex sm:flex-wrap"
    >
      <TextField
        label={copy.dead.error}
        fieldClassName="sm:w-56"
        type="search"
        value={error}
        maxLength={1_000}
        onChange={setError}
      />
      <TextField
        label={copy.dead.failures}
        fieldClassName="sm:w-32"
        type="number"
        min={0}
        value={failures}
        onChange={setFailures}
      />
      <TextField label={copy.dead.after} {...timeField('after')} value={after} onChange={setAfter} />
      <TextField label={copy.dead.before} {...timeField('before')} value={before} onChange={setBefore} />
      {isSet && (
        <Button kind="quiet" icon="cross" onClick={clear}>
          {copy.dead.clear}
        </Button>
      )}
      {group !== '' && (
        <span className="min-w-0 basis-full">
          <Chip
            removeLabel={copy.dead.clearGroup}
            onRemove={() => setUrl({ group: null, job: null }, { push: true })}
          >{`${copy.dead.chosen}: ${group}`}</Chip>
        </span>
      )}
    </search>
  )
}
