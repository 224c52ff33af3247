'use client'
import clsx from 'clsx'
import { type ComponentProps, type ReactNode, useId } from 'react'
import { Icon, type IconName } from '../icons/icon.tsx'

export type ButtonKind = 'default' | 'primary' | 'quiet' | 'danger' | 'danger-filled'

const KINDS: Record<ButtonKind, string> = {
  default: 'border-line-strong bg-surface text-text hover:bg-sunken',
  primary: 'border-accent bg-accent text-on-accent hover:brightness-110',
  quiet: 'border-transparent bg-transparent text-text-2 hover:bg-sunken hover:text-text',
  danger: 'border-crit bg-transparent text-crit hover:bg-crit-bg',
  // For the one button of a dialog that removes or replaces data.
  'danger-filled': 'border-crit bg-crit text-surface hover:brightness-110',
}

function look(kind: ButtonKind, isBlocked: boolean, className?: string): string {
  return clsx(
    'inline-flex h-control min-w-control select-none items-center justify-center gap-1.5 whitespace-nowrap rounded-control border px-3 font-medium text-table transition-colors',
    isBlocked ? 'cursor-not-allowed border-line bg-sunken text-text-3' : KINDS[kind],
    className,
  )
}

type ButtonProps = Omit<ComponentProps<'button'>, 'disabled'> & {
  readonly kind?: ButtonKind
  readonly icon?: IconName
  /** Why it cannot be used now: it stays where it is and reachable, and says so. */
  readonly why?: string | undefined
  /** Works on it; a second click does nothing. */
  readonly busy?: boolean
}

/** Says verb and object: "Transfer leadership to n2". */
export function Button({
  kind = 'default',
  icon,
  why,
  busy = false,
  className,
  children,
  onClick,
  ...rest
}: ButtonProps) {
  const id = useId()
  const isBlocked = why !== undefined
  return (
    <button
      type="button"
      {...rest}
      {...(isBlocked ? { 'aria-describedby': id, 'data-tip': why } : {})}
      aria-disabled={isBlocked || busy || undefined}
      aria-busy={busy || undefined}
      className={look(kind, isBlocked, className)}
      onClick={(event) => {
        if (isBlocked || busy) event.preventDefault()
        else onClick?.(event)
      }}
    >
      {icon && <Icon name={icon} size={14} />}
      {children}
      {isBlocked && (
        <span id={id} hidden>
          {why}
        </span>
      )}
    </button>
  )
}

type LinkButtonProps = {
  readonly href: string
  readonly kind?: ButtonKind
  readonly icon?: IconName
  readonly children: ReactNode
  readonly className?: string
  /** The browser saves what it gets. */
  readonly download?: boolean | string
}

export function LinkButton({ href, kind = 'default', icon, children, className, download }: LinkButtonProps) {
  return (
    <a href={href} download={download} className={look(kind, false, className)}>
      {icon && <Icon name={icon} size={14} />}
      {children}
    </a>
  )
}
