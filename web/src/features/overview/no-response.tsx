'use client'
/** Shown when no node responds: probably the network of the control plane rather than the shards. */

import type { Summary } from '@vacancy/shared/contract'
import { routes } from '../../lib/routes.ts'
import { Age } from '../../ui/age.tsx'
import { Banner } from '../../ui/banner.tsx'
import { LinkButton } from '../../ui/button.tsx'
import { Table } from '../../ui/table.tsx'
import * as copy from './copy.ts'

export function NoResponse({ summary }: { readonly summary: Summary }) {
  const { nodes, nodesAnswering } = summary.counts
  if (nodes === 0 || nodesAnswering > 0) return null
  return (
    <Banner
      level="crit"
      title={copy.noResponse.title(nodes)}
      actions={<LinkButton href={routes.resolver()}>{copy.noResponse.resolver}</LinkButton>}
    >
      <p>{copy.noResponse.causes}</p>
      <Table
        label={copy.noResponse.table}
        rows={summary.missing}
        rowKey={(missing) => `${missing.source} ${missing.code}`}
        columns={[
          {
            id: 'source',
            header: copy.noResponse.target,
            rowHeader: true,
            cell: (missing) => <code className="font-mono">{missing.source}</code>,
          },
          {
            id: 'message',
            header: copy.noResponse.result,
            cell: (missing) => copy.noResponse.error(missing.message, missing.code),
          },
          { id: 'since', header: copy.noResponse.duration, cell: (missing) => <Age at={missing.since} suffix="" /> },
        ]}
      />
    </Banner>
  )
}
