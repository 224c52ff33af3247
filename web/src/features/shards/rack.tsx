/** A rack: one slot a node, by id. The role is a shape, and under it stands the state, empty while all is well. */

import type { ShardBrief } from '@vacancy/shared/contract'
import clsx from 'clsx'
import type { ComponentProps } from 'react'
import { RoleMark } from '../../ui/role-mark.tsx'
import { StateIcon } from '../../ui/state-badge.tsx'

export type RackSlot = ShardBrief['slots'][number]

const TINTS: Record<RackSlot['level'], string> = {
  ok: '',
  info: 'bg-info-bg',
  warn: 'bg-warn-bg',
  crit: 'bg-crit-bg',
  unk: 'bg-unk-bg hatch',
}

/** "n2, follower, far behind, 12 400 entries" */
export function slotName({ node, role, says, freshness }: RackSlot): string {
  const age = freshness === 'gone' ? ', last seen long ago' : freshness === 'never' ? ', never seen' : ''
  return `${node}, ${role}, ${says.charAt(0).toLowerCase()}${says.slice(1).replace(': ', ', ')}${age}`
}

/** Attributes that tests and styles find a slot by. */
export function slotData(shard: string, slot: RackSlot) {
  return { 'data-shard': shard, 'data-node': slot.node, 'data-role': slot.role, 'data-state': slot.state }
}

/** What a slot looks like inside: two storeys of 14 px. */
export function SlotFace({ slot, className }: { readonly slot: RackSlot; readonly className?: string }) {
  return (
    <span
      aria-hidden="true"
      className={clsx(
        'flex h-9 w-6 flex-col items-center justify-center gap-0.5 rounded-control',
        TINTS[slot.level],
        slot.freshness !== 'live' && slot.freshness !== 'delayed' && 'opacity-75',
        className,
      )}
    >
      <RoleMark role={slot.role} />
      {slot.level !== 'ok' && <StateIcon state={slot.state} level={slot.level} />}
    </span>
  )
}

type RackPictureProps = { readonly shard: string; readonly slots: readonly RackSlot[] } & ComponentProps<'span'>

/** A rack to look at, in a row of a table: one picture with one name. */
export function RackPicture({ shard, slots, ...rest }: RackPictureProps) {
  return (
    <span role="img" aria-label={slots.map(slotName).join('; ')} className="inline-flex" {...rest}>
      {slots.map((slot) => (
        <span key={slot.node} {...slotData(shard, slot)} data-tip={slotName(slot)}>
          <SlotFace slot={slot} className="!h-8" />
        </span>
      ))}
    </span>
  )
}
