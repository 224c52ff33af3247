'use client'
/** The overview: attention items, key rack, charts and recent events. */

import type { Summary } from '@vacancy/shared/contract'
import { count, days, percent, shortCount } from '../../lib/format.ts'
import { useLive } from '../../lib/live.ts'
import { routes } from '../../lib/routes.ts'
import { EventList } from '../../ui/event-list.tsx'
import { Link } from '../../ui/link.tsx'
import { Page } from '../../ui/page.tsx'
import { ErrorState, Panel, type PanelQuery } from '../../ui/panel.tsx'
import { Progress } from '../../ui/progress.tsx'
import { Attention } from './attention.tsx'
import * as copy from './copy.ts'
import { KeyRack } from './key-rack.tsx'
import { NoResponse } from './no-response.tsx'
import { OneShard } from './one-shard.tsx'
import { Pulse } from './pulse.tsx'
import { useStateNews } from './state-news.ts'

const EVENTS_MAX = 8

export function OverviewPage() {
  const summary = useLive('summary')
  useStateNews(summary.data?.shards)
  if (!summary.data && summary.error) {
    return (
      <Page id="overview" title={copy.overview.title} ready>
        <ErrorState error={summary.error} onRetry={summary.refetch} />
      </Page>
    )
  }
  return (
    <Page id="overview" title={copy.overview.title} ready={summary.data !== undefined}>
      {summary.data && <NoResponse summary={summary.data} />}
      <div className="grid items-start gap-4 lg:grid-cols-[minmax(0,1fr)_20rem]">
        <div className="grid min-w-0 gap-4">
          <Attention summary={summary} />
          {summary.data && summary.data.shards.length > 0 && <Pulse summary={summary.data} />}
          <Shards summary={summary} />
        </div>
        <div className="grid min-w-0 gap-4">
          <Panel title={copy.overview.cluster} query={summary} at={(data) => data.at}>
            {(data) => <Counts summary={data} />}
          </Panel>
          {summary.data && summary.data.running.length > 0 && (
            <Panel title={copy.overview.running}>
              <Running running={summary.data.running} />
            </Panel>
          )}
          <Panel
            title={copy.overview.events}
            query={summary}
            isEmpty={(data) => data.events.length === 0}
            empty={{ text: copy.overview.noEvents }}
          >
            {(data) => <EventList label={copy.overview.events} events={data.events.slice(0, EVENTS_MAX)} isLinked />}
          </Panel>
        </div>
      </div>
    </Page>
  )
}

function Shards({ summary }: { readonly summary: PanelQuery<Summary> }) {
  const [only, ...others] = summary.data?.shards ?? []
  if (only && others.length === 0) return <OneShard brief={only} />
  return (
    <Panel
      title={copy.overview.rack}
      query={summary}
      isEmpty={(data) => data.shards.length === 0}
      empty={{ text: copy.overview.noShards }}
    >
      {(data) => <KeyRack shards={data.shards} />}
    </Panel>
  )
}

function Counts({ summary: { counts, window } }: { readonly summary: Summary }) {
  const rows = [
    {
      name: copy.overview.shards,
      value: count(counts.shards),
      note: copy.overview.healthy(count(counts.shardsHealthy)),
      href: routes.shards(),
    },
    {
      name: copy.overview.nodes,
      value: count(counts.nodes),
      note: copy.overview.responding(count(counts.nodesAnswering)),
    },
    { name: copy.overview.packages, value: shortCount(counts.packages) },
    { name: copy.overview.properties, value: shortCount(counts.properties) },
    { name: copy.overview.window, value: days(window) },
  ]
  return (
    <dl className="grid grid-cols-[auto_1fr] items-baseline gap-x-4 gap-y-1.5">
      {rows.map(({ name, value, note, href }) => (
        <div key={name} className="contents">
          <dt className="text-text-2">{href ? <Link href={href}>{name}</Link> : name}</dt>
          <dd className="num">
            <span className="font-semibold">{value}</span>
            {note && <span className="ms-2 text-text-3">{note}</span>}
          </dd>
        </div>
      ))}
    </dl>
  )
}

function Running({ running }: { readonly running: Summary['running'] }) {
  return (
    <ul aria-label={copy.overview.running} className="grid gap-2">
      {running.map((one) => (
        <li key={one.id} data-running={one.id} className="grid gap-1">
          <Link href={one.href}>{one.title}</Link>
          <span className="break-words text-small text-text-2">{one.message}</span>
          {one.percent !== null && (
            <Progress label={one.title} value={one.percent} max={100} valueText={percent(one.percent / 100)} />
          )}
        </li>
      ))}
    </ul>
  )
}
