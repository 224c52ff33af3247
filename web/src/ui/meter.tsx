import type { Level } from '@vacancy/shared/contract'
import clsx from 'clsx'
import { percent } from '../lib/format.ts'

const FILLS: Record<Level, string> = { ok: 'bg-ok', info: 'bg-info', warn: 'bg-warn', crit: 'bg-crit', unk: 'bg-unk' }

type MeterProps = {
  readonly label: string
  readonly value: number
  readonly max: number
  readonly level?: Level
  /** In words: "2 of 3 voters answer, 2 needed". */
  readonly says?: string
  /** A mark on the scale: the majority, a limit. */
  readonly mark?: number
}

/** How much of something is there, on a scale of known length. */
export function Meter({ label, value, max, level = 'info', says, mark }: MeterProps) {
  const share = max > 0 ? Math.min(1, Math.max(0, value / max)) : 0
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <div className="flex flex-wrap justify-between gap-x-3 text-small text-text-2">
        <span>{label}</span>
        <span className="tabular-nums">{says ?? percent(share)}</span>
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: browsers draw <meter> in colours of their own. */}
      <div
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={max}
        aria-valuenow={value}
        aria-valuetext={says}
        className="relative h-2 rounded-full border border-line-strong bg-sunken"
      >
        <div
          data-filled=""
          className={clsx('h-full rounded-full', FILLS[level])}
          style={{ width: `${share * 100}%` }}
        />
        {mark !== undefined && max > 0 && (
          <span
            aria-hidden="true"
            className="absolute -inset-y-1 w-0.5 bg-text"
            style={{ insetInlineStart: `${(mark / max) * 100}%` }}
          />
        )}
      </div>
    </div>
  )
}
