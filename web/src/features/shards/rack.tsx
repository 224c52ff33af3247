/** A rack: one slot per node, by id. The role is a shape; the state below it is empty while the node is healthy. */

import type { ShardBrief } from '@vacancy/shared/contract'
import type { ComponentProps } from 'react'
import * as copy from '../../ui/data-copy.ts'

export type RackSlot = ShardBrief['slots'][number]

/** "n2, follower, far behind, 12,400 entries" */
export function slotName({ node, role, message, freshness }: RackSlot): string {
  const age = freshness === 'gone' || freshness === 'never' ? copy.freshness[freshness] : ''
  return `${node}, ${role}, ${message.charAt(0).toLowerCase()}${message.slice(1).replace(': ', ', ')}${age}`
}

/**
 * Attributes of a slot: tests find it by these, and rack.css draws role, state and tint from them. One element per node,
 * since a cluster may have a thousand.
 */
export function slotProps(shard: string, slot: RackSlot) {
  return {
    className: 'slot',
    'data-shard': shard,
    'data-node': slot.node,
    'data-role': slot.role,
    'data-state': slot.state,
    'data-level': slot.level,
    'data-old': slot.freshness !== 'live' && slot.freshness !== 'delayed' ? '' : undefined,
  }
}

type RackPictureProps = { readonly shard: string; readonly slots: readonly RackSlot[] } & ComponentProps<'span'>

/** A rack in a table row: one image with one accessible name. */
export function RackPicture({ shard, slots, ...rest }: RackPictureProps) {
  return (
    <span role="img" aria-label={slots.map(slotName).join('; ')} className="inline-flex" {...rest}>
      {slots.map((slot) => (
        <span key={slot.node} {...slotProps(shard, slot)} data-tip={slotName(slot)} />
      ))}
    </span>
  )
}
