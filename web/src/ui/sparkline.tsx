'use client'
import clsx from 'clsx'

type SparklineProps = {
  /** What it shows, with its values: the line itself cannot be read. */
  readonly label: string
  /** Oldest first; null is a gap. */
  readonly values: readonly (number | null)[]
  readonly className?: string
}

const [WIDTH, HEIGHT] = [96, 20]
/** Room for the width of the line. */
const EDGE = 1.5

/** The course of one value as a small line, from 0 to its highest. */
export function Sparkline({ label, values, className }: SparklineProps) {
  return (
    <svg
      role="img"
      aria-label={label}
      data-tip={label}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      width={WIDTH}
      height={HEIGHT}
      className={clsx('block text-series-1', className)}
    >
      <path d={pathOf(values)} fill="none" stroke="currentColor" strokeWidth="1.5" strokeLinejoin="round" />
    </svg>
  )
}

/** A line that is interrupted by gaps. */
export function pathOf(values: readonly (number | null)[]): string {
  const top = Math.max(1, ...values.map((value) => value ?? 0))
  const step = (WIDTH - 2 * EDGE) / Math.max(1, values.length - 1)
  let isDrawing = false
  return values
    .flatMap((value, at) => {
      const command = isDrawing ? 'L' : 'M'
      isDrawing = value !== null
      if (value === null) return []
      const y = HEIGHT - EDGE - (value / top) * (HEIGHT - 2 * EDGE)
      return [`${command}${(EDGE + at * step).toFixed(1)} ${y.toFixed(1)}`]
    })
    .join('')
}
