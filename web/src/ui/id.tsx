import clsx from 'clsx'
import { CopyButton } from './copy.tsx'

type IdProps = {
  readonly value: string
  /** What it is the id of: "operation", "snapshot". */
  readonly label: string
  /** How many characters are shown; never fewer than 8. All of them are copied. */
  readonly short?: number
  readonly className?: string
}

export function Id({ value, label, short, className }: IdProps) {
  const shown = short === undefined ? value : value.slice(0, Math.max(8, short))
  return (
    <span className={clsx('inline-flex max-w-full items-center gap-0.5', className)}>
      <code className="min-w-0 break-all font-mono text-table" data-tip={shown === value ? undefined : value}>
        {shown}
        {shown !== value && '…'}
      </code>
      <CopyButton text={value} label={`Copy id of ${label}`} className="!size-6" />
    </span>
  )
}
