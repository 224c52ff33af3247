/** A rack: one slot a node, by id. The role is a shape, and under it stands the state, empty while all is well. */

import type { ShardBrief } from '@vacancy/shared/contract'
import type { ComponentProps } from 'react'

export type RackSlot = ShardBrief['slots'][number]

/** "n2, follower, far behind, 12 400 entries" */
export function slotName({ node, role, message, freshness }: RackSlot): string {
  const age = freshness === 'gone' ? ', last seen long ago' : freshness === 'never' ? ', never seen' : ''
  return `${node}, ${role}, ${message.charAt(0).toLowerCase()}${message.slice(1).replace(': ', ', ')}${age}`
}

/**
 * What makes an element a slot: tests find it by these, and rack.css draws role, state and tint from them. One element a
 * node: a cluster has a thousand.
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

/** A rack to look at, in a row of a table: one picture with one name. */
export function RackPicture({ shard, slots, ...rest }: RackPictureProps) {
  return (
    <span role="img" aria-label={slots.map(slotName).join('; ')} className="inline-flex" {...rest}>
      {slots.map((slot) => (
        <span key={slot.node} {...slotProps(shard, slot)} data-tip={slotName(slot)} />
      ))}
    </span>
  )
}
