'use client'
/** The leader that each node reports: one line while they agree, a table when they do not. */

import type { ShardView } from '@vacancy/shared/contract'
import { count } from '../../lib/format.ts'
import { Age } from '../../ui/age.tsx'
import { Panel } from '../../ui/panel.tsx'
import { Table } from '../../ui/table.tsx'
import * as copy from './shard-copy.ts'
import { type LeaderReport, leaderReports } from './shard-view.ts'

export function LeaderReports({ shard }: { readonly shard: ShardView }) {
  const { reports, agree } = leaderReports(shard)
  const majority = copy.leaderReports.majority(
    shard.majority,
    shard.voters,
    shard.term === null ? undefined : count(shard.term),
  )
  if (agree) {
    return (
      <Panel title={copy.leaderReports.title} data={{ 'data-agree': 'true' }}>
        <p className="flex flex-wrap gap-x-4 gap-y-1">
          {reports.map((report) => (
            <span key={report.node} className="font-mono text-table">
              {report.node} → {leaderText(report)}
            </span>
          ))}
          <span className="text-text-2">{majority}</span>
        </p>
      </Panel>
    )
  }
  const byNode = new Map(shard.nodes.map((node) => [node.id, node]))
  return (
    <Panel title={copy.leaderReports.titleDisagree} flush data={{ 'data-agree': 'false' }}>
      <p className="px-4 pb-1 text-text-2">{majority}</p>
      <Table
        label={copy.leaderReports.title}
        rows={reports}
        rowKey={(report) => report.node}
        rowProps={(report) => ({ 'data-node': report.node })}
        columns={[
          {
            id: 'node',
            header: copy.leaderReports.node,
            rowHeader: true,
            cell: (report) => <span className="font-mono">{report.node}</span>,
          },
          {
            id: 'names',
            header: copy.leaderReports.leader,
            cell: (report) => <span className="font-mono">{leaderText(report)}</span>,
          },
          { id: 'health', header: copy.leaderReports.health, cell: (report) => byNode.get(report.node)?.health ?? '–' },
          {
            id: 'term',
            header: copy.leaderReports.term,
            end: true,
            cell: (report) => count(byNode.get(report.node)?.term),
          },
          {
            id: 'at',
            header: copy.leaderReports.answered,
            cell: (report) => <Age at={byNode.get(report.node)?.answeredAt} />,
          },
        ]}
      />
    </Panel>
  )
}

function leaderText({ names }: LeaderReport): string {
  return names === null ? copy.leaderReports.notReported : names === '' ? copy.leaderReports.none : names
}
