'use client'
/** Connected consumers, of one topic or of all, with a way to disconnect one. */
import type { ConsumerView } from '@vacancy/shared/contract'
import { useState } from 'react'
import { call } from '../../lib/api.ts'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { Age } from '../../ui/age.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { ConfirmDialog } from '../../ui/confirm-dialog.tsx'
import { Link } from '../../ui/link.tsx'
import { Page } from '../../ui/page.tsx'
import { Panel } from '../../ui/panel.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import * as copy from './copy.ts'
import { useConsumers, useQueueChange } from './queries.ts'

export function ConsumersPage() {
  return (
    <Page
      id="queue-consumers"
      title={copy.consumers.title}
      where={copy.common.queue}
      ready={!useConsumers(undefined).isPending}
      crumbs={[{ href: routes.queue(), label: copy.common.queue }]}
      lead={copy.consumers.lead}
    >
      <ConsumersPanel />
    </Page>
  )
}

export function ConsumersPanel({ topic }: { readonly topic?: string }) {
  const query = useConsumers(topic)
  const why = useWhyNot('operator')
  const [leaving, setLeaving] = useState<ConsumerView>()
  const consumers = query.data?.pages.flatMap((page) => page.consumers) ?? []
  const columns = columnsOf(topic === undefined, why, setLeaving)
  return (
    <Panel
      title={topic === undefined ? copy.consumers.title : copy.consumers.titleOf(topic)}
      hideTitle
      flush
      query={query}
      isEmpty={() => consumers.length === 0}
      empty={{ text: copy.consumers.empty }}
    >
      <Table
        label={copy.consumers.title}
        rows={consumers}
        columns={columns}
        rowKey={({ id }) => id}
        rowProps={({ id, stalled }) => ({ 'data-consumer': id, 'data-stalled': String(stalled) })}
        className="relative"
        card={(consumer) => <ConsumerCard consumer={consumer} columns={columns} />}
      />
      {query.hasNextPage && (
        <div className="p-3">
          <Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
            {copy.consumers.more}
          </Button>
        </div>
      )}
      {leaving && <Disconnect consumer={leaving} onClose={() => setLeaving(undefined)} />}
    </Panel>
  )
}

type CardProps = { readonly consumer: ConsumerView; readonly columns: readonly Column<ConsumerView>[] }

/** On a phone: the whole id, and below it what the table has room for. */
function ConsumerCard({ consumer, columns }: CardProps) {
  const cell = (id: string) => columns.find((column) => column.id === id)?.cell(consumer)
  return (
    <div className="grid gap-1">
      <span className="break-all font-mono">{consumer.uuid}</span>
      <span className="flex flex-wrap items-center gap-x-3 gap-y-1">
        {cell('state')}
        {cell('topic')}
      </span>
      <span className="flex flex-wrap items-center justify-between gap-x-3 text-small text-text-2">
        <span>
          {copy.consumers.inFlight} {cell('leased')}
        </span>
        {cell('last')}
        {cell('actions')}
      </span>
    </div>
  )
}

function columnsOf(
  withTopic: boolean,
  why: string | undefined,
  onDisconnect: (consumer: ConsumerView) => void,
): readonly Column<ConsumerView>[] {
  const topic: Column<ConsumerView> = {
    id: 'topic',
    header: copy.consumers.topic,
    compare: (a, b) => a.topic.localeCompare(b.topic),
    cell: (consumer) => (
      <Link href={routes.topic(consumer.topic, { state: 'consumers' })} className="break-all font-mono">
        {consumer.topic}
      </Link>
    ),
  }
  return [
    {
      id: 'consumer',
      header: copy.consumers.id,
      rowHeader: true,
      cell: ({ id, uuid }) => (
        <span className="grid">
          <span className="max-w-56 truncate font-mono" data-tip={uuid}>
            {uuid}
          </span>
          <span className="font-normal font-mono text-small text-text-3">{id}</span>
        </span>
      ),
    },
    ...(withTopic ? [topic] : []),
    {
      id: 'state',
      header: copy.consumers.state,
      cell: ({ stalled }) =>
        stalled ? (
          <span data-tip={copy.consumers.stalledTip}>
            <Badge level="warn">{copy.consumers.stalled}</Badge>
          </span>
        ) : (
          <Badge level="ok">{copy.consumers.active}</Badge>
        ),
    },
    {
      id: 'token',
      header: copy.consumers.token,
      rank: 3,
      cell: ({ token }) => token || <span className="text-text-3">{copy.consumers.noToken}</span>,
    },
    {
      id: 'remote',
      header: copy.consumers.remote,
      rank: 4,
      cell: ({ remote }) => <span className="font-mono">{remote}</span>,
    },
    {
      id: 'leased',
      header: copy.consumers.inFlight,
      end: true,
      tip: copy.consumers.inFlightTip,
      compare: (a, b) => a.leased - b.leased,
      cell: ({ leased, prefetch }) => copy.consumers.inFlightOf(leased, prefetch),
    },
    {
      id: 'acked',
      header: copy.consumers.acked,
      end: true,
      rank: 3,
      compare: (a, b) => a.acked - b.acked,
      cell: ({ acked, delivered }) => copy.consumers.ackedOf(acked, delivered),
    },
    { id: 'connected', header: copy.consumers.connected, rank: 4, cell: ({ connectedAt }) => <Age at={connectedAt} /> },
    {
      id: 'last',
      header: copy.consumers.lastMessage,
      rank: 2,
      cell: ({ lastMessageAt }) => <Age at={lastMessageAt} />,
    },
    {
      id: 'actions',
      header: copy.consumers.actions,
      end: true,
      cell: (consumer) => (
        <Button kind="quiet" why={why} onClick={() => onDisconnect(consumer)}>
          {copy.consumers.disconnect} <span className="sr-only">{consumer.uuid}</span>
        </Button>
      ),
    },
  ]
}

function Disconnect({ consumer, onClose }: { readonly consumer: ConsumerView; readonly onClose: () => void }) {
  const { id, uuid, leased, topic } = consumer
  const close = useQueueChange(() => call('DELETE /api/v1/queue/consumers/{id}', { params: { id } }))
  return (
    <ConfirmDialog
      title={copy.consumers.disconnectTitle(id)}
      action={copy.consumers.disconnectConfirm(id)}
      level={1}
      name={topic}
      onClose={onClose}
      run={async () => {
        await close.mutateAsync(undefined)
        toast({ message: copy.consumers.disconnected(id) })
      }}
    >
      <p className="prose break-words">{copy.consumers.disconnectEffect(uuid, leased)}</p>
    </ConfirmDialog>
  )
}
