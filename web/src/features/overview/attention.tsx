'use client'

/** Items that need attention, the worst first, with age, trend and a link to the exact row. */

import { useMutation } from '@tanstack/react-query'
import type { AttentionItem, RouteInput, Summary } from '@vacancy/shared/contract'
import { useState } from 'react'
import { type ApiProblem, call } from '../../lib/api.ts'
import { clock } from '../../lib/format.ts'
import { useWhyNot } from '../../lib/session.ts'
import { Duration } from '../../ui/age.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Button, LinkButton } from '../../ui/button.tsx'
import { keptOrder } from '../../ui/kept-order.ts'
import { Menu } from '../../ui/menu.tsx'
import { Panel, type PanelQuery } from '../../ui/panel.tsx'
import { toast } from '../../ui/toast.tsx'
import { attentionLead } from './attention-lead.ts'
import * as copy from './copy.ts'

type Until = RouteInput<'POST /api/v1/attention/{id}/aside'>['body']['until']

/** The live channel updates the list, so nothing is fetched again here. */
function useSnooze() {
  return useMutation<unknown, ApiProblem, { item: AttentionItem; until: Until }>({
    mutationFn: ({ item, until }) =>
      call('POST /api/v1/attention/{id}/aside', { params: { id: item.id }, body: { until } }),
    onError: (problem) => toast({ message: `${problem.message} ${problem.hint}`, level: 'crit' }),
  })
}

export function Attention({ summary }: { readonly summary: PanelQuery<Summary> }) {
  return (
    <Panel title={copy.attention.title} query={summary}>
      {(data) => <AttentionContent summary={data} />}
    </Panel>
  )
}

function AttentionContent({ summary }: { readonly summary: Summary }) {
  const open = useSteadyOrder(summary.attention.filter((item) => item.asideUntil === null))
  const snoozed = summary.attention.filter((item) => item.asideUntil !== null)
  return (
    <div className="grid gap-2">
      <p className="text-text-2">{attentionLead(summary)}</p>
      {open.items.length > 0 && (
        <ul aria-label={copy.attention.list} {...open.hold} className="grid">
          {open.items.map((item) => (
            <Item key={item.id} item={item} />
          ))}
        </ul>
      )}
      {snoozed.length > 0 && (
        <details>
          <summary className="w-fit text-small text-text-2">{copy.attention.snoozedCount(snoozed.length)}</summary>
          <ul aria-label={copy.attention.snoozed} className="grid">
            {snoozed.map((item) => (
              <Item key={item.id} item={item} />
            ))}
          </ul>
        </details>
      )}
    </div>
  )
}

/** Keeps the order of the list while it is hovered or focused. */
function useSteadyOrder(items: readonly AttentionItem[]) {
  const [heldIds, setHeldIds] = useState<readonly string[]>()
  const ids = items.map((item) => item.id)
  const order = heldIds ? keptOrder(heldIds, ids) : ids
  const byId = new Map(items.map((item) => [item.id, item]))
  const hold = () => setHeldIds((before) => before ?? ids)
  const release = () => setHeldIds(undefined)
  return {
    items: order.flatMap((id) => byId.get(id) ?? []),
    hold: { onPointerEnter: hold, onPointerLeave: release, onFocus: hold, onBlur: release },
  }
}

function Item({ item }: { readonly item: AttentionItem }) {
  return (
    <li
      data-rule={item.rule}
      data-shard={item.shard ?? undefined}
      data-node={item.node ?? undefined}
      className="grid items-center gap-x-4 gap-y-2 border-line border-t py-2 first:border-t-0 sm:grid-cols-[minmax(0,1fr)_auto]"
    >
      <div className="flex min-w-0 flex-wrap items-center gap-x-3 gap-y-1">
        <Badge level={item.level}>{item.message}</Badge>
        <span className="text-small text-text-2">
          {copy.attention.for} <Duration from={item.since} />,{' '}
          <span className="text-text-3">{copy.attention.since(clock(item.since))}</span>
        </span>
        {item.trend && <span className="text-small text-text-2">{copy.attention.trends[item.trend]}</span>}
        {item.asideUntil !== null && (
          <span className="text-small text-text-3">
            {item.asideUntil === 'change'
              ? copy.attention.snoozedUntilChange
              : copy.attention.snoozedUntil(clock(item.asideUntil))}
          </span>
        )}
      </div>
      <div className="flex items-center gap-1">
        <LinkButton href={item.href}>{item.action}</LinkButton>
        <Snooze item={item} />
      </div>
    </li>
  )
}

function Snooze({ item }: { readonly item: AttentionItem }) {
  const snooze = useSnooze()
  const why = useWhyNot('operator')
  if (item.asideUntil !== null) {
    return (
      <Button kind="quiet" why={why} busy={snooze.isPending} onClick={() => snooze.mutate({ item, until: null })}>
        {copy.attention.unsnooze}
      </Button>
    )
  }
  const choice = (label: string, until: Until) => ({
    label,
    ...(why === undefined ? {} : { why }),
    onSelect: () => snooze.mutate({ item, until }),
  })
  return (
    <Menu
      label={copy.attention.snoozeItem(item.message)}
      button={copy.attention.snooze}
      items={[
        choice(copy.attention.hour, 'hour'),
        choice(copy.attention.day, 'day'),
        choice(copy.attention.change, 'change'),
      ]}
    />
  )
}
