'use client'
/** The same read on every node of the shard. */
import { useQuery } from '@tanstack/react-query'
import type { ReplicasAnswer } from '@vacancy/shared/contract'
import { call } from '../../lib/api.ts'
import { count, micros, NONE } from '../../lib/format.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Panel } from '../../ui/panel.tsx'
import { Table } from '../../ui/table.tsx'
import * as copy from './copy.ts'
import type { Draft } from './request.ts'

type ReplicasProps = { readonly draft: Draft; readonly shard: string | undefined; readonly onClose: () => void }

/** Fast nodes are shown after this time; a second request waits for the others. */
const FIRST_MS = 100

export function ReplicasDialog({ draft, shard, onClose }: ReplicasProps) {
  const { command, fields } = draft
  const read = (name: string, more: { readonly waitMs?: number }) => ({
    queryKey: ['playground-replicas', name, shard, command, fields],
    queryFn: ({ signal }: { readonly signal: AbortSignal }) =>
      call('POST /api/v1/query/replicas', {
        body: { command, fields: { ...fields } as never, ...(shard && { shard }), ...more },
        signal,
      }),
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
  })
  const first = useQuery(read('first', { waitMs: FIRST_MS }))
  const isPartial = first.data !== undefined && first.data.answered < first.data.queried
  const whole = useQuery({ ...read('whole', {}), enabled: isPartial })
  const query = isPartial && whole.data && !first.isFetching ? whole : first
  const isWaiting = isPartial && query === first && whole.isFetching
  const again = async () => {
    const { data } = await first.refetch()
    if (data && data.answered < data.queried) await whole.refetch()
  }
  return (
    <Dialog
      open
      onClose={onClose}
      title={copy.replicas.title(command)}
      wide
      footer={
        <Button icon="refresh" busy={first.isFetching || whole.isFetching} onClick={() => void again()}>
          {copy.replicas.again}
        </Button>
      }
    >
      <Panel title={copy.replicas.panel} level={3} hideTitle query={query} at={({ at }) => at}>
        {(answer) => <ReplicasResult answer={isWaiting ? waitingFor(answer) : answer} />}
      </Panel>
    </Dialog>
  )
}

function waitingFor(answer: ReplicasAnswer): ReplicasAnswer {
  return {
    ...answer,
    nodes: answer.nodes.map((row) => (row.hash === null ? { ...row, error: copy.replicas.waiting } : row)),
  }
}

function ReplicasResult({ answer }: { readonly answer: ReplicasAnswer }) {
  const indexes = [...new Set(answer.nodes.flatMap(({ index }) => index ?? []))]
  const at =
    indexes.length === 1
      ? copy.replicas.atIndex(count(Number(indexes[0])))
      : indexes.length > 1
        ? copy.replicas.atIndexes(indexes.join(', '))
        : ''
  const missing = answer.answered < answer.queried ? copy.replicas.missing(answer.queried - answer.answered) : ''
  return (
    <div className="flex flex-col gap-4">
      <p role="status" data-equal={answer.equal}>
        <Badge level={answer.equal ? 'ok' : 'crit'}>
          {answer.equal ? copy.replicas.equal : copy.replicas.different}
        </Badge>{' '}
        {answer.equal ? copy.replicas.equalCount(answer.answered, answer.queried) : copy.replicas.resultsDiffer}
        {at}
        {missing}
        {answer.reads > 1 && copy.replicas.reads(answer.reads)}
      </p>
      <Table
        label={copy.replicas.table}
        rows={answer.nodes}
        rowKey={({ node }) => node}
        rowProps={({ node, hash }) => ({ 'data-node': node, 'data-hash': hash ?? '' })}
        columns={[
          { id: 'node', header: copy.replicas.node, rowHeader: true, cell: ({ node }) => node },
          { id: 'role', header: copy.replicas.role, rank: 2, cell: ({ role }) => role },
          {
            id: 'index',
            header: copy.replicas.index,
            end: true,
            cell: ({ index }) => (index === null ? NONE : count(Number(index))),
          },
          { id: 'micros', header: copy.replicas.time, end: true, cell: (row) => micros(row.micros) },
          { id: 'count', header: copy.replicas.rows, end: true, cell: (row) => count(row.count) },
          {
            id: 'hash',
            header: copy.replicas.result,
            cell: ({ hash, error }) =>
              hash ? (
                <span className="font-mono" data-tip={hash}>
                  {hash.slice(0, 12)}
                </span>
              ) : (
                <span className={`whitespace-normal ${error === copy.replicas.waiting ? 'text-text-2' : 'text-crit'}`}>
                  {error}
                </span>
              ),
          },
        ]}
      />
      {answer.differences.length > 0 && (
        <Table
          label={copy.replicas.differences}
          rows={answer.differences}
          rowKey={({ row }) => row}
          columns={[
            {
              id: 'row',
              header: copy.replicas.row,
              rowHeader: true,
              cell: ({ row }) => <span className="font-mono">{row}</span>,
            },
            ...answer.nodes.map(({ node }, n) => ({
              id: node,
              header: node,
              cell: ({ values }: ReplicasAnswer['differences'][number]) => values[n] ?? NONE,
            })),
          ]}
        />
      )}
      {answer.differencesCut && <p className="text-small text-text-3">{copy.replicas.more}</p>}
    </div>
  )
}
