'use client'
/** No node at all answers: the way from the control plane to them is what to look at, before any of the shards. */

import type { Summary } from '@vacancy/shared/contract'
import { routes } from '../../lib/routes.ts'
import { Age } from '../../ui/age.tsx'
import { Banner } from '../../ui/banner.tsx'
import { LinkButton } from '../../ui/button.tsx'
import { Table } from '../../ui/table.tsx'

export function NothingAnswers({ summary }: { readonly summary: Summary }) {
  const { nodes, nodesAnswering } = summary.counts
  if (nodes === 0 || nodesAnswering > 0) return null
  return (
    <Banner
      level="crit"
      title={`None of ${nodes} nodes answers this control plane`}
      actions={<LinkButton href={routes.resolver()}>Ask the resolver</LinkButton>}
    >
      <p>
        Either all of them are down, or the way from here to them is: a firewall, a name that no longer resolves,
        another port. What was tried, and what came of it:
      </p>
      <Table
        label="What was tried"
        rows={summary.missing}
        rowKey={(missing) => `${missing.source} ${missing.code}`}
        columns={[
          {
            id: 'source',
            header: 'Asked',
            rowHeader: true,
            cell: (missing) => <code className="font-mono">{missing.source}</code>,
          },
          { id: 'message', header: 'Outcome', cell: (missing) => `${missing.message} (${missing.code})` },
          { id: 'since', header: 'For', cell: (missing) => <Age at={missing.since} suffix="" /> },
        ]}
      />
    </Banner>
  )
}
