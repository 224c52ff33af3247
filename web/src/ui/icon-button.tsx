'use client'
import clsx from 'clsx'
import type { ComponentProps } from 'react'
import { Icon, type IconName } from '../icons/icon.tsx'

type IconButtonProps = Omit<ComponentProps<'button'>, 'children' | 'disabled'> & {
  /** Accessible name and tooltip. */
  readonly label: string
  readonly icon: IconName
  /** `default` has a border like a button, `quiet` none. */
  readonly kind?: 'quiet' | 'default'
  readonly pressed?: boolean
  /** Why it is disabled. */
  readonly why?: string | undefined
}

export function IconButton({
  label,
  icon,
  kind = 'quiet',
  pressed,
  why,
  className,
  onClick,
  ...rest
}: IconButtonProps) {
  return (
    <button
      type="button"
      aria-label={why === undefined ? label : `${label}: ${why}`}
      data-tip={why ?? label}
      {...rest}
      aria-pressed={pressed}
      aria-disabled={why !== undefined || undefined}
      className={clsx(
        'inline-flex size-control min-h-6 min-w-6 shrink-0 items-center justify-center rounded-control border transition-colors',
        kind === 'default' ? 'border-line-strong bg-surface' : 'border-transparent',
        why === undefined ? 'text-text-2 hover:bg-sunken hover:text-text' : 'cursor-not-allowed text-text-3',
        pressed && 'bg-sunken text-accent',
        className,
      )}
      onClick={(event) => {
        if (why === undefined) onClick?.(event)
        else event.preventDefault()
      }}
    >
      <Icon name={icon} />
    </button>
  )
}
