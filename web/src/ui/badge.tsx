'use client'
import type { Level } from '@vacancy/shared/contract'
import clsx from 'clsx'
import type { ReactNode } from 'react'
import { Icon, type IconName } from '../icons/icon.tsx'
import * as copy from './copy.ts'

export const LEVEL_ICONS: Record<Level, IconName> = {
  ok: 'check',
  info: 'info',
  warn: 'triangle',
  crit: 'octagon',
  unk: 'question',
}

const TINTS: Record<Level, string> = {
  ok: 'bg-ok-bg text-ok',
  info: 'bg-info-bg text-info',
  warn: 'bg-warn-bg text-warn',
  crit: 'bg-crit-bg text-crit',
  unk: 'bg-unk-bg text-unk',
}

export const LEVEL_TEXT: Record<Level, string> = {
  ok: 'text-ok',
  info: 'text-info',
  warn: 'text-warn',
  crit: 'text-crit',
  unk: 'text-unk',
}

type BadgeProps = {
  readonly level: Level
  /** The icon of the level by default. */
  readonly icon?: IconName
  readonly children: ReactNode
  readonly className?: string
}

/** A state, always as colour, icon and word. */
export function Badge({ level, icon = LEVEL_ICONS[level], children, className }: BadgeProps) {
  return (
    <span
      data-level={level}
      className={clsx(
        'inline-flex min-h-5 w-fit max-w-full items-center gap-1 rounded-control px-1.5 py-0.5 font-medium text-small',
        TINTS[level],
        className,
      )}
    >
      <Icon name={icon} size={14} />
      <span className="min-w-0">{children}</span>
    </span>
  )
}

type ChipProps = {
  readonly children: ReactNode
  readonly pressed?: boolean
  readonly onClick?: () => void
  /** Accessible name of the remove button: "Remove breakfast". */
  readonly removeLabel?: string
  readonly onRemove?: () => void
}

/** A selected value, or a choice that can be toggled. */
export function Chip({ children, pressed, onClick, removeLabel, onRemove }: ChipProps) {
  const styles = clsx(
    'inline-flex min-h-6 max-w-full items-center gap-1 rounded-control border px-2 text-small',
    pressed ? 'border-accent bg-info-bg text-text' : 'border-line bg-surface text-text-2',
  )
  const content = (
    <>
      {pressed && <Icon name="check" size={12} />}
      <span className="truncate">{children}</span>
    </>
  )
  if (onClick) {
    return (
      <button
        type="button"
        aria-pressed={pressed ?? false}
        onClick={onClick}
        className={clsx(styles, 'border-line-strong hover:bg-sunken pointer-coarse:min-h-11')}
      >
        {content}
      </button>
    )
  }
  return (
    <span className={clsx(styles, onRemove && 'pe-0')}>
      {content}
      {onRemove && (
        <button
          type="button"
          aria-label={removeLabel ?? copy.chip.remove}
          data-tip={removeLabel ?? copy.chip.remove}
          onClick={onRemove}
          className="inline-flex size-6 items-center justify-center rounded-control hover:bg-sunken pointer-coarse:size-11"
        >
          <Icon name="cross" size={12} />
        </button>
      )}
    </span>
  )
}
