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
  // For the confirming button of a dialog that deletes or replaces data.
  'danger-filled': 'border-crit bg-crit text-surface hover:brightness-110',
}

/** A quiet button gets no box by being disabled. */
const BLOCKED: Partial<Record<ButtonKind, string>> = { quiet: 'border-transparent' }

function stylesOf(kind: ButtonKind, isBlocked: boolean, className?: string): string {
  return clsx(
    'inline-flex h-control min-w-control select-none items-center justify-center gap-1.5 whitespace-nowrap rounded-control border px-3 font-medium text-table transition-colors',
    isBlocked ? clsx('cursor-not-allowed text-text-3', BLOCKED[kind] ?? 'border-line bg-sunken') : KINDS[kind],
    className,
  )
}

type ButtonProps = Omit<ComponentProps<'button'>, 'disabled'> & {
  readonly kind?: ButtonKind
  readonly icon?: IconName
  /** Why it is disabled. It stays in place and focusable, with the reason as tooltip and description. */
  readonly why?: string | undefined
  /** In progress: a second click does nothing. */
  readonly busy?: boolean
}

/** Its label is a verb with its object: "Transfer leadership to n2". */
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
      className={stylesOf(kind, isBlocked, className)}
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
  /** The browser saves the response as a file. */
  readonly download?: boolean | string
  readonly newTab?: boolean
}

export function LinkButton({ href, kind = 'default', icon, children, className, download, newTab }: LinkButtonProps) {
  const tab = newTab ? { target: '_blank', rel: 'noreferrer' } : {}
  return (
    <a href={href} download={download} {...tab} className={stylesOf(kind, false, className)}>
      {icon && <Icon name={icon} size={14} />}
      {children}
    </a>
  )
}
