'use client'
/**
 * The key rack: every shard and node at a glance, by zone. In a large cluster a zone is one line, a strip of health, and
 * below it the shards with problems. Arrow keys move between slots, Enter opens the node's row.
 */

import type { ShardBrief } from '@vacancy/shared/contract'
import clsx from 'clsx'
import {
  type CSSProperties,
  type KeyboardEvent,
  memo,
  type ReactNode,
  useDeferredValue,
  useId,
  useRef,
  useState,
} from 'react'
import { routes } from '../../lib/routes.ts'
import { useUrlParam } from '../../lib/url.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Link } from '../../ui/link.tsx'
import { Menu } from '../../ui/menu.tsx'
import { slotName, slotProps } from '../shards/rack.tsx'
import * as copy from './copy.ts'
import { moveInRack } from './rack-keys.ts'
import { canFold, hasProblem, type Zone, zonesOf } from './zones.ts'

/** More than fit into a window. The others are rendered right after, interruptible by input. */
const FIRST_SHARDS = 60

/** Zones shown whole although they could fold, by name. */
function useOpenZones() {
  const [param, setParam] = useUrlParam('zones')
  const open = new Set(param.split(',').filter((zone) => zone !== ''))
  const toggle = (zone: string) => {
    const next = new Set(open)
    if (!next.delete(zone)) next.add(zone)
    setParam([...next].sort().join(','), { push: true })
  }
  return { open, toggle }
}

export function KeyRack({ shards }: { readonly shards: readonly ShardBrief[] }) {
  const rack = useRef<HTMLDivElement>(null)
  const shownMax = useDeferredValue(Number.POSITIVE_INFINITY, FIRST_SHARDS)
  const { open, toggle } = useOpenZones()
  const folds = canFold(shards)
  const zones = zonesOf(shards)
  const shownOf = (zone: Zone) => (folds && !open.has(zone.zone) ? zone.problems : zone.shards)
  const shown = zones.flatMap(shownOf)
  // One slot is in the tab order: the last focused one, or the first.
  const [entry, setEntry] = useState<string>()
  const isKnown = shown.some((shard) => shard.slots.some((slot) => slotId(shard.id, slot.node) === entry))
  const first = shown.find((shard) => shard.slots.length > 0)
  const tabbable = isKnown ? entry : first && slotId(first.id, first.slots[0]?.node ?? '')

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

  let left = shownMax
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: arrow keys move between the focusable links inside.
    <div ref={rack} onKeyDown={onKeyDown} style={cellStyle(shards)} className="grid gap-3">
      {zones.map((zone) => {
        const racks = shownOf(zone).slice(0, Math.max(0, left))
        left -= racks.length
        return (
          <ZoneGroup
            key={zone.zone}
            zone={zone}
            isOpen={!folds || open.has(zone.zone)}
            onToggle={folds ? () => toggle(zone.zone) : undefined}
          >
            {racks.map((shard) => (
              <Rack
                key={shard.id}
                id={shard.id}
                level={shard.level}
                slots={shard.slots}
                tabbable={tabbable?.startsWith(`${shard.id}/`) ? tabbable : undefined}
                onEnter={setEntry}
              />
            ))}
          </ZoneGroup>
        )
      })}
    </div>
  )
}

/** All racks have the width of the widest, so that they form columns. */
function cellStyle(shards: readonly ShardBrief[]): CSSProperties {
  const id = Math.max(2, ...shards.map((shard) => shard.id.length))
  const slots = Math.max(1, ...shards.map((shard) => shard.slots.length))
  return { '--shard': `${id}ch`, '--rack': `calc(${id}ch + ${slots} * var(--slot) + 1rem)` } as CSSProperties
}

type ZoneGroupProps = {
  readonly zone: Zone
  readonly isOpen: boolean
  /** Absent where zones do not fold. */
  readonly onToggle: (() => void) | undefined
  readonly children: readonly ReactNode[]
}

function ZoneGroup({ zone: { zone, shards, problems }, isOpen, onToggle, children }: ZoneGroupProps) {
  const id = useId()
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms.
    <div
      role="group"
      aria-label={copy.overview.zone(zone)}
      data-zone={zone}
      className={clsx(
        'grid gap-x-4 gap-y-1.5',
        onToggle
          ? 'items-center border-line border-t pt-3 first:border-t-0 first:pt-0 sm:grid-cols-[7rem_minmax(0,1fr)_auto]'
          : 'sm:grid-cols-[7rem_minmax(0,1fr)]',
      )}
    >
      <div className={clsx('flex min-w-0 items-center gap-1', !onToggle && 'h-9 self-start')}>
        <h3 className={clsx('truncate', onToggle ? 'font-medium' : 'text-small text-text-2')} data-tip={zone}>
          {zone}
        </h3>
        <Menu
          label={copy.rack.zoneActions(zone)}
          items={[
            { label: copy.rack.showInTable, icon: 'shards', href: routes.shards({ filter: `zone:${zone}` }) },
            { label: copy.rack.prepare, icon: 'operations', href: routes.newHandover({ zone }) },
          ]}
        />
      </div>
      {onToggle && (
        <>
          <div className="grid min-w-0 items-center gap-x-4 gap-y-1 md:grid-cols-[minmax(0,1fr)_13rem]">
            <HealthStrip shards={shards} />
            {problems.length === 0 ? (
              <span className="text-small text-text-2">{copy.rack.allHealthy(shards.length)}</span>
            ) : (
              <Badge level={worst(problems)} className="justify-self-start">
                {copy.rack.problems(problems.length, shards.length)}
              </Badge>
            )}
          </div>
          <Button
            kind="quiet"
            icon={isOpen ? 'chevron-up' : 'chevron-down'}
            aria-expanded={isOpen}
            aria-controls={id}
            aria-label={isOpen ? copy.rack.hideZone(zone) : copy.rack.showZone(zone)}
            onClick={onToggle}
            className="justify-self-start !h-7 pointer-coarse:!h-11"
          >
            {isOpen ? copy.rack.hide : copy.rack.show}
          </Button>
        </>
      )}
      <ul
        id={id}
        className={clsx(
          'grid min-w-0 grid-cols-[repeat(auto-fill,var(--rack))] gap-x-3 gap-y-2 font-mono text-table',
          onToggle && 'sm:col-span-2 sm:col-start-2',
          children.length === 0 && 'hidden',
        )}
      >
        {children}
      </ul>
    </div>
  )
}

const BY_WEIGHT: readonly ShardBrief['level'][] = ['crit', 'warn', 'unk', 'info']

function worst(shards: readonly ShardBrief[]): ShardBrief['level'] {
  return BY_WEIGHT.find((level) => shards.some((shard) => shard.level === level)) ?? 'warn'
}

/** One mark per shard; that of a problem is higher and in its colour. The racks below name them. */
const HealthStrip = memo(function HealthStrip({ shards }: Pick<Zone, 'shards'>) {
  return (
    <span
      role="img"
      aria-label={copy.rack.strip(shards.filter((shard) => !hasProblem(shard)).length, shards.length)}
      className="flex h-5 min-w-0 items-center gap-px"
    >
      {shards.map((shard) => (
        <span key={shard.id} data-level={hasProblem(shard) ? shard.level : 'ok'} className="mark" />
      ))}
    </span>
  )
})

type RackProps = Pick<ShardBrief, 'id' | 'level' | 'slots'> & {
  /** The slot of this shard that Tab reaches. */
  readonly tabbable: string | undefined
  readonly onEnter: (slot: string) => void
}

/** Memoized: equal parts of the live value keep their identity, so only changed racks render again. */
const Rack = memo(function Rack({ id: shard, level, slots, tabbable, onEnter }: RackProps) {
  return (
    <li className="flex items-center gap-1.5" data-level={level}>
      <Link
        href={routes.shard(shard)}
        className="inline-flex min-h-6 min-w-(--shard) items-center justify-end whitespace-nowrap"
        tabIndex={-1}
      >
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
