'use client'
import { useQuery } from '@tanstack/react-query'
import type { RouteAnswer } from '@vacancy/shared/contract'
import { call } from '../../lib/api.ts'
import { counted } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { Badge } from '../../ui/badge.tsx'
import { Facts } from '../../ui/facts.tsx'
import { Id } from '../../ui/id.tsx'
import { Link } from '../../ui/link.tsx'
import { Panel } from '../../ui/panel.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { RegistryFrame } from './registry-frame.tsx'

type Codecs = RouteAnswer<'GET /api/v1/registry/codecs'>
type NodeCodecs = Codecs['nodes'][number]

const REFRESH_MS = 10_000

/** The rate features in their order, and which nodes work with that very list. */
export function CodecsPage() {
  const codecs = useQuery({
    queryKey: ['registry', 'codecs'],
    queryFn: ({ signal }) => call('GET /api/v1/registry/codecs', { signal }),
    refetchInterval: REFRESH_MS,
  })
  return (
    <RegistryFrame id="codecs" ready={!codecs.isPending}>
      <div className="grid items-start gap-4 lg:grid-cols-2">
        <Panel
          title="Rate features, in order"
          query={codecs}
          isEmpty={(data) => data.codecs === null}
          empty={{ says: 'Nobody told the codec list yet: neither the registry nor a node.' }}
        >
          {(data) => <CodecList codecs={data} />}
        </Panel>
        <Panel
          title="Who works with it"
          flush
          query={codecs}
          isEmpty={(data) => data.nodes.length === 0}
          empty={{ says: 'No node is known.' }}
        >
          {(data) => <CodecNodes nodes={data.nodes} />}
        </Panel>
      </div>
    </RegistryFrame>
  )
}

function CodecList({ codecs: { codecs, source } }: { codecs: Codecs }) {
  if (codecs === null) return null
  return (
    <div className="flex flex-col gap-4">
      <Facts
        facts={[
          ['Told by', source],
          ['Entries', `${counted(codecs.rate_features.length, 'rate feature')} of 24 at most`],
          ['Ordered hash', <Id key="hash" value={codecs.ordered_hash} label="codec list" short={16} />],
        ]}
      />
      <ol className="grid gap-x-6 sm:grid-cols-2">
        {codecs.rate_features.map((feature, index) => (
          <li key={feature} className="flex h-8 items-center gap-3 border-line border-b">
            <span className="num w-6 text-small text-text-3">{index}</span>
            <code className="min-w-0 truncate font-mono">{feature}</code>
          </li>
        ))}
      </ol>
      <p className="prose text-small text-text-3">
        A word of a property holds features by their place in this list. Another order is another list: snapshots built
        with the old one do not fit any more.
      </p>
    </div>
  )
}

const COLUMNS: readonly Column<NodeCodecs>[] = [
  {
    id: 'node',
    header: 'Node',
    rowHeader: true,
    compare: (a, b) => `${a.shard} ${a.node}`.localeCompare(`${b.shard} ${b.node}`),
    cell: ({ shard, node }) => <Link href={routes.node(shard, node)}>{`${shard} / ${node}`}</Link>,
  },
  {
    id: 'equal',
    header: 'List',
    compare: (a, b) => Number(a.equal ?? -1) - Number(b.equal ?? -1),
    cell: ({ equal }) => <Equal equal={equal} />,
  },
  {
    id: 'hash',
    header: 'Ordered hash',
    rank: 2,
    cell: ({ orderedHash }) =>
      orderedHash ? (
        <Id value={orderedHash} label="codec list" short={12} />
      ) : (
        <span className="text-text-3" data-tip="This node did not report its codec list">
          –
        </span>
      ),
  },
]

function Equal({ equal }: { equal: boolean | null }) {
  if (equal === null) return <Badge level="unk">not told</Badge>
  return equal ? (
    <Badge level="ok">the same</Badge>
  ) : (
    <Badge level="warn" icon="not-equal">
      another list
    </Badge>
  )
}

function CodecNodes({ nodes }: { nodes: readonly NodeCodecs[] }) {
  return (
    <Table
      label="Codec lists of nodes"
      rows={nodes}
      columns={COLUMNS}
      rowKey={({ shard, node }) => `${shard}/${node}`}
      rowProps={({ node, equal }) => ({ 'data-node': node, 'data-equal': String(equal) })}
      sort={{ column: 'equal', down: false }}
    />
  )
}
