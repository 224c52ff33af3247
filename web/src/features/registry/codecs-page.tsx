'use client'
import { useQuery } from '@tanstack/react-query'
import type { RouteAnswer } from '@vacancy/shared/contract'
import dynamic from 'next/dynamic'
import { call } from '../../lib/api.ts'
import { count, counted, utc } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { useUrlParam } from '../../lib/url.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Facts } from '../../ui/facts.tsx'
import { Id } from '../../ui/id.tsx'
import { Link } from '../../ui/link.tsx'
import { Panel } from '../../ui/panel.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { RegistryFrame } from './registry-frame.tsx'

type Codecs = RouteAnswer<'GET /api/v1/registry/codecs'>
type NodeCodecs = Codecs['nodes'][number]
type Usage = RouteAnswer<'GET /api/v1/registry/codec-usage'>

const REFRESH_MS = 10_000
const USAGE_MS = 60_000
const CHANGE_MS = 2_000
const USAGE_SHARDS_MAX = 4
/** Of `?change=`. */
const EDITOR = 'list'

// Read by all, edited by few.
const CodecEditor = dynamic(() => import('./codec-editor.tsx').then((module) => module.CodecEditor), { ssr: false })
const FollowedChange = dynamic(() => import('./followed-change.tsx').then((module) => module.FollowedChange), {
  ssr: false,
})

/** The rate features in their order, who has and who uses them, and what another list would mean. */
export function CodecsPage() {
  const codecs = useQuery({
    queryKey: ['registry', 'codecs'],
    queryFn: ({ signal }) => call('GET /api/v1/registry/codecs', { signal }),
    refetchInterval: REFRESH_MS,
  })
  const usage = useQuery({
    queryKey: ['registry', 'codec-usage'],
    queryFn: ({ signal }) => call('GET /api/v1/registry/codec-usage', { signal }),
    refetchInterval: USAGE_MS,
  })
  const change = useQuery({
    queryKey: ['registry', 'codec-change'],
    queryFn: ({ signal }) => call('GET /api/v1/registry/codec-change', { signal }),
    // Who carries it out looks at it; without one there is nothing to see.
    refetchInterval: ({ state }) => (state.data?.change ? CHANGE_MS : REFRESH_MS),
  })
  const why = useWhyNot('admin')
  const [changing, setChanging] = useUrlParam('change')
  const names = codecs.data?.codecs?.rate_features
  const open = change.data?.change
  // A link to the editor does not open it for who may not use it, or while a plan is followed.
  const isEditing = changing === EDITOR && why === undefined && change.data !== undefined && !open
  return (
    <RegistryFrame id="codecs" ready={!codecs.isPending}>
      {open && <FollowedChange change={open} />}
      <div className="grid items-start gap-4 lg:grid-cols-2">
        <Panel
          title="Rate features, in order"
          query={codecs}
          isEmpty={(data) => data.codecs === null}
          empty={{ text: 'Nobody told the codec list yet: neither the registry nor a node.' }}
          actions={
            names &&
            !isEditing && (
              <Button
                why={why ?? (open ? 'A plan is being followed: put it away first' : undefined)}
                onClick={() => setChanging(EDITOR, { push: true })}
              >
                Change the list…
              </Button>
            )
          }
        >
          {(data) => <CodecList codecs={data} usage={usage.data} />}
        </Panel>
        <Panel
          title="Who works with it"
          flush
          query={codecs}
          isEmpty={(data) => data.nodes.length === 0}
          empty={{ text: 'No node is known.' }}
        >
          {(data) => <CodecNodes nodes={data.nodes} />}
        </Panel>
      </div>
      {isEditing && names && <CodecEditor names={names} onClose={() => setChanging('')} />}
    </RegistryFrame>
  )
}

function CodecList({ codecs: { codecs, source }, usage }: { codecs: Codecs; usage: Usage | undefined }) {
  if (codecs === null) return null
  const known = (usage?.shards ?? []).flatMap(({ packages, of, shard }) =>
    packages && of ? [{ shard, packages, of }] : [],
  )
  return (
    <div className="flex flex-col gap-4">
      <Facts
        facts={[
          ['Told by', source],
          ['Entries', `${counted(codecs.rate_features.length, 'rate feature')} of 24 at most`],
          ['Ordered hash', <Id key="hash" value={codecs.ordered_hash} label="codec list" short={16} />],
        ]}
      />
      <Table
        label="Rate features"
        rows={codecs.rate_features.map((name, at) => ({ name, at }))}
        rowKey={({ name }) => name}
        rowProps={({ name }) => ({ 'data-feature': name })}
        columns={[
          { id: 'place', header: 'Place', end: true, width: '4rem', cell: ({ at }) => at },
          {
            id: 'name',
            header: 'Rate feature',
            rowHeader: true,
            cell: ({ name }) => <code className="break-all font-mono">{name}</code>,
          },
          ...known.slice(0, USAGE_SHARDS_MAX).map(({ shard, packages, of }) => ({
            id: `used-${shard}`,
            header: `Packages in ${shard}`,
            end: true,
            rank: 2 as const,
            tip: `Of ${count(of.packages)} in snapshot ${of.name}, as it was built on ${utc(of.at)}; writes since then are not counted`,
            cell: ({ name }: { name: string }) => count(packages[name] ?? null),
          })),
        ]}
      />
      {usage && <UsageNote usage={usage} />}
      <p className="prose text-small text-text-3">
        A word of a property holds features by their place in this list. Another order is another list: snapshots built
        with the old one do not fit any more.
      </p>
    </div>
  )
}

/** Who is counted, and of whom nobody knows. */
function UsageNote({ usage: { shards } }: { usage: Usage }) {
  const known = shards.filter(({ packages }) => packages !== null)
  const unknown = shards.filter(({ packages }) => packages === null).map(({ shard }) => shard)
  const left = known.slice(USAGE_SHARDS_MAX)
  return (
    <p className="prose text-small text-text-3">
      {known.length > 0 &&
        'Packages are counted of the snapshot that a shard was given last, as it was built; writes since then are not in it. '}
      {unknown.length > 0 &&
        `How many packages of ${unknown.slice(0, USAGE_SHARDS_MAX).join(', ')}${unknown.length > USAGE_SHARDS_MAX ? ` and ${unknown.length - USAGE_SHARDS_MAX} more` : ''} have a feature is not known: their data were not built here. `}
      {left.length > 0 && `${counted(left.length, 'more shard')} are not drawn.`}
    </p>
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
