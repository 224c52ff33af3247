'use client'

/** Items that need attention, the worst first, with age, trend and a link to the exact row. */

import { useMutation } from '@tanstack/react-query'
import type { AttentionItem, Level, RouteInput, Summary } from '@vacancy/shared/contract'
import clsx from 'clsx'
import { useState } from 'react'
import { Icon } from '../../icons/icon.tsx'
import { type ApiProblem, call } from '../../lib/api.ts'
import { clock } from '../../lib/format.ts'
import { useWhyNot } from '../../lib/session.ts'
import { Duration } from '../../ui/age.tsx'
import { LEVEL_ICONS, LEVEL_TEXT } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { keptOrder } from '../../ui/kept-order.ts'
import { Link } from '../../ui/link.tsx'
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

/** Items shown at first. More would push everything else out of the window. */
const FIRST_ITEMS = 5

export function Attention({ summary }: { readonly summary: PanelQuery<Summary> }) {
  const level = summary.data?.attention.find(({ asideUntil }) => asideUntil === null)?.level
  return (
    <Panel
      title={copy.attention.title}
      query={summary}
      data={{ 'data-worst': level }}
      className={clsx(level !== undefined && BORDERS[level])}
    >
      {(data) => <AttentionContent summary={data} />}
    </Panel>
  )
}

/** The panel has the colour of its worst item. */
const BORDERS: Record<Level, string> = {
  ok: '',
  info: '!border-info/50',
  warn: '!border-warn/60',
  crit: '!border-crit',
  unk: '!border-unk/50',
}

function AttentionContent({ summary }: { readonly summary: Summary }) {
  const open = useSteadyOrder(summary.attention.filter((item) => item.asideUntil === null))
  const snoozed = summary.attention.filter((item) => item.asideUntil !== null)
  const [isWhole, setWhole] = useState(false)
  const shown = isWhole ? open.items : open.items.slice(0, FIRST_ITEMS)
  return (
    <div className="grid gap-1">
      {/* As high as one item, so that the first does not move the page. */}
      <p className={clsx(open.items.length > 0 ? 'sr-only' : 'flex min-h-10 items-center gap-2')}>
        {open.items.length === 0 && summary.counts.shards > 0 && <Icon name="check" className="text-ok" />}
        <span>{attentionLead(summary)}</span>
      </p>
      {open.items.length > 0 && (
        <ul aria-label={copy.attention.list} {...open.hold} className="-mx-2 grid">
          {shown.map((item) => (
            <Item key={item.id} item={item} />
          ))}
        </ul>
      )}
      {open.items.length > FIRST_ITEMS && (
        <Button kind="quiet" aria-expanded={isWhole} className="justify-self-start" onClick={() => setWhole(!isWhole)}>
          {isWhole ? copy.attention.showFewer : copy.attention.showAll(open.items.length)}
        </Button>
      )}
      {snoozed.length > 0 && (
        <details>
          <summary className="w-fit text-small text-text-2">{copy.attention.snoozedCount(snoozed.length)}</summary>
          <ul aria-label={copy.attention.snoozed} className="-mx-2 grid">
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

/** Critical items are larger and tinted; the whole line is as heavy as its problem. */
const WEIGHTS: Record<Level, string> = {
  ok: '',
  info: '',
  warn: '',
  crit: 'bg-crit-bg',
  unk: '',
}

function Item({ item }: { readonly item: AttentionItem }) {
  const isHeavy = item.level === 'crit'
  return (
    <li
      data-rule={item.rule}
      data-level={item.level}
      data-shard={item.shard ?? undefined}
      data-node={item.node ?? undefined}
      className={clsx(
        'grid grid-cols-[auto_minmax(0,1fr)_auto] items-center gap-x-2.5 rounded-control px-2 py-1',
        !isHeavy && 'border-line border-t first:border-t-0',
        WEIGHTS[item.level],
      )}
    >
      <Icon name={LEVEL_ICONS[item.level]} className={LEVEL_TEXT[item.level]} />
      <div className="flex min-w-0 flex-wrap items-baseline gap-x-3 py-1">
        <span className="sr-only">{copy.attention.levels[item.level]}: </span>
        <Link href={item.href} className={clsx('min-w-0 break-words', isHeavy && 'font-semibold !text-crit')}>
          {item.message}
        </Link>
        <span className="text-small text-text-2">
          {copy.attention.for} <Duration from={item.since} />
          <span className="max-sm:hidden">, {copy.attention.since(clock(item.since))}</span>
          {item.trend && `, ${copy.attention.trends[item.trend]}`}
        </span>
        {item.asideUntil !== null && (
          <span className="text-small text-text-2">
            {item.asideUntil === 'change'
              ? copy.attention.snoozedUntilChange
              : copy.attention.snoozedUntil(clock(item.asideUntil))}
          </span>
        )}
      </div>
      <Snooze item={item} />
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
      icon="clock"
      items={[
        choice(copy.attention.hour, 'hour'),
        choice(copy.attention.day, 'day'),
        choice(copy.attention.change, 'change'),
      ]}
    />
  )
}
