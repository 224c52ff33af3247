'use client'
/** The dashboards of the cluster: engine, consensus, fabric, queue, import and control plane. */
import { type LiveValue, useLive } from '../../lib/live.ts'
import { routes } from '../../lib/routes.ts'
import { useUrlParam } from '../../lib/url.ts'
import { Link } from '../../ui/link.tsx'
import { Page } from '../../ui/page.tsx'
import { Select } from '../../ui/select.tsx'
import { PathTabs } from '../../ui/tabs.tsx'
import * as copy from './copy.ts'
import { DASHBOARDS, type Dashboard } from './dashboards.ts'
import { ChartsPanel } from './metric-charts.tsx'

export function DashboardPage({ id }: { readonly id: string }) {
  const dashboard = DASHBOARDS.find((one) => one.id === id)
  const [shard, setShard] = useUrlParam('shard')
  if (!dashboard) return <UnknownDashboard id={id} />
  const of = dashboard.hasShards && shard !== '' ? { shard } : WHOLE
  return (
    <Page
      id="dashboard"
      title={copy.page.title}
      where={dashboard.title}
      ready
      actions={dashboard.hasShards && <ShardSelect value={shard} onChange={(next) => setShard(next, { push: true })} />}
      tabs={
        <PathTabs
          label={copy.page.label}
          tabs={DASHBOARDS.map((one) => ({ href: routes.dashboard(one.id), label: one.title }))}
        />
      }
    >
      <ChartsPanel title={dashboard.title} hideTitle charts={dashboard.charts} of={of} key={dashboard.id} />
    </Page>
  )
}

/** A constant, so that charts are not drawn again. */
const WHOLE = {}

const shardIds = ({ shards }: LiveValue<'summary'>) => shards.map(({ id }) => id)

function ShardSelect({ value, onChange }: { readonly value: string; readonly onChange: (shard: string) => void }) {
  const ids = useLive('summary', shardIds).data ?? []
  const known = value === '' || ids.includes(value) ? ids : [...ids, value]
  return (
    <Select
      aria-label={copy.page.shard}
      value={value}
      options={[{ value: '', label: copy.page.allShards }, ...known.map((id) => ({ value: id, label: id }))]}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}

function UnknownDashboard({ id }: { readonly id: string }) {
  return (
    <Page id="not-found" title={copy.page.unknownTitle} ready>
      <p>{copy.page.unknown(id)}</p>
      <ul className="flex flex-col gap-1">
        {DASHBOARDS.map((one: Dashboard) => (
          <li key={one.id}>
            <Link href={routes.dashboard(one.id)}>{one.title}</Link>
          </li>
        ))}
      </ul>
    </Page>
  )
}
