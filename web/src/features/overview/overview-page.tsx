'use client'
/** What needs me, and is it still getting worse? */

import type { Summary } from '@vacancy/shared/contract'
import dynamic from 'next/dynamic'
import { useDeferredValue } from 'react'
import { count, days, percent, shortCount } from '../../lib/format.ts'
import { useLive } from '../../lib/live.ts'
import { routes } from '../../lib/routes.ts'
import { Link } from '../../ui/link.tsx'
import { Page } from '../../ui/page.tsx'
import { Panel, Skeleton } from '../../ui/panel.tsx'
import { Progress } from '../../ui/progress.tsx'
import { EventList } from '../shards/event-list.tsx'
import { Attention } from './attention.tsx'
import { KeyRack } from './key-rack.tsx'
import { NothingAnswers } from './nothing-answers.tsx'
import { useStateNews } from './state-news.ts'

const ClusterCharts = dynamic(() => import('../metrics/cluster-charts.tsx').then((module) => module.ClusterCharts), {
  ssr: false,
  loading: ChartsToCome,
})

const EVENTS_MAX = 8

export function OverviewPage() {
  const summary = useLive('summary')
  useStateNews(summary.data?.shards)
  // What needs somebody comes first; drawing five canvases waits until that is on the screen.
  const isTimeForCharts = useDeferredValue(true, false)
  return (
    <Page id="overview" title="Overview" ready={summary.data !== undefined}>
      {summary.data && <NothingAnswers summary={summary.data} />}
      <div className="grid items-start gap-4 lg:grid-cols-[minmax(0,1fr)_20rem]">
        <div className="grid min-w-0 gap-4">
          <Attention summary={summary} />
          <Panel
            title="Key rack"
            query={summary}
            isEmpty={(data) => data.shards.length === 0}
            empty={{
              text: 'No shard is known yet: no node has registered, and none stands in the configuration of the control plane.',
            }}
          >
            {(data) => <KeyRack shards={data.shards} />}
          </Panel>
          {isTimeForCharts ? <ClusterCharts /> : <ChartsToCome />}
        </div>
        <div className="grid min-w-0 gap-4">
          <Panel title="Cluster" query={summary} at={(data) => data.at}>
            {(data) => <Counts summary={data} />}
          </Panel>
          <Panel
            title="Running"
            query={summary}
            isEmpty={(data) => data.running.length === 0}
            empty={{ text: 'No operation and no import runs.' }}
            skeleton={2}
          >
            {(data) => <Running running={data.running} />}
          </Panel>
          <Panel
            title="Recent events"
            query={summary}
            isEmpty={(data) => data.events.length === 0}
            empty={{ text: 'Nothing has changed since this control plane looks.' }}
          >
            {(data) => <EventList label="Recent events" events={data.events.slice(0, EVENTS_MAX)} isLinked />}
          </Panel>
        </div>
      </div>
    </Page>
  )
}

function ChartsToCome() {
  return (
    <Panel title="Last 15 min, whole cluster">
      <Skeleton rows={11} />
    </Panel>
  )
}

function Counts({ summary: { counts, window } }: { readonly summary: Summary }) {
  const rows = [
    {
      name: 'Shards',
      value: count(counts.shards),
      note: `${count(counts.shardsHealthy)} healthy`,
      href: routes.shards(),
    },
    { name: 'Nodes', value: count(counts.nodes), note: `${count(counts.nodesAnswering)} answer` },
    { name: 'Packages', value: shortCount(counts.packages) },
    { name: 'Properties', value: shortCount(counts.properties) },
    { name: 'Window', value: days(window) },
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
    <ul aria-label="Running" className="grid gap-2">
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
