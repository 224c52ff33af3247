'use client'
/** Two searches run now, and the properties in which their results differ. */
import { useQuery } from '@tanstack/react-query'
import { call } from '../../lib/api.ts'
import { count, NONE, price } from '../../lib/format.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorState } from '../../ui/panel.tsx'
import { Table } from '../../ui/table.tsx'
import * as copy from './copy.ts'
import type { Draft } from './request.ts'
import { comparedRows } from './rows.ts'

const SHOWN_MAX = 200

const read = ({ shard, node, command, fields }: Draft, signal: AbortSignal) =>
  call('POST /api/v1/query', {
    body: {
      ...{ command, fields: { ...fields } as never, write: false, confirm: '', keep: false },
      ...(shard && { shard }),
      ...(node && { node }),
    },
    signal,
  })

export function ComparedResults({ earlier, current }: { readonly earlier: Draft; readonly current: Draft }) {
  const query = useQuery({
    queryKey: ['playground-compared', earlier, current],
    queryFn: async ({ signal }) => {
      const [before, after] = await Promise.all([read(earlier, signal), read(current, signal)])
      return { ...comparedRows(before, after), limited: before.limited || after.limited }
    },
    enabled: false,
    gcTime: 0,
    retry: false,
  })
  const { data } = query
  return (
    <div className="flex flex-col items-start gap-3 pt-4">
      <Button icon="play" busy={query.isFetching} onClick={() => void query.refetch()}>
        {copy.history.compareResults}
      </Button>
      {query.error && <ErrorState error={query.error} />}
      {data && (
        <p role="status" data-same={data.same} data-differ={data.differing.length}>
          {copy.history.compared(count(data.same), data.differing.length)}
          {data.limited && ` ${copy.history.comparedLimited}`}
        </p>
      )}
      {data && data.differing.length > 0 && (
        <Table
          label={copy.history.comparedTable}
          rows={data.differing.slice(0, SHOWN_MAX)}
          total={data.differing.length}
          rowKey={({ id }) => id}
          columns={[
            {
              id: 'id',
              header: copy.resultTable.property,
              rowHeader: true,
              cell: ({ id }) => <span className="font-mono">{id}</span>,
            },
            { id: 'before', header: copy.history.before, end: true, cell: (row) => side(row.before) },
            { id: 'now', header: copy.history.now, end: true, cell: (row) => side(row.now) },
          ]}
        />
      )}
    </div>
  )
}

/** The total of a stay, or that a property is among the hits. */
function side(value: number | boolean): string {
  return value === false ? NONE : value === true ? copy.history.found : price(value)
}
