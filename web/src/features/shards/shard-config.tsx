'use client'
/** The effective configuration of a shard's nodes: what differs first, each value with where it comes from. */

import type { RouteAnswer } from '@vacancy/shared/contract'
import { Badge } from '../../ui/badge.tsx'
import { Panel } from '../../ui/panel.tsx'
import { Table } from '../../ui/table.tsx'
import { useShardConfig } from './queries.ts'
import { ShardFrame } from './shard-page.tsx'

export function ShardConfigPage({ id }: { readonly id: string }) {
  return (
    <ShardFrame id={id} tab="config">
      {() => <Config id={id} />}
    </ShardFrame>
  )
}

type ConfigBody = RouteAnswer<'GET /api/v1/shards/{shard}/config'>
type Key = ConfigBody['keys'][number]

function Config({ id }: { readonly id: string }) {
  const config = useShardConfig(id)
  return (
    <Panel
      title="Configuration"
      flush
      query={config}
      missing={(data) => data.missing}
      sources={(data) => data.nodes.length}
      isEmpty={(data) => data.keys.length === 0}
      empty={{
        text: 'No node told its configuration. The control plane needs the admin token of the nodes for it (node_admin_token).',
      }}
      skeleton={10}
    >
      {(data) => <ConfigTable body={data} />}
    </Panel>
  )
}

function ConfigTable({ body }: { readonly body: ConfigBody }) {
  const different = body.keys.filter((key) => !key.equal)
  const equal = body.keys.filter((key) => key.equal)
  return (
    <>
      {body.warnings.length > 0 && (
        <ul aria-label="Values that do not go together" className="flex flex-col gap-2 px-4 pb-3">
          {body.warnings.map(({ level, keys, nodes, message }) => (
            <li key={`${keys} ${message}`} className="flex flex-wrap items-start gap-2">
              <Badge level={level}>{nodes.join(', ')}</Badge>
              <span className="min-w-0">
                <code className="break-all font-mono">{keys.join(', ')}</code>: {message}.
              </span>
            </li>
          ))}
        </ul>
      )}
      <p className="px-4 pb-2 text-text-2">
        {different.length === 0
          ? `All ${equal.length} keys are equal on all nodes that told them.`
          : `${different.length} of ${body.keys.length} keys differ. They stand first.`}
      </p>
      <Table
        label="Configuration"
        rows={[...different, ...equal]}
        rowKey={(key) => key.key}
        rowProps={(key) => ({ 'data-key': key.key, 'data-equal': String(key.equal) })}
        columns={[
          {
            id: 'key',
            header: 'Key',
            rowHeader: true,
            cell: (key) => (
              <span className="inline-flex flex-wrap items-center gap-2">
                <code className="break-all font-mono">{key.key}</code>
                {!key.equal && (
                  <Badge level="warn" icon="not-equal">
                    differs
                  </Badge>
                )}
              </span>
            ),
          },
          ...body.nodes.map((node, at) => ({
            id: `node-${node}`,
            header: node,
            cell: (key: Key) => <Value key={node} value={key.values[at]} />,
          })),
        ]}
      />
    </>
  )
}

function Value({ value }: { readonly value: Key['values'][number] | undefined }) {
  if (!value) return <span className="text-text-3">not told</span>
  return (
    <span className="inline-flex flex-wrap items-baseline gap-x-2">
      <code className="break-all font-mono">{value.value}</code>
      <span className="text-small text-text-3">{value.origin}</span>
    </span>
  )
}
