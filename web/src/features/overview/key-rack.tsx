'use client'
/** The key rack: every shard and node at a glance. Arrow keys move between slots, Enter opens the node's row. */

import type { ShardBrief } from '@vacancy/shared/contract'
import { type KeyboardEvent, memo, useDeferredValue, useRef, useState } from 'react'
import { routes } from '../../lib/routes.ts'
import { Link } from '../../ui/link.tsx'
import { slotName, slotProps } from '../shards/rack.tsx'
import * as copy from './copy.ts'
import { moveInRack } from './rack-keys.ts'

/** More than fit into a window. The others are rendered right after, interruptible by input. */
const FIRST_SHARDS = 60

export function KeyRack({ shards }: { readonly shards: readonly ShardBrief[] }) {
  const rack = useRef<HTMLDivElement>(null)
  const shownMax = useDeferredValue(Number.POSITIVE_INFINITY, FIRST_SHARDS)
  // One slot is in the tab order: the last focused one, or the first.
  const first = shards.find((shard) => shard.slots.length > 0)
  const [entry, setEntry] = useState<string>()
  const known = shards.some((shard) => shard.slots.some((slot) => slotId(shard.id, slot.node) === entry))
  const tabbable = known ? entry : first && slotId(first.id, first.slots[0]?.node ?? '')

  const onKeyDown = (event: KeyboardEvent<HTMLDivElement>) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.target instanceof HTMLElement)) return
    const slots = [...(rack.current?.querySelectorAll<HTMLElement>('a[data-node]') ?? [])]
    const from = slots.indexOf(event.target)
    if (from === -1) return
    const to = moveInRack(
      slots.map((slot) => slot.getBoundingClientRect()),
      from,
      event.key,
    )
    if (to === undefined) return
    event.preventDefault()
    slots[to]?.focus()
  }

  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: arrow keys move between the focusable links inside.
    <div ref={rack} onKeyDown={onKeyDown} className="grid gap-3">
      {byZone(shards, shownMax).map(({ zone, shards: ofZone }) => (
        // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms.
        <div
          key={zone}
          role="group"
          aria-label={copy.overview.zone(zone)}
          className="grid gap-1 sm:grid-cols-[5rem_minmax(0,1fr)]"
        >
          <h3 className="truncate pt-2.5 text-small text-text-2" data-tip={zone}>
            {zone}
          </h3>
          <ul className="flex min-w-0 flex-wrap gap-x-4 gap-y-2">
            {ofZone.map((shard) => (
              <Rack
                key={shard.id}
                id={shard.id}
                level={shard.level}
                slots={shard.slots}
                tabbable={tabbable?.startsWith(`${shard.id}/`) ? tabbable : undefined}
                onEnter={setEntry}
              />
            ))}
          </ul>
        </div>
      ))}
    </div>
  )
}

type RackProps = Pick<ShardBrief, 'id' | 'level' | 'slots'> & {
  /** The slot of this shard that Tab reaches. */
  readonly tabbable: string | undefined
  readonly onEnter: (slot: string) => void
}

/** Memoized: equal parts of the live value keep their identity, so only changed racks render again. */
const Rack = memo(function Rack({ id: shard, level, slots, tabbable, onEnter }: RackProps) {
  return (
    <li className="flex items-center gap-1.5" data-level={level}>
      <Link href={routes.shard(shard)} className="inline-flex min-h-6 items-center font-mono text-table" tabIndex={-1}>
        {shard}
      </Link>
      <span className="inline-flex rounded-control border border-line bg-surface">
        {slots.map((slot) => {
          const id = slotId(shard, slot.node)
          return (
            <a
              key={slot.node}
              href={routes.shard(shard, { focus: slot.node })}
              aria-label={slotName(slot)}
              data-tip={`${shard} / ${slotName(slot)}`}
              {...slotProps(shard, slot)}
              tabIndex={id === tabbable ? 0 : -1}
              onFocus={() => onEnter(id)}
            />
          )
        })}
      </span>
    </li>
  )
})

function slotId(shard: string, node: string): string {
  return `${shard}/${node}`
}

/** The first shards, ordered and grouped by zone. */
function byZone(shards: readonly ShardBrief[], most: number): { zone: string; shards: readonly ShardBrief[] }[] {
  const inOrder = shards.toSorted((a, b) => (a.zone < b.zone ? -1 : a.zone > b.zone ? 1 : 0)).slice(0, most)
  return [...Map.groupBy(inOrder, (shard) => shard.zone)].map(([zone, ofZone]) => ({ zone, shards: ofZone }))
}
