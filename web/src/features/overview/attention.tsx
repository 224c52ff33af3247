'use client'

/** What needs somebody, the worst first: since when, whether it grows, and the way to the exact row. */

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

type Until = RouteInput<'POST /api/v1/attention/{id}/aside'>['body']['until']

/** The control plane tells each change of the list over the live channel: nothing is asked again here. */
function usePutAside() {
  return useMutation<unknown, ApiProblem, { item: AttentionItem; until: Until }>({
    mutationFn: ({ item, until }) =>
      call('POST /api/v1/attention/{id}/aside', { params: { id: item.id }, body: { until } }),
    onError: (problem) => toast({ message: `${problem.message} ${problem.hint}`, level: 'crit' }),
  })
}

export function Attention({ summary }: { readonly summary: PanelQuery<Summary> }) {
  return (
    <Panel title="Attention" query={summary}>
      {(data) => <AttentionContent summary={data} />}
    </Panel>
  )
}

function AttentionContent({ summary }: { readonly summary: Summary }) {
  const open = useSteadyOrder(summary.attention.filter((item) => item.asideUntil === null))
  const aside = summary.attention.filter((item) => item.asideUntil !== null)
  return (
    <div className="grid gap-2">
      <p className="text-text-2">{attentionLead(summary)}</p>
      {open.items.length > 0 && (
        <ul aria-label="Needs attention" {...open.hold} className="grid">
          {open.items.map((item) => (
            <Item key={item.id} item={item} />
          ))}
        </ul>
      )}
      {aside.length > 0 && (
        <details>
          <summary className="w-fit text-small text-text-2">{aside.length} put aside</summary>
          <ul aria-label="Put aside" className="grid">
            {aside.map((item) => (
              <Item key={item.id} item={item} />
            ))}
          </ul>
        </details>
      )}
    </div>
  )
}

/** While somebody points at the list or has the focus in it, what stands there stays in its place. */
function useSteadyOrder(items: readonly AttentionItem[]) {
  const [held, setHeld] = useState<readonly string[]>()
  const ids = items.map((item) => item.id)
  const order = held ? keptOrder(held, ids) : ids
  const byId = new Map(items.map((item) => [item.id, item]))
  const holdOn = () => setHeld((before) => before ?? ids)
  const letGo = () => setHeld(undefined)
  return {
    items: order.flatMap((id) => byId.get(id) ?? []),
    hold: { onPointerEnter: holdOn, onPointerLeave: letGo, onFocus: holdOn, onBlur: letGo },
  }
}

const TREND_SAYS = { growing: 'growing', steady: 'steady', shrinking: 'getting better' } as const

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
          for <Duration from={item.since} />, <span className="text-text-3">since {clock(item.since)}</span>
        </span>
        {item.trend && <span className="text-small text-text-2">{TREND_SAYS[item.trend]}</span>}
        {item.asideUntil !== null && (
          <span className="text-small text-text-3">
            aside {item.asideUntil === 'change' ? 'until it changes' : <>until {clock(item.asideUntil)} UTC</>}
          </span>
        )}
      </div>
      <div className="flex items-center gap-1">
        <LinkButton href={item.href}>{item.action}</LinkButton>
        <Aside item={item} />
      </div>
    </li>
  )
}

function Aside({ item }: { readonly item: AttentionItem }) {
  const put = usePutAside()
  const why = useWhyNot('operator')
  if (item.asideUntil !== null) {
    return (
      <Button kind="quiet" why={why} busy={put.isPending} onClick={() => put.mutate({ item, until: null })}>
        Take back
      </Button>
    )
  }
  const choice = (label: string, until: Until) => ({
    label,
    ...(why === undefined ? {} : { why }),
    onSelect: () => put.mutate({ item, until }),
  })
  return (
    <Menu
      label={`Put aside: ${item.message}`}
      button="Put aside"
      items={[choice('For 1 hour', 'hour'), choice('For 1 day', 'day'), choice('Until it changes', 'change')]}
    />
  )
}
