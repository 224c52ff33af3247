'use client'
/** The raw evidence of leadership: whom each node names. A line while they agree, a table when they do not. */

import type { ShardView } from '@vacancy/shared/contract'
import { count } from '../../lib/format.ts'
import { Age } from '../../ui/age.tsx'
import { Panel } from '../../ui/panel.tsx'
import { Table } from '../../ui/table.tsx'
import { type LeaderWord, leaderWords } from './shard-view.ts'

export function WhoLeads({ shard }: { readonly shard: ShardView }) {
  const { words, agree } = leaderWords(shard)
  const numbers = `majority ${shard.majority} of ${shard.voters}${shard.term === null ? '' : ` · term ${count(shard.term)}`}`
  if (agree) {
    return (
      <Panel title="Who says who leads" data={{ 'data-agree': 'true' }}>
        <p className="flex flex-wrap gap-x-4 gap-y-1">
          {words.map((word) => (
            <span key={word.node} className="font-mono text-table">
              {word.node} → {said(word)}
            </span>
          ))}
          <span className="text-text-2">{numbers}</span>
        </p>
      </Panel>
    )
  }
  const byNode = new Map(shard.nodes.map((node) => [node.id, node]))
  return (
    <Panel title="Who says who leads: nodes disagree" flush data={{ 'data-agree': 'false' }}>
      <p className="px-4 pb-1 text-text-2">{numbers}</p>
      <Table
        label="Who says who leads"
        rows={words}
        rowKey={(word) => word.node}
        rowProps={(word) => ({ 'data-node': word.node })}
        columns={[
          {
            id: 'node',
            header: 'Node',
            rowHeader: true,
            cell: (word) => <span className="font-mono">{word.node}</span>,
          },
          { id: 'names', header: 'Says that leads', cell: (word) => <span className="font-mono">{said(word)}</span> },
          { id: 'health', header: 'Says of itself', cell: (word) => byNode.get(word.node)?.health ?? '–' },
          { id: 'term', header: 'Term', end: true, cell: (word) => count(byNode.get(word.node)?.term) },
          { id: 'at', header: 'Answered', cell: (word) => <Age at={byNode.get(word.node)?.answeredAt} /> },
        ]}
      />
    </Panel>
  )
}

function said({ names }: LeaderWord): string {
  return names === null ? 'did not say' : names === '' ? 'nobody' : names
}
