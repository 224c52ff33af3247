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
import type { Draft } from './request.ts'

type ReplicasProps = { readonly draft: Draft; readonly shard: string | undefined; readonly onClose: () => void }

/** Nodes that answer at once are shown; only then are those waited for that did not. */
const FIRST_MS = 100
const WAITING = 'waiting for an answer'

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
      title={`${command} on every replica`}
      wide
      footer={
        <Button icon="refresh" busy={first.isFetching || whole.isFetching} onClick={() => void again()}>
          Read them again
        </Button>
      }
    >
      <Panel title="Replicas" level={3} hideTitle query={query} at={({ at }) => at}>
        {(answer) => <ReplicasResult answer={isWaiting ? waitingFor(answer) : answer} />}
      </Panel>
    </Dialog>
  )
}

function waitingFor(answer: ReplicasAnswer): ReplicasAnswer {
  return { ...answer, nodes: answer.nodes.map((row) => (row.hash === null ? { ...row, error: WAITING } : row)) }
}

function ReplicasResult({ answer }: { readonly answer: ReplicasAnswer }) {
  const indexes = [...new Set(answer.nodes.flatMap(({ index }) => index ?? []))]
  const at =
    indexes.length === 1
      ? ` at index ${count(Number(indexes[0]))}`
      : indexes.length > 1
        ? `, at indexes ${indexes.join(', ')}`
        : ''
  const some = answer.answered < answer.queried ? `; ${answer.queried - answer.answered} did not answer` : ''
  return (
    <div className="flex flex-col gap-4">
      <p role="status" data-equal={answer.equal}>
        <Badge level={answer.equal ? 'ok' : 'crit'}>{answer.equal ? 'equal' : 'different'}</Badge>{' '}
        {answer.equal ? `${answer.answered} of ${answer.queried} equal${at}${some}` : `The answers differ${at}${some}`}
        {answer.reads > 1 && ` (read ${answer.reads} times while indexes moved on)`}
      </p>
      <Table
        label="Answers by node"
        rows={answer.nodes}
        rowKey={({ node }) => node}
        rowProps={({ node, hash }) => ({ 'data-node': node, 'data-hash': hash ?? '' })}
        columns={[
          { id: 'node', header: 'node', rowHeader: true, cell: ({ node }) => node },
          { id: 'role', header: 'role', rank: 2, cell: ({ role }) => role },
          {
            id: 'index',
            header: 'index',
            end: true,
            cell: ({ index }) => (index === null ? NONE : count(Number(index))),
          },
          { id: 'micros', header: 'time', end: true, cell: (row) => micros(row.micros) },
          { id: 'count', header: 'rows', end: true, cell: (row) => count(row.count) },
          {
            id: 'hash',
            header: 'result',
            cell: ({ hash, error }) =>
              hash ? (
                <span className="font-mono" data-tip={hash}>
                  {hash.slice(0, 12)}
                </span>
              ) : (
                <span className={`whitespace-normal ${error === WAITING ? 'text-text-2' : 'text-crit'}`}>{error}</span>
              ),
          },
        ]}
      />
      {answer.differences.length > 0 && (
        <Table
          label="Rows that differ"
          rows={answer.differences}
          rowKey={({ row }) => row}
          columns={[
            { id: 'row', header: 'row', rowHeader: true, cell: ({ row }) => <span className="font-mono">{row}</span> },
            ...answer.nodes.map(({ node }, n) => ({
              id: node,
              header: node,
              cell: ({ values }: ReplicasAnswer['differences'][number]) => values[n] ?? NONE,
            })),
          ]}
        />
      )}
      {answer.differencesCut && <p className="text-small text-text-3">More rows differ than are listed.</p>}
    </div>
  )
}
