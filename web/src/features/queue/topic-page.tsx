'use client'
/** One topic: numbers, its jobs by state, consumers and configuration; a job opens beside its list. */
import type { JobState, SavedView, TopicHistory, TopicSeries, TopicStats } from '@vacancy/shared/contract'
import clsx from 'clsx'
import dynamic from 'next/dynamic'
import { type FormEvent, memo, type ReactNode, useCallback, useEffect, useId, useMemo, useRef, useState } from 'react'
import { useSearch } from '../../lib/address.tsx'
import { call } from '../../lib/api.ts'
import { bytes, count, duration, figure, rate } from '../../lib/format.ts'
import { useKey } from '../../lib/keys.ts'
import { nearest } from '../../lib/nearest.ts'
import { ApiProblem } from '../../lib/problem.ts'
import { routes } from '../../lib/routes.ts'
import { useMe, useWhyNot } from '../../lib/session.ts'
import { useSetUrl, useUrlChoice, useUrlParam } from '../../lib/url.ts'
import { Chip } from '../../ui/badge.tsx'
import { Button, LinkButton } from '../../ui/button.tsx'
import { Failed } from '../../ui/confirm-dialog.tsx'
import { preloadDialog } from '../../ui/dialog.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { Link } from '../../ui/link.tsx'
import { Menu } from '../../ui/menu.tsx'
import { Page } from '../../ui/page.tsx'
import { ErrorState, Panel, Skeleton } from '../../ui/panel.tsx'
import { PathTabs } from '../../ui/tabs.tsx'
import { TimeChart } from '../../ui/time-chart.tsx'
import { toast } from '../../ui/toast.tsx'
import { useSavePreferences } from '../settings/preferences.ts'
import { ViewsMenu } from '../shards/views-menu.tsx'
import { ConfigFields } from './config-fields.tsx'
import { CONFIG_KEYS, type ConfigTexts, configChange, configFaults } from './config-values.ts'
import { ConsumersPanel } from './consumers-panel.tsx'
import * as copy from './copy.ts'
import { DEAD_FIELDS, type DeadFields, type DeadQuery, deadQuery } from './dead-filter.ts'
import { DeadPanels } from './dead-panels.tsx'
import { JobDetails, UnknownJob } from './job-details.tsx'
import { JobsTable } from './jobs-table.tsx'
import { useJob, useJobs, useQueueChange, useQueueStats, useTopic, useTopicHistory, useTopicStats } from './queries.ts'
import { RedriveStrip } from './redrive-strip.tsx'
import { TailPanel } from './tail-panel.tsx'
import { DeadCount, oldestText, TopicBadge } from './topic-columns.tsx'
import { jobsViewFilter, jobsViewHref } from './topic-view.ts'

type Chart = {
  readonly title: string
  /** Empty for seconds, which are shown as a duration. */
  readonly unit: string
  readonly series: readonly TopicSeries[]
}

const CHARTS: readonly Chart[] = [
  { title: copy.charts.rates, unit: '1/s', series: ['in', 'out', 'failed'] },
  { title: copy.charts.waiting, unit: copy.charts.jobs, series: ['ready', 'delayed', 'leased'] },
  { title: copy.charts.oldest, unit: '', series: ['oldest'] },
  { title: copy.charts.delivery, unit: '', series: ['deliveryP50', 'deliveryP99'] },
  { title: copy.charts.handling, unit: '', series: ['handlingP50', 'handlingP99'] },
  { title: copy.charts.dead, unit: copy.charts.jobs, series: ['dead'] },
]
const RANGES = ['60', '15'] as const

/** The course of a topic: rates, waiting jobs, the oldest age and latencies, with one cross-hair. */
function TopicCharts({ topic }: { readonly topic: string }) {
  const [minutes, setMinutes] = useUrlChoice('minutes', RANGES)
  const query = useTopicHistory(topic, Number(minutes))
  return (
    <Panel
      title={copy.charts.title}
      query={query}
      at={({ to }) => to}
      skeleton={12}
      actions={
        // biome-ignore lint/a11y/useSemanticElements: a fieldset would draw a box around chips.
        <div role="group" aria-label={copy.charts.range} className="flex gap-1">
          {RANGES.toReversed().map((one) => (
            <Chip key={one} pressed={minutes === one} onClick={() => setMinutes(one, { push: true })}>
              {copy.charts.minutes(one)}
            </Chip>
          ))}
        </div>
      }
    >
      {(history) => (
        <div className="grid gap-x-6 gap-y-5 md:grid-cols-2">
          {CHARTS.map((chart) => (
            <TopicChart key={chart.title} chart={chart} history={history} />
          ))}
        </div>
      )}
    </Panel>
  )
}

/** Memoized: drawn again only with new values. */
const TopicChart = memo(function TopicChart({
  chart: { title, unit, series },
  history,
}: {
  readonly chart: Chart
  readonly history: TopicHistory
}) {
  const lines = useMemo(
    () =>
      series.map((name) => ({
        label: copy.charts.series[name],
        values: history.series.find((one) => one.name === name)?.values ?? [],
      })),
    [series, history],
  )
  const { from, to, stepSeconds } = history
  return (
    <div className="min-w-0">
      <TimeChart
        {...{ title, unit, from, to, stepSeconds }}
        series={lines}
        sync="queue-topic"
        noData={copy.charts.noData}
        {...(unit === '' && { format: (seconds: number) => duration(seconds * 1_000) })}
        {...(unit === '1/s' && { format: figure })}
      />
    </div>
  )
})

const SubmitDialog = dynamic(() => import('./submit-dialog.tsx').then((module) => module.SubmitDialog), { ssr: false })
const RedriveDialog = dynamic(() => import('./redrive-dialog.tsx').then((module) => module.RedriveDialog), {
  ssr: false,
})
const PauseDialog = dynamic(() => import('./topic-dialogs.tsx').then((module) => module.PauseDialog), { ssr: false })
const PurgeDialog = dynamic(() => import('./topic-dialogs.tsx').then((module) => module.PurgeDialog), { ssr: false })
const DeleteDialog = dynamic(() => import('./topic-dialogs.tsx').then((module) => module.DeleteDialog), { ssr: false })

const TABS = ['ready', 'leased', 'delayed', 'dead', 'done', 'consumers', 'charts', 'tail', 'config'] as const
type Tab = (typeof TABS)[number]
const OTHER_TABS: readonly Tab[] = ['consumers', 'charts', 'tail', 'config']
const isJobState = (tab: Tab): tab is JobState => !OTHER_TABS.includes(tab)

export function TopicPage({ id }: { readonly id: string }) {
  const stats = useTopicStats(id)
  const [tab] = useUrlChoice<Tab>('state', TABS)
  if (stats.error instanceof ApiProblem && [400, 404].includes(stats.error.status)) return <UnknownTopic id={id} />
  const topic = stats.data
  return (
    <Page
      id="queue-topic"
      title={id}
      where={copy.common.queue}
      ready={topic !== undefined}
      crumbs={[{ href: routes.queue(), label: copy.common.queue }]}
      badge={topic && <TopicBadge topic={topic} />}
      actions={
        topic && (
          <>
            {isJobState(tab) && <JobsViews topic={id} />}
            <Actions topic={topic} />
          </>
        )
      }
      tabs={<Tabs id={id} tab={tab} topic={topic} />}
    >
      {!topic &&
        (stats.error ? (
          <ErrorState error={stats.error} onRetry={stats.refetch} busy={stats.isFetching} />
        ) : (
          <Skeleton rows={8} />
        ))}
      {topic && <Numbers topic={topic} />}
      {topic && <RedriveStrip topic={id} />}
      {topic && tab === 'consumers' && <ConsumersPanel topic={id} />}
      {topic && tab === 'config' && <ConfigPanel topic={id} />}
      {topic && tab === 'charts' && <TopicCharts topic={id} />}
      {topic && tab === 'tail' && <TailPanel topic={id} />}
      {topic && isJobState(tab) && <Jobs key={tab} topic={topic} state={tab} />}
    </Page>
  )
}

function Tabs({ id, tab, topic }: { readonly id: string; readonly tab: Tab; readonly topic: TopicStats | undefined }) {
  const counts: Partial<Record<Tab, number>> = topic ? topic : {}
  return (
    <PathTabs
      label={copy.topic.label(id)}
      tabs={TABS.map((one) => ({
        href: routes.topic(id, one === 'ready' ? {} : { state: one }),
        label: copy.topic.tabs[one],
        isHere: one === tab,
        ...(typeof counts[one] === 'number' && { count: counts[one] }),
      }))}
    />
  )
}

type Open = 'submit' | 'redrive' | 'pause' | 'purge' | 'delete'

function Actions({ topic }: { readonly topic: TopicStats }) {
  const operator = useWhyNot('operator')
  const admin = useWhyNot('admin')
  const [open, setOpen] = useState<Open>()
  const close = () => setOpen(undefined)
  return (
    <>
      <Button icon="upload" why={operator} onClick={() => setOpen('submit')} onPointerEnter={preloadDialog}>
        {copy.common.submit}
      </Button>
      <Button
        icon="refresh"
        why={operator ?? (topic.dead === 0 ? copy.topic.noDead : undefined)}
        onClick={() => setOpen('redrive')}
        onPointerEnter={preloadDialog}
      >
        {copy.topic.redrive}
      </Button>
      <Menu
        label={copy.topic.moreActions(topic.topic)}
        button={copy.topic.more}
        items={[
          topic.paused
            ? { label: copy.topic.resume, icon: 'play', why: operator, onSelect: () => setOpen('pause') }
            : { label: copy.topic.pause, icon: 'pause', why: operator, onSelect: () => setOpen('pause') },
          'line',
          { label: copy.topic.purge, icon: 'trash', why: admin, danger: true, onSelect: () => setOpen('purge') },
          { label: copy.topic.delete, icon: 'trash', why: admin, danger: true, onSelect: () => setOpen('delete') },
        ]}
      />
      {open === 'submit' && <SubmitDialog topic={topic.topic} onClose={close} />}
      {open === 'redrive' && (
        <RedriveDialog topic={topic.topic} selection={{ kind: 'filter', filter: {} }} onClose={close} />
      )}
      {open === 'pause' && <PauseDialog topic={topic} onClose={close} />}
      {open === 'purge' && <PurgeDialog topic={topic} onClose={close} />}
      {open === 'delete' && <DeleteDialog topic={topic} onClose={close} />}
    </>
  )
}

function Numbers({ topic }: { readonly topic: TopicStats }) {
  const { rates1m } = topic
  const tiles: readonly (readonly [label: string, value: ReactNode, tip?: string])[] = [
    [copy.columns.ready, count(topic.ready), copy.columns.readyTip],
    [copy.columns.leased, count(topic.leased), copy.columns.leasedTip],
    [copy.columns.delayed, count(topic.delayed), copy.columns.delayedTip],
    [copy.columns.dead, <DeadCount key="dead" dead={topic.dead} />, copy.columns.deadTip],
    [copy.columns.in, rate(rates1m.accepted), copy.columns.inTip],
    [copy.columns.out, rate(rates1m.acked), copy.columns.outTip],
    [copy.columns.failed, rate(rates1m.failed), copy.columns.failedTip],
    [copy.columns.oldest, oldestText(topic), copy.columns.oldestTip],
    [copy.columns.consumers, count(topic.consumers)],
    [copy.topic.size, bytes(topic.bytes)],
  ]
  return (
    <section aria-label={copy.topic.numbers}>
      {/* On a phone a few lines, so that the jobs are on the first screen. */}
      <dl className="flex flex-wrap gap-x-4 gap-y-0.5 sm:grid sm:grid-cols-[repeat(auto-fill,minmax(6rem,1fr))] sm:gap-2">
        {tiles.map(([label, value, tip]) => (
          <div
            key={label}
            data-tip={tip}
            className="flex min-w-0 items-baseline gap-1.5 border-line sm:block sm:rounded-panel sm:border sm:bg-surface sm:px-3 sm:py-2"
          >
            <dt className="text-small text-text-2">{label}</dt>
            <dd className="truncate font-semibold tabular-nums sm:text-section">{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  )
}

const NO_FILTER: DeadQuery = {}

/** The list of a state, with the job that is open in the URL beside it. */
function Jobs({ topic, state }: { readonly topic: TopicStats; readonly state: JobState }) {
  const search = useSearch()
  const setUrl = useSetUrl()
  const [open, setOpen] = useUrlParam('job')
  const filter = useDeadQuery()
  const query = useJobs(topic.topic, state, state === 'dead' ? filter : NO_FILTER)
  const jobs = useMemo(() => query.data?.pages.flatMap((page) => page.jobs) ?? [], [query.data])
  const ids = useMemo(() => jobs.map(({ id }) => id), [jobs])
  const href = (id: string) => routes.topic(topic.topic, { ...Object.fromEntries(search), job: id })
  const close = () => {
    setOpen('', { push: true })
    // The row was hidden on a narrow screen until now.
    requestAnimationFrame(() =>
      document
        .querySelector<HTMLElement>(
          `#content [data-key="${CSS.escape(open)}"] a, #content tr[data-key="${CSS.escape(open)}"]`,
        )
        ?.focus(),
    )
  }
  const more = query.hasNextPage && (
    <div className="p-3">
      <Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
        {copy.jobs.more}
      </Button>
    </div>
  )
  const table = { jobs, href, open, more, query }
  return (
    <div className={clsx('grid gap-4', open !== '' && 'lg:grid-cols-[minmax(0,1fr)_minmax(0,30rem)]')}>
      <div className={clsx('flex min-w-0 flex-col gap-4', open !== '' && 'max-lg:hidden')}>
        {state === 'dead' ? (
          <DeadPanels topic={topic} filter={filter} {...table} />
        ) : (
          <Panel
            title={copy.jobs.titles[state]}
            hideTitle
            flush
            query={query}
            isEmpty={() => jobs.length === 0}
            empty={{ text: copy.jobs.empty[state] }}
            skeleton={8}
          >
            <JobsTable
              state={state}
              jobs={jobs}
              total={state === 'done' ? jobs.length : Math.max(topic[state], jobs.length)}
              href={href}
              open={open}
            />
            {more}
          </Panel>
        )}
      </div>
      {open !== '' && (
        <JobInspector topic={topic.topic} id={open} ids={ids} onOpen={(id) => setUrl({ job: id })} onClose={close} />
      )}
    </div>
  )
}

function useDeadQuery(): DeadQuery {
  const search = useSearch()
  const text = search.toString()
  return useMemo(() => {
    const values = new URLSearchParams(text)
    const fields = Object.fromEntries(DEAD_FIELDS.map((name) => [name, values.get(name) ?? '']))
    return deadQuery(fields as DeadFields)
  }, [text])
}

const NEAR_MAX = 5

function UnknownTopic({ id }: { readonly id: string }) {
  const stats = useQueueStats()
  const near = nearest(
    id,
    (stats.data?.topics ?? []).map(({ topic }) => topic),
  ).slice(0, NEAR_MAX)
  return (
    <Page
      id="queue-topic"
      title={copy.topic.unknownTitle}
      where={copy.common.queue}
      ready={!stats.isPending}
      crumbs={[{ href: routes.queue(), label: copy.common.queue }]}
    >
      <p className="prose break-words text-text-2">{copy.topic.unknown(id)}</p>
      {near.length > 0 && (
        <p className="flex flex-wrap items-center gap-3">
          {copy.topic.similar}
          {near.map((topic) => (
            <Link key={topic} href={routes.topic(topic)} className="break-all font-mono">
              {topic}
            </Link>
          ))}
        </p>
      )}
      <p>
        <LinkButton href={routes.queue()}>{copy.topic.openTopics}</LinkButton>
      </p>
    </Page>
  )
}

/** The configuration of a topic. Only what was changed is sent. */
function ConfigPanel({ topic }: { readonly topic: string }) {
  const query = useTopic(topic)
  const admin = useWhyNot('admin')
  const [texts, setTexts] = useState<ConfigTexts>({})
  const [problem, setProblem] = useState<unknown>()
  const faults = configFaults(texts)
  const change = configChange(texts, query.data?.config)
  const isChanged = Object.keys(change).length > 0 || Object.keys(faults).length > 0
  const why = admin ?? (Object.keys(faults).length > 0 ? copy.config.bad : isChanged ? undefined : copy.config.nothing)
  const save = useQueueChange((config: ReturnType<typeof configChange>) =>
    call('PUT /api/v1/queue/topics/{topic}', { params: { topic }, body: { config } }),
  )
  const send = async (event: FormEvent) => {
    event.preventDefault()
    if (why !== undefined || save.isPending) return
    setProblem(undefined)
    try {
      await save.mutateAsync(change)
      setTexts({})
      toast({ message: copy.config.saved(Object.keys(change).join(', ')) })
    } catch (error) {
      setProblem(error)
    }
  }
  return (
    <Panel title={copy.config.title} query={query} skeleton={8}>
      {({ config }) => (
        <form aria-label={copy.config.title} onSubmit={send} className="flex max-w-200 flex-col gap-4">
          <p className="text-small text-text-3">{copy.config.hint}</p>
          <ConfigFields
            keys={CONFIG_KEYS}
            present={config}
            texts={texts}
            faults={faults}
            onChange={setTexts}
            why={admin}
          />
          {problem !== undefined && <Failed error={problem} />}
          <div className="flex flex-wrap gap-2">
            <Button type="submit" kind="primary" why={why} busy={save.isPending}>
              {copy.config.save}
            </Button>
            {isChanged && <Button onClick={() => setTexts({})}>{copy.config.revert}</Button>}
          </div>
        </form>
      )}
    </Panel>
  )
}

type InspectorProps = {
  readonly topic: string
  readonly id: string
  /** Ids of the list, in its order. */
  readonly ids: readonly string[]
  readonly onOpen: (id: string) => void
  readonly onClose: () => void
}

/** A job beside the list it was opened from; j and k go to the next and the previous one. */
function JobInspector({ topic, id, ids, onOpen, onClose }: InspectorProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  const label = useId()
  const query = useJob(topic, id)
  const at = ids.indexOf(id)
  const [previous, next] = [at > 0 ? ids[at - 1] : undefined, at >= 0 ? ids[at + 1] : ids[0]]
  // Each job that is opened takes the focus, so that it is read and the keys below work.
  useEffect(() => heading.current?.focus(), [id])
  useKey('j', () => next !== undefined && onOpen(next), copy.job.next)
  useKey('k', () => previous !== undefined && onOpen(previous), copy.job.previous)
  useKey('Escape', onClose, copy.job.close)
  const isUnknown = query.error instanceof ApiProblem && query.error.status === 404
  return (
    <section
      aria-labelledby={label}
      data-inspector={id}
      className="flex min-w-0 flex-col gap-3 self-start rounded-panel border border-line bg-surface p-4"
    >
      <div className="flex items-start gap-1">
        <h2
          ref={heading}
          id={label}
          tabIndex={-1}
          className="me-auto min-w-0 break-all rounded-control text-section outline-none"
        >
          {copy.job.label(id)}
        </h2>
        <Step label={copy.job.previous} icon="chevron-up" to={previous} onOpen={onOpen} />
        <Step label={copy.job.next} icon="chevron-down" to={next} onOpen={onOpen} />
        <IconButton label={copy.job.close} icon="cross" onClick={onClose} />
      </div>
      <p className="text-small">
        <Link href={routes.queueJob(topic, id)}>{copy.job.openPage}</Link>
      </p>
      {isUnknown ? (
        <UnknownJob topic={topic} id={id} />
      ) : query.data ? (
        <JobDetails job={query.data} />
      ) : query.error ? (
        <ErrorState error={query.error} onRetry={query.refetch} busy={query.isFetching} />
      ) : (
        <Skeleton rows={8} />
      )}
    </section>
  )
}

type StepProps = {
  readonly label: string
  readonly icon: 'chevron-up' | 'chevron-down'
  readonly to: string | undefined
  readonly onOpen: (id: string) => void
}

function Step({ label, icon, to, onOpen }: StepProps) {
  return (
    <IconButton
      label={label}
      icon={icon}
      {...(to === undefined && { why: copy.job.none })}
      onClick={() => to !== undefined && onOpen(to)}
    />
  )
}

/** Saved views of jobs: a state with its filter, for any topic. */
function JobsViews({ topic }: { readonly topic: string }) {
  const search = useSearch()
  const { views } = useMe().preferences.jobs
  const save = useSavePreferences()
  const setViews = useCallback((next: readonly SavedView[]) => save({ jobs: { views: [...next] } }), [save])
  return (
    <ViewsMenu
      title={copy.jobs.views}
      present={{ filter: jobsViewFilter(search), sort: '', columns: null }}
      layout={{ views, setViews }}
      hrefOf={(view) => jobsViewHref(topic, view)}
      textOf={({ filter }) => copy.jobs.viewText([...new URLSearchParams(filter)])}
    />
  )
}
