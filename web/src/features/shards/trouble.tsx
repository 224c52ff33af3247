'use client'
/**
 * A shard that cannot write: since when, who is waited for, which voter could lead, and what usually causes it
 * (docs/design/control-plane.md#panels).
 */

import type { ShardView } from '@vacancy/shared/contract'
import { count } from '../../lib/format.ts'
import { Age, Duration } from '../../ui/age.tsx'
import { Panel } from '../../ui/panel.tsx'
import { Table } from '../../ui/table.tsx'
import { bestCandidate, troubleOf, waitSays } from './shard-view.ts'

export function TroublePanel({ shard }: { readonly shard: ShardView }) {
  const trouble = troubleOf(shard)
  if (!trouble) return null
  const voters = shard.nodes.filter((node) => node.voter !== false)
  const best = bestCandidate(shard)
  return (
    <Panel title={trouble.title} flush data={{ 'data-trouble': shard.state }}>
      <div className="grid gap-2 px-4 pb-2">
        <p>
          For <Duration from={shard.since} />. {shard.votersUp} of {shard.voters} voters answer, {shard.majority} are
          needed. {waitSays(shard)}
        </p>
        {shard.waitsFor !== '' && <p className="font-medium">{shard.waitsFor}</p>}
        <p className="prose text-text-2">{trouble.causes}</p>
      </div>
      <Table
        label="Voters"
        rows={voters}
        rowKey={(node) => node.id}
        rowProps={(node) => ({ 'data-voter': node.id })}
        columns={[
          {
            id: 'node',
            header: 'Voter',
            rowHeader: true,
            cell: (node) => <span className="font-mono">{node.id}</span>,
          },
          {
            id: 'last',
            header: 'Last entry',
            end: true,
            cell: (node) => (
              <>
                {count(node.lastIndex)}
                {node.id === best && <span className="ms-2 text-small text-text-2">best candidate</span>}
              </>
            ),
          },
          { id: 'term', header: 'Term', end: true, cell: (node) => count(node.term) },
          { id: 'seen', header: 'Last seen', cell: (node) => <Age at={node.answeredAt} fresh={node.freshness} /> },
          {
            id: 'error',
            header: 'Last error',
            rank: 2,
            cell: (node) => (node.error ? `${node.error.message} (${node.apiUrl})` : 'none'),
          },
        ]}
      />
    </Panel>
  )
}
