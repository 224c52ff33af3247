'use client'
/**
 * A shard that accepts no writes: since when, what it waits for, the best candidate and the usual causes
 * (docs/design/console.md#panels).
 */

import type { ShardView } from '@vacancy/shared/contract'
import { count } from '../../lib/format.ts'
import { Age, Duration } from '../../ui/age.tsx'
import { Panel } from '../../ui/panel.tsx'
import { Table } from '../../ui/table.tsx'
import { common } from './copy.ts'
import * as copy from './shard-copy.ts'
import { bestCandidate, electionText, troubleOf } from './shard-view.ts'

export function TroublePanel({ shard }: { readonly shard: ShardView }) {
  const trouble = troubleOf(shard)
  if (!trouble) return null
  const voters = shard.nodes.filter((node) => node.voter !== false)
  const best = bestCandidate(shard)
  return (
    <Panel title={trouble.title} flush data={{ 'data-trouble': shard.state }}>
      <div className="grid gap-2 px-4 pb-2">
        <p>
          {copy.trouble.for} <Duration from={shard.since} />.{' '}
          {copy.trouble.voters(shard.votersUp, shard.voters, shard.majority)} {electionText(shard)}
        </p>
        {shard.waitsFor !== '' && <p className="font-medium">{shard.waitsFor}</p>}
        <p className="prose text-text-2">{trouble.causes}</p>
      </div>
      <Table
        label={copy.trouble.table}
        rows={voters}
        rowKey={(node) => node.id}
        rowProps={(node) => ({ 'data-voter': node.id })}
        columns={[
          {
            id: 'node',
            header: copy.trouble.voter,
            rowHeader: true,
            cell: (node) => <span className="font-mono">{node.id}</span>,
          },
          {
            id: 'last',
            header: copy.trouble.lastEntry,
            end: true,
            cell: (node) => (
              <>
                {count(node.lastIndex)}
                {node.id === best && <span className="ms-2 text-small text-text-2">{copy.trouble.bestCandidate}</span>}
              </>
            ),
          },
          { id: 'term', header: copy.trouble.term, end: true, cell: (node) => count(node.term) },
          {
            id: 'seen',
            header: copy.trouble.lastSeen,
            cell: (node) => <Age at={node.answeredAt} fresh={node.freshness} />,
          },
          {
            id: 'error',
            header: copy.trouble.lastError,
            rank: 2,
            cell: (node) => (node.error ? `${node.error.message} (${node.apiUrl})` : common.none),
          },
        ]}
      />
    </Panel>
  )
}
