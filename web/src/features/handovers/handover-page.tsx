'use client'
/** A handover: its progress shard by shard, what stopped it, and the way back. */

import type { Handover, HandoverItem, Level, ShardImpact } from '@vacancy/shared/contract'
import { useEffect } from 'react'
import { dismissOperation } from '../../lib/followed-operations.ts'
import { ApiProblem } from '../../lib/problem.ts'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { Age } from '../../ui/age.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Banner } from '../../ui/banner.tsx'
import { Button, LinkButton } from '../../ui/button.tsx'
import { Link } from '../../ui/link.tsx'
import { Page } from '../../ui/page.tsx'
import { ErrorState, Panel, Skeleton } from '../../ui/panel.tsx'
import { Progress } from '../../ui/progress.tsx'
import { Table } from '../../ui/table.tsx'
import * as copy from './copy.ts'
import { useHandover, useSteerHandover } from './queries.ts'
import { Stops } from './stops.tsx'

const LEVELS: Record<Handover['state'], Level> = { running: 'info', stopped: 'crit', done: 'ok', left: 'unk' }
const ITEM_LEVELS: Record<HandoverItem['state'], Level> = {
  waiting: 'unk',
  running: 'info',
  done: 'ok',
  failed: 'crit',
  skipped: 'unk',
  stays: 'warn',
}

export function HandoverPage({ id }: { readonly id: string }) {
  const query = useHandover(id)
  const handover = query.data
  useEffect(() => {
    // Their outcomes are shown here, so the tray need not show them.
    for (const { operation } of handover?.items ?? []) if (operation !== null) dismissOperation(operation)
  }, [handover])
  const isNotFound = !handover && query.error instanceof ApiProblem && query.error.status === 404
  return (
    <Page
      id="handover"
      title={handover?.title ?? copy.handover.fallback}
      where={copy.plan.where}
      ready={handover !== undefined || isNotFound}
      crumbs={[{ href: routes.operations(), label: copy.plan.where }]}
      badge={handover && <Badge level={LEVELS[handover.state]}>{copy.handover.states[handover.state]}</Badge>}
      lead={
        handover && (
          <p className="flex flex-wrap gap-x-4 gap-y-1">
            <span>
              {copy.handover.by(handover.by)} <Age at={handover.createdAt} />
            </span>
            {handover.reason !== '' && <span>“{handover.reason}”</span>}
          </p>
        )
      }
      actions={handover && <Actions handover={handover} />}
    >
      {isNotFound && <p className="text-text-2">{copy.handover.unknown(id)}</p>}
      {!handover &&
        !isNotFound &&
        (query.error ? <ErrorState error={query.error} onRetry={query.refetch} /> : <Skeleton />)}
      {handover && (
        <>
          <Outcome handover={handover} stops={handover.stops} />
          <Stops scope={copy.placeText(handover.scope)} stops={handover.stops} />
          <Items items={handover.items} />
        </>
      )}
    </Page>
  )
}

function Outcome({ handover, stops }: { readonly handover: Handover; readonly stops: readonly ShardImpact[] }) {
  const { state, items, scope, kind, message } = handover
  const planned = items.filter((item) => item.state !== 'stays')
  const over = planned.filter((item) => item.state === 'done' || item.state === 'skipped').length
  const stay = items.length - planned.length
  const place = copy.placeText(scope)
  if (state === 'stopped') {
    return (
      <Banner level="crit" title={message}>
        {copy.handover.stopped}
      </Banner>
    )
  }
  if (state === 'running') {
    return (
      <Progress
        label={copy.handover.progressLabel}
        value={over}
        max={planned.length}
        valueText={copy.handover.progress(over, planned.length)}
      />
    )
  }
  const text =
    state === 'left'
      ? copy.handover.left
      : kind === 'bring-back'
        ? copy.handover.doneBack
        : stay > 0
          ? copy.handover.doneSome(stay, place)
          : stops.length > 0
            ? copy.handover.doneUnsafe(place)
            : copy.handover.doneAll(place)
  return <Banner level={state === 'left' ? 'unk' : stay > 0 || stops.length > 0 ? 'warn' : 'ok'} title={text} />
}

function Actions({ handover }: { readonly handover: Handover }) {
  const steer = useSteerHandover(handover.id)
  const why = useWhyNot('admin')
  const { state, kind, items } = handover
  const isOver = state === 'done' || state === 'left'
  return (
    <>
      {steer.error && <p role="alert" className="text-crit">{`${steer.error.message} ${steer.error.hint}`}</p>}
      {state === 'stopped' && (
        <Button kind="primary" why={why} busy={steer.isPending} onClick={() => steer.mutate('continue')}>
          {copy.handover.continue}
        </Button>
      )}
      {!isOver && (
        <Button why={why} busy={steer.isPending} onClick={() => steer.mutate('leave')}>
          {copy.handover.leave}
        </Button>
      )}
      {isOver && kind === 'prepare' && items.some((item) => item.state === 'done') && (
        <LinkButton kind="primary" href={routes.newHandover({ back: handover.id })}>
          {copy.handover.back}
        </LinkButton>
      )}
    </>
  )
}

function Items({ items }: { readonly items: readonly HandoverItem[] }) {
  return (
    <Panel title={copy.handover.items} flush>
      <Table
        label={copy.handover.items}
        rows={items}
        rowKey={({ shard }) => shard}
        rowProps={({ shard, state }) => ({ 'data-shard': shard, 'data-item-state': state })}
        columns={[
          {
            id: 'shard',
            header: copy.plan.shard,
            rowHeader: true,
            cell: ({ shard }) => (
              <Link href={routes.shard(shard)} className="font-mono">
                {shard}
              </Link>
            ),
          },
          {
            id: 'state',
            header: copy.handover.state,
            cell: ({ state }) => <Badge level={ITEM_LEVELS[state]}>{copy.handover.itemStates[state]}</Badge>,
          },
          { id: 'from', header: copy.plan.from, cell: ({ from }) => <span className="font-mono">{from}</span> },
          {
            id: 'to',
            header: copy.plan.to,
            cell: ({ to }) => <span className="font-mono">{to ?? copy.plan.none}</span>,
          },
          { id: 'note', header: copy.plan.note, rank: 2, cell: ({ message }) => message },
          {
            id: 'operation',
            header: copy.handover.operation,
            cell: ({ operation }) =>
              operation !== null && <Link href={routes.operation(operation)}>{copy.handover.open}</Link>,
          },
        ]}
      />
    </Panel>
  )
}
