import { CopyButton } from './copy-button.tsx'
import * as copy from './data-copy.ts'

type IdProps = {
  readonly value: string
  /** The kind of object: "operation", "snapshot". */
  readonly label: string
  /** Characters shown, at least 8; the whole id is copied. */
  readonly short?: number
}

export function Id({ value, label, short }: IdProps) {
  const shown = short === undefined ? value : value.slice(0, Math.max(8, short))
  return (
    <span className="inline-flex max-w-full items-center gap-0.5">
      <code className="min-w-0 break-all font-mono text-table" data-tip={shown === value ? undefined : value}>
        {shown}
        {shown !== value && '…'}
      </code>
      <CopyButton text={value} label={copy.id.copy(label)} className="!size-6" />
    </span>
  )
}
