'use client'

/** Operations started through this control plane, newest first. */

import { useInfiniteQuery } from '@tanstack/react-query'
import type { Operation } from '@vacancy/shared/contract'
import { call } from '../../lib/api.ts'
import { duration } from '../../lib/format.ts'
import { useLive } from '../../lib/live.ts'
import { routes } from '../../lib/routes.ts'
import { useUrlChoice, useUrlParam } from '../../lib/url.ts'
import { Age } from '../../ui/age.tsx'
import { Chip } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Link } from '../../ui/link.tsx'
import { NextSteps } from '../../ui/next-steps.tsx'
import { Page } from '../../ui/page.tsx'
import { Panel } from '../../ui/panel.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Handovers } from '../handovers/handovers.tsx'
import * as copy from './copy.ts'
import { OperationStateBadge } from './operation-state.tsx'

const REFETCH_MS = 5_000
const STATES = ['all', 'running', 'ended'] as const

const COLUMNS: readonly Column<Operation>[] = [
  { id: 'at', header: copy.list.started, cell: (operation) => <Age at={operation.createdAt} /> },
  {
    id: 'title',
    header: copy.list.operation,
    rowHeader: true,
    cell: (operation) => <Link href={routes.operation(operation.id)}>{operation.title}</Link>,
  },
  {
    id: 'state',
    header: copy.list.state,
    className: 'whitespace-nowrap',
    cell: (operation) => <OperationStateBadge operation={operation} />,
  },
  { id: 'outcome', header: copy.list.outcome, rank: 3, cell: (operation) => operation.message },
  {
    id: 'took',
    header: copy.list.duration,
    className: 'whitespace-nowrap',
    end: true,
    rank: 3,
    cell: (operation) =>
      duration(operation.endedAt === null ? null : Date.parse(operation.endedAt) - Date.parse(operation.createdAt)),
  },
  { id: 'by', header: copy.list.by, rank: 2, cell: (operation) => operation.by },
  { id: 'reason', header: copy.list.reason, rank: 4, cell: (operation) => operation.reason },
]

export function OperationsPage() {
  const [state, setState] = useUrlChoice('state', STATES)
  const [shard, setShard] = useUrlParam('shard')
  // Running operations come over the live channel; the list is fetched again when they change.
  const running =
    useLive('ops')
      .data?.operations.map((operation) => operation.id)
      .join() ?? ''
  const query = useInfiniteQuery({
    queryKey: ['GET /api/v1/operations', shard, state, running],
    queryFn: ({ pageParam, signal }) =>
      call('GET /api/v1/operations', {
        query: {
          ...(shard ? { shard } : {}),
          ...(state === 'all' ? {} : { state }),
          ...(pageParam ? { cursor: pageParam } : {}),
        },
        signal,
      }),
    initialPageParam: '',
    getNextPageParam: (page) => page.next,
    placeholderData: (before) => before,
    refetchInterval: REFETCH_MS,
  })
  const operations = query.data?.pages.flatMap((page) => page.operations) ?? []
  const isFiltered = state !== 'all' || shard !== ''
  return (
    <Page id="operations" title={copy.list.title} ready={query.data !== undefined}>
      <Handovers />
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset would draw a box around chips. */}
      <div role="group" aria-label={copy.list.filter} className="flex flex-wrap gap-2">
        {STATES.map((one) => (
          <Chip key={one} pressed={state === one} onClick={() => setState(one, { push: true })}>
            {copy.list.states[one]}
          </Chip>
        ))}
        {shard && (
          <Chip onRemove={() => setShard('', { push: true })} removeLabel={copy.list.showAllShards}>
            {copy.list.shard(shard)}
          </Chip>
        )}
      </div>
      <Panel
        title={copy.list.title}
        hideTitle
        flush
        query={query}
        isEmpty={(data) => !isFiltered && data.pages.every((page) => page.operations.length === 0)}
        empty={{
          text: copy.list.empty,
          code: 'curl -H "authorization: Bearer $VACANCY_TOKEN" $VACANCY_CONSOLE/api/v1/operations',
        }}
        filtered={
          isFiltered && query.data !== undefined && operations.length === 0
            ? {
                text: copy.list.filtered(state, shard),
                onClear: () => (shard ? setShard('') : setState('all')),
              }
            : undefined
        }
        skeleton={8}
      >
        <Table
          label={copy.list.title}
          rows={operations}
          columns={COLUMNS}
          rowKey={(operation) => operation.id}
          href={(operation) => routes.operation(operation.id)}
          rowProps={(operation) => ({ 'data-operation': operation.id, 'data-op-state': operation.state })}
          card={(operation) => <OperationCard operation={operation} />}
        />
        {query.hasNextPage && (
          <div className="p-3">
            <Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
              {copy.list.older}
            </Button>
          </div>
        )}
      </Panel>
      <NextSteps steps={[{ href: routes.audit(), ...copy.list.next }]} />
    </Page>
  )
}

function OperationCard({ operation }: { readonly operation: Operation }) {
  return (
    <div className="grid gap-1.5">
      <Link href={routes.operation(operation.id)} className="inline-flex min-h-11 items-center">
        {operation.title}
      </Link>
      <div className="flex flex-wrap items-center gap-2">
        <OperationStateBadge operation={operation} />
        <span className="text-small text-text-3">
          {copy.operation.by(operation.by)} <Age at={operation.createdAt} />
        </span>
      </div>
      <p className="text-small text-text-2">{operation.message}</p>
    </div>
  )
}
