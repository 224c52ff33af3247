'use client'
/** The packages of a property on each node, and the cells that differ. */
import type { CalendarNight, CalendarReplicas } from '@vacancy/shared/contract'
import { count, day, micros, NONE, price } from '../../lib/format.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Panel, type PanelQuery } from '../../ui/panel.tsx'
import { Table } from '../../ui/table.tsx'
import * as copy from './copy.ts'

type ReplicasProps = { readonly query: PanelQuery<CalendarReplicas>; readonly onClose: () => void }

export function ReplicasPanel({ query, onClose }: ReplicasProps) {
  return (
    <Panel
      title={copy.replicas.title}
      level={3}
      query={query}
      skeleton={4}
      at={({ at }) => at}
      actions={
        <>
          <Button kind="quiet" icon="refresh" busy={query.isFetching} onClick={() => void query.refetch()}>
            {copy.replicas.again}
          </Button>
          <Button kind="quiet" icon="cross" onClick={onClose}>
            {copy.replicas.close}
          </Button>
        </>
      }
    >
      {(answer) => <Compared answer={answer} />}
    </Panel>
  )
}

function Compared({ answer }: { readonly answer: CalendarReplicas }) {
  const { nodes, equal, answered, reads, differences, differencesCut } = answer
  const level = answered === 0 ? 'unk' : equal ? 'ok' : 'crit'
  const word = answered === 0 ? copy.replicas.incomplete : equal ? copy.replicas.equal : copy.replicas.different
  return (
    <div className="flex min-w-0 flex-col gap-3">
      <p role="status" data-equal={equal}>
        <Badge level={level}>{word}</Badge>{' '}
        {answered === 0
          ? copy.replicas.nothing
          : equal
            ? copy.replicas.equalCount(answered, nodes.length)
            : copy.replicas.differ(differences.length)}
        {reads > 1 && copy.replicas.reads(reads)}
      </p>
      <Table
        label={copy.replicas.table}
        rows={nodes}
        rowKey={({ node }) => node}
        rowProps={({ node, index }) => ({ 'data-node': node, 'data-index': index?.to })}
        columns={[
          { id: 'node', header: copy.replicas.node, rowHeader: true, cell: ({ node }) => node },
          { id: 'role', header: copy.replicas.role, rank: 2, cell: ({ role }) => role },
          {
            id: 'index',
            header: copy.replicas.index,
            end: true,
            cell: ({ index }) => (index === null ? NONE : count(Number(index.to))),
          },
          { id: 'time', header: copy.replicas.time, end: true, rank: 2, cell: (row) => micros(row.micros) },
          { id: 'packages', header: copy.replicas.packages, end: true, cell: (row) => count(row.packages) },
          {
            id: 'result',
            header: copy.replicas.result,
            cell: ({ error }) =>
              error === '' ? copy.replicas.read : <span className="whitespace-normal text-crit">{error}</span>,
          },
        ]}
      />
      {differences.length > 0 && (
        <Table
          label={copy.replicas.differences}
          rows={differences}
          rowKey={({ room, date }) => `${date} ${room}`}
          columns={[
            {
              id: 'night',
              header: copy.replicas.night,
              rowHeader: true,
              cell: ({ room, date }) => `${day(date)}, ${room}`,
            },
            ...nodes.map(({ node, error }, at) => ({
              id: node,
              header: node,
              cell: ({ values }: CalendarReplicas['differences'][number]) =>
                error === '' ? nightText(values[at]) : NONE,
            })),
          ]}
        />
      )}
      {differencesCut && <p className="text-small text-text-3">{copy.replicas.cut}</p>}
    </div>
  )
}

function nightText(night: CalendarNight | null | undefined): string {
  if (!night) return copy.replicas.absent
  return copy.replicas.value(price(night.price), night.availability, night.features.join(', '))
}
