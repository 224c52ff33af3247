/** A log position as a bar on the scale of its shard, with a text description. */

import type { NodeView } from '@vacancy/shared/contract'
import { count } from '../../lib/format.ts'
import { type LogScale, logBarOf, logBarText } from './log-scale.ts'

export function LogBar({ node, scale }: { readonly node: NodeView; readonly scale: LogScale | undefined }) {
  const bar = scale && logBarOf(node, scale)
  const text = logBarText(node, bar, count)
  if (!bar) {
    return (
      <span className="text-text-3" data-tip={text}>
        –<span className="sr-only">{text}</span>
      </span>
    )
  }
  const percent = (share: number) => `${(share * 100).toFixed(2)}%`
  return (
    <span role="img" aria-label={text} data-tip={text} className="relative block h-3 min-w-24">
      {/* The missing part: a dashed line from the end of the log to the end of the scale. */}
      <span className="absolute inset-x-0 top-1.5 border-line-strong border-t border-dashed" />
      <span
        data-filled=""
        className="absolute inset-y-0.5 start-0 bg-[color-mix(in_srgb,var(--color-text-2)_35%,var(--color-surface))]"
        style={{ width: percent(bar.uncommittedTo) }}
      />
      <span
        data-filled=""
        className="absolute inset-y-0.5 start-0 bg-text-2"
        style={{ width: percent(bar.committedTo) }}
      />
      <span className="absolute inset-y-0 end-0 border-line-strong border-e" />
    </span>
  )
}
