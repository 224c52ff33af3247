'use client'
/** The effective configuration of a shard's nodes, different keys first, each value with its origin. */

import type { RouteAnswer } from '@vacancy/shared/contract'
import { useMoment } from '../../lib/address.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Banner } from '../../ui/banner.tsx'
import { Panel } from '../../ui/panel.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { ConfigValue } from './config-value.tsx'
import { useShardConfig } from './queries.ts'
import * as copy from './shard-copy.ts'
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

/** Each node has its own. */
const OWN_KEYS = new Set(['data_dir', 'tcp_port', 'api_port', 'quic_port'])

function Config({ id }: { readonly id: string }) {
  const config = useShardConfig(id)
  return (
    <Panel
      title={copy.config.title}
      flush
      query={config}
      missing={(data) => data.missing}
      sources={(data) => data.nodes.length}
      isEmpty={(data) => data.keys.length === 0}
      empty={{ text: copy.config.empty }}
      skeleton={10}
    >
      {(data) => <ConfigTable body={data} />}
    </Panel>
  )
}

function ConfigTable({ body }: { readonly body: ConfigBody }) {
  const moment = useMoment()
  const isDifferent = ({ key, equal }: Key) => !equal && !OWN_KEYS.has(key)
  const different = body.keys.filter(isDifferent)
  const equal = body.keys.filter((key) => !isDifferent(key))
  return (
    <>
      {moment !== undefined && <Banner level="info" title={copy.config.ofNow} className="mx-4 mb-3" />}
      {body.warnings.length > 0 && (
        <ul aria-label={copy.config.warnings} className="flex flex-col gap-2 px-4 pb-3">
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
        {different.length === 0 ? copy.config.allEqual : copy.config.differ(different.length, body.keys.length)}
      </p>
      {different.length > 0 && <Keys label={copy.config.title} keys={different} columns={sideBySide(body.nodes)} />}
      {equal.length > 0 && (
        <details open={different.length === 0}>
          <summary className="w-fit cursor-pointer rounded-control px-4 py-2 text-text-2">
            {copy.config.others(equal.length, different.length)}
          </summary>
          <Keys
            label={copy.config.others(equal.length, different.length)}
            keys={equal}
            columns={[together(body.nodes)]}
          />
        </details>
      )}
    </>
  )
}

const KEY: Column<Key> = {
  id: 'key',
  header: copy.config.key,
  rowHeader: true,
  width: '17rem',
  cell: (key) => <code className="break-all font-mono">{key.key}</code>,
}

const rowOf = (key: Key) => ({ 'data-key': key.key, 'data-equal': String(key.equal) })

function Keys({ label, keys, columns }: { label: string; keys: readonly Key[]; columns: readonly Column<Key>[] }) {
  return <Table label={label} rows={keys} rowKey={({ key }) => key} rowProps={rowOf} columns={[KEY, ...columns]} />
}

/** A column for each node. */
function sideBySide(nodes: readonly string[]): readonly Column<Key>[] {
  return nodes.map((node, at) => ({
    id: `node-${node}`,
    header: node,
    cell: (key) => <Value name={key.key} value={key.values[at]} />,
  }))
}

/** One value for all nodes; of a key that is each node's own, that of each. */
function together(nodes: readonly string[]): Column<Key> {
  return {
    id: 'value',
    header: copy.config.value,
    cell: (key) =>
      key.equal ? (
        <Value name={key.key} value={key.values.find((value) => value !== null)} />
      ) : (
        <span className="flex flex-wrap gap-x-4">
          {nodes.map((node, at) => (
            <span key={node} className="inline-flex flex-wrap items-baseline gap-x-1.5">
              <span className="text-small text-text-2">{node}</span>
              <Value name={key.key} value={key.values[at]} />
            </span>
          ))}
        </span>
      ),
  }
}

function Value({ name, value }: { readonly name: string; readonly value: Key['values'][number] | undefined }) {
  if (!value) return <span className="text-text-3">{copy.config.notReported}</span>
  return (
    <span className="inline-flex flex-wrap items-baseline gap-x-2">
      <ConfigValue name={name} value={value.value} />
      <span className="text-small text-text-3">{value.origin}</span>
    </span>
  )
}
