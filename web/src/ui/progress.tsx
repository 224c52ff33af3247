import { percent } from '../lib/format.ts'
import * as copy from './data-copy.ts'

type ProgressProps = {
  readonly label: string
  /** null when running without a known share. */
  readonly value: number | null
  readonly max?: number
  /** Beside the bar: "41.2 M of ≈ 60.1 M". */
  readonly valueText?: string
  readonly hideLabel?: boolean
}

export function Progress({ label, value, max = 1, valueText, hideLabel }: ProgressProps) {
  const share = value === null ? null : max > 0 ? Math.min(1, Math.max(0, value / max)) : 1
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <div
        className={
          hideLabel && !valueText ? 'sr-only' : 'flex flex-wrap justify-between gap-x-3 text-small text-text-2'
        }
      >
        <span className={hideLabel ? 'sr-only' : 'min-w-0 truncate'}>{label}</span>
        <span className="ms-auto tabular-nums">
          {valueText ?? (share === null ? copy.progress.indeterminate : percent(share))}
        </span>
      </div>
      <div
        role="progressbar"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        {...(share === null ? {} : { 'aria-valuenow': Math.round(share * 100) })}
        aria-valuetext={valueText}
        className="h-2 overflow-clip rounded-full border border-line-strong bg-sunken"
      >
        <div
          data-filled=""
          className={share === null ? 'hatch h-full' : 'h-full bg-accent transition-[width]'}
          style={{ width: `${(share ?? 1) * 100}%` }}
        />
      </div>
    </div>
  )
}
