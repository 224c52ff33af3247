'use client'
import type { RouteAnswer } from '@vacancy/shared/contract'
import dynamic from 'next/dynamic'
import { count, utc } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { useUrlParam } from '../../lib/url.ts'
import { useRoute } from '../../lib/use-route.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Facts } from '../../ui/facts.tsx'
import { Id } from '../../ui/id.tsx'
import { Link } from '../../ui/link.tsx'
import { Panel } from '../../ui/panel.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import * as copy from './copy.ts'
import { RegistryFrame } from './registry-frame.tsx'

type Codecs = RouteAnswer<'GET /api/v1/registry/codecs'>
type NodeCodecs = Codecs['nodes'][number]
type Usage = RouteAnswer<'GET /api/v1/registry/codec-usage'>

const REFRESH_MS = 10_000
const USAGE_MS = 60_000
const CHANGE_MS = 2_000
const USAGE_SHARDS_MAX = 4
/** Value of `?change=` that opens the editor. */
const EDITOR = 'list'

// The editor is rarely used, so its code is loaded on demand.
const CodecEditor = dynamic(() => import('./codec-editor.tsx').then((module) => module.CodecEditor), { ssr: false })
const TrackedChange = dynamic(() => import('./tracked-change.tsx').then((module) => module.TrackedChange), {
  ssr: false,
})

/** The codec list in order, the nodes that use it, and its changes. */
export function CodecsPage() {
  const codecs = useRoute('GET /api/v1/registry/codecs', {}, { refetchInterval: REFRESH_MS })
  const usage = useRoute('GET /api/v1/registry/codec-usage', {}, { refetchInterval: USAGE_MS })
  const change = useRoute(
    'GET /api/v1/registry/codec-change',
    {},
    {
      // Faster while a change is tracked.
      refetchInterval: ({ state }) => (state.data?.change ? CHANGE_MS : REFRESH_MS),
    },
  )
  const why = useWhyNot('admin')
  const [changing, setChanging] = useUrlParam('change')
  const names = codecs.data?.codecs?.rate_features
  const open = change.data?.change
  // A link opens the editor only with permission, and not while a plan is tracked.
  const isEditing = changing === EDITOR && why === undefined && change.data !== undefined && !open
  return (
    <RegistryFrame id="codecs" ready={!codecs.isPending}>
      {open && <TrackedChange change={open} />}
      <div className="grid items-start gap-4 lg:grid-cols-2">
        <Panel
          title={copy.codecs.title}
          query={codecs}
          isEmpty={(data) => data.codecs === null}
          empty={{ text: copy.codecs.empty }}
          actions={
            names &&
            !isEditing && (
              <Button
                why={why ?? (open ? copy.codecs.tracking : undefined)}
                onClick={() => setChanging(EDITOR, { push: true })}
              >
                {copy.codecs.edit}
              </Button>
            )
          }
        >
          {(data) => <CodecList codecs={data} usage={usage.data} />}
        </Panel>
        <Panel
          title={copy.codecs.nodes}
          flush
          query={codecs}
          isEmpty={(data) => data.nodes.length === 0}
          empty={{ text: copy.codecs.noNodes }}
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
          [copy.codecs.reportedBy, source],
          [copy.codecs.entries, copy.codecs.entryCount(codecs.rate_features.length)],
          [copy.codecs.hash, <Id key="hash" value={codecs.ordered_hash} label="codec list" short={16} />],
        ]}
      />
      <Table
        label={copy.codecs.table}
        rows={codecs.rate_features.map((name, at) => ({ name, at }))}
        rowKey={({ name }) => name}
        rowProps={({ name }) => ({ 'data-feature': name })}
        columns={[
          { id: 'place', header: copy.codecs.position, end: true, width: '4rem', cell: ({ at }) => at },
          {
            id: 'name',
            header: copy.codecs.feature,
            rowHeader: true,
            cell: ({ name }) => <code className="break-all font-mono">{name}</code>,
          },
          ...known.slice(0, USAGE_SHARDS_MAX).map(({ shard, packages, of }) => ({
            id: `used-${shard}`,
            header: copy.codecs.packagesIn(shard),
            end: true,
            rank: 2 as const,
            tip: copy.codecs.packagesTip(count(of.packages), of.name, utc(of.at)),
            cell: ({ name }: { name: string }) => count(packages[name] ?? null),
          })),
        ]}
      />
      {usage && <UsageNote usage={usage} />}
      <p className="prose text-small text-text-3">{copy.codecs.orderMatters}</p>
    </div>
  )
}

/** Which snapshots are counted, and which shards have no counts. */
function UsageNote({ usage: { shards } }: { usage: Usage }) {
  const known = shards.filter(({ packages }) => packages !== null)
  const unknown = shards.filter(({ packages }) => packages === null).map(({ shard }) => shard)
  const hidden = known.slice(USAGE_SHARDS_MAX)
  return (
    <p className="prose text-small text-text-3">
      {known.length > 0 && copy.codecs.usageNote}
      {unknown.length > 0 &&
        copy.codecs.usageUnknown(unknown.slice(0, USAGE_SHARDS_MAX).join(', '), unknown.length - USAGE_SHARDS_MAX)}
      {hidden.length > 0 && copy.codecs.usageHidden(hidden.length)}
    </p>
  )
}

const COLUMNS: readonly Column<NodeCodecs>[] = [
  {
    id: 'node',
    header: copy.codecs.node,
    rowHeader: true,
    compare: (a, b) => `${a.shard} ${a.node}`.localeCompare(`${b.shard} ${b.node}`),
    cell: ({ shard, node }) => <Link href={routes.node(shard, node)}>{`${shard} / ${node}`}</Link>,
  },
  {
    id: 'equal',
    header: copy.codecs.list,
    compare: (a, b) => Number(a.equal ?? -1) - Number(b.equal ?? -1),
    cell: ({ equal }) => <Equal equal={equal} />,
  },
  {
    id: 'hash',
    header: copy.codecs.hash,
    rank: 2,
    cell: ({ orderedHash }) =>
      orderedHash ? (
        <Id value={orderedHash} label="codec list" short={12} />
      ) : (
        <span className="text-text-3" data-tip={copy.codecs.notReportedTip}>
          –
        </span>
      ),
  },
]

function Equal({ equal }: { equal: boolean | null }) {
  if (equal === null) return <Badge level="unk">{copy.codecs.notReported}</Badge>
  return equal ? (
    <Badge level="ok">{copy.codecs.same}</Badge>
  ) : (
    <Badge level="warn" icon="not-equal">
      {copy.codecs.different}
    </Badge>
  )
}

function CodecNodes({ nodes }: { nodes: readonly NodeCodecs[] }) {
  return (
    <Table
      label={copy.codecs.nodesTable}
      rows={nodes}
      columns={COLUMNS}
      rowKey={({ shard, node }) => `${shard}/${node}`}
      rowProps={({ node, equal }) => ({ 'data-node': node, 'data-equal': String(equal) })}
      sort={{ column: 'equal', down: false }}
    />
  )
}
