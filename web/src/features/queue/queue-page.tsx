'use client'
/** All topics of the queue as a table with filter and sort. */
import type { TopicStats } from '@vacancy/shared/contract'
import dynamic from 'next/dynamic'
import { useCallback, useDeferredValue, useMemo, useState } from 'react'
import { passes } from '../../lib/filter.ts'
import { count, rate } from '../../lib/format.ts'
import { ApiProblem } from '../../lib/problem.ts'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { formatSort, parseSort } from '../../lib/sort-link.ts'
import { useUrlParam, useUrlTyped } from '../../lib/url.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button, LinkButton } from '../../ui/button.tsx'
import { preloadDialog } from '../../ui/dialog.tsx'
import { FilterBox } from '../../ui/filter-box.tsx'
import { Link } from '../../ui/link.tsx'
import { NARROW, useMedia } from '../../ui/media.ts'
import { Page } from '../../ui/page.tsx'
import { Panel } from '../../ui/panel.tsx'
import { type Sort, Table } from '../../ui/table.tsx'
import { VirtualTable } from '../../ui/virtual-table.tsx'
import { ColumnsButton } from '../shards/columns-button.tsx'
import { type TableLayout, useTableLayout } from '../shards/table-layout.ts'
import { viewText } from '../shards/views.ts'
import type { PresentView } from '../shards/views-dialog.tsx'
import { ViewsMenu } from '../shards/views-menu.tsx'
import * as copy from './copy.ts'
import { topicCommand } from './curl.ts'
import { useQueueStats } from './queries.ts'
import { DeadCount, oldestText, TOPIC_TABLE, TopicBadge } from './topic-columns.tsx'
import { parseTopicFilter, stateOf, topicFields, topicKeys, topicsViewHref } from './topic-view.ts'

const CreateDialog = dynamic(() => import('./create-dialog.tsx').then((module) => module.CreateDialog), { ssr: false })
const SubmitDialog = dynamic(() => import('./submit-dialog.tsx').then((module) => module.SubmitDialog), { ssr: false })

const SORTABLE = TOPIC_TABLE.all.filter((column) => column.compare).map((column) => column.id)
const topicsViewText = (view: PresentView) => viewText(view, copy.topics.all, TOPIC_TABLE.idsOf)
const NO_TOPICS: readonly TopicStats[] = []

export function QueuePage() {
  const stats = useQueueStats()
  const [typed, setTyped] = useUrlTyped('filter')
  const filterText = useDeferredValue(typed)
  const [sortText, setSortText] = useUrlParam('sort')
  const { filter, faults } = useMemo(() => parseTopicFilter(filterText), [filterText])
  const topics = stats.data?.topics ?? NO_TOPICS
  const shown = useMemo(() => topics.filter((topic) => passes(filter, topicFields(topic))), [topics, filter])
  const keys = useMemo(() => topicKeys(topics), [topics])
  const sort = useMemo(() => parseSort(sortText, SORTABLE), [sortText])
  const onSort = useCallback((next: Sort) => setSortText(formatSort(next), { push: true }), [setSortText])
  const table = useTableLayout('queue', TOPIC_TABLE)
  const ignored = [
    ...faults,
    ...table.unknown.map((id) => copy.topics.unknownColumn(id)),
    ...(sortText !== '' && !sort ? [copy.topics.unknownSort(sortText)] : []),
  ]
  const isAbsent = stats.error instanceof ApiProblem && stats.error.status === 404
  const sum = (of: (topic: TopicStats) => number) => topics.reduce((all, topic) => all + of(topic), 0)
  return (
    <Page
      id="queue"
      title={copy.common.queue}
      ready={!stats.isPending}
      lead={
        stats.data &&
        copy.topics.lead(
          topics.length,
          sum(({ ready }) => ready),
          sum(({ dead }) => dead),
        )
      }
      actions={!isAbsent && <Actions />}
    >
      {stats.data?.role === 'standby' && (
        <Banner level="warn" title={copy.topics.standby}>
          {copy.topics.standbyHint}
        </Banner>
      )}
      <div className="grid gap-1">
        <div className="flex flex-wrap items-start gap-2">
          <div className="min-w-0 grow basis-72">
            <FilterBox
              label={copy.topics.filter}
              value={typed}
              onChange={setTyped}
              keys={keys}
              shown={shown.length}
              total={topics.length}
            />
          </div>
          <span className="ms-auto flex gap-2">
            <ViewsMenu
              title={copy.topics.views}
              present={{ filter: typed, sort: sortText, columns: table.columns && [...table.columns] }}
              layout={table}
              hrefOf={topicsViewHref}
              textOf={topicsViewText}
            />
            <ColumnsButton label={copy.topics.panel} table={table} columns={TOPIC_TABLE} />
          </span>
        </div>
        {ignored.map((fault) => (
          <p key={fault} className="text-small text-warn" role="status">
            {copy.topics.ignored(fault)}
          </p>
        ))}
      </div>
      <Panel
        title={copy.topics.panel}
        hideTitle
        flush
        query={stats}
        {...(isAbsent && { denied: copy.topics.absent })}
        isEmpty={(data) => data.topics.length === 0}
        empty={{ text: copy.topics.empty, action: <NewTopic />, code: topicCommand('orders') }}
        filtered={
          filterText.trim() !== '' && topics.length > 0 && shown.length === 0
            ? { text: copy.topics.filtered(topics.length, filterText), onClear: () => setTyped('') }
            : undefined
        }
        skeleton={8}
      >
        <Rows topics={shown} sort={sort} onSort={onSort} filter={filterText} table={table} />
      </Panel>
    </Page>
  )
}

function Actions() {
  const why = useWhyNot('operator')
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <LinkButton href={routes.queueConsumers()}>{copy.common.consumers}</LinkButton>
      <Button icon="upload" why={why} onClick={() => setOpen(true)} onPointerEnter={preloadDialog}>
        {copy.common.submit}
      </Button>
      <NewTopic primary />
      {isOpen && <SubmitDialog onClose={() => setOpen(false)} />}
    </>
  )
}

function NewTopic({ primary = false }: { readonly primary?: boolean }) {
  const why = useWhyNot('admin')
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Button
        kind={primary ? 'primary' : 'default'}
        icon="plus"
        why={why}
        onClick={() => setOpen(true)}
        onPointerEnter={preloadDialog}
      >
        {copy.topics.create}
      </Button>
      {isOpen && <CreateDialog onClose={() => setOpen(false)} />}
    </>
  )
}

type RowsProps = {
  readonly topics: readonly TopicStats[]
  readonly sort: Sort | undefined
  readonly onSort: (sort: Sort) => void
  readonly filter: string
  readonly table: TableLayout
}

function Rows({ topics, sort, onSort, filter, table }: RowsProps) {
  const isNarrow = useMedia(NARROW)
  const { columns: chosen, widths, setWidths } = table
  const columns = useMemo(() => TOPIC_TABLE.shown(chosen, widths), [chosen, widths])
  const props = {
    label: copy.topics.panel,
    rows: topics,
    columns,
    widths,
    onWidths: setWidths,
    rowKey: ({ topic }: TopicStats) => topic,
    href: ({ topic }: TopicStats) => routes.topic(topic),
    sort,
    onSort,
    orderKey: filter,
    className: 'relative',
    rowProps: (topic: TopicStats) => ({ 'data-topic': topic.topic, 'data-state': stateOf(topic).state }),
  }
  if (isNarrow) return <Table {...props} card={(topic) => <TopicCard topic={topic} />} />
  return <VirtualTable {...props} />
}

function TopicCard({ topic }: { readonly topic: TopicStats }) {
  return (
    <div className="grid gap-2">
      <Link href={routes.topic(topic.topic)} className="inline-flex min-h-11 items-center break-all font-mono">
        {topic.topic}
      </Link>
      <TopicBadge topic={topic} />
      <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-0.5 text-table">
        <dt className="text-text-2">{copy.columns.ready}</dt>
        <dd className="num">{count(topic.ready)}</dd>
        <dt className="text-text-2">{copy.columns.leased}</dt>
        <dd className="num">{count(topic.leased)}</dd>
        <dt className="text-text-2">{copy.columns.dead}</dt>
        <dd className="num">
          <DeadCount dead={topic.dead} />
        </dd>
        <dt className="text-text-2">{copy.columns.out}</dt>
        <dd className="num">{rate(topic.rates1m.acked)}</dd>
        <dt className="text-text-2">{copy.columns.oldest}</dt>
        <dd className="num">{oldestText(topic)}</dd>
      </dl>
    </div>
  )
}
